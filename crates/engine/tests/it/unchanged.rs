//! Objects that are as rendered already are not applied, unless a policy or webhook sees them.

use anyhow::{Context as _, Result};
use cluster::{ApplyOptions, Cluster};
use engine::DeployOptions;
use engine::MANAGER;
use kluctl::Rendered;
use objects::{
    ObjectRef,
    fixup::{self, RepairedKinds},
    meta,
    unchanged::is_unchanged,
};
use results::CommandResult;
use serde_json::{Value as Json, json};
use testkit::FaultProxy;
use yaml::Value;

use crate::{
    deploy::definition,
    world::{Fixture, connect},
};

struct Watched {
    proxy: FaultProxy,
    cluster: Cluster,
}

impl Watched {
    async fn new(world: &Fixture) -> Result<Self> {
        let proxy = FaultProxy::start(world.plane)?;
        let cluster = connect(&proxy.kubeconfig(world.plane.kubeconfig())?).await?;
        Ok(Self { proxy, cluster })
    }

    async fn deploy(
        &self,
        rendered: &Rendered,
        options: DeployOptions,
    ) -> Result<(CommandResult, Vec<String>)> {
        let before = self.proxy.requests().len();
        let options = DeployOptions {
            contents: true,
            ..options
        };
        let result = engine::deploy(&self.cluster, rendered, &options).await?;
        anyhow::ensure!(result.errors.is_empty(), "{:?}", result.errors);
        let requests = self.proxy.requests();
        let writes = requests.iter().skip(before).filter(|request| request.is_write());
        let names = writes.map(|request| request.path.rsplit('/').next().unwrap_or_default().to_owned());
        let mut names: Vec<String> = names.collect();
        names.sort();
        Ok((result, names))
    }

    async fn writes(&self, rendered: &Rendered) -> Result<Vec<String>> {
        Ok(self.deploy(rendered, DeployOptions::default()).await?.1)
    }
}

/// Objects of several kinds, with lists and maps of every kind of ownership.
fn objects(world: &Fixture) -> Vec<Json> {
    let pods = json!({"metadata": {"labels": {"app": "web"}}, "spec": {
        "containers": [{"name": "main", "image": "main:1", "args": ["--port", "80"], "securityContext": {},
            "env": [{"name": "A", "value": "1"}, {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
            "envFrom": [{"configMapRef": {"name": "none", "optional": true}}],
            "ports": [{"containerPort": 80}, {"containerPort": 53, "protocol": "UDP"}],
            "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}},
            "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}]}],
        "nodeSelector": {"none": "such"}, "volumes": [{"name": "tmp", "emptyDir": {}}],
        "tolerations": [{"key": "a", "operator": "Exists"}]}});
    vec![
        world.object("v1", "ServiceAccount", "runner", json!({})),
        world.object("rbac.authorization.k8s.io/v1", "Role", "reader", json!({"rules": [
            {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}]})),
        world.object("v1", "Service", "web", json!({"spec": {"selector": {"app": "web"},
            "ports": [{"name": "http", "port": 80, "targetPort": 80}, {"name": "dns", "port": 53, "protocol": "UDP"}]}})),
        world.object("apps/v1", "Deployment", "web", json!({"spec": {"replicas": 0,
            "selector": {"matchLabels": {"app": "web"}}, "strategy": {"type": "Recreate"}, "template": pods}})),
        world.object("networking.k8s.io/v1", "NetworkPolicy", "none", json!({"spec": {"podSelector": {},
            "policyTypes": ["Ingress"], "ingress": [{"from": [{"podSelector": {"matchLabels": {"a": "b"}}}]}]}})),
        world.object("policy/v1", "PodDisruptionBudget", "web", json!({"spec": {"maxUnavailable": 1,
            "selector": {"matchLabels": {"app": "web"}}}})),
    ]
}

async fn live(world: &Fixture, of: &ObjectRef) -> Result<Value> {
    world.cluster.get(of).await?.context("it is gone")
}

/// Applies all unchanged objects, and asserts that the API server answers with the live ones.
async fn check_unchanged(world: &Fixture, rendered: &Rendered) -> Result<Vec<String>> {
    let mut unchanged = Vec::new();
    for manifest in rendered.objects() {
        let manifest = fixup::apply(manifest, RepairedKinds::Any);
        let before = live(world, &ObjectRef::of(&manifest)?).await?;
        if is_unchanged(&manifest, &before, MANAGER) {
            let after = world
                .cluster
                .apply(&manifest, ApplyOptions::new(MANAGER))
                .await?
                .object;
            assert_eq!(before, after, "an apply is not what it was said to be");
            unchanged.push(meta::text(&before, "name").unwrap_or_default().to_owned());
        }
    }
    Ok(unchanged)
}

#[tokio::test]
async fn unchanged_objects_are_not_applied() -> Result<()> {
    let world = Fixture::new("unchanged").await?;
    let watched = Watched::new(&world).await?;
    let all = objects(&world);
    let rendered = world.rendered(all.clone());
    let (first, writes) = watched.deploy(&rendered, DeployOptions::default()).await?;
    assert_eq!((first.counts().new, writes.len()), (all.len(), all.len()));
    let (second, writes) = watched.deploy(&rendered, DeployOptions::default()).await?;
    assert_eq!(writes, [""; 0]);
    assert!(second.is_unchanged() && second.objects.iter().all(|object| object.is_applied));
    for object in &second.objects {
        assert!(
            object.applied.is_some() && object.applied == object.remote,
            "{}",
            object.reference
        );
    }
    let dry = DeployOptions {
        dry_run: true,
        ..DeployOptions::default()
    };
    assert_eq!(watched.deploy(&rendered, dry).await?.1, [""; 0]);
    let force = DeployOptions {
        force_apply: true,
        ..DeployOptions::default()
    };
    assert_eq!(
        watched.deploy(&rendered, force).await?.1.len(),
        all.len(),
        "force means force"
    );
    assert_eq!(check_unchanged(&world, &rendered).await?.len(), all.len());
    Ok(())
}

#[tokio::test]
async fn changes_of_others_are_reverted() -> Result<()> {
    let world = Fixture::new("unsettled").await?;
    let watched = Watched::new(&world).await?;
    let rendered = world.rendered(objects(&world));
    watched.writes(&rendered).await?;
    for (manager, what, patch) in [
        ("kubectl-edit", "deployment/web", json!({"spec": {"replicas": 1}})),
        (
            "kubectl-edit",
            "service/web",
            json!({"spec": {"selector": {"other": "x"}}}),
        ),
        (
            "kubectl-edit",
            "networkpolicy/none",
            json!({"spec": {"ingress": []}}),
        ),
        (
            "kubectl-edit",
            "role/reader",
            json!({"metadata": {"labels": {"kluctl.io/discriminator": null}}}),
        ),
        (
            "kubectl-edit",
            "role/reader",
            json!({"metadata": {"managedFields": [{}]}}),
        ),
        (
            "kluctl",
            "serviceaccount/runner",
            json!({"metadata": {"annotations": {"kluctl.io/deployment-item-dir": null}}}),
        ),
    ] {
        world.patch_as(manager, what, patch.clone()).await?;
        let name = what.split('/').nth(1).unwrap_or_default();
        let mut writes = watched.writes(&rendered).await?;
        writes.dedup();
        assert_eq!(writes, [name], "{what} {patch}");
        assert_eq!(watched.writes(&rendered).await?, [""; 0], "{what} {patch}");
    }
    // Fields of others are not a reason to write.
    let label = json!({"metadata": {"labels": {"theirs": "x"}}});
    for what in ["deployment/web", "service/web", "role/reader"] {
        world.patch_as("somebody", what, label.clone()).await?;
    }
    assert_eq!(watched.writes(&rendered).await?, [""; 0]);
    assert_eq!(
        check_unchanged(&world, &rendered).await?.len(),
        rendered.objects().count()
    );
    Ok(())
}

#[tokio::test]
async fn a_changed_manifest_is_applied() -> Result<()> {
    let world = Fixture::new("manifests").await?;
    let watched = Watched::new(&world).await?;
    let account = |extra: Json| {
        let mut account = world.object("v1", "ServiceAccount", "a", json!({}));
        account["metadata"]["annotations"] = json!({"a": "1", "b": "2"});
        for (at, value) in extra.as_object().into_iter().flatten() {
            account["metadata"]["annotations"][at] = value.clone();
        }
        account
    };
    watched
        .writes(&world.rendered(vec![account(json!({"c": "3"}))]))
        .await?;
    let less = world.rendered(vec![account(json!({}))]);
    assert_eq!(watched.writes(&less).await?, ["a"], "an annotation goes");
    let reference = ObjectRef::of(&less.items[0].objects[0])?;
    assert_eq!(meta::annotation(&live(&world, &reference).await?, "c"), None);
    // A foreign field is rendered only later: from then on it is ours, too.
    let theirs = json!({"metadata": {"annotations": {"d": "4"}}});
    world.patch_as("somebody", "serviceaccount/a", theirs).await?;
    assert_eq!(watched.writes(&less).await?, [""; 0]);
    let more = world.rendered(vec![account(json!({"d": "4"}))]);
    assert_eq!(watched.writes(&more).await?, ["a"]);
    assert_eq!(watched.writes(&more).await?, [""; 0]);
    assert_eq!(watched.writes(&less).await?, ["a"], "and goes from us alone");
    assert_eq!(meta::annotation(&live(&world, &reference).await?, "d"), Some("4"));
    // Values that the API server writes otherwise are compared by the API server.
    let quota = world.object(
        "v1",
        "ResourceQuota",
        "q",
        json!({"spec": {"hard": {"requests.cpu": "1000m"}}}),
    );
    let quota = world.rendered(vec![quota]);
    assert_eq!(watched.writes(&quota).await?, ["q"]);
    assert_eq!(watched.writes(&quota).await?, ["q"]);
    Ok(())
}

#[tokio::test]
async fn objects_changed_by_the_deployment_are_checked_again() -> Result<()> {
    let world = Fixture::new("changing").await?;
    let watched = Watched::new(&world).await?;
    let account = |name: &str, value: &str| {
        let mut account = world.object("v1", "ServiceAccount", name, json!({}));
        account["metadata"]["annotations"] = json!({"value": value});
        account
    };
    let items = |value: &str| world.items(vec![vec![account("a", value)], vec![account("b", "1")]]);
    watched.writes(&items("1")).await?;
    assert_eq!(
        watched.writes(&items("2")).await?,
        ["a"],
        "the other one is read anew"
    );
    let mut again = items("2");
    again.items[0].delete_objects = vec![kluctl::ObjectSelector {
        group: Some(String::new()),
        kind: Some("ServiceAccount".to_owned()),
        name: "b".to_owned(),
        namespace: Some(world.namespace.clone()),
    }];
    let old = live(&world, &world.reference("v1", "ServiceAccount", "b")).await?;
    assert_eq!(watched.writes(&again).await?, ["b", "b"], "deleted and applied");
    let new = live(&world, &world.reference("v1", "ServiceAccount", "b")).await?;
    assert_ne!(meta::uid(&old), meta::uid(&new));
    Ok(())
}

#[tokio::test]
async fn objects_seen_by_a_policy_are_applied() -> Result<()> {
    let world = Fixture::new("looked-at").await?;
    let watched = Watched::new(&world).await?;
    let ranges = world.object(
        "v1",
        "LimitRange",
        "r",
        json!({"spec": {"limits": [
        {"type": "Pod", "max": {"cpu": "2"}}]}}),
    );
    let rendered = world.rendered(vec![ranges]);
    watched.writes(&rendered).await?;
    let name = format!("{}.example.com", world.namespace);
    let policy = Value::from_json(
        json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name}, "spec": {
            "matchConstraints": {"resourceRules": [
                {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["limitranges"]}]},
            "validations": [{"expression": "false", "message": "looked at"}]}}),
    );
    let binding = Value::from_json(json!({"apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": name},
        "spec": {"policyName": name, "validationActions": ["Warn"]}}));
    for object in [&policy, &binding] {
        world.cluster.apply(object, ApplyOptions::new(MANAGER)).await?;
    }
    let (_, writes) = watched.deploy(&rendered, DeployOptions::default()).await?;
    for object in [&binding, &policy] {
        let reference = ObjectRef::of(object)?;
        world
            .cluster
            .delete(&reference, cluster::DeleteOptions::default())
            .await?;
    }
    assert_eq!(writes, ["r"]);
    Ok(())
}

#[tokio::test]
async fn warnings_are_repeated_in_every_deployment() -> Result<()> {
    let world = Fixture::new("warned-of").await?;
    let watched = Watched::new(&world).await?;
    let workload = world.object(
        "apps/v1",
        "Deployment",
        "web",
        json!({"spec": {"replicas": 0,
        "selector": {"matchLabels": {"app": "web"}}, "template": {"metadata": {"labels": {"app": "web"}},
            "spec": {"hostNetwork": true, "containers": [{"name": "main", "image": "main:1"}]}}}}),
    );
    let rendered = world.rendered(vec![workload]);
    watched.writes(&rendered).await?;
    assert_eq!(watched.writes(&rendered).await?, [""; 0]);
    let label = "pod-security.kubernetes.io/warn=baseline";
    world
        .plane
        .kubectl(&["label", "namespace", &world.namespace, label])
        .await?;
    for _ in 0..2 {
        let (result, writes) = watched.deploy(&rendered, DeployOptions::default()).await?;
        assert_eq!(writes, ["web"]);
        let warned = result
            .warnings
            .iter()
            .any(|warning| warning.message.contains("host"));
        assert!(warned, "{:?}", result.warnings);
    }
    Ok(())
}

#[tokio::test]
async fn versions_and_resources_of_definitions_are_distinguished() -> Result<()> {
    let world = Fixture::new("versions").await?;
    let watched = Watched::new(&world).await?;
    let scaler = |version: &str, spec: Json| {
        let mut scaler = world.object(version, "HorizontalPodAutoscaler", "web", json!({ "spec": spec }));
        scaler["spec"]["maxReplicas"] = json!(3);
        scaler["spec"]["scaleTargetRef"] =
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "none"});
        world.rendered(vec![scaler])
    };
    let newer = scaler("autoscaling/v2", json!({}));
    let older = scaler("autoscaling/v1", json!({}));
    assert_eq!(watched.writes(&newer).await?, ["web"]);
    assert_eq!(watched.writes(&newer).await?, [""; 0]);
    // In the older version `scaleTargetRef` is owned as a whole, in the newer one it is merged.
    for (rendered, writes, unchanged) in [(&older, 1, 0), (&older, 1, 0), (&newer, 1, 1), (&newer, 0, 1)] {
        assert_eq!(watched.writes(rendered).await?.len(), writes);
        assert_eq!(check_unchanged(&world, rendered).await?.len(), unchanged);
    }

    let group = format!("{}.example.com", world.namespace);
    let definition = definition(&group);
    let thing =
        |name: &str, spec: Json| world.object(&format!("{group}/v1"), "Thing", name, json!({ "spec": spec }));
    let rendered = world.items(vec![
        vec![definition],
        vec![
            thing("simple", json!({"size": 3, "of": {"a": "b"}})),
            thing("listed", json!({"list": [1, 2]})),
        ],
    ]);
    watched.deploy(&rendered, DeployOptions::default()).await?;
    let writes = watched.writes(&rendered).await?;
    assert!(
        writes.contains(&"listed".to_owned()) && !writes.contains(&"simple".to_owned()),
        "{writes:?}"
    );
    let unchanged = check_unchanged(&world, &rendered).await?;
    assert!(unchanged.contains(&"simple".to_owned()) && !unchanged.contains(&"listed".to_owned()));
    let definition = ObjectRef::of(&rendered.items[0].objects[0])?;
    world
        .cluster
        .delete(&definition, cluster::DeleteOptions::default())
        .await?;
    Ok(())
}

#[tokio::test]
async fn objects_changed_by_a_webhook_are_applied() -> Result<()> {
    let world = Fixture::new("mutated").await?;
    let watched = Watched::new(&world).await?;
    let lease = json!({"spec": {"holderIdentity": "nobody", "leaseDurationSeconds": 15}});
    let lease = world.object("coordination.k8s.io/v1", "Lease", "l", lease);
    let rendered = world.rendered(vec![lease]);
    watched.writes(&rendered).await?;
    assert_eq!(watched.writes(&rendered).await?, [""; 0]);
    let webhook = Value::from_json(json!({"apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration", "metadata": {"name": world.namespace}, "webhooks": [{
            "name": "nobody.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "failurePolicy": "Ignore", "timeoutSeconds": 1, "clientConfig": {"url": "https://127.0.0.1:1/"},
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": world.namespace}},
            "rules": [{"apiGroups": ["coordination.k8s.io"], "apiVersions": ["v1"], "operations": ["*"],
                "resources": ["leases"]}]}]}));
    world.cluster.apply(&webhook, ApplyOptions::new(MANAGER)).await?;
    let writes = watched.writes(&rendered).await;
    let reference = ObjectRef::of(&webhook)?;
    world
        .cluster
        .delete(&reference, cluster::DeleteOptions::default())
        .await?;
    assert_eq!(writes?, ["l"]);
    Ok(())
}

//! The attacks, and how each is refused.

use anyhow::{Context as _, Result, ensure};
use kube::{Api, ResourceExt as _, api::DeleteParams, api::Patch, api::PatchParams};
use serde_json::{Value, json};
use testkit::{Fault, Manifest, Repo, eventually, manifest, wait_for, wait_gone};

use super::tenants::{ATTACKER, HOUR, Tenants, VICTIM, admin};
use crate::cluster::{TIMEOUT, ready_condition};

/// Git servers that accept connections and never answer.
const TARPITS: usize = 64;
/// Deployments that never become ready.
const SLOW: usize = 8;
/// Addresses that no variable may come from.
const ADDRESSES: [&str; 9] = [
    "http://169.254.169.254/latest/meta-data/",
    "http://168.63.129.16/machine",
    "http://100.100.100.200/latest/",
    "http://[fd00:ec2::254]/latest/",
    "http://127.0.0.2:6443/api",
    "http://notification-controller.flux-system.svc.cluster.local./",
    "https://kubernetes.default.svc/api",
    "https://10.96.0.1/api",
    "https://10.0.0.4:10250/pods",
];

/// Applies everything, with the rights of an administrator of a namespace.
pub async fn start(tenants: &Tenants) -> Result<String> {
    poison(tenants).await?;
    // It deploys first: the rest keeps the attacker's own objects waiting.
    removal(tenants).await?;
    slow(tenants).await?;
    tarpits(tenants).await?;
    theft(tenants).await?;
    variables(tenants).await?;
    forged_events(tenants).await?;
    oracle(tenants).await?;
    kubeconfig(tenants).await?;
    foreign_objects(tenants).await?;
    Ok(format!(
        "{TARPITS} tarpits, {SLOW} slow deployments, and nine others"
    ))
}

/// Checks the outcome of each attack.
pub async fn refused(tenants: &Tenants) -> Result<String> {
    for (kind, name) in [
        ("Alert", "oracle"),
        ("KluctlDeployment", "insecure"),
        ("KluctlDeployment", "foreign-source"),
    ] {
        let denied = |reason: &str, _: &str| reason == "AccessDenied";
        let (_, message) = tenants.failed(kind, name, denied).await?;
        ensure!(!message.contains("victim-app"), "{name}: {message}");
    }
    let invalid = |reason: &str, _: &str| reason == "InvalidSpec";
    tenants.failed("KluctlDeployment", "poison", invalid).await?;
    for (number, address) in ADDRESSES.iter().enumerate() {
        let name = format!("variables-{number}");
        let refused = |_: &str, message: &str| message.contains("refused") || message.contains("not allowed");
        let failed = tenants.failed("KluctlDeployment", &name, refused).await;
        failed.with_context(|| (*address).to_owned())?;
    }
    let (_, message) = tenants.failed("KluctlDeployment", "theft", |_, _| true).await?;
    let victim = source_of_victim(tenants).await?;
    let digest = victim["digest"].as_str().context("a digest")?;
    ensure!(
        !message.contains(digest.trim_start_matches("sha256:")),
        "the digest is told: {message}"
    );
    ensure!(
        tenants.attacking("ConfigMap", "settings").await.is_err(),
        "the artifact was deployed"
    );
    let forbidden = |_: &str, message: &str| message.contains("forbidden");
    let (_, message) = tenants.failed("KluctlDeployment", "intruder", forbidden).await?;
    ensure!(!message.contains("settings\":"), "{message}");
    removal_is_incomplete(tenants).await?;
    let received = tenants.cluster.sink.received();
    let told = |request: &&testkit::Received| {
        request.path != "/victim"
            && request.json().pointer("/involvedObject/namespace") != Some(&json!(ATTACKER))
    };
    let told = received.iter().find(told);
    ensure!(told.is_none(), "the attacker heard of the victim: {told:?}");
    let forged = received
        .iter()
        .any(|request| request.json().to_string().contains("forged"));
    ensure!(!forged, "a forged event was delivered");
    Ok("all of them".to_owned())
}

/// Pushes a project that deploys these objects, one target for each name.
pub(super) fn project(
    tenants: &Tenants,
    name: &str,
    targets: &[(&str, &str)],
    objects: &[Value],
) -> Result<Repo> {
    let repo = tenants.cluster.git.repo(&format!("attack-{name}"))?;
    let targets: Vec<Value> = targets
        .iter()
        .map(|(target, discriminator)| json!({"name": target, "discriminator": discriminator}))
        .collect();
    let mut change = repo
        .change(name)
        .write(".kluctl.yaml", json!({ "targets": targets }).to_string())
        .write("deployment.yaml", "deployments:\n  - path: objects\n");
    for (number, object) in objects.iter().enumerate() {
        change = change.write(&format!("objects/{number}.yaml"), object.to_string());
    }
    change.push()?;
    Ok(repo)
}

pub(super) fn config_map(namespace: &str, name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}, "data": {"by": "attacker"}})
}

fn deployment(name: &str, source: &str, target: &str) -> Manifest {
    manifest::kluctl_deployment(ATTACKER, name, source, ".").spec(json!({
        "interval": "5s", "retryInterval": "5s", "timeout": format!("{}s", HOUR.as_secs()), "target": target,
    }))
}

async fn deploy(tenants: &Tenants, name: &str, objects: &[Value]) -> Result<()> {
    let repo = project(tenants, name, &[("t", &format!("attack-{name}"))], objects)?;
    tenants
        .apply(manifest::git_repository(ATTACKER, name, &repo.url()))
        .await?;
    tenants.apply(deployment(name, name, "t")).await
}

pub(super) async fn deploy_with(tenants: &Tenants, name: &str, spec: Value) -> Result<()> {
    let target = format!("attack-{name}");
    let repo = project(tenants, name, &[("t", &target)], &[config_map(ATTACKER, name)])?;
    tenants
        .apply(manifest::git_repository(ATTACKER, name, &repo.url()))
        .await?;
    tenants.apply(deployment(name, name, "t").spec(spec)).await
}

/// An object that the schema accepts and the type refuses, with a dependency on everything.
async fn poison(tenants: &Tenants) -> Result<()> {
    let poison = deployment("poison", "poison", "t").spec(json!({"interval": "99999999999999h"}));
    let poison = Value::from(poison);
    // The looser definition takes a moment.
    eventually("the poison to be accepted", TIMEOUT, || {
        tenants.apply(poison.clone())
    })
    .await
}

/// Deployments that wait for ever, with everything that makes them wait.
async fn slow(tenants: &Tenants) -> Result<()> {
    let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": "never", "namespace": ATTACKER, "annotations": {"kluctl.io/wait-readiness": "true"}},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
    let names: Vec<String> = (0..SLOW).map(|number| format!("slow-{number}")).collect();
    let targets: Vec<_> = names.iter().map(|name| (name.as_str(), name.as_str())).collect();
    let repo = project(tenants, "slow", &targets, &[claim])?;
    tenants
        .apply(manifest::git_repository(ATTACKER, "slow", &repo.url()))
        .await?;
    for name in &names {
        tenants.apply(deployment(name, "slow", name)).await?;
    }
    Ok(())
}

async fn tarpits(tenants: &Tenants) -> Result<()> {
    for number in 0..TARPITS {
        // Objects of one repository would wait for each other.
        let repo = tenants.cluster.git.repo(&format!("attack-tarpit-{number}"))?;
        repo.fail(Fault::Hang);
        let source = manifest::git_repository(ATTACKER, &format!("tarpit-{number}"), &repo.url());
        let (key, value) = super::inputs::FILTERED;
        let source = source.label(key, value);
        tenants
            .apply(source.spec(json!({"interval": "1s", "timeout": "60m"})))
            .await?;
    }
    Ok(())
}

/// A deployment whose rights go before it is removed.
async fn removal(tenants: &Tenants) -> Result<()> {
    deploy(tenants, "removal", &[config_map(ATTACKER, "kept")]).await?;
    tenants
        .apply(deployment("removal", "removal", "t").spec(json!({"delete": true})))
        .await?;
    eventually("the ConfigMap of the attacker", TIMEOUT, || {
        tenants.attacking("ConfigMap", "kept")
    })
    .await?;
    Ok(())
}

async fn removal_is_incomplete(tenants: &Tenants) -> Result<()> {
    let plane = &tenants.cluster.plane;
    plane
        .kubectl(&["delete", "rolebinding", "admin-default", "-n", ATTACKER])
        .await?;
    tenants.rights_are_gone("default").await?;
    let deployments = deployments(tenants);
    deployments.delete("removal", &DeleteParams::default()).await?;
    let failed = wait_for(
        &deployments,
        "removal",
        "its removal to fail",
        TIMEOUT,
        |object| {
            object.metadata.deletion_timestamp.is_some()
                && ready_condition(object).is_some_and(|ready| {
                    ready.is_false() && ready.message.starts_with("cannot delete what was deployed")
                })
        },
    )
    .await?;
    ensure!(!failed.finalizers().is_empty(), "the finalizer is gone");
    tenants
        .attacking("ConfigMap", "kept")
        .await
        .context("it was deleted without rights")?;
    plane.apply(admin(ATTACKER, "default")).await?;
    wait_gone(&deployments, "removal", 2 * TIMEOUT).await?;
    ensure!(
        tenants.attacking("ConfigMap", "kept").await.is_err(),
        "objects were left behind"
    );
    Ok(())
}

fn deployments(tenants: &Tenants) -> Api<api::kluctl::KluctlDeployment> {
    Api::namespaced(tenants.cluster.client.clone(), ATTACKER)
}

async fn source_of_victim(tenants: &Tenants) -> Result<Value> {
    let sources: Api<api::source::GitRepository> = Api::namespaced(tenants.cluster.client.clone(), VICTIM);
    let status = sources.get("app").await?.status.context("no status")?;
    Ok(serde_json::to_value(status.artifact.context("no artifact")?)?)
}

/// A source whose status names the victim's artifact.
async fn theft(tenants: &Tenants) -> Result<()> {
    let loot = manifest::git_repository(ATTACKER, "loot", "https://git.example.com/none");
    tenants.apply(loot.spec(json!({"suspend": true}))).await?;
    let artifact = source_of_victim(tenants).await?;
    let status = json!({"status": {"artifact": artifact, "observedGeneration": 1, "conditions": [{
        "type": "Ready", "status": "True", "reason": "Succeeded", "message": "stored", "observedGeneration": 1,
        "lastTransitionTime": "2020-01-01T00:00:00Z"}]}});
    let patch = Patch::Merge(&status);
    let own: Api<api::source::GitRepository> = Api::namespaced(tenants.mallory.clone(), ATTACKER);
    let written = own.patch_status("loot", &PatchParams::default(), &patch).await;
    ensure!(written.is_err(), "the edit role may write the status of sources");
    // Roles of an operator may be wider than ours.
    let as_admin: Api<api::source::GitRepository> = Api::namespaced(tenants.cluster.client.clone(), ATTACKER);
    as_admin
        .patch_status("loot", &PatchParams::default(), &patch)
        .await?;
    tenants.apply(deployment("theft", "loot", "only")).await
}

/// Variables from the addresses of clouds, of this machine and of the cluster.
async fn variables(tenants: &Tenants) -> Result<()> {
    for (number, address) in ADDRESSES.iter().enumerate() {
        let name = format!("variables-{number}");
        let repo = tenants.cluster.git.repo(&format!("attack-{name}"))?;
        let vars = json!({"vars": [{"http": {"url": address}}], "deployments": [{"path": "objects"}]});
        repo.change("vars")
            .write(
                ".kluctl.yaml",
                json!({"targets": [{"name": "t", "discriminator": name}]}).to_string(),
            )
            .write("deployment.yaml", vars.to_string())
            .write("objects/0.yaml", config_map(ATTACKER, &name).to_string())
            .push()?;
        tenants
            .apply(manifest::git_repository(ATTACKER, &name, &repo.url()))
            .await?;
        tenants.apply(deployment(&name, &name, "t")).await?;
    }
    Ok(())
}

/// Events about the victim from an account that is not a controller.
async fn forged_events(tenants: &Tenants) -> Result<()> {
    let notification = tenants.cluster.controller("notification-controller")?;
    let event = json!({
        "involvedObject": {"apiVersion": "flux.kluctl.io/v1alpha1", "kind": "KluctlDeployment", "name": "app", "namespace": VICTIM},
        "severity": "error", "message": "forged", "reason": "forged", "reportingController": "kluctl-controller",
        "timestamp": "2024-01-01T00:00:00Z",
    });
    let plane = &tenants.cluster.plane;
    let api_server = plane
        .service_account_token(ATTACKER, "mallory", "https://kubernetes.default.svc")
        .await?;
    let events = plane
        .service_account_token(ATTACKER, "mallory", testkit::stack::EVENTS_AUDIENCE)
        .await?;
    for token in [None, Some("nonsense".to_owned()), Some(api_server), Some(events)] {
        let client = testkit::http::client(None)?;
        let status = eventually("a forged event to be answered", TIMEOUT, || async {
            let request = client
                .post(notification.events_url())
                .header("content-type", "application/json")
                .body(event.to_string());
            let request = match &token {
                Some(token) => request.bearer_auth(token),
                None => request,
            };
            let status = request.send().await?.status().as_u16();
            // The API server may be too slow for a review while it is attacked.
            ensure!(status != 503, "its token cannot be reviewed now");
            Ok(status)
        })
        .await?;
        ensure!(
            matches!(status, 401 | 403),
            "a forged event was answered with {status}"
        );
    }
    Ok(())
}

/// An Alert about objects of the victim, that would tell whether they exist.
async fn oracle(tenants: &Tenants) -> Result<()> {
    let url = tenants.cluster.sink.url("/attacker");
    tenants
        .apply(manifest::provider(ATTACKER, "sink", "generic", &url))
        .await?;
    let oracle = manifest::alert(ATTACKER, "oracle", "sink", &[]).spec(json!({"eventSources": [
        {"kind": "KluctlDeployment", "name": "app", "namespace": VICTIM, "matchLabels": {"a": "b"}},
        {"kind": "GitRepository", "name": "*", "namespace": VICTIM},
    ]}));
    tenants.apply(oracle).await
}

/// A kubeconfig that turns off the verification of its server.
async fn kubeconfig(tenants: &Tenants) -> Result<()> {
    let text = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts:\n- name: c\n  context: {{cluster: c, user: u}}\n\
         clusters:\n- name: c\n  cluster: {{server: '{}', insecure-skip-tls-verify: true}}\nusers:\n- name: u\n  user: {{token: t}}\n",
        tenants.cluster.plane.server()
    );
    tenants
        .apply(json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "insecure", "namespace": ATTACKER},
            "stringData": {"value": text}}))
        .await?;
    let repo = project(
        tenants,
        "insecure",
        &[("t", "attack-insecure")],
        &[config_map(ATTACKER, "insecure")],
    )?;
    tenants
        .apply(manifest::git_repository(ATTACKER, "insecure", &repo.url()))
        .await?;
    tenants
        .apply(
            deployment("insecure", "insecure", "t")
                .spec(json!({"kubeConfig": {"secretRef": {"name": "insecure"}}})),
        )
        .await
}

/// The victim's discriminator, source and namespace in objects of the attacker.
async fn foreign_objects(tenants: &Tenants) -> Result<()> {
    let repo = project(
        tenants,
        "same",
        &[("t", "victim-app")],
        &[config_map(ATTACKER, "same")],
    )?;
    tenants
        .apply(manifest::git_repository(ATTACKER, "same", &repo.url()))
        .await?;
    tenants
        .apply(deployment("same", "same", "t").spec(json!({"prune": true, "delete": true})))
        .await?;
    let source = json!({"sourceRef": {"kind": "GitRepository", "name": "app", "namespace": VICTIM}});
    tenants
        .apply(deployment("foreign-source", "app", "only").spec(source))
        .await?;
    let intruder = [config_map(VICTIM, "settings")];
    deploy(tenants, "intruder", &intruder).await
}

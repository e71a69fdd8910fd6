//! Settings outside of manifests: fields that are left to others, watched variables, and clusters that a ConfigMap describes.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use k8s_openapi::api::apps::v1::Deployment;
use kube::{
    Api, ResourceExt as _,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};
use testkit::eventually;

use crate::fixture::{Fixture, TIMEOUT, condition, grant, map};

async fn data(fixture: &Fixture, name: &str) -> Result<BTreeMap<String, String>> {
    Ok(fixture.maps().get(name).await?.data.unwrap_or_default())
}

fn pairs(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    pairs.iter().map(owned).collect()
}

/// A16: drift of fields that a rule names stays, and another manager becomes their only one; other drift is corrected.
#[tokio::test(flavor = "multi_thread")]
async fn ignored_fields_are_left_to_others() -> Result<()> {
    let fixture = Fixture::new("ignoring", &[]).await?;
    let manifest = |name: &str, value: &str| {
        let data = json!({ "scaled": value, "fixed": value });
        json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name }, "data": data })
            .to_string()
    };
    let files = |value: &str| [("a.yaml", manifest("a", value)), ("b.yaml", manifest("b", value))];
    let rules = json!([{ "paths": ["/data/scaled"], "target": { "kind": "Config.*", "name": "a" } }]);
    let first = fixture.offer("shop", &files("1")).await?;
    fixture.deploy("shop", json!({ "ignore": rules })).await?;
    fixture.applied("shop", &first).await?;

    for name in ["a", "b"] {
        let scaled = json!({ "apiVersion": "v1", "kind": "ConfigMap", "data": { "scaled": "9" }, "metadata": { "name": name } });
        let scaler = PatchParams::apply("scaler").force();
        fixture.maps().patch(name, &scaler, &Patch::Apply(scaled)).await?;
        let edited = Patch::Merge(json!({ "data": { "fixed": "by hand" } }));
        fixture
            .maps()
            .patch(name, &PatchParams::default(), &edited)
            .await?;
    }
    fixture.reconcile("shop").await?;
    assert_eq!(
        data(&fixture, "a").await?,
        pairs(&[("scaled", "9"), ("fixed", "1")])
    );
    assert_eq!(
        data(&fixture, "b").await?,
        pairs(&[("scaled", "1"), ("fixed", "1")])
    );

    let second = fixture.offer("shop", &files("2")).await?;
    fixture.applied("shop", &second).await?;
    assert_eq!(
        data(&fixture, "a").await?,
        pairs(&[("scaled", "9"), ("fixed", "2")])
    );
    let managers = fixture
        .maps()
        .get("a")
        .await?
        .metadata
        .managed_fields
        .unwrap_or_default();
    let of_scaled = managers.iter().filter(|entry| {
        let fields = entry.fields_v1.as_ref().map(|fields| &fields.0);
        fields.is_some_and(|fields| fields.pointer("/f:data/f:scaled").is_some())
    });
    let of_scaled: Vec<_> = of_scaled.filter_map(|entry| entry.manager.as_deref()).collect();
    assert_eq!(of_scaled, ["scaler"]);
    Ok(())
}

/// A16: a rule without a target applies to all objects, and a value that an edit set survives when its object is applied for another reason.
#[tokio::test(flavor = "multi_thread")]
async fn ignored_fields_without_a_target_survive_each_apply() -> Result<()> {
    let fixture = Fixture::new("ignoring-all", &[]).await?;
    let files = |value: &str| {
        ["a", "b"].map(|name| {
            let data = json!({ "free": "1", "fixed": value });
            let map = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name }, "data": data });
            (if name == "a" { "a.yaml" } else { "b.yaml" }, map.to_string())
        })
    };
    let first = fixture.offer("shop", &files("1")).await?;
    let rules = json!([{ "paths": ["/data/free"] }]);
    fixture.deploy("shop", json!({ "ignore": rules })).await?;
    fixture.applied("shop", &first).await?;
    for name in ["a", "b"] {
        let edited = Patch::Merge(json!({ "data": { "free": "9" } }));
        fixture
            .maps()
            .patch(name, &PatchParams::default(), &edited)
            .await?;
    }
    fixture.reconcile("shop").await?;
    let second = fixture.offer("shop", &files("2")).await?;
    fixture.applied("shop", &second).await?;
    for name in ["a", "b"] {
        assert_eq!(
            data(&fixture, name).await?,
            pairs(&[("free", "9"), ("fixed", "2")])
        );
    }
    // Without the rule, the field is the owner's again.
    fixture.edit("shop", json!({ "ignore": null })).await?;
    fixture.reconcile("shop").await?;
    for name in ["a", "b"] {
        assert_eq!(
            data(&fixture, name).await?,
            pairs(&[("free", "1"), ("fixed", "2")])
        );
    }
    Ok(())
}

/// Returns the managers that own the replicas of a Deployment by applying them.
fn owners_of_replicas(deployment: &Deployment) -> Vec<&str> {
    let managers = deployment.managed_fields().iter().filter(|entry| {
        let fields = entry.fields_v1.as_ref().map(|fields| &fields.0);
        let owns = fields.is_some_and(|fields| fields.pointer("/f:spec/f:replicas").is_some());
        owns && entry.operation.as_deref() == Some("Apply")
    });
    managers.filter_map(|entry| entry.manager.as_deref()).collect()
}

/// A16: an ignored field is the owner's again, with the value of the cluster, once the manager that took it gives it up.
#[tokio::test(flavor = "multi_thread")]
async fn ignored_fields_that_are_given_up_are_applied_again() -> Result<()> {
    let fixture = Fixture::new("ignoring-again", &[]).await?;
    let labels = json!({ "app": "a" });
    let manifest = |fields: Value| {
        let pods = json!({
            "metadata": { "labels": labels }, "spec": { "containers": [{ "name": "a", "image": "a" }] },
        });
        let mut spec = json!({ "selector": { "matchLabels": labels }, "template": pods });
        for (name, value) in fields.as_object().into_iter().flatten() {
            spec[name] = value.clone();
        }
        json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "a" }, "spec": spec })
    };
    let offer = async |seconds: u32| -> Result<()> {
        let object = manifest(json!({ "replicas": 2, "minReadySeconds": seconds }));
        let revision = fixture.offer("shop", &[("a.yaml", object.to_string())]).await?;
        if seconds == 1 {
            let rules = json!([{ "paths": ["/spec/replicas"] }]);
            fixture.deploy("shop", json!({ "ignore": rules })).await?;
        }
        fixture.applied("shop", &revision).await.map(drop)
    };
    let deployments: Api<Deployment> = Api::namespaced(fixture.client.clone(), &fixture.namespace);
    let scaler = PatchParams::apply("scaler").force();
    let replicas = |deployment: &Deployment| deployment.spec.as_ref().and_then(|spec| spec.replicas);
    offer(1).await?;
    let created = deployments.get("a").await?;
    assert_eq!(owners_of_replicas(&created), ["kustomize-controller"]);

    let scaled = Patch::Apply(manifest(json!({ "replicas": 5 })));
    deployments.patch("a", &scaler, &scaled).await?;
    offer(2).await?;
    let left = deployments.get("a").await?;
    assert_eq!(replicas(&left), Some(5));
    assert_eq!(owners_of_replicas(&left), ["scaler"]);

    let given_up = deployments
        .patch("a", &scaler, &Patch::Apply(manifest(json!({}))))
        .await?;
    assert!(owners_of_replicas(&given_up).is_empty());
    offer(3).await?;
    let adopted = deployments.get("a").await?;
    assert_eq!(replicas(&adopted), replicas(&given_up));
    assert_eq!(owners_of_replicas(&adopted), ["kustomize-controller"]);

    fixture.reconcile("shop").await?;
    let unchanged = deployments.get("a").await?;
    assert_eq!(unchanged.metadata.generation, adopted.metadata.generation);
    assert_eq!(replicas(&unchanged), replicas(&given_up));
    Ok(())
}

fn settings(fixture: &Fixture, kind: &str, name: &str, field: &str, data: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": kind, field: data,
        "metadata": {
            "name": name, "namespace": fixture.namespace,
            "labels": { "reconcile.fluxcd.io/watch": "Enabled" },
        },
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn changed_variables_with_the_label_are_applied_before_the_interval() -> Result<()> {
    let fixture = Fixture::new("watching", &[]).await?;
    let map_of = |value: &str| settings(&fixture, "ConfigMap", "names", "data", &json!({ "name": value }));
    let secret_of =
        |value: &str| settings(&fixture, "Secret", "keys", "stringData", &json!({ "key": value }));
    fixture.plane.apply(map_of("one")).await?;
    fixture.plane.apply(secret_of("two")).await?;
    let revision = fixture
        .offer("shop", &[("a.yaml", map("a", "${name} ${key}"))])
        .await?;
    let sources = json!([{ "kind": "ConfigMap", "name": "names" }, { "kind": "Secret", "name": "keys" }]);
    fixture
        .deploy("shop", json!({ "postBuild": { "substituteFrom": sources } }))
        .await?;
    fixture.applied("shop", &revision).await?;
    assert_eq!(data(&fixture, "a").await?, pairs(&[("value", "one two")]));
    for (changed, expected) in [(map_of("three"), "three two"), (secret_of("four"), "three four")] {
        fixture.plane.apply(changed).await?;
        let found = || async {
            let found = data(&fixture, "a").await?;
            ensure!(found == pairs(&[("value", expected)]), "{found:?}");
            Ok(())
        };
        eventually(expected, TIMEOUT, found).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn clusters_of_a_config_map_are_deployed_to_with_tokens() -> Result<()> {
    let fixture = Fixture::new("described", &["--allow-addresses=127.0.0.1"]).await?;
    let (plane, namespace) = (fixture.plane, &fixture.namespace);
    plane
        .apply(json!({
            "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": "remote", "namespace": namespace },
        }))
        .await?;
    grant(plane, namespace, "remote").await?;
    let described = json!({
        "provider": "generic", "address": plane.server(), "ca.crt": plane.ca_pem()?,
        "audiences": "https://kubernetes.default.svc", "serviceAccountName": "remote",
    });
    plane
        .apply(settings(&fixture, "ConfigMap", "cluster", "data", &described))
        .await?;
    let mark = plane.audit_mark();
    let revision = fixture.offer("shop", &[("a.yaml", map("a", "1"))]).await?;
    let by_map = json!({ "kubeConfig": { "configMapRef": { "name": "cluster" } } });
    fixture.deploy("shop", by_map).await?;
    fixture.applied("shop", &revision).await?;
    let writers: Vec<_> = plane
        .audit_since(mark)?
        .into_iter()
        .filter(|entry| entry.is_write() && entry.resource == "configmaps")
        .filter(|entry| entry.name == "a" && entry.namespace == *namespace)
        .map(|entry| entry.user)
        .collect();
    let remote = format!("system:serviceaccount:{namespace}:remote");
    ensure!(
        !writers.is_empty() && writers.iter().all(|user| *user == remote),
        "{writers:?}"
    );

    // The change wakes the object, since the ConfigMap has the label.
    let cloud = settings(
        &fixture,
        "ConfigMap",
        "cluster",
        "data",
        &json!({ "provider": "aws" }),
    );
    plane.apply(cloud).await?;
    let failed = fixture.ready("shop", "False", "ReconciliationFailed").await?;
    let message = condition(&failed, "Ready")["message"].to_string();
    ensure!(
        message.contains("the name of the cluster cannot be used: it is not arn:aws:eks:"),
        "{message}"
    );
    Ok(())
}

/// A31: kinds of a stage of their own are applied before the others, whose account gets its rights by them.
#[tokio::test(flavor = "multi_thread")]
async fn kinds_of_a_custom_stage_are_applied_first() -> Result<()> {
    const GROUP: &str = "rbac.authorization.k8s.io";
    let stage = format!("--custom-apply-stage-kinds={GROUP}/Role,{GROUP}/RoleBinding");
    let fixture = Fixture::new("stages", &[&stage]).await?;
    let object = |kind: &str, name: &str, fields: serde_json::Value| {
        let mut object = json!({
            "apiVersion": format!("{GROUP}/v1"), "kind": kind,
            "metadata": { "name": name, "namespace": fixture.namespace },
        });
        for (field, value) in fields.as_object().unwrap() {
            object[field] = value.clone();
        }
        object
    };
    let bound = |role: &str| {
        json!({
            "roleRef": { "apiGroup": GROUP, "kind": "Role", "name": role },
            "subjects": [{ "kind": "ServiceAccount", "name": "tenant", "namespace": fixture.namespace }],
        })
    };
    let rules = |group: &str, resources: &[&str]| json!({ "rules": [{ "apiGroups": [group], "resources": resources, "verbs": ["*"] }] });
    let account = json!({
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": "tenant", "namespace": fixture.namespace },
    });
    for object in [
        account,
        object("Role", "rights", rules(GROUP, &["roles", "rolebindings"])),
        object("RoleBinding", "rights", bound("rights")),
    ] {
        fixture.plane.apply(object).await?;
    }
    let files = [
        ("a.yaml", map("a", "1")),
        (
            "b.yaml",
            object("Role", "maps", rules("", &["configmaps"])).to_string(),
        ),
        ("c.yaml", object("RoleBinding", "maps", bound("maps")).to_string()),
    ];
    let revision = fixture.offer("shop", &files).await?;
    fixture
        .deploy("shop", json!({ "serviceAccountName": "tenant" }))
        .await?;
    fixture.applied("shop", &revision).await?;
    assert_eq!(
        fixture.values("shop").await?,
        [("a".to_owned(), "1".to_owned())].into()
    );
    Ok(())
}

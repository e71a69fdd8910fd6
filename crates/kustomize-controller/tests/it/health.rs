//! Health checks.

use anyhow::Result;
use api::kustomize::Kustomization;
use kube::{
    Api,
    api::{DynamicObject, Patch, PatchParams},
};
use serde_json::{Value, json};
use testkit::wait_for;

use crate::fixture::{Fixture, TIMEOUT, condition, status};

/// Returns a GitRepository that is not reconciled: it is ready as soon as its status says so.
fn repository(name: &str) -> String {
    json!({
        "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository", "metadata": { "name": name },
        "spec": { "interval": "1h", "url": "https://example.invalid/checked", "suspend": true },
    })
    .to_string()
}

async fn set(fixture: &Fixture, name: &str, generation: i64, ready: (&str, &str)) -> Result<()> {
    let object = json!({
        "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
        "metadata": { "name": name, "namespace": fixture.namespace },
    });
    let (api, _): (Api<DynamicObject>, _) = fixture.plane.api_for(object).await?;
    wait_for(&api, name, "the checked object", TIMEOUT, |_| true).await?;
    let (type_, message) = ready;
    let condition = json!({
        "type": type_, "status": "True", "reason": "Test", "message": message,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    let patch = json!({ "status": { "observedGeneration": generation, "conditions": [condition] } });
    api.patch_status(name, &PatchParams::default(), &Patch::Merge(patch))
        .await?;
    Ok(())
}

/// A40: a pass waits for its objects, names the objects that are not ready, and recovers.
#[tokio::test(flavor = "multi_thread")]
async fn objects_are_waited_for() -> Result<()> {
    let fixture = Fixture::new("waiting", &[]).await?;
    let revision = fixture
        .offer("shop", &[("a.yaml", repository("checked"))])
        .await?;
    fixture.deploy("shop", json!({ "wait": true })).await?;
    set(&fixture, "checked", 1, ("Stalled", "it is broken")).await?;
    let failed = fixture.ready("shop", "False", "HealthCheckFailed").await?;
    let message = condition(&failed, "Ready")["message"]
        .as_str()
        .unwrap()
        .to_owned();
    let stalled = format!(
        "failed early due to stalled resources: [GitRepository/{}/checked status: 'Failed': it is broken]",
        fixture.namespace
    );
    assert!(
        message.starts_with("health check failed after ") && message.ends_with(&stalled),
        "{message}"
    );
    assert_eq!(condition(&failed, "Healthy")["status"], "False");
    assert_eq!(status(&failed).last_applied_revision, None);
    set(&fixture, "checked", 1, ("Ready", "")).await?;
    let applied = fixture.applied("shop", &revision).await?;
    assert_eq!(condition(&applied, "Healthy")["reason"], "Succeeded");
    fixture.told("shop", "Health check passed in ").await?;
    fixture.told("shop", "health check failed after ").await?;
    let entry = |object: &Kustomization, at: usize| {
        let history = serde_json::to_value(status(object).history).unwrap();
        let field = |name: &str| history[at][name].clone();
        (field("lastReconciledStatus"), field("totalReconciliations"))
    };
    assert_eq!(entry(&applied, 0), (json!("ReconciliationSucceeded"), json!(1)));
    assert_eq!(entry(&applied, 1).0, "HealthCheckFailed");
    // The same manifests in a new revision count for the same entry, others begin one.
    let files = [("a.yaml", repository("checked"))];
    let again = fixture.offer("shop", &files).await?;
    let applied = fixture.applied("shop", &again).await?;
    assert_eq!(entry(&applied, 0), (json!("ReconciliationSucceeded"), json!(2)));
    let [file] = files;
    let more = fixture
        .offer("shop", &[file, ("b.yaml", crate::fixture::map("b", "1"))])
        .await?;
    let applied = fixture.applied("shop", &more).await?;
    assert_eq!(entry(&applied, 0), (json!("ReconciliationSucceeded"), json!(1)));
    assert_eq!(entry(&applied, 1), (json!("ReconciliationSucceeded"), json!(2)));
    Ok(())
}

/// A45: expressions for a group decide about all of its kinds.
#[tokio::test(flavor = "multi_thread")]
async fn kinds_of_a_group_are_checked_by_its_expressions() -> Result<()> {
    const GROUP: &str = "rbac.authorization.k8s.io";
    let fixture = Fixture::new("group", &[]).await?;
    let object = |kind: &str, state: &str| {
        let mut object = json!({
            "apiVersion": format!("{GROUP}/v1"), "kind": kind,
            "metadata": { "name": "checked", "annotations": { "state": state } },
        });
        if kind == "RoleBinding" {
            object["roleRef"] = json!({ "apiGroup": GROUP, "kind": "Role", "name": "checked" });
        }
        object.to_string()
    };
    let files = |state| {
        [
            ("a.yaml", object("Role", "good")),
            ("b.yaml", object("RoleBinding", state)),
        ]
    };
    let first = fixture.offer("shop", &files("good")).await?;
    let expressions = json!([{
        "apiVersion": format!("{GROUP}/v1"),
        "current": "metadata.annotations.state == 'good'", "failed": "metadata.annotations.state == 'bad'",
    }]);
    fixture
        .deploy("shop", json!({ "wait": true, "healthCheckExprs": expressions }))
        .await?;
    fixture.applied("shop", &first).await?;
    fixture.offer("shop", &files("bad")).await?;
    let failed = fixture.ready("shop", "False", "HealthCheckFailed").await?;
    let message = condition(&failed, "Ready")["message"].to_string();
    assert!(
        message.contains("RoleBinding/") && !message.contains("Role/"),
        "{message}"
    );
    Ok(())
}

/// A44: something newer ends a wait at once.
#[tokio::test(flavor = "multi_thread")]
async fn new_revisions_end_waits() -> Result<()> {
    let fixture = Fixture::new("newer", &[]).await?;
    let unready = [("a.yaml", repository("never"))];
    let first = fixture.offer("shop", &unready).await?;
    let checks = json!([{
        "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
        "name": "never", "namespace": fixture.namespace,
    }]);
    fixture
        .deploy("shop", json!({ "healthChecks": checks, "timeout": "10m" }))
        .await?;
    // Its generation is observed later: until then it is in progress.
    set(&fixture, "never", 0, ("Ready", "")).await?;
    wait_for(&fixture.objects(), "shop", "the wait", TIMEOUT, |object| {
        condition(object, "Healthy")["status"] == "Unknown" && status(object).inventory.is_some()
    })
    .await?;
    // The changes are told before the wait, and only once.
    let change = format!("GitRepository/{}/never created", fixture.namespace);
    fixture.told("shop", &change).await?;
    // Another spec ends the wait, and then another revision does.
    fixture.edit("shop", json!({ "timeout": "11m" })).await?;
    let canceled = "Health checks canceled due to new reconciliation triggered by";
    let itself = format!("{canceled} Kustomization/{}/shop", fixture.namespace);
    fixture.told("shop", &itself).await?;
    wait_for(&fixture.objects(), "shop", "the next wait", TIMEOUT, |object| {
        let healthy = condition(object, "Healthy");
        healthy["status"] == "Unknown" && healthy["message"].to_string().contains("11m0s")
    })
    .await?;
    let second = fixture
        .offer("shop", &[("b.yaml", crate::fixture::map("b", "1"))])
        .await?;
    let source = format!("{canceled} GitRepository/{}/shop", fixture.namespace);
    fixture.told("shop", &source).await?;
    fixture.edit("shop", json!({ "healthChecks": [] })).await?;
    let applied = fixture.applied("shop", &second).await?;
    assert!(condition(&applied, "Healthy").is_null());
    assert_ne!(first, second);
    fixture.told("shop", "Reconciliation finished in ").await?;
    assert_eq!(fixture.told("shop", &change).await?.count, Some(1));
    Ok(())
}

/// A42, A45, A51: the list of checks, whose default is `apps/v1`; expressions decide for a group.
#[tokio::test(flavor = "multi_thread")]
async fn listed_objects_are_checked_by_expressions() -> Result<()> {
    let fixture = Fixture::new("checks", &[]).await?;
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web" },
        "spec": {
            "replicas": 0, "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{ "name": "c", "image": "c" }] },
            },
        },
    });
    let revision = fixture
        .offer("shop", &[("a.yaml", deployment.to_string())])
        .await?;
    let check = |name: &str| json!([{ "kind": "Deployment", "name": name, "namespace": fixture.namespace }]);
    let mut object = fixture.kustomization(
        "shop",
        &json!({ "healthChecks": check("web"), "validation": "client" }),
    );
    object["apiVersion"] = Value::from("kustomize.toolkit.fluxcd.io/v1beta1");
    fixture.plane.apply(object).await?;
    let applied = fixture.applied("shop", &revision).await?;
    assert_eq!(condition(&applied, "Healthy")["status"], "True");
    let failing = json!({ "healthCheckExprs": [{
        "apiVersion": "apps/v1", "current": "false", "failed": "spec.replicas == 0",
    }] });
    fixture.edit("shop", failing).await?;
    let failed = fixture.ready("shop", "False", "HealthCheckFailed").await?;
    let message = condition(&failed, "Ready")["message"].to_string();
    assert!(message.contains("web status: 'Failed'"), "{message}");
    Ok(())
}

//! Failures by the source, a flag or an admission policy, and the way back.

use anyhow::{Result, ensure};
use kube::{
    Api,
    api::{DeleteParams, DynamicObject, Patch, PatchParams},
};
use serde_json::{Value, json};
use testkit::{Controller, eventually, wait_for};

use crate::fixture::{Fixture, TIMEOUT, condition, ids, map, set_artifact, status};

async fn source(fixture: &Fixture, name: &str) -> Result<(Api<DynamicObject>, Value)> {
    let object = json!({
        "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
        "metadata": { "name": name, "namespace": fixture.namespace },
    });
    let (api, _) = fixture.plane.api_for(object).await?;
    let artifact = api.get(name).await?.data["status"]["artifact"].clone();
    Ok((api, artifact))
}

/// A18: an artifact that is gone, or has another digest than its source says, is waited for.
#[tokio::test(flavor = "multi_thread")]
async fn artifacts_that_are_gone_or_changed_are_waited_for() -> Result<()> {
    let fixture = Fixture::new("gone", &[]).await?;
    let revision = fixture.offer("shop", &[("a.yaml", map("a", "1"))]).await?;
    fixture.deploy("shop", json!({ "interval": "1s" })).await?;
    fixture.applied("shop", &revision).await?;
    let (api, artifact) = source(&fixture, "shop").await?;
    let url = artifact["url"].as_str().unwrap();
    let digest = format!("sha256:{:064x}", 7);
    for (field, value, why) in [
        ("url", format!("{url}-none"), "artifact not found"),
        ("digest", digest, "artifact digest changed"),
    ] {
        let mut wrong = artifact.clone();
        wrong[field] = json!(value);
        set_artifact(&api, "shop", wrong).await?;
        let failed = fixture.ready("shop", "False", "ArtifactFailed").await?;
        assert_eq!(
            condition(&failed, "Ready")["message"],
            format!("Source is not ready, {why}, retrying in 1s")
        );
        let reconciling = condition(&failed, "Reconciling")["message"].to_string();
        assert!(
            reconciling.contains("Fetching manifests for revision"),
            "{reconciling}"
        );
        set_artifact(&api, "shop", artifact.clone()).await?;
        fixture.ready("shop", "True", "ReconciliationSucceeded").await?;
    }
    Ok(())
}

/// A26: an object whose deletion is refused stays in the inventory until it is deleted.
#[tokio::test(flavor = "multi_thread")]
async fn objects_that_cannot_be_deleted_stay_in_the_inventory() -> Result<()> {
    let fixture = Fixture::new("survivors", &[]).await?;
    let namespace = &fixture.namespace;
    let both = [("a.yaml", map("a", "1")), ("b.yaml", map("held", "1"))];
    let first = fixture.offer("shop", &both).await?;
    fixture.deploy("shop", json!({})).await?;
    fixture.applied("shop", &first).await?;
    let rules = json!([{
        "operations": ["DELETE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"],
    }]);
    let here = format!("oldObject.metadata.namespace != '{namespace}' || oldObject.metadata.name != 'held'");
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": { "name": namespace },
        "spec": {
            "failurePolicy": "Fail", "matchConstraints": { "resourceRules": rules },
            "validations": [{ "expression": here, "message": "it is held" }],
        },
    });
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": { "name": namespace },
        "spec": { "policyName": namespace, "validationActions": ["Deny"] },
    });
    fixture.plane.apply(policy).await?;
    fixture.plane.apply(binding).await?;
    let trial = DeleteParams {
        dry_run: true,
        ..DeleteParams::default()
    };
    eventually("the policy", TIMEOUT, || async {
        ensure!(fixture.maps().delete("held", &trial).await.is_err());
        Ok(())
    })
    .await?;
    let second = fixture.offer("shop", &[("a.yaml", map("a", "2"))]).await?;
    let failed = fixture.ready("shop", "False", "PruneFailed").await?;
    let message = condition(&failed, "Ready")["message"].to_string();
    assert!(
        message.contains("delete failed, errors: ") && message.contains("it is held"),
        "{message}"
    );
    let held = format!("{namespace}_held__ConfigMap");
    assert!(ids(&failed).contains(&held), "{:?}", ids(&failed));
    assert_eq!(status(&failed).history[0].last_reconciled_status, "PruneFailed");
    let kinds = ["validatingadmissionpolicybinding", "validatingadmissionpolicy"];
    for kind in kinds {
        fixture.plane.kubectl(&["delete", kind, namespace]).await?;
    }
    let applied = fixture.applied("shop", &second).await?;
    assert_eq!(ids(&applied), [format!("{namespace}_a__ConfigMap")]);
    assert_eq!(fixture.values("shop").await?.len(), 1);
    Ok(())
}

/// A01, A02: a source of another namespace is used, refused after a restart with the flag, and used again after one without.
#[tokio::test(flavor = "multi_thread")]
async fn sources_of_other_namespaces_are_blocked_by_a_flag() -> Result<()> {
    let mut fixture = Fixture::new("foreign", &[]).await?;
    let other = Fixture {
        namespace: fixture.plane.namespace("foreign-source").await?,
        ..Fixture::new("foreign-helper", &[]).await?
    };
    let files = [("a.yaml", map("a", "1"))];
    let offer = || other.offer("shop", &files);
    let reference = json!({ "kind": "GitRepository", "name": "shop", "namespace": other.namespace });
    let first = offer().await?;
    fixture
        .deploy("shop", json!({ "interval": "1s", "sourceRef": reference }))
        .await?;
    fixture.applied("shop", &first).await?;
    let namespace = fixture.namespace.clone();
    let kubeconfig = fixture
        .plane
        .service_account_kubeconfig(&namespace, "controller")
        .await?;
    for (flag, status) in [("true", "False"), ("false", "True")] {
        let revision = offer().await?;
        fixture.controller.terminate().await?;
        fixture.controller = Controller::named("kustomize-controller")
            .run_by(&kubeconfig)
            .namespace(&namespace)
            .flag("--watch-all-namespaces=false")
            .flag(&format!("--no-cross-namespace-refs={flag}"))
            .start()
            .await?;
        if status == "True" {
            fixture.reconcile("shop").await?;
            let applied = fixture.applied("shop", &revision).await?;
            assert!(condition(&applied, "Stalled").is_null());
            continue;
        }
        let refused = fixture.ready("shop", status, "AccessDenied").await?;
        let source = format!("GitRepository/{}/shop", other.namespace);
        let message = format!("can't access '{source}', cross-namespace references have been blocked");
        assert_eq!(condition(&refused, "Ready")["message"], message);
        assert_eq!(condition(&refused, "Stalled")["message"], message);
    }
    Ok(())
}

/// A22: an object under another name replaces the old one, one without a namespace has none in the inventory, and drift of one that opts out on the cluster is ignored.
#[tokio::test(flavor = "multi_thread")]
async fn renamed_and_exempt_objects_are_followed() -> Result<()> {
    let fixture = Fixture::new("renamed", &[]).await?;
    let namespace = &fixture.namespace;
    let class = json!({
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 7,
        "metadata": { "name": namespace, "namespace": "ignored" },
    });
    let files = |name: &str, value: &str| {
        [
            ("a.yaml", map(name, value)),
            ("b.yaml", map("exempt", "1")),
            ("c.yaml", class.to_string()),
        ]
    };
    let first = fixture.offer("shop", &files("a", "1")).await?;
    fixture.deploy("shop", json!({})).await?;
    fixture.applied("shop", &first).await?;
    let annotated = |value: Value| {
        Patch::Merge(json!({
            "metadata": { "annotations": { "kustomize.toolkit.fluxcd.io/reconcile": value } },
            "data": { "value": "by hand" },
        }))
    };
    let params = PatchParams::default();
    fixture
        .maps()
        .patch("exempt", &params, &annotated(json!("disabled")))
        .await?;
    let second = fixture.offer("shop", &files("c", "2")).await?;
    let applied = fixture.applied("shop", &second).await?;
    assert_eq!(
        ids(&applied),
        [
            format!("_{namespace}_scheduling.k8s.io_PriorityClass"),
            format!("{namespace}_c__ConfigMap"),
            format!("{namespace}_exempt__ConfigMap")
        ]
    );
    let values = [("c", "2"), ("exempt", "by hand")];
    let values = values.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(fixture.values("shop").await?, values.into());
    fixture
        .maps()
        .patch("exempt", &params, &annotated(Value::Null))
        .await?;
    fixture.reconcile("shop").await?;
    wait_for(&fixture.maps(), "exempt", "its value", TIMEOUT, |map| {
        map.data.as_ref().is_some_and(|data| data["value"] == "1")
    })
    .await?;
    Ok(())
}

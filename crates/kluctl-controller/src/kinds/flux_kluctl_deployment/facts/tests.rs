use serde_json::{Value, json};

use super::*;

fn object(change: impl FnOnce(&mut Value)) -> KluctlDeployment {
    let mut object = json!({
        "apiVersion": "flux.kluctl.io/v1alpha1",
        "kind": "KluctlDeployment",
        "metadata": { "name": "shop", "namespace": "apps", "generation": 2 },
        "spec": { "interval": "5m", "prune": true, "sourceRef": { "kind": "GitRepository", "name": "shop" } },
        "status": {
            "observedGeneration": 2,
            "lastAttemptedRevision": "main@sha1:new",
            "conditions": [{ "type": "Ready", "status": "True", "reason": "ReconciliationSucceeded" }],
            "lastDeployResult": { "time": "2026-01-01T00:00:00Z", "objectsHash": "a" },
            "lastValidateResult": { "time": "2026-01-01T00:00:00Z", "error": "" },
        },
    });
    change(&mut object);
    serde_json::from_value(object).expect("decodes")
}

fn now() -> Time {
    Time("2026-01-01T00:02:00Z".parse().expect("a time"))
}

#[test]
fn facts_are_read_from_status_annotations_and_memory() {
    let quiet = object(|_| {});
    let facts_of = |object| facts(object, "a", false, Ages::default(), &now());
    let facts = facts_of(&quiet);
    assert_eq!(
        facts.last_deploy,
        Some(LastDeploy {
            hash: "a",
            failed: false
        })
    );
    assert!(
        !facts.spec_changed && !facts.deploy_requested && !facts.reconcile_requested && !facts.recovering
    );
    assert_eq!(
        (facts.since_compared, facts.since_validated),
        (Duration::from_secs(120), Some(Duration::from_secs(120)))
    );

    let second = Some(Duration::from_secs(1));
    let remembered = super::facts(
        &quiet,
        "a",
        false,
        Ages {
            since_compared: second,
            since_validated: second,
            failed: None,
        },
        &now(),
    );
    assert_eq!(
        (Some(remembered.since_compared), remembered.since_validated),
        (second, second)
    );

    let asked = object(|o| {
        o["metadata"]["generation"] = json!(3);
        o["metadata"]["annotations"] = json!({
            "deploy.flux.kluctl.io/requestedAt": "1", "reconcile.fluxcd.io/requestedAt": "2",
        });
        o["status"]["lastHandledReconcileAt"] = json!("2");
        o["status"]["lastDeployResult"]["error"] = json!("bad");
        o["status"]["conditions"][0]["reason"] = json!("PrepareFailed");
    });
    let facts = facts_of(&asked);
    assert!(facts.spec_changed && facts.deploy_requested && !facts.reconcile_requested && facts.recovering);
    assert!(facts.last_deploy.is_some_and(|last| last.failed));
    let fresh = object(|o| o["status"] = Value::Null);
    let facts = facts_of(&fresh);
    assert!(facts.last_deploy.is_none() && facts.spec_changed && facts.since_validated.is_none());
}

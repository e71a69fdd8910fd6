//! Statuses and events of passes that could not apply.

use api::Artifact;
use deployer::{SourceId, SourceKind, manifests::UnappliedBuild};
use runtime::ObjectKey;
use serde_json::{Value, json};

use super::*;

fn object(status: &Value) -> Kustomization {
    serde_json::from_value(json!({
        "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
        "metadata": {
            "name": "shop", "namespace": "apps", "generation": 3,
            "annotations": { "reconcile.fluxcd.io/requestedAt": "now" },
        },
        "spec": { "interval": "5m", "prune": true, "sourceRef": { "kind": "GitRepository", "name": "shop" } },
        "status": status,
    }))
    .unwrap()
}

fn source(origin: Option<&str>) -> SourceArtifact {
    let metadata = origin.map(|origin| (ORIGIN.to_owned(), origin.to_owned()));
    SourceArtifact {
        source: SourceId {
            kind: SourceKind::GitRepository,
            key: ObjectKey::new("apps", "shop"),
        },
        artifact: Artifact {
            revision: "main@sha1:new".to_owned(),
            metadata: metadata.into_iter().collect(),
            ..Artifact::default()
        },
        git: None,
    }
}

/// Returns the outcome of a pass that failed before anything was applied.
fn failed(
    object: &Kustomization,
    source: Option<&SourceArtifact>,
    fault: &Fault,
    now: &Time,
) -> Outcome<KustomizationStatus> {
    let attempt = Attempt {
        source,
        unapplied: None,
    };
    super::failed(object, &attempt, fault, now)
}

fn now() -> Time {
    Time("2026-01-01T00:00:00Z".parse().unwrap())
}

fn ready(status: &KustomizationStatus) -> (ConditionStatus, &str, &str) {
    let ready = conditions::get(&status.conditions, condition_type::READY).unwrap();
    (ready.status, &ready.reason, &ready.message)
}

#[test]
fn stalled_object_is_observed_and_a_failed_one_is_not() {
    let object = object(&json!({ "observedGeneration": 2, "lastAppliedRevision": "main@sha1:old" }));
    for (reason, generation) in [
        (Reason::InvalidCELExpression, 3),
        (Reason::AccessDenied, 2),
        (Reason::FeatureGateDisabled, 2),
    ] {
        let fault = Fault::stall(reason, "no");
        let stalled = failed(&object, None, &fault, &now()).status;
        assert_eq!(stalled.observed_generation, Some(generation), "{reason:?}");
        assert!(conditions::is_true(&stalled.conditions, condition_type::STALLED));
        assert_eq!(stalled.last_handled_reconcile_at.as_deref(), Some("now"));
    }

    let fault = Fault::wait(
        Duration::from_secs(7),
        Reason::BuildFailed,
        "kustomize build failed: x",
    );
    let outcome = failed(&object, Some(&source(Some("v1"))), &fault, &now());
    let status = &outcome.status;
    assert_eq!(status.observed_generation, Some(2));
    assert_eq!(
        ready(status),
        (ConditionStatus::False, "BuildFailed", "kustomize build failed: x")
    );
    let reconciling = conditions::get(&status.conditions, condition_type::RECONCILING).unwrap();
    assert_eq!(reconciling.reason, "ProgressingWithRetry");
    assert_eq!(
        reconciling.message,
        "Building manifests for revision main@sha1:new with a timeout of 4m30s"
    );
    assert_eq!(status.last_attempted_revision.as_deref(), Some("main@sha1:new"));
    assert_eq!(status.last_applied_revision.as_deref(), Some("main@sha1:old"));
    assert_eq!(outcome.requeue, Requeue::After(Duration::from_secs(7)));
    let event = &outcome.events[0];
    assert_eq!(
        (event.severity, event.message.as_str()),
        (Severity::Error, "kustomize build failed: x")
    );
    assert_eq!(
        event.metadata["kustomize.toolkit.fluxcd.io/revision"],
        "main@sha1:new"
    );
    assert_eq!(event.metadata["kustomize.toolkit.fluxcd.io/originRevision"], "v1");
}

#[test]
fn artifact_that_was_not_fetched_is_not_an_attempt() {
    let object = object(&json!({ "lastAttemptedRevision": "main@sha1:old" }));
    let fault = Fault::wait(AT_ONCE, Reason::ArtifactFailed, "no");
    let status = failed(&object, Some(&source(None)), &fault, &now()).status;
    assert_eq!(status.last_attempted_revision.as_deref(), Some("main@sha1:old"));
    let reconciling = conditions::get(&status.conditions, condition_type::RECONCILING).unwrap();
    assert!(
        reconciling
            .message
            .starts_with("Fetching manifests for revision main@sha1:new")
    );
}

#[test]
fn failed_apply_is_an_entry_of_the_history_once() {
    let build = UnappliedBuild {
        digest: "sha256:a".to_owned(),
        took: Duration::from_secs(2),
    };
    let tried = |object: &Kustomization, reason, unapplied| {
        let source = source(Some("v1"));
        let attempt = Attempt {
            source: Some(&source),
            unapplied,
        };
        let fault = Fault::wait(Duration::from_secs(7), reason, "x");
        super::failed(object, &attempt, &fault, &now()).status
    };
    for reason in [Reason::ReconciliationFailed, Reason::ValidationFailed] {
        let first = tried(&object(&json!({})), reason, Some(&build));
        let entry = &first.history[0];
        assert_eq!(
            (entry.digest.as_str(), entry.last_reconciled_status.as_str()),
            ("sha256:a", reason.as_str())
        );
        assert_eq!(entry.last_reconciled_duration, "2s");
        assert_eq!(entry.metadata["revision"], "main@sha1:new");
        assert_eq!(entry.metadata["originRevision"], "v1");
        let again = object(&serde_json::to_value(&first).unwrap());
        assert_eq!(tried(&again, reason, Some(&build)), first, "nothing is written");
        let mut asked = again.clone();
        asked.metadata.annotations =
            Some([(annotation::RECONCILE_REQUESTED_AT.to_owned(), "later".to_owned())].into());
        assert_eq!(
            tried(&asked, reason, Some(&build)).history[0].total_reconciliations,
            2
        );
    }
    let unbuilt = tried(&object(&json!({})), Reason::BuildFailed, None);
    assert!(unbuilt.history.is_empty());
}

#[test]
fn long_message_is_shortened_to_what_a_condition_may_have() {
    let fault = Fault::wait(Duration::from_secs(7), Reason::BuildFailed, "x".repeat(40_000));
    let status = failed(&object(&json!({})), Some(&source(None)), &fault, &now()).status;
    let message = ready(&status).2;
    assert_eq!(message.len(), 32_768);
    assert!(message.ends_with("x..."));
}

#[test]
fn failure_that_repeats_is_reported_once() {
    let fault = Fault::wait(Duration::from_secs(7), Reason::BuildFailed, "x");
    let first = failed(&object(&json!({})), Some(&source(None)), &fault, &now());
    let again = object(&serde_json::to_value(&first.status).unwrap());
    let second = failed(&again, Some(&source(None)), &fault, &now());
    assert_eq!((first.events.len(), second.events.len()), (1, 0));
    assert_eq!(first.status, second.status);
}

#[test]
fn dependencies_and_sources_on_their_way_are_not_errors() {
    let delay = Duration::from_secs(30);
    let waits = Fault::wait(
        delay,
        Reason::DependencyNotReady,
        "dependency 'apps/a' is not ready",
    );
    let outcome = failed(&object(&json!({})), Some(&source(None)), &waits, &now());
    assert_eq!(outcome.status.last_attempted_revision, None);
    let event = &outcome.events[0];
    assert_eq!(event.severity, Severity::Info);
    assert_eq!(
        event.metadata["kustomize.toolkit.fluxcd.io/revision"],
        "main@sha1:new"
    );
    assert_eq!(
        event.message,
        "Dependencies do not meet ready condition, retrying in 30s: dependency 'apps/a' is not ready"
    );
    assert_eq!(ready(&outcome.status).2, "dependency 'apps/a' is not ready");
    let missing = Fault::wait(
        delay,
        Reason::ArtifactFailed,
        "Source artifact not found, retrying in 30s",
    );
    assert!(
        failed(&object(&json!({})), None, &missing, &now())
            .events
            .is_empty()
    );
}

#[test]
fn suspended_object_says_that_its_request_is_handled() {
    let suspended = |ready: &str| {
        let condition = |kind: &str, status: &str| {
            json!({
                "type": kind, "status": status, "reason": "Any", "message": "any", "observedGeneration": 2,
                "lastTransitionTime": "2025-01-01T00:00:00Z",
            })
        };
        let conditions = [condition("Ready", ready), condition("Reconciling", "True")];
        let stored = json!({
            "observedGeneration": 2, "lastHandledReconcileAt": "before", "lastAppliedRevision": "main@sha1:old",
            "conditions": conditions,
        });
        suspended(&object(&stored))
    };
    let ready = suspended("True");
    assert_eq!(ready.last_handled_reconcile_at.as_deref(), Some("now"));
    assert_eq!(ready.observed_generation, Some(3));
    assert!(conditions::get(&ready.conditions, condition_type::RECONCILING).is_none());
    assert_eq!(ready.last_applied_revision.as_deref(), Some("main@sha1:old"));
    assert_eq!(ready.conditions.len(), 1);
    for unready in ["False", "Unknown"] {
        let unready = suspended(unready);
        assert_eq!(unready.last_handled_reconcile_at.as_deref(), Some("now"));
        assert_eq!(unready.observed_generation, Some(2));
        assert!(conditions::is_true(
            &unready.conditions,
            condition_type::RECONCILING
        ));
    }
}

#[test]
fn failed_removal_is_an_event_in_the_words_of_the_original() {
    let mut object = object(&json!({}));
    let fault = Fault::retry(Reason::PruneFailed, "cannot delete what was deployed: refused");
    let message = |object: &Kustomization| failed(object, None, &fault, &now()).events[0].message.clone();
    assert_eq!(message(&object), fault.message);
    object.metadata.deletion_timestamp = Some(now());
    assert_eq!(message(&object), "pruning for deleted resource failed");
    let status = failed(&object, None, &fault, &now()).status;
    assert_eq!(ready(&status).2, fault.message);
}

#[test]
fn superseded_pass_leaves_the_status() {
    let stored = json!({ "observedGeneration": 2, "lastAppliedRevision": "main@sha1:old" });
    let object = object(&stored);
    let fault = Fault::wait(AT_ONCE, Reason::Progressing, "superseded");
    let outcome = failed(&object, Some(&source(None)), &fault, &now());
    assert_eq!(serde_json::to_value(&outcome.status).unwrap(), stored);
    assert!(outcome.events.is_empty() && outcome.fault.is_none());
}

#[test]
fn new_revision_with_the_same_objects_is_applied() {
    let entry = json!({
        "digest": "sha256:a", "firstReconciled": "2025-01-01T00:00:00Z", "lastReconciled": "2025-01-01T00:00:00Z",
        "lastReconciledDuration": "1s", "lastReconciledStatus": "ReconciliationSucceeded", "totalReconciliations": 2,
        "metadata": { "revision": "main@sha1:old" },
    });
    let object = object(&json!({ "history": [entry] }));
    let before = progressing(&object, &now());
    let after = with_revision(before, &source(Some("v1")), &now());
    let entry = &after.history[0];
    assert_eq!((entry.total_reconciliations, &entry.last_reconciled), (3, &now()));
    assert_eq!(entry.metadata["revision"], "main@sha1:new");
    assert_eq!(entry.metadata["originRevision"], "v1");
    let event = revision_event(&object, &source(None), Duration::from_millis(12));
    assert_eq!(event.message, "Reconciliation finished in 12ms, next run in 5m0s");
    assert_eq!(
        event.metadata["kustomize.toolkit.fluxcd.io/commit_status"],
        "update"
    );
    assert_eq!(
        event.metadata["kustomize.toolkit.fluxcd.io/revision"],
        "main@sha1:new"
    );
    assert_eq!(after.last_applied_revision.as_deref(), Some("main@sha1:new"));
    assert_eq!(after.last_applied_origin_revision.as_deref(), Some("v1"));
    assert_eq!(ready(&after).2, "Applied revision: main@sha1:new");
}

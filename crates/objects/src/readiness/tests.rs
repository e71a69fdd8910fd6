#![allow(
    clippy::needless_pass_by_value,
    reason = "a json! literal reads best by value"
)]

use serde_json::{Value as Json, json};
use yaml::Value;

use super::*;
use crate::vocabulary::tests::EXAMPLE;

fn policy(not_ready_is_error: bool) -> Policy<'static> {
    Policy {
        vocabulary: &EXAMPLE,
        status: StatusNeed::Required,
        now: "2026-01-01T00:00:20Z".parse().unwrap(),
        not_ready_is_error,
    }
}

/// `Ok` when ready, else the error or warning.
#[track_caller]
fn outcome(object: Json) -> Result<(), String> {
    let object = Value::from_json(object);
    let validated = check(&object, policy(true));
    let waited = check(&object, policy(false));
    assert_eq!(validated.ready, waited.ready);
    assert_eq!(validated.ready, validated.errors.is_empty());
    if validated.ready {
        return Ok(());
    }
    let said = if waited.errors.is_empty() {
        format!("wait: {}", waited.warnings[0])
    } else {
        waited.errors[0].clone()
    };
    assert!(said.ends_with(&validated.errors[0]));
    Err(said)
}

#[track_caller]
fn kind(api_version: &str, kind: &str, spec: Json, status: Json) -> Result<(), String> {
    outcome(json!({"apiVersion": api_version, "kind": kind, "metadata": {}, "spec": spec, "status": status}))
}

fn waits(message: &str) -> Result<(), String> {
    Err(format!("wait: {message}"))
}

#[test]
fn pods_and_jobs_are_ready_when_completed() {
    let pod = |status| kind("v1", "Pod", json!({}), status);
    assert_eq!(
        pod(json!({"conditions": [{"type": "Ready", "status": "True"}]})),
        waits("Not ready")
    );
    assert_eq!(
        pod(json!({"conditions": [{"type": "Ready", "status": "False", "reason": "PodCompleted"}]})),
        Ok(())
    );
    assert_eq!(
        pod(json!({"containerStatuses": [{"name": "c", "state": {"terminated": {"reason": "Error"}}}]})),
        Err("container c exited with error".to_owned())
    );
    assert_eq!(pod(json!({})), waits("Ready condition not in status"));
    let job = |conditions| kind("batch/v1", "Job", json!({}), json!({"conditions": conditions}));
    assert_eq!(job(json!([{"type": "Complete", "status": "True"}])), Ok(()));
    assert_eq!(
        job(json!([{"type": "Failed", "status": "True", "message": "boom"}])),
        Err("boom".to_owned())
    );
    assert_eq!(
        job(json!([{"type": "Failed", "status": "True"}])),
        Err("Failed".to_owned())
    );
    assert_eq!(job(json!([])), waits("Not completed"));
}

#[test]
fn deployment_is_ready_with_all_replicas() {
    let deployment = |spec, status| kind("apps/v1", "Deployment", spec, status);
    assert_eq!(
        deployment(json!({"replicas": 2}), json!({"replicas": 2, "readyReplicas": 2})),
        Ok(())
    );
    assert_eq!(
        deployment(json!({"replicas": 2}), json!({"replicas": 2, "readyReplicas": 1})),
        waits("readyReplicas (1) is less then replicas (2)")
    );
    assert_eq!(
        deployment(json!({"replicas": 2}), json!({"replicas": 2})),
        waits("readyReplicas field not in status or empty")
    );
    assert_eq!(deployment(json!({"replicas": 0}), json!({})), Ok(()));
    assert_eq!(deployment(json!({}), json!({})), Ok(()));
}

#[test]
fn stateful_and_daemon_sets_are_ready_with_all_pods() {
    let set = |spec, status| kind("apps/v1", "StatefulSet", spec, status);
    let rolling = json!({"replicas": 2, "updateStrategy": {"type": "RollingUpdate"}});
    assert_eq!(
        set(rolling.clone(), json!({"updatedReplicas": 2, "readyReplicas": 2})),
        Ok(())
    );
    assert_eq!(
        set(rolling.clone(), json!({"updatedReplicas": 1})),
        waits("StatefulSet is not ready. 1 out of 2 expected pods have been scheduled")
    );
    assert_eq!(
        set(rolling, json!({"updatedReplicas": 2, "readyReplicas": 1})),
        waits("StatefulSet is not ready. 1 out of 2 expected pods are ready")
    );
    let partitioned = json!({"replicas": 3, "updateStrategy": {"rollingUpdate": {"partition": 2}}});
    assert_eq!(
        set(partitioned, json!({"updatedReplicas": 1, "readyReplicas": 3})),
        Ok(())
    );
    assert_eq!(
        set(
            json!({"replicas": 2, "updateStrategy": {"type": "OnDelete"}}),
            json!({})
        ),
        Ok(())
    );
    assert_eq!(set(json!({"replicas": 0}), json!({})), Ok(()));

    let daemon = |maximum: Json, status| {
        kind(
            "apps/v1",
            "DaemonSet",
            json!({"updateStrategy": {"rollingUpdate": {"maxUnavailable": maximum}}}),
            status,
        )
    };
    let status = |updated: i64, ready: i64| json!({"desiredNumberScheduled": 10, "updatedNumberScheduled": updated, "numberReady": ready});
    assert_eq!(daemon(json!(1), status(10, 9)), Ok(()));
    assert!(daemon(json!(1), status(10, 8)).is_err());
    assert_eq!(daemon(json!("25%"), status(10, 7)), Ok(()));
    assert!(daemon(json!("25%"), status(10, 6)).is_err());
    assert!(daemon(json!(1), status(9, 9)).is_err());
    assert_eq!(
        daemon(json!(1), json!({"desiredNumberScheduled": 0, "numberReady": 0})),
        Ok(()),
        "no node, no pod, ready"
    );
}

#[test]
fn claims_services_and_definitions_need_their_status() {
    assert_eq!(
        kind(
            "v1",
            "PersistentVolumeClaim",
            json!({}),
            json!({"phase": "Bound"})
        ),
        Ok(())
    );
    assert_eq!(
        kind(
            "v1",
            "PersistentVolumeClaim",
            json!({}),
            json!({"phase": "Pending"})
        ),
        waits("Volume is not bound")
    );
    let service = |spec, status| kind("v1", "Service", spec, status);
    assert_eq!(service(json!({"clusterIP": "10.0.0.1"}), json!({})), Ok(()));
    assert_eq!(service(json!({"type": "ExternalName"}), json!({})), Ok(()));
    assert_eq!(
        service(json!({}), json!({})),
        Err("Service does not have a cluster IP".to_owned())
    );
    let balancer = json!({"type": "LoadBalancer", "clusterIP": "10.0.0.1"});
    assert!(service(balancer.clone(), json!({"loadBalancer": {}})).is_err());
    assert_eq!(
        service(
            balancer,
            json!({"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}})
        ),
        Ok(())
    );
    let external = json!({"type": "LoadBalancer", "clusterIP": "10.0.0.1", "externalIPs": ["1.2.3.4"]});
    assert_eq!(service(external, json!({"loadBalancer": {}})), Ok(()));
    let crd = |conditions| {
        kind(
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            json!({}),
            json!({"conditions": conditions}),
        )
    };
    assert_eq!(crd(json!([{"type": "Established", "status": "True"}])), Ok(()));
    assert_eq!(crd(json!([{"type": "NamesAccepted", "status": "False"}])), Ok(()));
    assert_eq!(
        crd(json!([{"type": "NamesAccepted", "status": "True"}])),
        waits("CRD is not ready")
    );
}

#[test]
fn unknown_kinds_are_ready_with_a_current_status() {
    assert_eq!(
        kind(
            "x.io/v1",
            "Thing",
            json!({}),
            json!({"conditions": [{"type": "Ready", "status": "False"}]})
        ),
        Ok(())
    );
    let object = |observed: Json| {
        json!({"apiVersion": "x.io/v1", "kind": "Thing", "metadata": {"generation": 2},
            "status": {"observedGeneration": observed}})
    };
    assert_eq!(outcome(object(json!(2))), Ok(()));
    assert_eq!(outcome(object(json!(1))), waits("Waiting for reconciliation"));
    assert_eq!(outcome(object(json!("1"))), Ok(()));
}

#[test]
fn missing_status_depends_on_the_need_of_the_kind() {
    let object = |created: &str| {
        Value::from_json(
            json!({"apiVersion": "x.io/v1", "kind": "Thing", "metadata": {"creationTimestamp": created}}),
        )
    };
    for (created, status, ready, warnings) in [
        (
            "2026-01-01T00:00:10Z",
            StatusNeed::Required,
            false,
            vec!["no status available yet"],
        ),
        ("2026-01-01T00:00:00Z", StatusNeed::Required, true, vec![]),
        (
            "nonsense",
            StatusNeed::Required,
            false,
            vec!["no status available yet"],
        ),
        ("2026-01-01T00:00:10Z", StatusNeed::NotRequired, true, vec![]),
    ] {
        let readiness = check(
            &object(created),
            Policy {
                status,
                ..policy(false)
            },
        );
        assert_eq!(
            (
                readiness.ready,
                readiness.warnings.iter().map(String::as_str).collect()
            ),
            (ready, warnings)
        );
    }
    let unknown = check(
        &object("2026-01-01T00:00:10Z"),
        Policy {
            status: StatusNeed::Unknown,
            ..policy(true)
        },
    );
    assert!(unknown.ready && unknown.errors.is_empty() && unknown.warnings.len() == 1);
}

#[test]
fn annotations_decide_before_rules() {
    let object = |annotations: Json| {
        Value::from_json(json!({"apiVersion": "batch/v1", "kind": "Job",
            "metadata": {"annotations": annotations},
            "status": {"conditions": [{"type": "Failed", "status": "True"}]}}))
    };
    let checked = |annotations| check(&object(annotations), policy(true));
    assert!(checked(json!({"example.com/validate-ignore": "true"})).ready);
    assert!(checked(json!({"example.com/is-ready": "true"})).ready);
    let readiness =
        checked(json!({"example.com/is-ready": "false", "validate-result.example.com/x": "said"}));
    assert_eq!(
        readiness.errors,
        ["example.com/is-ready annotation is set to false"]
    );
    assert_eq!(
        readiness.results,
        [ValidateResult {
            annotation: "validate-result.example.com/x".to_owned(),
            message: "said".to_owned()
        }]
    );
}

#[test]
fn builtin_status_knows_kinds_with_a_status() {
    assert_eq!(builtin_status("apps", "Deployment"), Some(StatusNeed::Required));
    assert_eq!(builtin_status("", "ConfigMap"), Some(StatusNeed::NotRequired));
    assert_eq!(
        builtin_status("rbac.authorization.k8s.io", "Role"),
        Some(StatusNeed::NotRequired)
    );
    assert_eq!(builtin_status("x.io", "Thing"), None);
}

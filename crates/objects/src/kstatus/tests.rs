#![allow(
    clippy::needless_pass_by_value,
    reason = "a json! literal reads best by value"
)]

use serde_json::{Value as Json, json};

use super::*;

fn now() -> Timestamp {
    "2026-01-01T00:01:00Z".parse().unwrap()
}

fn health(api_version: &str, kind: &str, spec: Json, status: Json) -> Health {
    let object = json!({"apiVersion": api_version, "kind": kind,
        "metadata": {"name": "a", "generation": 2}, "spec": spec, "status": status});
    super::status(&Value::from_json(object), now())
}

fn check(cases: Vec<(&str, &str, Json, Json, Status, &str)>) {
    for (api_version, kind, spec, status, expected, message) in cases {
        let found = health(api_version, kind, spec.clone(), status.clone());
        assert_eq!(
            (found.status, found.message.as_str()),
            (expected, message),
            "{kind} {spec} {status}"
        );
    }
}

fn conditions(list: &[(&str, &str, &str)]) -> Json {
    list.iter()
        .map(|(kind, status, reason)| json!({"type": kind, "status": status, "reason": reason, "message": format!("{kind} is {status}")}))
        .collect()
}

use Status::{Current, Failed, InProgress, Terminating, Unknown};

#[test]
fn generic_rules_come_before_those_of_kinds() {
    let terminating = json!({"kind": "Job", "metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}});
    assert_eq!(status(&Value::from_json(terminating), now()).status, Terminating);
    let outdated = json!({"observedGeneration": 1, "conditions": conditions(&[("Ready", "True", "")])});
    let reconciling =
        json!({"conditions": conditions(&[("Ready", "True", ""), ("Reconciling", "True", "")])});
    let stalled = json!({"conditions": conditions(&[("Stalled", "True", "")])});
    let calm = json!({"conditions": conditions(&[("Stalled", "False", ""), ("Reconciling", "False", "")])});
    check(vec![
        (
            "x.io/v1",
            "Thing",
            json!({}),
            outdated.clone(),
            InProgress,
            "Thing generation is 2, but latest observed generation is 1",
        ),
        (
            "v1",
            "ConfigMap",
            json!({}),
            outdated,
            InProgress,
            "ConfigMap generation is 2, but latest observed generation is 1",
        ),
        (
            "x.io/v1",
            "Thing",
            json!({}),
            reconciling,
            InProgress,
            "Reconciling is True",
        ),
        ("v1", "Service", json!({}), stalled, Failed, "Stalled is True"),
        (
            "x.io/v1",
            "Thing",
            json!({}),
            calm,
            Current,
            "Resource is current",
        ),
    ]);
}

#[test]
fn other_kinds_follow_their_ready_condition() {
    let ready =
        |status: &str| json!({"observedGeneration": 2, "conditions": conditions(&[("Ready", status, "")])});
    check(vec![
        (
            "x.io/v1",
            "Thing",
            json!({}),
            ready("True"),
            Current,
            "Resource is Ready",
        ),
        (
            "x.io/v1",
            "Thing",
            json!({}),
            ready("False"),
            InProgress,
            "Ready is False",
        ),
        (
            "x.io/v1",
            "Thing",
            json!({}),
            ready("Unknown"),
            InProgress,
            "Ready is Unknown",
        ),
        (
            "x.io/v1",
            "Thing",
            json!({}),
            Json::Null,
            Current,
            "Resource is current",
        ),
        (
            "v1",
            "ConfigMap",
            json!({}),
            Json::Null,
            Current,
            "Resource is always ready",
        ),
        (
            "v1",
            "Secret",
            json!({}),
            Json::Null,
            Current,
            "Resource is always ready",
        ),
        (
            "batch/v1",
            "CronJob",
            json!({}),
            Json::Null,
            Current,
            "Resource is always ready",
        ),
        (
            "policy/v1",
            "PodDisruptionBudget",
            json!({}),
            json!({"conditions": conditions(&[("DisruptionAllowed", "False", "")])}),
            Current,
            "Resource is always ready",
        ),
    ]);
}

#[test]
fn deployments_are_current_when_all_replicas_are_updated_and_available() {
    let complete = json!({"replicas": 2, "updatedReplicas": 2, "availableReplicas": 2, "readyReplicas": 2,
        "conditions": conditions(&[("Available", "True", ""), ("Progressing", "True", "NewReplicaSetAvailable")])});
    let with = |field: &str, value: Json| {
        let mut status = complete.clone();
        status[field] = value;
        status
    };
    let two = || json!({"replicas": 2, "progressDeadlineSeconds": 600});
    let deployment = |spec: Json, status: Json, expected, message| {
        ("apps/v1", "Deployment", spec, status, expected, message)
    };
    let unavailable = conditions(&[("Progressing", "True", "NewReplicaSetAvailable")]);
    let exceeded = conditions(&[("Progressing", "False", "ProgressDeadlineExceeded")]);
    check(vec![
        deployment(
            two(),
            complete.clone(),
            Current,
            "Deployment is available. Replicas: 2",
        ),
        deployment(two(), Json::Null, InProgress, "Replicas: 0/2"),
        deployment(json!({}), Json::Null, InProgress, "Replicas: 0/1"),
        deployment(
            two(),
            with("updatedReplicas", json!(1)),
            InProgress,
            "Updated: 1/2",
        ),
        deployment(
            two(),
            with("replicas", json!(3)),
            InProgress,
            "Pending termination: 1",
        ),
        deployment(
            two(),
            with("availableReplicas", json!(1)),
            InProgress,
            "Available: 1/2",
        ),
        deployment(two(), with("readyReplicas", json!(0)), InProgress, "Ready: 0/2"),
        deployment(
            two(),
            with("conditions", json!([])),
            InProgress,
            "ReplicaSet not Available",
        ),
        deployment(
            two(),
            with("conditions", unavailable),
            InProgress,
            "Deployment not Available",
        ),
        deployment(
            json!({"replicas": 2}),
            with("conditions", json!([])),
            InProgress,
            "Deployment not Available",
        ),
        deployment(
            json!({"replicas": 2, "progressDeadlineSeconds": i32::MAX}),
            with("conditions", json!([])),
            InProgress,
            "Deployment not Available",
        ),
        deployment(
            two(),
            with("conditions", exceeded),
            Failed,
            "Progress deadline exceeded",
        ),
        (
            "extensions/v1beta1",
            "Deployment",
            two(),
            Json::Null,
            InProgress,
            "Replicas: 0/2",
        ),
    ]);
}

#[test]
fn stateful_sets_are_current_when_their_revision_is_rolled_out() {
    let complete = json!({"replicas": 2, "readyReplicas": 2, "currentReplicas": 2, "updatedReplicas": 2,
        "currentRevision": "a", "updateRevision": "a"});
    let with = |field: &str, value: Json| {
        let mut status = complete.clone();
        status[field] = value;
        status
    };
    let partition = || json!({"replicas": 2, "updateStrategy": {"rollingUpdate": {"partition": 1}}});
    let two = || json!({"replicas": 2});
    let set = |spec: Json, status: Json, expected, message| {
        ("apps/v1", "StatefulSet", spec, status, expected, message)
    };
    check(vec![
        set(
            two(),
            complete.clone(),
            Current,
            "All replicas scheduled as expected. Replicas: 2",
        ),
        set(two(), Json::Null, InProgress, "Replicas: 0/2"),
        set(two(), with("readyReplicas", json!(1)), InProgress, "Ready: 1/2"),
        set(
            two(),
            with("replicas", json!(3)),
            InProgress,
            "Pending termination: 1",
        ),
        set(
            two(),
            with("currentReplicas", json!(1)),
            InProgress,
            "current: 1/2",
        ),
        set(
            two(),
            with("updateRevision", json!("b")),
            InProgress,
            "Waiting for updated revision to match current",
        ),
        set(
            partition(),
            with("updatedReplicas", json!(0)),
            InProgress,
            "updated: 0/1",
        ),
        set(
            partition(),
            with("updatedReplicas", json!(1)),
            Current,
            "Partition rollout complete. updated: 1",
        ),
        set(
            json!({"replicas": 2, "updateStrategy": {"type": "OnDelete"}}),
            Json::Null,
            Current,
            "StatefulSet is using the ondelete update strategy",
        ),
    ]);
}

#[test]
fn daemon_sets_need_an_observed_generation_and_all_pods() {
    let complete = json!({"observedGeneration": 2, "desiredNumberScheduled": 2, "currentNumberScheduled": 2,
        "updatedNumberScheduled": 2, "numberAvailable": 2, "numberReady": 2});
    let with = |field: &str, value: Json| {
        let mut status = complete.clone();
        status[field] = value;
        status
    };
    let set =
        |status: Json, expected, message| ("apps/v1", "DaemonSet", json!({}), status, expected, message);
    check(vec![
        set(
            complete.clone(),
            Current,
            "All replicas scheduled as expected. Replicas: 2",
        ),
        set(
            Json::Null,
            InProgress,
            "DaemonSet status.observedGeneration not found",
        ),
        set(
            with("desiredNumberScheduled", Json::Null),
            InProgress,
            "Missing .status.desiredNumberScheduled",
        ),
        set(
            with("desiredNumberScheduled", json!(0)),
            Current,
            "All replicas scheduled as expected. Replicas: 0",
        ),
        set(
            with("currentNumberScheduled", json!(1)),
            InProgress,
            "Current: 1/2",
        ),
        set(
            with("updatedNumberScheduled", json!(1)),
            InProgress,
            "Updated: 1/2",
        ),
        set(with("numberAvailable", json!(1)), InProgress, "Available: 1/2"),
        set(with("numberReady", json!(1)), InProgress, "Ready: 1/2"),
    ]);
}

#[test]
fn replica_sets_are_current_when_all_replicas_are_available() {
    let complete =
        json!({"replicas": 1, "fullyLabeledReplicas": 1, "availableReplicas": 1, "readyReplicas": 1});
    let with = |field: &str, value: Json| {
        let mut status = complete.clone();
        status[field] = value;
        status
    };
    let set =
        |status: Json, expected, message| ("apps/v1", "ReplicaSet", json!({}), status, expected, message);
    let failure = conditions(&[("ReplicaFailure", "True", "FailedCreate")]);
    check(vec![
        set(complete.clone(), Current, "ReplicaSet is available. Replicas: 1"),
        set(
            with("conditions", failure),
            InProgress,
            "Replica Failure condition. Check Pods",
        ),
        set(
            with("fullyLabeledReplicas", json!(0)),
            InProgress,
            "Labelled: 0/1",
        ),
        set(with("availableReplicas", json!(0)), InProgress, "Available: 0/1"),
        set(with("readyReplicas", json!(0)), InProgress, "Ready: 0/1"),
        set(with("replicas", json!(2)), InProgress, "Pending termination: 1"),
    ]);
}

#[test]
fn pods_fail_in_crash_loops_and_after_15_seconds_without_a_node() {
    let pod = |status: Json, expected, message| ("v1", "Pod", json!({}), status, expected, message);
    let unschedulable = |time: &str| {
        json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
            "lastTransitionTime": time}]})
    };
    let waiting = json!([{"name": "b", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]);
    check(vec![
        pod(
            json!({"phase": "Succeeded"}),
            Current,
            "Pod has completed successfully",
        ),
        pod(
            json!({"phase": "Failed"}),
            Current,
            "Pod has completed, but not successfully",
        ),
        pod(
            json!({"phase": "Running", "conditions": conditions(&[("Ready", "True", "")])}),
            Current,
            "Pod is Ready",
        ),
        pod(
            json!({"phase": "Running"}),
            InProgress,
            "Pod is running but is not Ready",
        ),
        pod(
            json!({"phase": "Running", "initContainerStatuses": waiting}),
            Failed,
            "Containers in CrashLoop state: b",
        ),
        pod(
            json!({"phase": "Running", "containerStatuses": waiting}),
            Failed,
            "Containers in CrashLoop state: b",
        ),
        pod(
            json!({"phase": "Pending"}),
            InProgress,
            "Pod is in the Pending phase",
        ),
        pod(
            unschedulable("2026-01-01T00:00:46Z"),
            InProgress,
            "Pod has not been scheduled",
        ),
        pod(
            unschedulable("2026-01-01T00:00:45Z"),
            Failed,
            "Pod could not be scheduled",
        ),
        pod(json!({}), InProgress, "Pod phase not available"),
        pod(json!({"phase": "Odd"}), Unknown, "unknown phase Odd"),
    ]);
    let waits = health("v1", "Pod", json!({}), unschedulable("2026-01-01T00:00:46Z"));
    assert_eq!(waits.recheck, Some("2026-01-01T00:01:01Z".parse().unwrap()));
}

#[test]
fn jobs_are_current_when_complete_or_suspended() {
    let job =
        |spec: Json, status: Json, expected, message| ("batch/v1", "Job", spec, status, expected, message);
    let with =
        |kind: &str| json!({"succeeded": 1, "failed": 2, "conditions": conditions(&[(kind, "True", "")])});
    check(vec![
        job(
            json!({"completions": 3}),
            with("Complete"),
            Current,
            "Job Completed. succeeded: 1/3",
        ),
        job(
            json!({"parallelism": 2}),
            with("Failed"),
            Failed,
            "Job Failed. failed: 2/2",
        ),
        job(json!({}), with("Suspended"), Current, "Job Suspended"),
        job(json!({"suspend": true}), Json::Null, Current, "Job Suspended"),
        job(json!({}), Json::Null, InProgress, "Job not started"),
        job(
            json!({}),
            json!({"startTime": "2026-01-01T00:00:00Z", "active": 1}),
            InProgress,
            "Job in progress. success:0, active: 1, failed: 0",
        ),
    ]);
}

#[test]
fn claims_services_and_definitions_have_rules_of_their_own() {
    let definition = |list: &[(&str, &str, &str)], expected, message| {
        let status = json!({"conditions": conditions(list)});
        (
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            json!({}),
            status,
            expected,
            message,
        )
    };
    let balancer = |ip: &str| json!({"type": "LoadBalancer", "clusterIP": ip});
    check(vec![
        (
            "v1",
            "PersistentVolumeClaim",
            json!({}),
            json!({"phase": "Bound"}),
            Current,
            "PVC is Bound",
        ),
        (
            "v1",
            "PersistentVolumeClaim",
            json!({}),
            json!({"phase": "Pending"}),
            InProgress,
            "PVC is not Bound. phase: Pending",
        ),
        (
            "v1",
            "Service",
            json!({}),
            Json::Null,
            Current,
            "Service is ready",
        ),
        (
            "v1",
            "Service",
            balancer("10.0.0.1"),
            json!({"loadBalancer": {}}),
            Current,
            "Service is ready",
        ),
        (
            "v1",
            "Service",
            balancer(""),
            Json::Null,
            InProgress,
            "ClusterIP not set. Service type: LoadBalancer",
        ),
        definition(&[], InProgress, "Install in progress"),
        definition(
            &[("NamesAccepted", "True", ""), ("Established", "True", "")],
            Current,
            "CRD is established",
        ),
        definition(
            &[("NamesAccepted", "False", "Conflict")],
            Failed,
            "NamesAccepted is False",
        ),
        definition(
            &[("Established", "False", "Installing")],
            InProgress,
            "Install in progress",
        ),
        definition(
            &[("Established", "False", "NotAccepted")],
            Failed,
            "Established is False",
        ),
    ]);
}

#[test]
fn failed_pods_fail_a_workload_in_progress() {
    let deployment = |selector: Json| {
        Value::from_json(
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"selector": selector}}),
        )
    };
    let selector = json!({"matchLabels": {"app": "a"}, "matchExpressions": [
        {"key": "tier", "operator": "In", "values": ["x", "y"]}, {"key": "old", "operator": "DoesNotExist"}]});
    let progress = Health::in_progress("Ready: 0/1");
    let current = Health::current("");
    let owner = deployment(selector);
    let expected = Some("app=a,tier in (x,y),!old".to_owned());
    assert_eq!(pod_selector(&owner, &progress), expected);
    assert_eq!(pod_selector(&owner, &current), None);
    assert_eq!(pod_selector(&deployment(json!({})), &progress), None);
    let odd = json!({"matchExpressions": [{"key": "a", "operator": "Near"}]});
    assert_eq!(pod_selector(&deployment(odd), &progress), None);

    let pod = |metadata: Json, phase: &str| {
        Value::from_json(
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "status": {"phase": phase,
            "containerStatuses": [{"name": "a", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}],
            "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}}),
        )
    };
    let going = json!({"deletionTimestamp": "2026-01-01T00:00:00Z"});
    for (pods, expected) in [
        (vec![], progress.clone()),
        (
            vec![pod(json!({}), "Pending"), pod(going, "Running")],
            progress.clone(),
        ),
        (
            vec![pod(json!({}), "Running"), pod(json!({}), "Running")],
            Health::new(Failed, "2 pods have failed"),
        ),
    ] {
        assert_eq!(with_pods(progress.clone(), &pods, now()), expected);
    }
}

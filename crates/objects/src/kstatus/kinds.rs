//! The rules of the built-in kinds. Numbers that are missing in a status count as zero.

use jiff::{SignedDuration, Timestamp};
use yaml::Value;

use super::{Health, Status, condition, conditions, is_true, kind, text};
use crate::split_api_version;

/// Time that the scheduler has for a pod before it counts as failed.
const SCHEDULE_WINDOW: SignedDuration = SignedDuration::from_secs(15);
/// The deadline of a Deployment that has none, and never reports progress.
const NO_DEADLINE: i64 = i32::MAX as i64;

/// Returns the status by the rule of the object's kind; `None` if there is no rule.
pub(super) fn check(object: &Value, now: Timestamp) -> Option<Health> {
    let (group, _) = split_api_version(text(object, "apiVersion"));
    Some(match (group, kind(object)) {
        ("apps" | "extensions", "Deployment") => deployment(object),
        ("apps", "StatefulSet") => stateful_set(object),
        ("apps" | "extensions", "DaemonSet") => daemon_set(object),
        ("apps" | "extensions", "ReplicaSet") => replica_set(object),
        ("", "Pod") => pod(object, now),
        ("batch", "Job") => job(object),
        ("", "PersistentVolumeClaim") => claim(object),
        ("", "Service") => service(object),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => definition(object),
        ("", "ConfigMap" | "Secret") | ("batch", "CronJob") | ("policy", "PodDisruptionBudget") => {
            Health::current("Resource is always ready")
        }
        _ => return None,
    })
}

fn number(object: &Value, path: [&str; 2], default: i64) -> i64 {
    object.pointer(&path).and_then(Value::as_i64).unwrap_or(default)
}

fn counted(object: &Value, field: &str) -> i64 {
    number(object, ["status", field], 0)
}

/// Returns an `InProgress` if fewer than the wanted replicas have been counted.
fn fewer(what: &str, counted: i64, wanted: i64) -> Option<Health> {
    (wanted > counted).then(|| Health::in_progress(format!("{what}: {counted}/{wanted}")))
}

fn extra(counted: i64, wanted: i64) -> Option<Health> {
    (counted > wanted).then(|| Health::in_progress(format!("Pending termination: {}", counted - wanted)))
}

fn deployment(object: &Value) -> Health {
    let progressing = condition(object, "Progressing");
    if progressing.is_some_and(|found| text(found, "reason") == "ProgressDeadlineExceeded") {
        return Health::new(Status::Failed, "Progress deadline exceeded");
    }
    let wanted = number(object, ["spec", "replicas"], 1);
    let [replicas, updated, available, ready] = [
        "replicas",
        "updatedReplicas",
        "availableReplicas",
        "readyReplicas",
    ]
    .map(|field| counted(object, field));
    let deadline = number(object, ["spec", "progressDeadlineSeconds"], NO_DEADLINE);
    let progressed = deadline == NO_DEADLINE
        || progressing
            .is_some_and(|found| is_true(found) && text(found, "reason") == "NewReplicaSetAvailable");
    let is_available = condition(object, "Available").is_some_and(is_true);
    let missing = |holds: bool, message: &str| (!holds).then(|| Health::in_progress(message.to_owned()));
    fewer("Replicas", replicas, wanted)
        .or_else(|| fewer("Updated", updated, wanted))
        .or_else(|| extra(replicas, wanted))
        .or_else(|| fewer("Available", available, updated))
        .or_else(|| fewer("Ready", ready, wanted))
        .or_else(|| missing(progressed, "ReplicaSet not Available"))
        .or_else(|| missing(is_available, "Deployment not Available"))
        .unwrap_or_else(|| Health::current(format!("Deployment is available. Replicas: {replicas}")))
}

fn stateful_set(object: &Value) -> Health {
    let strategy = object.pointer(&["spec", "updateStrategy", "type"]);
    if strategy.and_then(Value::as_str) == Some("OnDelete") {
        return Health::current("StatefulSet is using the ondelete update strategy");
    }
    let wanted = number(object, ["spec", "replicas"], 1);
    let replicas = counted(object, "replicas");
    let decided = fewer("Replicas", replicas, wanted)
        .or_else(|| fewer("Ready", counted(object, "readyReplicas"), wanted))
        .or_else(|| extra(replicas, wanted));
    if let Some(health) = decided {
        return health;
    }
    let partition = object.pointer(&["spec", "updateStrategy", "rollingUpdate", "partition"]);
    if let Some(partition) = partition.and_then(Value::as_i64) {
        let updated = counted(object, "updatedReplicas");
        let complete = || Health::current(format!("Partition rollout complete. updated: {updated}"));
        return fewer("updated", updated, wanted.saturating_sub(partition)).unwrap_or_else(complete);
    }
    if let Some(health) = fewer("current", counted(object, "currentReplicas"), wanted) {
        return health;
    }
    let revision = |field| object.pointer(&["status", field]).and_then(Value::as_str);
    if revision("currentRevision") != revision("updateRevision") {
        return Health::in_progress("Waiting for updated revision to match current");
    }
    Health::current(format!(
        "All replicas scheduled as expected. Replicas: {replicas}"
    ))
}

fn daemon_set(object: &Value) -> Health {
    for path in [["metadata", "generation"], ["status", "observedGeneration"]] {
        if object.pointer(&path).and_then(Value::as_i64).is_none() {
            return Health::in_progress(format!("{} {} not found", kind(object), path.join(".")));
        }
    }
    let desired = number(object, ["status", "desiredNumberScheduled"], -1);
    if desired < 0 {
        return Health::in_progress("Missing .status.desiredNumberScheduled");
    }
    let steps = [
        ("Current", "currentNumberScheduled"),
        ("Updated", "updatedNumberScheduled"),
        ("Available", "numberAvailable"),
        ("Ready", "numberReady"),
    ];
    let decided = steps
        .into_iter()
        .find_map(|(what, field)| fewer(what, counted(object, field), desired));
    decided.unwrap_or_else(|| {
        Health::current(format!("All replicas scheduled as expected. Replicas: {desired}"))
    })
}

fn replica_set(object: &Value) -> Health {
    if condition(object, "ReplicaFailure").is_some_and(is_true) {
        return Health::in_progress("Replica Failure condition. Check Pods");
    }
    let wanted = number(object, ["spec", "replicas"], 1);
    let replicas = counted(object, "replicas");
    fewer("Labelled", counted(object, "fullyLabeledReplicas"), wanted)
        .or_else(|| fewer("Available", counted(object, "availableReplicas"), wanted))
        .or_else(|| fewer("Ready", counted(object, "readyReplicas"), wanted))
        .or_else(|| extra(replicas, wanted))
        .unwrap_or_else(|| Health::current(format!("ReplicaSet is available. Replicas: {replicas}")))
}

fn pod(object: &Value, now: Timestamp) -> Health {
    let phase = object.pointer(&["status", "phase"]).and_then(Value::as_str);
    match phase.unwrap_or_default() {
        "Succeeded" => Health::current("Pod has completed successfully"),
        "Failed" => Health::current("Pod has completed, but not successfully"),
        "Running" if condition(object, "Ready").is_some_and(is_true) => Health::current("Pod is Ready"),
        "Running" => match crash_looping(object) {
            names if names.is_empty() => Health::in_progress("Pod is running but is not Ready"),
            names => {
                let message = format!("Containers in CrashLoop state: {}", names.join(","));
                Health::new(Status::Failed, message)
            }
        },
        "Pending" => pending(object, now),
        "" => Health::in_progress("Pod phase not available"),
        phase => Health::new(Status::Unknown, format!("unknown phase {phase}")),
    }
}

fn pending(object: &Value, now: Timestamp) -> Health {
    let scheduled = condition(object, "PodScheduled")
        .filter(|found| text(found, "status") == "False" && text(found, "reason") == "Unschedulable");
    let Some(scheduled) = scheduled else {
        return Health::in_progress("Pod is in the Pending phase");
    };
    let since: Option<Timestamp> = text(scheduled, "lastTransitionTime").parse().ok();
    match since.and_then(|since| since.checked_add(SCHEDULE_WINDOW).ok()) {
        Some(end) if now < end => Health {
            recheck: Some(end),
            ..Health::in_progress("Pod has not been scheduled")
        },
        _ => Health::new(Status::Failed, "Pod could not be scheduled"),
    }
}

fn crash_looping(object: &Value) -> Vec<&str> {
    let lists = ["initContainerStatuses", "containerStatuses"];
    let containers = lists
        .into_iter()
        .filter_map(|list| object.pointer(&["status", list])?.as_seq())
        .flatten();
    containers
        .filter(|container| {
            let reason = container.pointer(&["state", "waiting", "reason"]);
            reason.and_then(Value::as_str) == Some("CrashLoopBackOff")
        })
        .map(|container| text(container, "name"))
        .collect()
}

fn job(object: &Value) -> Health {
    let parallelism = number(object, ["spec", "parallelism"], 1);
    let completions = number(object, ["spec", "completions"], parallelism);
    let [succeeded, active, failed] = ["succeeded", "active", "failed"].map(|field| counted(object, field));
    for found in conditions(object).filter(|found| is_true(found)) {
        match text(found, "type") {
            "Complete" => {
                return Health::current(format!("Job Completed. succeeded: {succeeded}/{completions}"));
            }
            "Failed" => {
                let message = format!("Job Failed. failed: {failed}/{completions}");
                return Health::new(Status::Failed, message);
            }
            "Suspended" => return Health::current("Job Suspended"),
            _ => {}
        }
    }
    if object.pointer(&["spec", "suspend"]).and_then(Value::as_bool) == Some(true) {
        return Health::current("Job Suspended");
    }
    let started = object.pointer(&["status", "startTime"]).and_then(Value::as_str);
    if started.is_none_or(str::is_empty) {
        return Health::in_progress("Job not started");
    }
    Health::in_progress(format!(
        "Job in progress. success:{succeeded}, active: {active}, failed: {failed}"
    ))
}

fn claim(object: &Value) -> Health {
    let phase = object.pointer(&["status", "phase"]).and_then(Value::as_str);
    match phase.unwrap_or("unknown") {
        "Bound" => Health::current("PVC is Bound"),
        phase => Health::in_progress(format!("PVC is not Bound. phase: {phase}")),
    }
}

fn service(object: &Value) -> Health {
    let spec = |field| object.pointer(&["spec", field]).and_then(Value::as_str);
    if spec("type") == Some("LoadBalancer") && spec("clusterIP").is_none_or(str::is_empty) {
        return Health::in_progress("ClusterIP not set. Service type: LoadBalancer");
    }
    Health::current("Service is ready")
}

fn definition(object: &Value) -> Health {
    for found in conditions(object) {
        let failed = || Health::new(Status::Failed, text(found, "message"));
        match (text(found, "type"), text(found, "status")) {
            ("NamesAccepted", "False") => return failed(),
            ("Established", "False") if text(found, "reason") != "Installing" => return failed(),
            ("Established", "True") => return Health::current("CRD is established"),
            _ => {}
        }
    }
    Health::in_progress("Install in progress")
}

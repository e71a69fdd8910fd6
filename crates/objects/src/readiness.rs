//! Readiness of a live object.
//!
//! Known kinds are checked in detail; every other object is ready as soon as its status exists and has observed the newest
//! generation.

mod kinds;

#[cfg(test)]
mod tests;

use jiff::{SignedDuration, Timestamp};
use yaml::Value;

use crate::{
    meta,
    vocabulary::{Vocabulary, is_marked},
};

/// Age up to which an object without its required status is not ready; after that no controller seems to write one.
const STATUS_GRACE: SignedDuration = SignedDuration::from_secs(15);

/// The need for a status of the objects of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatusNeed {
    /// A controller will write one.
    Required,
    NotRequired,
    Unknown,
}

/// The inputs of a check besides the object.
#[derive(Debug, Clone, Copy)]
pub struct Policy<'a> {
    pub vocabulary: &'a Vocabulary,
    pub status: StatusNeed,
    pub now: Timestamp,
    /// If set, "not ready" is an error (when validating), otherwise a warning (when waiting).
    pub not_ready_is_error: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValidateResult {
    pub annotation: String,
    pub message: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Readiness {
    pub ready: bool,
    /// Failures that waiting will not fix and, when validating, conditions that are not met yet.
    pub errors: Vec<String>,
    /// Conditions that are not met yet, or can't be determined.
    pub warnings: Vec<String>,
    pub results: Vec<ValidateResult>,
}

/// The reason why an object is not ready.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    NotReady(String),
    Failed(String),
}

/// Checks a live object.
#[must_use]
pub fn check(object: &Value, policy: Policy<'_>) -> Readiness {
    let vocabulary = policy.vocabulary;
    let mut readiness = Readiness {
        ready: true,
        ..Readiness::default()
    };
    if is_marked(object, vocabulary.validate_ignore) {
        return readiness;
    }
    if let Some(prefix) = vocabulary.validate_result_prefix {
        readiness.results = meta::annotations(object)
            .filter(|(name, _)| name.starts_with(prefix))
            .map(|(name, message)| ValidateResult {
                annotation: name.to_owned(),
                message: message.to_owned(),
            })
            .collect();
    }
    let explicit = vocabulary
        .is_ready
        .and_then(|name| Some((name, meta::annotation(object, name)?)));
    if let Some((name, explicit)) = explicit {
        if meta::go_bool(explicit) != Some(true) {
            let message = format!("{name} annotation is set to {explicit}");
            note(&mut readiness, Verdict::NotReady(message), policy);
        }
        return readiness;
    }
    let Some(status) = object.get("status").filter(|status| !status.is_null()) else {
        without_status(object, &mut readiness, policy);
        return readiness;
    };
    if is_outdated(object, status) {
        note(
            &mut readiness,
            Verdict::NotReady("Waiting for reconciliation".to_owned()),
            policy,
        );
        return readiness;
    }
    if let Err(verdict) = kinds::check(object, status) {
        note(&mut readiness, verdict, policy);
    }
    readiness
}

fn note(readiness: &mut Readiness, verdict: Verdict, policy: Policy<'_>) {
    readiness.ready = false;
    match verdict {
        Verdict::NotReady(message) if !policy.not_ready_is_error => readiness.warnings.push(message),
        Verdict::NotReady(message) | Verdict::Failed(message) => readiness.errors.push(message),
    }
}

fn without_status(object: &Value, readiness: &mut Readiness, policy: Policy<'_>) {
    match policy.status {
        StatusNeed::NotRequired => {}
        StatusNeed::Unknown => readiness.warnings.push(
            "unable to determine if a status is expected. The object is considered ready: grant read access to \
             customresourcedefinitions to find out"
                .to_owned(),
        ),
        StatusNeed::Required => {
            let old = meta::creation_time(object).is_some_and(|created| policy.now.duration_since(created) > STATUS_GRACE);
            if !old {
                note(readiness, Verdict::NotReady("no status available yet".to_owned()), policy);
            }
        }
    }
}

fn is_outdated(object: &Value, status: &Value) -> bool {
    let observed = status.get("observedGeneration").and_then(Value::as_i64);
    let generation = object
        .pointer(&["metadata", "generation"])
        .and_then(Value::as_i64);
    matches!((observed, generation), (Some(observed), Some(generation)) if observed != generation)
}

/// Returns the need for a status of a built-in kind; `None` for kinds that are not built in.
#[must_use]
pub fn builtin_status(group: &str, kind: &str) -> Option<StatusNeed> {
    let required = match group {
        "" => matches!(
            kind,
            "Namespace"
                | "Node"
                | "PersistentVolume"
                | "PersistentVolumeClaim"
                | "Pod"
                | "ReplicationController"
                | "ResourceQuota"
                | "Service"
        ),
        "apps" => matches!(kind, "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet"),
        "batch" => matches!(kind, "Job" | "CronJob"),
        "autoscaling" => kind == "HorizontalPodAutoscaler",
        "policy" => kind == "PodDisruptionBudget",
        "extensions" => kind == "Ingress",
        "networking.k8s.io" => matches!(kind, "Ingress" | "ServiceCIDR"),
        "storage.k8s.io" => kind == "VolumeAttachment",
        "certificates.k8s.io" => kind == "CertificateSigningRequest",
        "flowcontrol.apiserver.k8s.io" => matches!(kind, "FlowSchema" | "PriorityLevelConfiguration"),
        "admissionregistration.k8s.io" => kind == "ValidatingAdmissionPolicy",
        "internal.apiserver.k8s.io" => kind == "StorageVersion",
        "resource.k8s.io" => kind == "ResourceClaim",
        "authentication.k8s.io" | "authorization.k8s.io" => kind.ends_with("Review"),
        "apiextensions.k8s.io" => kind == "CustomResourceDefinition",
        "rbac.authorization.k8s.io"
        | "scheduling.k8s.io"
        | "node.k8s.io"
        | "coordination.k8s.io"
        | "discovery.k8s.io"
        | "events.k8s.io" => false,
        _ => return None,
    };
    Some(if required {
        StatusNeed::Required
    } else {
        StatusNeed::NotRequired
    })
}

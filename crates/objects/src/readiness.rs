//! Whether a live object is ready.
//!
//! There is no general rule: kinds that are known are looked at in detail, and everything else is ready as soon as its
//! status is there and speaks of the newest generation. The caller passes in what must be asked elsewhere: whether a
//! kind has a status at all, and what time it is.

mod kinds;

#[cfg(test)]
mod tests;

use jiff::{SignedDuration, Timestamp};
use yaml::Value;

use crate::{annotations as names, meta};

/// How long a fresh object may be without the status that it must get; after that nobody seems to write one.
const STATUS_GRACE: SignedDuration = SignedDuration::from_secs(15);

/// Whether objects of a kind have a status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatusNeed {
    /// Some controller will write one.
    Required,
    /// The kind has none.
    NotRequired,
    /// There is no way to find out.
    Unknown,
}

/// How to look at an object.
#[derive(Debug, Clone, Copy)]
pub struct Policy {
    /// Whether the kind of the object has a status.
    pub status: StatusNeed,
    /// The current time.
    pub now: Timestamp,
    /// Whether "not ready" is an error (when validating) or a warning (when waiting).
    pub not_ready_is_error: bool,
}

/// The value of one annotation that is a result of a validation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValidateResult {
    /// The annotation.
    pub annotation: String,
    /// Its value.
    pub message: String,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Readiness {
    /// Whether the object is ready.
    pub ready: bool,
    /// What will not heal by waiting (and, when validating, what is not ready).
    pub errors: Vec<String>,
    /// What is not ready, or can't be told.
    pub warnings: Vec<String>,
    /// Results that annotations carry.
    pub results: Vec<ValidateResult>,
}

/// What a rule says against an object.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    /// It may become ready.
    NotReady(String),
    /// It failed.
    Failed(String),
}

/// Looks at a live object.
#[must_use]
pub fn check(object: &Value, policy: Policy) -> Readiness {
    let mut readiness = Readiness {
        ready: true,
        ..Readiness::default()
    };
    if meta::flag(object, names::VALIDATE_IGNORE) {
        return readiness;
    }
    readiness.results = meta::annotations(object)
        .filter(|(name, _)| name.starts_with(names::VALIDATE_RESULT_PREFIX))
        .map(|(name, message)| ValidateResult {
            annotation: name.to_owned(),
            message: message.to_owned(),
        })
        .collect();
    if let Some(explicit) = meta::annotation(object, names::IS_READY) {
        if meta::go_bool(explicit) != Some(true) {
            let message = format!("{} annotation is set to {explicit}", names::IS_READY);
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

fn note(readiness: &mut Readiness, verdict: Verdict, policy: Policy) {
    readiness.ready = false;
    match verdict {
        Verdict::NotReady(message) if !policy.not_ready_is_error => readiness.warnings.push(message),
        Verdict::NotReady(message) | Verdict::Failed(message) => readiness.errors.push(message),
    }
}

fn without_status(object: &Value, readiness: &mut Readiness, policy: Policy) {
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

/// Whether a built-in kind has a status; `None` for kinds that are not built in.
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

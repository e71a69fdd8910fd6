//! The state of objects that a wait is for.

use cluster::Cluster;
use jiff::{SignedDuration, Timestamp};
use objects::{
    ObjectRef,
    kstatus::{self, Health, Status},
    readiness::{self, Policy, Readiness},
};
use yaml::Value;

use super::{Checked, CustomHealth, HealthRules};
use crate::{Owner, ends_by_deletion};

/// Time after which an object without a status is checked again.
const RECHECK: SignedDuration = SignedDuration::from_secs(5);

pub(super) enum Goal<'a> {
    Ready {
        owner: &'a Owner,
        custom: Option<&'a dyn CustomHealth>,
        fail_fast: bool,
    },
    /// The UIDs of the objects, in the order of the targets.
    Gone { uids: Vec<String> },
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Reached,
    Open(Health),
    /// Nothing can be judged any more: the wait ends.
    Exhausted(Health),
}

impl Goal<'_> {
    pub(super) fn custom(&self) -> Option<&dyn CustomHealth> {
        match self {
            Self::Ready { custom, .. } => *custom,
            Self::Gone { .. } => None,
        }
    }

    /// Judges an object as it was read, with the result of its custom check; `before` is its state before that, if it existed.
    pub(super) async fn judge(
        &self,
        cluster: &Cluster,
        (at, reference): (usize, &ObjectRef),
        (object, checked): (Option<&Value>, Checked),
        before: Option<&Value>,
    ) -> Verdict {
        match (self, object) {
            (Self::Gone { .. }, None) => Verdict::Reached,
            (Self::Gone { uids }, Some(object)) => {
                let is_same = uids
                    .get(at)
                    .is_none_or(|uid| objects::meta::uid(object) == Some(uid));
                if is_same {
                    Verdict::Open(Health::new(
                        Status::Terminating,
                        "Resource scheduled for deletion",
                    ))
                } else {
                    Verdict::Reached
                }
            }
            (Self::Ready { .. }, None) if before.is_some_and(ends_by_deletion) => Verdict::Reached,
            (Self::Ready { .. }, None) => Verdict::Open(Health::new(Status::NotFound, "Resource not found")),
            (Self::Ready { owner, .. }, Some(object)) => {
                let health = match checked {
                    Checked::Exhausted(health) => return Verdict::Exhausted(health),
                    Checked::Found(health) => health,
                    Checked::ByRules => health(cluster, owner, reference, object).await,
                };
                match health.status {
                    Status::Current => Verdict::Reached,
                    _ => Verdict::Open(health),
                }
            }
        }
    }

    /// Returns true if the wait ends because of this status.
    pub(super) fn ends_with(&self, health: &Health) -> bool {
        matches!(self, Self::Ready { fail_fast: true, .. }) && health.status == Status::Failed
    }

    /// Returns the label selector of pods that decide about an object.
    pub(super) fn pod_selector(&self, object: &Value, health: &Health) -> Option<String> {
        match self {
            Self::Ready { owner, .. } if owner.health == HealthRules::Kstatus => {
                kstatus::pod_selector(object, health)
            }
            _ => None,
        }
    }
}

async fn health(cluster: &Cluster, owner: &Owner, reference: &ObjectRef, object: &Value) -> Health {
    let now = Timestamp::now();
    match owner.health {
        HealthRules::Kstatus => kstatus::status(object, now),
        HealthRules::Readiness => {
            let status = match object.get("status") {
                Some(status) if !status.is_null() => readiness::StatusNeed::Required,
                _ => match cluster.status_need(reference).await {
                    Ok(need) => need,
                    Err(error) => return Health::new(Status::Unknown, error.to_string()),
                },
            };
            let policy = Policy {
                vocabulary: &owner.vocabulary,
                status,
                now,
                not_ready_is_error: false,
            };
            let recheck = object.get("status").is_none_or(Value::is_null);
            let recheck = recheck.then(|| now.checked_add(RECHECK).ok()).flatten();
            of_readiness(&readiness::check(object, policy), recheck)
        }
    }
}

fn of_readiness(readiness: &Readiness, recheck: Option<Timestamp>) -> Health {
    if !readiness.errors.is_empty() {
        return Health::new(Status::Failed, readiness.errors.join("; "));
    }
    if readiness.ready {
        return Health::new(Status::Current, readiness.warnings.join("; "));
    }
    Health {
        recheck,
        ..Health::new(Status::InProgress, readiness.warnings.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn readiness_becomes_a_status() {
        let readiness = |ready: bool, errors: &[&str], warnings: &[&str]| Readiness {
            ready,
            errors: errors.iter().map(|&text| text.to_owned()).collect(),
            warnings: warnings.iter().map(|&text| text.to_owned()).collect(),
            ..Readiness::default()
        };
        for (readiness, status, message) in [
            (readiness(true, &[], &[]), Status::Current, ""),
            (readiness(true, &[], &["perhaps"]), Status::Current, "perhaps"),
            (readiness(false, &[], &["a", "b"]), Status::InProgress, "a; b"),
            (readiness(false, &["broken"], &["a"]), Status::Failed, "broken"),
        ] {
            let health = of_readiness(&readiness, None);
            assert_eq!((health.status, health.message.as_str()), (status, message));
        }
    }

    #[test]
    fn only_jobs_with_a_time_to_live_end_by_deletion() {
        for (object, expected) in [
            (
                json!({"kind": "Job", "spec": {"ttlSecondsAfterFinished": 0}}),
                true,
            ),
            (
                json!({"kind": "Job", "spec": {"ttlSecondsAfterFinished": null}}),
                false,
            ),
            (json!({"kind": "Job", "spec": {}}), false),
            (
                json!({"kind": "Pod", "spec": {"ttlSecondsAfterFinished": 0}}),
                false,
            ),
            (
                json!({"kind": "Workflow", "spec": {"ttlStrategy": {"secondsAfterCompletion": 5}}}),
                true,
            ),
        ] {
            assert_eq!(
                ends_by_deletion(&Value::from_json(object.clone())),
                expected,
                "{object}"
            );
        }
    }
}

//! kluctl's words for the outcomes of crate `apply`. Clients read them.

use apply::{ApplyError, FailedObject, Failure, Warning};
use objects::ObjectRef;

use results::ObjectError;

pub(super) fn failure(reference: &ObjectRef, failed: &FailedObject) -> ObjectError {
    let message = match failed.failure.as_ref() {
        Failure::Apply(error) => patch(reference, error),
        Failure::Create(error) => format!("{} (after the object was deleted)", patch(reference, error)),
        Failure::Delete(error) => return deletion(reference, error),
        Failure::Replace(error) | Failure::Takeover(error) => error.to_string(),
        Failure::Read(error) => error.to_string(),
    };
    ObjectError::of(reference, message).denied(failed.is_denied())
}

fn patch(reference: &ObjectRef, error: &ApplyError) -> String {
    match error {
        ApplyError::Cluster(cluster::Error::Cancelled) => {
            format!(
                "failed to patch {reference}: cancelled in the middle, so whether it was applied is not known"
            )
        }
        other => format!("failed to patch {reference}: {other}"),
    }
}

pub(super) fn deletion(reference: &ObjectRef, error: &cluster::Error) -> ObjectError {
    let message = format!("failed to delete {reference}: {error}");
    ObjectError::of(reference, message).denied(error.is_denied())
}

pub(super) fn warning(reference: &ObjectRef, warning: Warning) -> ObjectError {
    match warning {
        Warning::Server(message) => ObjectError::of(reference, message),
        Warning::FieldLeft(left) => {
            let (message, field) = (left.message, left.field);
            let message = format!("{message}. Not updating field '{field}' as we lost field ownership");
            ObjectError {
                lost_field: true,
                ..ObjectError::of(reference, message)
            }
        }
        Warning::Replaced => {
            let message = format!("patching {reference} failed, retrying with replace instead of patch");
            ObjectError::of(reference, message)
        }
        Warning::Recreated => {
            let message = format!("patching {reference} failed, retrying by deleting and re-applying");
            ObjectError::of(reference, message)
        }
    }
}

/// Returns the warning of kluctl about an object that a dry run could not try, with its spelling.
pub(super) fn simulated(reference: &ObjectRef) -> ObjectError {
    let message = format!(
        "the underyling custom resource definition for {reference} has not been applied yet as Kluctl is running in dry-run \
         mode. It is not guaranteed that the object will actually sucessfully apply"
    );
    ObjectError::of(reference, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use objects::conflict::LeftField;

    fn reference() -> ObjectRef {
        ObjectRef {
            group: String::new(),
            version: "v1".to_owned(),
            kind: "ConfigMap".to_owned(),
            namespace: Some("n".to_owned()),
            name: "a".to_owned(),
        }
    }

    #[test]
    fn failures_have_the_words_of_kluctl() {
        let refused = || {
            cluster::Error::Api(cluster::ApiError {
                code: 403,
                reason: "Forbidden".to_owned(),
                message: "it is refused".to_owned(),
                causes: Vec::new(),
            })
        };
        let cancelled = || ApplyError::Cluster(cluster::Error::Cancelled);
        let apply = || ApplyError::Cluster(refused());
        for (step, expected) in [
            (
                Failure::Apply(apply()),
                "failed to patch n/ConfigMap/a: it is refused",
            ),
            (
                Failure::Apply(cancelled()),
                "failed to patch n/ConfigMap/a: cancelled in the middle, so whether it was applied is not known",
            ),
            (Failure::Replace(refused()), "it is refused"),
            (
                Failure::Delete(refused()),
                "failed to delete n/ConfigMap/a: it is refused",
            ),
            (
                Failure::Create(apply()),
                "failed to patch n/ConfigMap/a: it is refused (after the object was deleted)",
            ),
        ] {
            let failed = FailedObject {
                failure: Box::new(step),
                warnings: Vec::new(),
                keeps_object: false,
            };
            assert_eq!(failure(&reference(), &failed).message, expected);
        }
    }

    #[test]
    fn warnings_have_the_words_of_kluctl_and_tell_lost_fields() {
        let left = LeftField {
            message: "conflict with \"hpa\" using v1".to_owned(),
            field: ".spec.replicas".to_owned(),
        };
        for (given, expected, lost) in [
            (
                Warning::Server("unknown field".to_owned()),
                "unknown field",
                false,
            ),
            (
                Warning::FieldLeft(left),
                "conflict with \"hpa\" using v1. Not updating field '.spec.replicas' as we lost field ownership",
                true,
            ),
            (
                Warning::Replaced,
                "patching n/ConfigMap/a failed, retrying with replace instead of patch",
                false,
            ),
            (
                Warning::Recreated,
                "patching n/ConfigMap/a failed, retrying by deleting and re-applying",
                false,
            ),
        ] {
            let found = warning(&reference(), given);
            assert_eq!((found.message.as_str(), found.lost_field), (expected, lost));
        }
    }
}

//! The words and the metadata of events. Pure.

use std::collections::BTreeMap;

use api::group;
use apply::{Action, ApplyError, Failure, ObjectOutcome, Pruned, Reconciled, SetWaited, WaitEnd};
use deployer::message::limit;
use objects::{ObjectRef, kstatus::Status};

/// Maximum length of a message in bytes, without the dots that end a longer one.
pub(super) const MESSAGE_BYTES: usize = 32_768 - "...".len();

/// Returns the metadata of events about a revision, and about the revision that the artifact was made of.
pub(super) fn metadata(revision: Option<&str>, origin: Option<&str>) -> BTreeMap<String, String> {
    let mut metadata = deployer::events::metadata(group::KUSTOMIZE, revision, false);
    if let Some(origin) = origin.filter(|origin| !origin.is_empty()) {
        metadata.insert(format!("{}/originRevision", group::KUSTOMIZE), origin.to_owned());
    }
    metadata
}

/// Returns the metadata of an event that reports the state of its commit.
pub(super) fn of_commit(mut metadata: BTreeMap<String, String>) -> BTreeMap<String, String> {
    metadata.insert(format!("{}/commit_status", group::KUSTOMIZE), "update".to_owned());
    metadata
}

/// Returns the name of an object, as in `ConfigMap/apps/shop`.
pub(super) fn name(reference: &ObjectRef) -> String {
    let (kind, name) = (&reference.kind, &reference.name);
    match &reference.namespace {
        Some(namespace) => format!("{kind}/{namespace}/{name}"),
        None => format!("{kind}/{name}"),
    }
}

fn lines(lines: impl Iterator<Item = String>) -> Option<String> {
    let lines: Vec<String> = lines.collect();
    (!lines.is_empty()).then(|| limit(lines.join("\n"), MESSAGE_BYTES))
}

/// Describes the objects that an apply changed, a line each; `None` if it changed nothing.
pub(super) fn changed(done: &Reconciled) -> Option<String> {
    lines(changes(&done.applied.outcomes))
}

fn changes(outcomes: &[ObjectOutcome]) -> impl Iterator<Item = String> {
    outcomes.iter().filter_map(|outcome| match outcome.result {
        Ok(action @ (Action::Created | Action::Configured | Action::Deleted)) => {
            Some(format!("{} {action}", name(&outcome.reference)))
        }
        _ => None,
    })
}

/// Describes the pruned objects, a line each; `None` if there are none.
pub(super) fn pruned(done: &Reconciled) -> Option<String> {
    lines(done.pruned.iter().flat_map(deletions))
}

/// Describes the deleted objects of a deleted Kustomization, a line each.
pub(super) fn deleted(pruned: &Pruned) -> String {
    lines(deletions(pruned)).unwrap_or_default()
}

fn deletions(pruned: &Pruned) -> impl Iterator<Item = String> {
    let outcomes = pruned.outcomes.iter();
    let deleted = outcomes.filter(|outcome| matches!(outcome.result, Ok(true)));
    let deleted = deleted.map(|outcome| format!("{} deleted", name(&outcome.reference)));
    let skipped = pruned.skipped.iter();
    deleted.chain(skipped.map(|reference| format!("{} skipped", name(reference))))
}

pub(super) fn unable_to_prune(inventory: &[ObjectRef]) -> String {
    let names: Vec<String> = inventory.iter().map(name).collect();
    limit(
        format!("unable to prune objects: \n{}", names.join("\n")),
        MESSAGE_BYTES,
    )
}

/// Describes the objects that could not be applied, and the ones that were before.
pub(super) fn unapplied(outcomes: &[ObjectOutcome]) -> String {
    let text: Vec<String> = failures(outcomes).chain(changes(outcomes)).collect();
    text.join("\n")
}

/// Describes the objects that a dry run refused, a line each.
pub(super) fn refused(outcomes: &[ObjectOutcome]) -> String {
    failures(outcomes).collect::<Vec<_>>().join("\n")
}

fn failures(outcomes: &[ObjectOutcome]) -> impl Iterator<Item = String> {
    outcomes.iter().filter_map(|outcome| {
        let failed = outcome.result.as_ref().err()?;
        Some(describe(&outcome.reference, &failed.failure))
    })
}

fn describe(reference: &ObjectRef, failure: &Failure) -> String {
    let name = name(reference);
    let error = match failure {
        Failure::Apply(ApplyError::Cluster(error)) => error,
        Failure::Read(error) => error,
        Failure::Apply(error) => return format!("{name} dry-run failed: {error}"),
        _ => return format!("{name}: {failure}"),
    };
    let cluster::Error::Api(error) = error else {
        return format!("{name} dry-run failed: {error}");
    };
    let message = &error.message;
    match (error.reason.as_str(), &reference.namespace) {
        ("NotFound", None) => format!("{name} namespace not specified: {message}"),
        ("NotFound", Some(_)) => format!("{name} not found: {message}"),
        ("", _) => format!("{name} dry-run failed: {message}"),
        (reason, _) => format!("{name} dry-run failed ({reason}): {message}"),
    }
}

/// Describes the objects that could not be pruned.
pub(super) fn unpruned(pruned: &Pruned) -> String {
    let failed = pruned.outcomes.iter().filter_map(|outcome| {
        let error = outcome.result.as_ref().err()?;
        Some(format!("{} delete failed: {error}", name(&outcome.reference)))
    });
    let mut errors: Vec<String> = failed.collect();
    errors.extend(pruned.completeness.message());
    format!("delete failed, errors: {}", errors.join("; "))
}

/// Describes the objects that are not ready, without the time that passed.
pub(super) fn unready(waited: &SetWaited) -> String {
    let listed = |failed_only: bool| {
        let open = waited.open.iter();
        let open = open.filter(|(_, health)| !failed_only || health.status == Status::Failed);
        let texts: Vec<String> = open
            .map(|(reference, health)| {
                let text = format!("{} status: '{}'", name(reference), health.status);
                match health.message.as_str() {
                    _ if health.status == Status::NotFound => text,
                    "" => text,
                    message => format!("{text}: {message}"),
                }
            })
            .collect();
        texts.join(", ")
    };
    match waited.end {
        WaitEnd::Failed => format!("failed early due to stalled resources: [{}]", listed(true)),
        _ => format!("timeout waiting for: [{}]", listed(false)),
    }
}

#[cfg(test)]
mod tests {
    use cluster::ApiError;

    use super::*;

    #[test]
    fn refusal_of_a_dry_run_names_the_reason_if_there_is_one() {
        let failed = |reason: &str, namespace: Option<&str>| {
            let reference = ObjectRef {
                namespace: namespace.map(str::to_owned),
                ..ObjectRef::core("ConfigMap", "", "a")
            };
            let error = cluster::Error::Api(ApiError {
                code: 400,
                reason: reason.to_owned(),
                message: "no".to_owned(),
                causes: Vec::new(),
            });
            describe(&reference, &Failure::Apply(ApplyError::Cluster(error)))
        };
        assert_eq!(
            failed("Invalid", Some("n")),
            "ConfigMap/n/a dry-run failed (Invalid): no"
        );
        assert_eq!(failed("", Some("n")), "ConfigMap/n/a dry-run failed: no");
        assert_eq!(failed("NotFound", Some("n")), "ConfigMap/n/a not found: no");
        assert_eq!(
            failed("NotFound", None),
            "ConfigMap/a namespace not specified: no"
        );
    }
}

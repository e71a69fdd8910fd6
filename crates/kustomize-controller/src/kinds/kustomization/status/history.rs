//! The history of a status: the last builds with different results.

use std::{collections::BTreeMap, time::Duration};

use api::{
    GoDuration, Reason, Time,
    kustomize::{KustomizationStatus, Snapshot},
};
use deployer::SourceArtifact;

use super::origin;

const ENTRIES: usize = 5;

/// A reconciliation whose manifests were built.
pub(super) struct Reconciliation<'a> {
    digest: &'a str,
    took: Duration,
    reason: Reason,
    metadata: BTreeMap<String, String>,
}

impl<'a> Reconciliation<'a> {
    /// Takes the source, the digest of the build and the duration until its result, and the reason of Ready.
    pub(super) fn new(source: &SourceArtifact, (digest, took): (&'a str, Duration), reason: Reason) -> Self {
        Self {
            digest,
            took,
            reason,
            metadata: metadata((source.revision(), origin(source))),
        }
    }
}

/// Adds a reconciliation: an entry with the same build and result moves to the front, otherwise a new one is added there.
pub(super) fn add(status: &mut KustomizationStatus, one: Reconciliation<'_>, now: &Time) {
    let reason = one.reason.as_str();
    let is_same = |known: &Snapshot| known.digest == one.digest && known.last_reconciled_status == reason;
    let known = status.history.iter().position(is_same);
    let known = known.map(|at| status.history.remove(at));
    let (first, total) = known.map_or((now.clone(), 0), |known| {
        (known.first_reconciled, known.total_reconciliations)
    });
    let entry = Snapshot {
        digest: one.digest.to_owned(),
        first_reconciled: first,
        last_reconciled: now.clone(),
        last_reconciled_duration: GoDuration::from(one.took).to_string(),
        last_reconciled_status: reason.to_owned(),
        total_reconciliations: total + 1,
        metadata: one.metadata,
    };
    status.history.insert(0, entry);
    status.history.truncate(ENTRIES);
}

/// Counts another reconciliation of the last build, with a new revision.
pub(super) fn confirm(status: &mut KustomizationStatus, revision: (&str, Option<&str>), now: &Time) {
    if let Some(entry) = status.history.first_mut() {
        entry.last_reconciled = now.clone();
        entry.total_reconciliations += 1;
        entry.metadata = metadata(revision);
    }
}

fn metadata((revision, origin): (&str, Option<&str>)) -> BTreeMap<String, String> {
    let given = [("revision", Some(revision)), ("originRevision", origin)];
    let given = given.into_iter();
    given
        .filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())))
        .collect()
}

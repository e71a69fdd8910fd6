//! The history of a status: the last builds with different results.

use std::collections::BTreeMap;

use api::{
    GoDuration, Reason, Time,
    kustomize::{KustomizationStatus, Snapshot},
};
use deployer::{SourceArtifact, manifests::Report};
use sha2::{Digest as _, Sha256};

const ENTRIES: usize = 5;

/// Adds a reconciliation: an entry with the same build and result moves to the front, otherwise a new one is added there.
pub(super) fn add(
    status: &mut KustomizationStatus,
    report: &Report<'_, SourceArtifact>,
    (reason, origin): (Reason, Option<&str>),
    now: &Time,
) {
    let digest = digest(report);
    let metadata = metadata((report.source.revision(), origin));
    let is_same = |one: &Snapshot| one.digest == digest && one.last_reconciled_status == reason.as_str();
    let known = status.history.iter().position(is_same);
    let known = known.map(|at| status.history.remove(at));
    let (first, total) = known.map_or((now.clone(), 0), |known| {
        (known.first_reconciled, known.total_reconciliations)
    });
    let entry = Snapshot {
        digest,
        first_reconciled: first,
        last_reconciled: now.clone(),
        last_reconciled_duration: GoDuration::from(report.took).to_string(),
        last_reconciled_status: reason.as_str().to_owned(),
        total_reconciliations: total + 1,
        metadata,
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

fn digest(report: &Report<'_, SourceArtifact>) -> String {
    let mut hash = Sha256::new();
    for object in &report.manifests.objects {
        hash.update(yaml::print::goyaml(object));
        hash.update("---\n");
    }
    format!("sha256:{}", hex::encode(hash.finalize()))
}

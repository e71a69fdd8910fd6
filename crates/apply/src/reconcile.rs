//! Applying a list of manifests and pruning the objects that left it.

use std::{fmt, time::Duration};

use cluster::Cluster;
use objects::ObjectRef;
use yaml::Value;

use crate::{
    DeletionOptions, Error, ObjectOutcome, OrphanSearch, Owner, Pruned, SessionOptions, apply_all, prune,
};

#[derive(Debug, Clone, Copy, Default)]
pub struct ReconcileOptions<'a> {
    /// The options of the applies. In a dry run, nothing is deleted either.
    pub session: SessionOptions,
    pub search: OrphanSearch<'a>,
    /// Timeout for the end of each deleted object; if absent, nothing is waited for.
    pub wait: Option<Duration>,
}

/// The result of [`reconcile`]. It prints as one line for each object.
#[derive(Debug)]
pub struct Reconciled {
    /// The outcome for each manifest, in the order of application.
    pub applied: Vec<ObjectOutcome>,
    /// The deletions; absent if a manifest could not be applied, because then nothing is deleted.
    pub pruned: Option<Pruned>,
}

impl Reconciled {
    /// Returns true if all manifests are applied, all other objects of the owner are deleted, and everything was searched.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        let applied = self.applied.iter().all(|outcome| outcome.result.is_ok());
        let is_done = |pruned: &Pruned| {
            pruned.completeness.is_complete() && pruned.outcomes.iter().all(|one| one.result.is_ok())
        };
        applied && self.pruned.as_ref().is_some_and(is_done)
    }
}

impl fmt::Display for Reconciled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for outcome in &self.applied {
            writeln!(f, "{outcome}")?;
        }
        let Some(pruned) = &self.pruned else {
            return writeln!(
                f,
                "nothing is deleted, because not all manifests could be applied"
            );
        };
        for outcome in &pruned.outcomes {
            writeln!(f, "{outcome}")?;
        }
        for namespace in &pruned.used_namespaces {
            writeln!(f, "{namespace}: kept, because it has objects of the manifests")?;
        }
        match pruned.completeness.message() {
            Some(message) => writeln!(f, "{message}"),
            None => Ok(()),
        }
    }
}

/// Makes the objects of the owner equal to the manifests: applies all, then deletes the owner's other objects. If a
/// manifest can't be applied, nothing is deleted: the object may be another one's replacement.
///
/// # Errors
/// If there are no manifests, the owner or a manifest is invalid, the live state can't be read, or the work is cancelled.
pub async fn reconcile(
    cluster: &Cluster,
    owner: &Owner,
    manifests: &[Value],
    options: ReconcileOptions<'_>,
) -> Result<Reconciled, Error> {
    if manifests.is_empty() {
        return Err(Error::NothingDesired);
    }
    let desired: Vec<ObjectRef> = manifests.iter().map(ObjectRef::of).collect::<Result<_, _>>()?;
    let applied = apply_all(cluster, owner, manifests, options.session).await?;
    if applied.iter().any(|outcome| outcome.result.is_err()) {
        return Ok(Reconciled {
            applied,
            pruned: None,
        });
    }
    let deletion = DeletionOptions {
        dry_run: options.session.dry_run,
        wait: options.wait,
    };
    let pruned = prune(cluster, owner, &desired, options.search, deletion).await?;
    Ok(Reconciled {
        applied,
        pruned: Some(pruned),
    })
}

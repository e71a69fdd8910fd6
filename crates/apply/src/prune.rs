//! Deletion of the objects of an owner that are no longer among its manifests, or of all of them.

use std::{fmt, time::Duration};

use cluster::{Cluster, DeleteOptions, Deleted};
use futures::{StreamExt as _, stream};
use objects::{ObjectRef, meta, order};

use crate::{Completeness, Error, Orphan, OrphanSearch, Owner, PARALLEL, find_orphans, keep_reason};

const ATTEMPTS: u32 = 8;

#[derive(Debug, Clone, Copy, Default)]
pub struct DeletionOptions {
    /// If set, the API server does everything but delete.
    pub dry_run: bool,
    /// Timeout for the end of each deleted object; if absent, nothing is waited for.
    pub wait: Option<Duration>,
}

#[derive(Debug)]
pub struct DeletionOutcome {
    pub reference: ObjectRef,
    /// True if it is gone or going, false if it was changed since so that it is kept.
    pub result: Result<bool, cluster::Error>,
}

impl fmt::Display for DeletionOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reference = &self.reference;
        match &self.result {
            Ok(true) => write!(f, "{reference}: deleted"),
            Ok(false) => write!(f, "{reference}: kept, because it was changed by others"),
            Err(error) => write!(f, "failed to delete {reference}: {error}"),
        }
    }
}

/// The result of pruning, or of deleting everything.
#[derive(Debug)]
pub struct Pruned {
    /// The objects that were found. Objects that go with their namespace are left out.
    pub outcomes: Vec<DeletionOutcome>,
    /// Namespaces that are no longer among the manifests, but with manifests in them: they were kept.
    pub used_namespaces: Vec<ObjectRef>,
    /// The completeness of the search: without it, objects may be left that were not found.
    pub completeness: Completeness,
}

/// Deletes the objects of the owner that are not among the desired ones, unless an annotation forbids it, another object
/// owns them, or the owner never applied them.
///
/// # Errors
/// If nothing is desired, the owner's label is invalid, discovery fails, or the work is cancelled.
pub async fn prune(
    cluster: &Cluster,
    owner: &Owner,
    desired: &[ObjectRef],
    search: OrphanSearch<'_>,
    options: DeletionOptions,
) -> Result<Pruned, Error> {
    if desired.is_empty() {
        return Err(Error::NothingDesired);
    }
    delete_found(cluster, owner, desired, search, options).await
}

/// Deletes all objects of the owner, with the same exceptions.
///
/// # Errors
/// If the owner's label is invalid, discovery fails, or the work is cancelled.
pub async fn delete_all(
    cluster: &Cluster,
    owner: &Owner,
    search: OrphanSearch<'_>,
    options: DeletionOptions,
) -> Result<Pruned, Error> {
    delete_found(cluster, owner, &[], search, options).await
}

async fn delete_found(
    cluster: &Cluster,
    owner: &Owner,
    desired: &[ObjectRef],
    search: OrphanSearch<'_>,
    options: DeletionOptions,
) -> Result<Pruned, Error> {
    let found = find_orphans(cluster, owner, desired, search).await?;
    let outcomes = delete_orphans(cluster, owner, found.orphans, options).await;
    if cluster.cancellation().is_cancelled() {
        return Err(cluster::Error::Cancelled.into());
    }
    Ok(Pruned {
        outcomes,
        used_namespaces: found.used_namespaces,
        completeness: found.completeness,
    })
}

/// Deletes objects: namespaces first, then the others, apart from those that go with a namespace.
pub async fn delete_orphans(
    cluster: &Cluster,
    owner: &Owner,
    orphans: Vec<Orphan>,
    options: DeletionOptions,
) -> Vec<DeletionOutcome> {
    let (namespaces, rest): (Vec<_>, Vec<_>) = orphans
        .into_iter()
        .partition(|one| order::is_namespace(&one.reference));
    let mut outcomes = delete_each(cluster, owner, namespaces, options).await;
    let gone: Vec<String> = outcomes
        .iter()
        .filter(|outcome| matches!(outcome.result, Ok(true)))
        .map(|outcome| outcome.reference.name.clone())
        .collect();
    // Objects in a deleted namespace are neither deleted nor reported one by one.
    let rest = rest
        .into_iter()
        .filter(|one| !order::goes_with(&one.reference, &gone))
        .collect();
    outcomes.extend(delete_each(cluster, owner, rest, options).await);
    outcomes
}

async fn delete_each(
    cluster: &Cluster,
    owner: &Owner,
    orphans: Vec<Orphan>,
    options: DeletionOptions,
) -> Vec<DeletionOutcome> {
    stream::iter(orphans)
        .map(|orphan| async move {
            let result = delete_one(cluster, owner, &orphan, options).await;
            DeletionOutcome {
                reference: orphan.reference,
                result,
            }
        })
        .buffer_unordered(PARALLEL)
        .collect()
        .await
}

/// Deletes exactly the object that was selected. If it was changed since, it is read and checked again.
async fn delete_one(
    cluster: &Cluster,
    owner: &Owner,
    orphan: &Orphan,
    options: DeletionOptions,
) -> Result<bool, cluster::Error> {
    let mut version = orphan.resource_version.clone();
    for round in 0..ATTEMPTS {
        let request = DeleteOptions {
            dry_run: options.dry_run,
            uid: Some(&orphan.uid),
            resource_version: Some(&version),
        };
        match cluster.delete(&orphan.reference, request).await? {
            Deleted::Yes => {
                if let (Some(limit), false) = (options.wait, options.dry_run) {
                    cluster
                        .wait_gone(&orphan.reference, Some(&orphan.uid), limit)
                        .await?;
                }
                return Ok(true);
            }
            Deleted::AlreadyGone => return Ok(true),
            Deleted::Changed => {}
        }
        let Some(object) = cluster.get(&orphan.reference).await? else {
            return Ok(true);
        };
        let is_orphan = meta::uid(&object) == Some(&orphan.uid)
            && owner.has_member(&object)
            && keep_reason(owner, &object).is_none();
        let Some(current) = meta::resource_version(&object).filter(|_| is_orphan) else {
            return Ok(false);
        };
        current.clone_into(&mut version);
        cluster.pause(Duration::from_millis(10 << round)).await?;
    }
    Err(cluster::Error::Malformed {
        what: format!("delete {}", orphan.reference),
        reason: "the object is changed by others all the time: try again later".to_owned(),
    })
}

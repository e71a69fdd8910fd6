//! Deletion of the objects of an owner that are no longer among its manifests, or of all of them.

use std::{collections::HashSet, fmt, time::Duration};

use cluster::{Cluster, DeleteOptions, Deleted, Detail, Gap, ResourceKind, Restriction};
use futures::{StreamExt as _, stream};
use objects::{ObjectId, ObjectRef, meta, order};
use yaml::Value;

use crate::{
    Completeness, Error, Membership, Orphan, OrphanSearch, Owner, PARALLEL, keep_reason,
    live::{completeness, identities, namespaces},
    searched, select,
};

/// Attempts at an object that others keep changing.
const ATTEMPTS: u32 = 8;
/// Objects of an inventory that are read at the same time.
const READS: usize = 16;

/// The options of deletions.
#[derive(Debug, Clone, Copy, Default)]
pub struct DeletionOptions {
    /// If set, the API server does everything but delete.
    pub dry_run: bool,
    /// Timeout for the end of each deleted object; if absent, nothing is waited for.
    pub wait: Option<Duration>,
}

/// The result of a search for objects to delete.
#[derive(Debug, Default)]
pub struct Found {
    /// The objects to delete, in the order of deletion.
    pub orphans: Vec<Orphan>,
    /// Namespaces that are no longer among the manifests, but with manifests in them: they are kept.
    pub used_namespaces: Vec<ObjectRef>,
    /// The completeness of the search.
    pub completeness: Completeness,
    /// The parts of the cluster that could not be searched.
    pub gaps: Vec<Gap>,
    /// The effect of missing rights on the search.
    pub restriction: Restriction,
}

/// The deletion of one object.
#[derive(Debug)]
pub struct DeletionOutcome {
    /// The object to be deleted.
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

/// Finds the objects of the owner that are not desired.
///
/// # Errors
/// If the owner's label is invalid, discovery fails, or the work is cancelled.
pub async fn find_orphans(
    cluster: &Cluster,
    owner: &Owner,
    desired: &[ObjectRef],
    search: OrphanSearch<'_>,
) -> Result<Found, Error> {
    owner.check()?;
    let snapshot = searched::snapshot(cluster, search.kinds).await?;
    let keep = identities(desired, &snapshot);
    let (mut candidates, gaps, restriction) = match &owner.membership {
        Membership::Label { name, value } => {
            let namespaces = namespaces(desired, search.previous);
            let wanted = |kind: &ResourceKind| {
                let searches = search.kinds.is_none_or(|kinds| kinds.include(kind, desired));
                searches.then_some(Detail::Metadata)
            };
            let listing = searched::list(
                cluster,
                &snapshot,
                search.kinds,
                (name, value),
                (&namespaces, wanted),
            )
            .await?;
            (listing.objects, listing.gaps, listing.restriction)
        }
        Membership::Inventory(inventory) => {
            let gone: Vec<&ObjectRef> = inventory
                .iter()
                .filter(|one| identities(std::slice::from_ref(one), &snapshot).is_disjoint(&keep))
                .collect();
            let (objects, gaps) = read_inventory(cluster, &gone, desired, snapshot.stale()).await?;
            (objects, gaps, Restriction::None)
        }
    };
    if let Some(filter) = search.filter {
        candidates.retain(|object| filter(object));
    }
    let mut found = Found {
        orphans: select(owner, &candidates, &keep)?.orphans,
        completeness: match owner.membership {
            Membership::Label { .. } => completeness(&gaps, desired, search),
            Membership::Inventory(_) => Completeness::of(&gaps, None),
        },
        gaps,
        restriction,
        ..Found::default()
    };
    keep_used_namespaces(&mut found, &keep);
    Ok(found)
}

/// Reads the objects of an inventory that are no longer desired, and the desired ones that may be the same in another
/// group.
async fn read_inventory(
    cluster: &Cluster,
    gone: &[&ObjectRef],
    desired: &[ObjectRef],
    stale: &[cluster::GroupVersion],
) -> Result<(Vec<Value>, Vec<Gap>), Error> {
    let aliases = desired.iter().filter(|one| {
        gone.iter()
            .any(|old| old.kind == one.kind && old.namespace == one.namespace && old.name == one.name)
    });
    let reads = gone
        .iter()
        .copied()
        .chain(aliases)
        .map(|reference| async move { (reference, cluster.get(reference).await) });
    let mut reads = stream::iter(reads.collect::<Vec<_>>()).buffer_unordered(READS);
    let (mut objects, mut gaps) = (Vec::new(), Vec::new());
    while let Some((reference, found)) = reads.next().await {
        let reason = match found {
            Ok(Some(object)) => {
                objects.push(object);
                continue;
            }
            Ok(None) if stale.iter().any(|version| version.group == reference.group) => {
                "the API server of this group is not available".to_owned()
            }
            Ok(None) => continue,
            Err(cluster::Error::Cancelled) => return Err(cluster::Error::Cancelled.into()),
            Err(error) => error.to_string(),
        };
        gaps.push(Gap {
            group: reference.group.clone(),
            version: reference.version.clone(),
            kind: Some(reference.kind.clone()),
            namespace: reference.namespace.clone(),
            forbidden: false,
            reason,
        });
    }
    Ok((objects, gaps))
}

/// Keeps namespaces as long as desired objects are in them: these would go too.
fn keep_used_namespaces(found: &mut Found, keep: &HashSet<ObjectId>) {
    let used: HashSet<&str> = keep.iter().filter_map(|id| id.namespace.as_deref()).collect();
    let Found {
        orphans,
        used_namespaces,
        ..
    } = found;
    orphans.retain(|one| {
        let is_used = order::is_namespace(&one.reference) && used.contains(one.reference.name.as_str());
        if is_used {
            used_namespaces.push(one.reference.clone());
        }
        !is_used
    });
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

/// Deletes objects, several at the same time.
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

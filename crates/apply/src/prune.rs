//! Deletion of the objects of an owner that are no longer among its manifests, or of all of them.

use std::{fmt, time::Duration};

use cluster::{Cluster, DeleteOptions, Deleted, Propagation};
use futures::{StreamExt as _, stream};
use objects::{ObjectRef, meta, order};

use crate::{
    Completeness, Error, Orphan, OrphanSearch, Owner, PARALLEL, SetWaited, find_orphans, keep_reason,
    wait_all_gone,
};

const ATTEMPTS: u32 = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DeletionOrder {
    /// Namespaces, then all others that are not in them: these go with their namespace, and are not reported.
    #[default]
    NamespacesFirst,
    /// The reverse of the order of application ([`order::application`]): each object is deleted, namespaces and definitions last.
    ReverseApplication,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Confirmation {
    /// Nothing is waited for: objects may live on for the sake of their finalizers.
    #[default]
    None,
    /// Each object is waited for before the next ones are deleted, up to this timeout.
    Each(Duration),
    /// All objects are waited for together after the last deletion, up to this timeout.
    Together(Duration),
}

#[derive(Debug, Clone, Copy, Default)]
pub struct DeletionOptions {
    pub dry_run: bool,
    pub order: DeletionOrder,
    pub propagation: Propagation,
    pub confirmation: Confirmation,
}

#[derive(Debug)]
pub struct DeletionOutcome {
    pub reference: ObjectRef,
    pub uid: String,
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

#[derive(Debug)]
pub struct Pruned {
    /// The objects that were found. Objects that go with their namespace are left out.
    pub outcomes: Vec<DeletionOutcome>,
    /// Objects that were found, but that an annotation keeps, or that have another owner now.
    pub skipped: Vec<ObjectRef>,
    /// Namespaces that are no longer among the manifests, but with manifests in them: they were kept.
    pub used_namespaces: Vec<ObjectRef>,
    /// The completeness of the search: without it, objects may be left that were not found.
    pub completeness: Completeness,
    pub waited: Option<SetWaited>,
}

impl Pruned {
    /// Returns true if everything was searched, deleted, and confirmed as far as that was asked for.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.completeness.is_complete()
            && self.outcomes.iter().all(|outcome| outcome.result.is_ok())
            && self.waited.as_ref().is_none_or(SetWaited::is_ready)
    }

    /// Returns the objects that could not be deleted, or are not gone yet though that was waited for.
    #[must_use]
    pub fn survivors(&self) -> Vec<ObjectRef> {
        let failed = self.outcomes.iter().filter(|outcome| outcome.result.is_err());
        let failed = failed.map(|outcome| &outcome.reference);
        let waited = self.waited.iter().flat_map(|waited| &waited.open);
        let open = waited.map(|(reference, _)| reference);
        failed.chain(open).chain(&self.used_namespaces).cloned().collect()
    }
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
    let waited = match options.confirmation {
        Confirmation::Together(timeout) if !options.dry_run => {
            let gone = outcomes
                .iter()
                .filter(|outcome| matches!(outcome.result, Ok(true)));
            let gone = gone.map(|outcome| (outcome.reference.clone(), outcome.uid.clone()));
            Some(wait_all_gone(cluster, gone.collect(), timeout).await)
        }
        _ => None,
    };
    if cluster.cancellation().is_cancelled() {
        return Err(cluster::Error::Cancelled.into());
    }
    Ok(Pruned {
        outcomes,
        skipped: found.skipped,
        used_namespaces: found.used_namespaces,
        completeness: found.completeness,
        waited,
    })
}

/// Deletes objects in the order of the options. [`Confirmation::Together`] is up to the caller.
pub async fn delete_orphans(
    cluster: &Cluster,
    owner: &Owner,
    orphans: Vec<Orphan>,
    options: DeletionOptions,
) -> Vec<DeletionOutcome> {
    match options.order {
        DeletionOrder::NamespacesFirst => delete_namespaces_first(cluster, owner, orphans, options).await,
        DeletionOrder::ReverseApplication => {
            let mut outcomes = Vec::with_capacity(orphans.len());
            for group in by_falling_rank(orphans) {
                outcomes.extend(delete_each(cluster, owner, group, options).await);
            }
            outcomes
        }
    }
}

async fn delete_namespaces_first(
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

fn by_falling_rank(mut orphans: Vec<Orphan>) -> Vec<Vec<Orphan>> {
    orphans.sort_by(|a, b| order::application(&b.reference, &a.reference));
    let mut groups: Vec<Vec<Orphan>> = Vec::new();
    for orphan in orphans {
        let rank = order::rank(&orphan.reference.kind);
        match groups.last_mut() {
            Some(group) if group.iter().all(|one| order::rank(&one.reference.kind) == rank) => {
                group.push(orphan);
            }
            _ => groups.push(vec![orphan]),
        }
    }
    groups
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
                uid: orphan.uid,
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
            propagation: options.propagation,
        };
        match cluster.delete(&orphan.reference, request).await? {
            Deleted::Yes => {
                if let (Confirmation::Each(limit), false) = (options.confirmation, options.dry_run) {
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
        let is_orphan = meta::uid(&object) == Some(&orphan.uid) && keep_reason(owner, &object).is_none();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_deleted_in_the_reverse_order_of_application() {
        let orphan = |group: &str, kind: &str, name: &str| Orphan {
            reference: ObjectRef {
                group: group.to_owned(),
                version: "v1".to_owned(),
                kind: kind.to_owned(),
                namespace: None,
                name: name.to_owned(),
            },
            uid: String::new(),
            resource_version: String::new(),
        };
        let groups = by_falling_rank(vec![
            orphan("", "Namespace", "n"),
            orphan("", "ConfigMap", "a"),
            orphan("apiextensions.k8s.io", "CustomResourceDefinition", "d"),
            orphan("x.io", "Thing", "t"),
            orphan("", "ConfigMap", "b"),
            orphan("batch", "Job", "j"),
        ]);
        let names: Vec<String> = groups
            .iter()
            .map(|group| group.iter().map(|one| one.reference.name.as_str()).collect())
            .collect();
        assert_eq!(names, ["tj", "ba", "n", "d"]);
    }
}

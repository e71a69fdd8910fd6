//! The search for the objects of an owner that are no longer among its manifests.

use std::collections::{BTreeSet, HashSet};

use cluster::{Cluster, Detail, Gap, ResourceKind, Restriction, Scope, Snapshot};
use futures::StreamExt as _;
use objects::{ObjectId, ObjectRef, inventory, order};
use yaml::Value;

use crate::{
    Completeness, Error, KeepReason, Membership, Orphan, Owner, SearchedKinds, Selection, concurrent,
    searched, select,
};

const READS: usize = 16;

/// A condition that live objects must meet to be considered orphans.
pub type Filter<'a> = &'a (dyn Fn(&Value) -> bool + Sync);

#[derive(Clone, Copy, Default)]
pub struct OrphanSearch<'a> {
    pub filter: Option<Filter<'a>>,
    /// All objects that the owner may have applied before, if they are known. Their namespaces are searched even if the
    /// identity can't list the whole cluster, and kinds that were never applied need not be listed for completeness.
    pub previous: Option<&'a [ObjectRef]>,
    /// The only kinds that may have orphans, if the caller knows them; otherwise every kind is listed.
    pub kinds: Option<&'a SearchedKinds>,
}

impl std::fmt::Debug for OrphanSearch<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OrphanSearch")
            .field("previous", &self.previous.map(<[_]>::len))
            .finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
pub struct Found {
    pub orphans: Vec<Orphan>,
    /// Objects that an annotation keeps, or that have another owner now.
    pub skipped: Vec<ObjectRef>,
    /// Namespaces that are no longer among the manifests, but with manifests in them: they are kept.
    pub used_namespaces: Vec<ObjectRef>,
    pub completeness: Completeness,
    pub gaps: Vec<Gap>,
    pub restriction: Restriction,
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
    let (listed, keep) = match &owner.membership {
        Membership::None => return Ok(Found::default()),
        Membership::Labels { all, .. } => {
            let Some((name, value)) = all.first_key_value() else {
                return Ok(Found::default());
            };
            let snapshot = searched::snapshot(cluster, search.kinds).await?;
            let listed = list_labelled(cluster, &snapshot, (name, value), desired, search).await?;
            (listed, identities(desired, &snapshot))
        }
        Membership::Inventory { objects, .. } => {
            // Without any object that is gone by its name, no request is needed, and no discovery.
            let gone = inventory::stale(objects, desired);
            if gone.is_empty() {
                return Ok(Found::default());
            }
            let snapshot = cluster.snapshot().await?;
            let keep = identities(desired, &snapshot);
            let gone: Vec<&ObjectRef> = gone
                .iter()
                .filter(|one| identities(std::slice::from_ref(one), &snapshot).is_disjoint(&keep))
                .collect();
            let (objects, gaps) = read_inventory(cluster, &gone, desired).await?;
            ((objects, gaps, Restriction::None), keep)
        }
    };
    let (mut candidates, gaps, restriction) = listed;
    if let Some(filter) = search.filter {
        candidates.retain(|object| filter(object));
    }
    let Selection { orphans, retained } = select(owner, &candidates, &keep)?;
    let is_skipped = |why| matches!(why, KeepReason::SkipDelete | KeepReason::Foreign);
    let skipped = retained.into_iter().filter(|(_, why)| is_skipped(*why));
    let mut found = Found {
        orphans,
        skipped: skipped.map(|(reference, _)| reference).collect(),
        completeness: match owner.membership {
            Membership::Labels { .. } => completeness(&gaps, desired, search),
            Membership::Inventory { .. } | Membership::None => Completeness::of(&gaps, None),
        },
        gaps,
        restriction,
        ..Found::default()
    };
    keep_used_namespaces(&mut found, &keep);
    Ok(found)
}

async fn list_labelled(
    cluster: &Cluster,
    snapshot: &Snapshot,
    label: (&str, &str),
    desired: &[ObjectRef],
    search: OrphanSearch<'_>,
) -> Result<(Vec<Value>, Vec<Gap>, Restriction), Error> {
    let namespaces = namespaces(desired, search.previous);
    let wanted = |kind: &ResourceKind| {
        let searches = search.kinds.is_none_or(|kinds| kinds.include(kind, desired));
        searches.then_some(Detail::Metadata)
    };
    let listing = searched::list(cluster, snapshot, search.kinds, label, (&namespaces, wanted)).await?;
    Ok((listing.objects, listing.gaps, listing.restriction))
}

/// Reads the objects of an inventory that are no longer desired, and the desired ones that may be the same in another
/// group.
async fn read_inventory(
    cluster: &Cluster,
    gone: &[&ObjectRef],
    desired: &[ObjectRef],
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
    let mut reads = concurrent(reads, READS);
    let (mut objects, mut gaps) = (Vec::new(), Vec::new());
    while let Some((reference, found)) = reads.next().await {
        let reason = match found {
            Ok(Some(object)) => {
                objects.push(object);
                continue;
            }
            // Discovery was read again if the kind was unknown.
            Ok(None) if is_stale(cluster, &reference.group).await? => {
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

/// Returns true if the API server of a group is down, so that its objects may exist.
async fn is_stale(cluster: &Cluster, group: &str) -> Result<bool, Error> {
    let snapshot = cluster.snapshot().await?;
    Ok(snapshot.stale().iter().any(|version| version.group == group))
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

pub(crate) fn completeness(gaps: &[Gap], desired: &[ObjectRef], search: OrphanSearch<'_>) -> Completeness {
    if gaps.is_empty() {
        return Completeness::Complete;
    }
    let known: Option<Vec<ObjectRef>> = search
        .previous
        .map(|previous| previous.iter().chain(desired).cloned().collect());
    Completeness::of(gaps, known.as_deref())
}

/// Returns the identities of manifests as the API server assigns them: namespaced objects without a namespace are in
/// `default`, and cluster-scoped ones are in none. An object of an unknown kind counts in both forms.
#[must_use]
pub fn identities(refs: &[ObjectRef], snapshot: &Snapshot) -> HashSet<ObjectId> {
    let mut ids = HashSet::new();
    for reference in refs {
        let id = reference.id();
        let defaulted = || ObjectId {
            namespace: Some(id.namespace.clone().unwrap_or_else(|| "default".to_owned())),
            ..id.clone()
        };
        let without = || ObjectId {
            namespace: None,
            ..id.clone()
        };
        match snapshot.scope(&id.group, &id.kind) {
            Some(Scope::Namespaced) => ids.extend([defaulted()]),
            Some(Scope::Cluster) => ids.extend([without()]),
            None => ids.extend([defaulted(), without()]),
        }
    }
    ids
}

pub(crate) fn namespaces(refs: &[ObjectRef], previous: Option<&[ObjectRef]>) -> Vec<String> {
    let namespaces: BTreeSet<String> = refs
        .iter()
        .chain(previous.into_iter().flatten())
        .filter_map(|reference| reference.namespace.clone())
        .collect();
    namespaces.into_iter().collect()
}

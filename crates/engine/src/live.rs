//! What is on the cluster before anything is done.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use cluster::{Cluster, Detail, Incomplete, Kind, Scope, Snapshot};
use futures::{StreamExt as _, stream};
use kluctl::Rendered;
use objects::{ObjectId, ObjectRef, annotations};
use yaml::Value;

use crate::{Error, ObjectError};

/// From how many objects of a kind on it is cheaper to list them than to read each.
const WORTH_A_LIST: usize = 3;

/// The live state of what was rendered.
#[derive(Debug, Default)]
pub(crate) struct Live {
    /// The objects that exist, in the version in which they were rendered.
    pub(crate) rendered: HashMap<ObjectRef, Value>,
    /// The objects that may not be read, and what the API server said.
    pub(crate) unreadable: HashMap<ObjectRef, String>,
}

/// What carries the discriminator, over all kinds.
#[derive(Debug, Default)]
pub(crate) struct Candidates {
    /// Their metadata.
    pub(crate) objects: Vec<Value>,
    /// What could not be looked at.
    pub(crate) warnings: Vec<ObjectError>,
}

/// The references of what was rendered.
pub(crate) fn references(rendered: &Rendered) -> Result<Vec<ObjectRef>, Error> {
    rendered
        .objects()
        .map(|object| ObjectRef::of(object).map_err(Error::from))
        .collect()
}

/// The identities of what was rendered, as the API server would give them: namespaced objects without a namespace are in
/// `default`, and cluster-scoped ones are in none. An object of a kind that nobody knows counts in both forms.
pub(crate) fn identities(refs: &[ObjectRef], snapshot: &Snapshot) -> HashSet<ObjectId> {
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

impl Live {
    /// One warning for all that may not be read.
    pub(crate) fn warning(&self) -> Option<ObjectError> {
        let count = self.unreadable.len();
        (count > 0).then(|| {
            ObjectError::general(format!(
                "at least one permission error was encountered while reading live objects ({count} objects): what \
                 changed about them can't be told"
            ))
        })
    }
}

/// Reads the live state of these objects: kinds with several are listed by the discriminator, and what is not found so
/// is read one by one.
pub(crate) async fn fetch(
    cluster: &Cluster,
    refs: &[ObjectRef],
    discriminator: Option<&str>,
) -> Result<Live, Error> {
    let mut live = Live::default();
    if let Some(discriminator) = discriminator.filter(|text| objects::discriminator::check(text).is_ok()) {
        let mut count: HashMap<(&str, &str), usize> = HashMap::new();
        for reference in refs {
            *count.entry((&reference.group, &reference.kind)).or_default() += 1;
        }
        let wanted = |kind: &Kind| {
            count
                .get(&(&*kind.group, &*kind.kind))
                .is_some_and(|n| *n >= WORTH_A_LIST)
        };
        let namespaces = namespaces(refs);
        let label = annotations::DISCRIMINATOR;
        let listing = cluster
            .list_labelled(label, discriminator, &namespaces, Detail::Full, wanted)
            .await?;
        let known: HashSet<&ObjectRef> = refs.iter().collect();
        for object in listing.objects {
            let reference = ObjectRef::of(&object)?;
            if known.contains(&reference) {
                live.rendered.insert(reference, object);
            }
        }
    }
    read_missing(cluster, refs, &mut live).await?;
    Ok(live)
}

async fn read_missing(cluster: &Cluster, refs: &[ObjectRef], live: &mut Live) -> Result<(), Error> {
    let missing: Vec<&ObjectRef> = refs
        .iter()
        .filter(|reference| !live.rendered.contains_key(*reference))
        .collect();
    let reads = missing
        .into_iter()
        .map(|reference| async move { (reference, cluster.get(reference).await) });
    // Collected, because a stream that holds the closure can't be proven to be Send.
    let mut reads = stream::iter(reads.collect::<Vec<_>>()).buffer_unordered(16);
    while let Some((reference, found)) = reads.next().await {
        match found {
            Ok(Some(object)) => {
                live.rendered.insert(reference.clone(), object);
            }
            Ok(None) => {}
            // One object that can't be read must not stop the others.
            Err(error) if error.is_forbidden() || matches!(error, cluster::Error::InvalidName { .. }) => {
                live.unreadable.insert(reference.clone(), error.to_string());
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn namespaces(refs: &[ObjectRef]) -> Vec<String> {
    let namespaces: BTreeSet<String> = refs
        .iter()
        .filter_map(|reference| reference.namespace.clone())
        .collect();
    namespaces.into_iter().collect()
}

/// Lists everything that carries the discriminator.
pub(crate) async fn candidates(
    cluster: &Cluster,
    refs: &[ObjectRef],
    discriminator: &str,
) -> Result<Candidates, Error> {
    let label = annotations::DISCRIMINATOR;
    let listing = cluster
        .list_labelled(label, discriminator, &namespaces(refs), Detail::Metadata, |_| {
            true
        })
        .await?;
    let mut candidates = Candidates {
        objects: listing.objects,
        warnings: Vec::new(),
    };
    let mut forbidden = false;
    for incomplete in listing.incomplete {
        match incomplete {
            Incomplete::Forbidden { .. } => forbidden = true,
            Incomplete::Failed { kind, reason } => {
                candidates
                    .warnings
                    .push(ObjectError::general(format!("can't list {kind}: {reason}")));
            }
        }
    }
    if forbidden {
        candidates.warnings.push(ObjectError::general(
            "at least one permission error was encountered while gathering objects by discriminator labels. This might \
             result in orphan object detection to not work properly",
        ));
    }
    Ok(candidates)
}

/// The references of what carries the discriminator and is not rendered, as far as it may be removed. Without a usable
/// discriminator nothing can be told.
pub(crate) async fn orphans(
    cluster: &Cluster,
    refs: &[ObjectRef],
    discriminator: Option<&str>,
    warnings: &mut Vec<ObjectError>,
) -> Result<Vec<ObjectRef>, Error> {
    let Some(discriminator) = discriminator.filter(|text| objects::discriminator::check(text).is_ok()) else {
        return Ok(Vec::new());
    };
    let snapshot = fresh_snapshot(cluster).await?;
    let candidates = candidates(cluster, refs, discriminator).await?;
    warnings.extend(candidates.warnings);
    let selection = objects::orphans::select(&candidates.objects, &identities(refs, &snapshot))?;
    Ok(selection
        .doomed
        .into_iter()
        .map(|doomed| doomed.reference)
        .collect())
}

/// The kinds as they are now, for decisions that remove something.
pub(crate) async fn fresh_snapshot(cluster: &Cluster) -> Result<Arc<Snapshot>, Error> {
    Ok(cluster
        .recent_snapshot(std::time::Duration::from_secs(10))
        .await?)
}

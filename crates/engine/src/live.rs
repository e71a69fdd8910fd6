//! What is on the cluster before anything is done.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use cluster::{Cluster, Incomplete, Kind, Scope, Snapshot};
use futures::{StreamExt as _, stream};
use kluctl::Rendered;
use objects::{ObjectId, ObjectRef, annotations};
use yaml::Value;

use crate::{Error, ObjectError};

/// Which kinds are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kinds {
    /// All that the cluster serves: needed for finding what is no longer rendered.
    All,
    /// Those that were rendered.
    Rendered,
}

/// The live objects of a deployment.
#[derive(Debug, Default)]
pub(crate) struct Live {
    /// The live state of rendered objects, in the version in which they were rendered.
    pub(crate) rendered: HashMap<ObjectRef, Value>,
    /// All objects that carry the discriminator.
    pub(crate) candidates: Vec<Value>,
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

/// Lists what carries the discriminator, and reads what of the rendered objects was not among it.
pub(crate) async fn fetch(
    cluster: &Cluster,
    refs: &[ObjectRef],
    discriminator: Option<&str>,
    kinds: Kinds,
) -> Result<Live, Error> {
    let mut live = Live::default();
    let discriminator = discriminator.filter(|text| objects::discriminator::check(text).is_ok());
    if let Some(discriminator) = discriminator {
        live = list(cluster, refs, discriminator, kinds).await?;
    }
    let mut missing = Vec::new();
    let mut by_ref: HashMap<ObjectRef, &Value> = HashMap::new();
    for object in &live.candidates {
        by_ref.insert(ObjectRef::of(object)?, object);
    }
    for reference in refs {
        match by_ref.get(reference) {
            Some(object) => {
                live.rendered.insert(reference.clone(), (*object).clone());
            }
            None => missing.push(reference.clone()),
        }
    }
    let mut reads = stream::iter(missing)
        .map(|reference| async move {
            let found = cluster.get(&reference).await;
            (reference, found)
        })
        .buffer_unordered(16);
    let mut forbidden = 0_usize;
    while let Some((reference, found)) = reads.next().await {
        match found {
            Ok(Some(object)) => {
                live.rendered.insert(reference, object);
            }
            Ok(None) => {}
            Err(error) if error.is_forbidden() => forbidden += 1,
            Err(cluster::Error::Cancelled) => return Err(Error::Cancelled),
            // One object that can't be read (a bad name, say) must not stop the others: applying it will say why.
            Err(cluster::Error::InvalidName { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    drop(reads);
    if forbidden > 0 {
        live.warnings.push(ObjectError::general(format!(
            "at least one permission error was encountered while reading live objects ({forbidden} objects): what \
             changed about them can't be told"
        )));
    }
    Ok(live)
}

pub(crate) async fn list(
    cluster: &Cluster,
    refs: &[ObjectRef],
    discriminator: &str,
    kinds: Kinds,
) -> Result<Live, Error> {
    let namespaces: BTreeSet<String> = refs
        .iter()
        .filter_map(|reference| reference.namespace.clone())
        .collect();
    let namespaces: Vec<String> = namespaces.into_iter().collect();
    let used: HashSet<(&str, &str)> = refs
        .iter()
        .map(|reference| (reference.group.as_str(), reference.kind.as_str()))
        .collect();
    let wanted =
        |kind: &Kind| kinds == Kinds::All || used.contains(&(kind.group.as_str(), kind.kind.as_str()));
    let listing = cluster
        .list_labelled(annotations::DISCRIMINATOR, discriminator, &namespaces, wanted)
        .await?;
    let mut live = Live {
        candidates: listing.objects,
        ..Live::default()
    };
    let mut forbidden = false;
    for incomplete in listing.incomplete {
        match incomplete {
            Incomplete::Forbidden { .. } => forbidden = true,
            Incomplete::Failed { kind, reason } => {
                live.warnings
                    .push(ObjectError::general(format!("can't list {kind}: {reason}")));
            }
        }
    }
    if forbidden {
        live.warnings.push(ObjectError::general(
            "at least one permission error was encountered while gathering objects by discriminator labels. This might \
             result in orphan object detection to not work properly",
        ));
    }
    Ok(live)
}

/// The kinds as they are now, for decisions that remove something.
pub(crate) async fn fresh_snapshot(cluster: &Cluster) -> Result<Arc<Snapshot>, Error> {
    Ok(cluster
        .recent_snapshot(std::time::Duration::from_secs(10))
        .await?)
}

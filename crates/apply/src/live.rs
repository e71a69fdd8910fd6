//! The live state of objects, read before anything is done.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

use cluster::{Cluster, Detail, Gap, Listing, ResourceKind, Restriction, Snapshot};
use futures::StreamExt as _;
use objects::{ObjectId, ObjectRef, Vocabulary, meta};
use parking_lot::Mutex;
use yaml::{Map, Value};

use crate::{
    AppliedVersions, Completeness, Error, Membership, OrphanSearch, Owner, concurrent, find_orphans,
    identities,
    orphans::{completeness, namespaces},
    searched,
};

/// Number of objects of a kind from which on one list is cheaper than reading each object.
const WORTH_A_LIST: usize = 3;
const READS: usize = 16;

/// The live state of some manifests, and orphans if they were searched.
#[derive(Debug, Default)]
pub struct LiveObjects {
    objects: HashMap<ObjectRef, Arc<Value>>,
    pub unreadable: HashMap<ObjectRef, Arc<cluster::Error>>,
    /// The objects that were not read ([`Query::assumes`]).
    assumed: HashSet<ObjectRef>,
    /// The assumed objects that were read later; `None` if they don't exist.
    read_later: Mutex<HashMap<ObjectRef, Option<Arc<Value>>>>,
    /// The youngest object of each name for comparisons, by that name.
    named: HashMap<ObjectRef, Arc<Value>>,
    /// The objects with a warning of the API server on every request.
    pub warned: HashSet<ObjectRef>,
    /// The objects of the owner that are not among the manifests, if they were searched.
    pub orphans: Vec<ObjectRef>,
    pub completeness: Completeness,
    pub gaps: Vec<Gap>,
    pub restriction: Restriction,
    diff_name: Option<&'static str>,
}

#[derive(Debug, Clone, Copy)]
pub struct Query<'a> {
    pub refs: &'a [ObjectRef],
    pub all: &'a [ObjectRef],
    /// The search for orphans, which needs a list of every kind of the cluster that may have any; absent if they are not
    /// needed.
    pub orphans: Option<OrphanSearch<'a>>,
    pub renamed: &'a HashSet<(String, String)>,
    /// Versions in which objects were seen before: those that are read one by one may come from the cache of the API server.
    pub seen: Option<&'a AppliedVersions>,
    /// If set, an object whose state is remembered in `seen` is taken for unchanged, and one that is neither there nor among these for missing: they
    /// are read only if applying them shows that they are not.
    pub assumes: Option<&'a [ObjectRef]>,
}

/// Returns the groups and kinds of the manifests that are compared under another name than their own.
pub fn renamed_kinds<'m>(
    vocabulary: &Vocabulary,
    manifests: impl IntoIterator<Item = &'m Value>,
) -> HashSet<(String, String)> {
    let Some(name) = vocabulary.diff_name else {
        return HashSet::new();
    };
    manifests
        .into_iter()
        .filter(|manifest| meta::annotation(manifest, name).is_some())
        .filter_map(|manifest| ObjectRef::of(manifest).ok())
        .map(|reference| (reference.group, reference.kind))
        .collect()
}

/// Returns the reference under which an object is compared and displayed.
#[must_use]
pub fn display_reference(vocabulary: &Vocabulary, object: &Value, reference: &ObjectRef) -> ObjectRef {
    reference_as(vocabulary.diff_name, object, reference)
}

fn reference_as(diff_name: Option<&str>, object: &Value, reference: &ObjectRef) -> ObjectRef {
    match diff_name.and_then(|name| meta::annotation(object, name)) {
        Some(name) => ObjectRef {
            name: name.to_owned(),
            ..reference.clone()
        },
        None => reference.clone(),
    }
}

impl LiveObjects {
    #[must_use]
    pub fn get(&self, reference: &ObjectRef) -> Option<Arc<Value>> {
        match self.read_later.lock().get(reference) {
            Some(read) => read.clone(),
            None => self.objects.get(reference).cloned(),
        }
    }

    /// Returns true if the state of an object is only assumed.
    #[must_use]
    pub fn is_assumed(&self, reference: &ObjectRef) -> bool {
        self.assumed.contains(reference) && !self.read_later.lock().contains_key(reference)
    }

    /// Replaces the assumption about an object.
    pub(crate) fn correct(&self, reference: &ObjectRef, object: Option<Arc<Value>>) {
        self.read_later.lock().insert(reference.clone(), object);
    }

    /// Returns the object with which a manifest is compared: its own live object, or the youngest one that shares its name
    /// for comparisons.
    #[must_use]
    pub fn before(&self, manifest: &Value, reference: &ObjectRef) -> Option<Arc<Value>> {
        let name = self.diff_name.and_then(|name| meta::annotation(manifest, name));
        let named = name.and_then(|_| self.named.get(&reference_as(self.diff_name, manifest, reference)));
        named.cloned().or_else(|| self.get(reference))
    }

    fn note_name(&mut self, reference: &ObjectRef, object: &Arc<Value>) {
        let name = self.diff_name.and_then(|name| meta::annotation(object, name));
        if name.is_none() {
            return;
        }
        let age = |object: &Value| {
            (
                meta::creation_time(object),
                meta::text(object, "name").map(str::to_owned),
            )
        };
        let name = reference_as(self.diff_name, object, reference);
        let is_younger = self.named.get(&name).is_none_or(|known| age(known) < age(object));
        if is_younger {
            self.named.insert(name, Arc::clone(object));
        }
    }
}

/// Reads the live state of manifests. With a membership label, kinds with several manifests are listed, and the objects
/// that are not found so are read one by one. To search for orphans, every kind is listed, or those that may have any, the
/// others as metadata only.
///
/// # Errors
/// If the cluster can't be reached, or the work is cancelled.
pub async fn fetch(cluster: &Cluster, owner: &Owner, query: Query<'_>) -> Result<LiveObjects, Error> {
    let mut live = LiveObjects {
        diff_name: owner.vocabulary.diff_name,
        ..LiveObjects::default()
    };
    let labels = owner.labels().filter(|_| is_listed(owner, query));
    match (labels.and_then(BTreeMap::first_key_value), query.orphans) {
        (Some((name, value)), _) => {
            let kinds = query.orphans.and_then(|search| search.kinds);
            let snapshot = match query.orphans {
                Some(_) => searched::snapshot(cluster, kinds).await?,
                None => cluster.snapshot().await?,
            };
            let listing = list(cluster, &snapshot, query, (name, value)).await?;
            add_listed(owner, &snapshot, query, listing, &mut live)?;
        }
        (None, Some(search)) => {
            let found = find_orphans(cluster, owner, query.all, search).await?;
            live.completeness = found.completeness;
            live.gaps = found.gaps;
            let orphans = found.orphans.into_iter().map(|orphan| orphan.reference);
            live.orphans = orphans.chain(found.used_namespaces).collect();
        }
        (None, None) => {}
    }
    read_missing(cluster, query, &mut live).await?;
    Ok(live)
}

/// Returns true if the live objects are listed by the labels of the owner. The objects of an inventory are found without that, so a list
/// pays off only for several manifests of a kind.
fn is_listed(owner: &Owner, query: Query<'_>) -> bool {
    match owner.membership {
        Membership::Labels { .. } => true,
        Membership::Inventory { .. } => query.orphans.is_none(),
        Membership::None => false,
    }
}

/// Adds the objects of a listing, and selects the orphans among them.
fn add_listed(
    owner: &Owner,
    snapshot: &Snapshot,
    query: Query<'_>,
    listing: Listing,
    live: &mut LiveObjects,
) -> Result<(), Error> {
    let known: HashSet<&ObjectRef> = query.refs.iter().collect();
    let is_searched = |object: &Value| {
        let filter = query.orphans.map(|search| search.filter);
        filter.is_some_and(|filter| filter.is_none_or(|accepts| accepts(object)))
    };
    let mut candidates = Vec::new();
    for object in listing.objects {
        let reference = ObjectRef::of(&object)?;
        let object = Arc::new(object);
        live.note_name(&reference, &object);
        let is_known = known.contains(&reference);
        if is_searched(&object) {
            candidates.push(head(&object, is_known));
        }
        if is_known {
            let kind = (reference.group.clone(), reference.kind.clone());
            if listing.warned.contains(&kind) {
                live.warned.insert(reference.clone());
            }
            live.objects.insert(reference, object);
        }
    }
    if let Some(search) = query.orphans {
        let selection = crate::select(owner, &candidates, &identities(query.all, snapshot))?;
        let orphans = selection.orphans.into_iter().map(|orphan| orphan.reference);
        live.orphans = orphans.collect();
        live.completeness = completeness(&listing.gaps, query.all, search);
        live.gaps = listing.gaps;
        live.restriction = listing.restriction;
    }
    Ok(())
}

/// Returns an object without its content, with its identity alone if it is desired anyway. Of its managers only the names
/// are left: their fields are most of an object.
fn head(object: &Value, identity: bool) -> Value {
    let mut head = Map::new();
    for field in ["apiVersion", "kind"] {
        if let Some(value) = object.get(field) {
            head.insert(field, value.clone());
        }
    }
    let mut metadata = Map::new();
    for (name, value) in meta::metadata(object).into_iter().flatten() {
        match value.as_seq() {
            Some(entries) if name == "managedFields" && !identity => {
                let managers = entries.iter().filter_map(|entry| entry.get("manager"));
                let managers: Vec<Value> = managers
                    .map(|manager| Value::Map(Map::from([("manager", manager.clone())])))
                    .collect();
                metadata.insert(name, managers);
            }
            _ if !identity || matches!(name, "name" | "namespace" | "uid") => {
                metadata.insert(name, value.clone());
            }
            _ => {}
        }
    }
    head.insert("metadata", metadata);
    Value::Map(head)
}

async fn list(
    cluster: &Cluster,
    snapshot: &Snapshot,
    query: Query<'_>,
    label: (&str, &str),
) -> Result<Listing, Error> {
    let mut count: HashMap<(&str, &str), usize> = HashMap::new();
    for reference in query.refs {
        *count.entry((&reference.group, &reference.kind)).or_default() += 1;
    }
    let searches = |kind: &ResourceKind| {
        let kinds = query.orphans.map(|search| search.kinds);
        kinds.is_some_and(|kinds| kinds.is_none_or(|kinds| kinds.include(kind, query.all)))
    };
    let wanted = |kind: &ResourceKind| {
        let used = count
            .get(&(&*kind.group, &*kind.kind))
            .copied()
            .unwrap_or_default();
        let renamed =
            !query.renamed.is_empty() && query.renamed.contains(&(kind.group.clone(), kind.kind.clone()));
        if used >= WORTH_A_LIST || renamed || used > 0 && searches(kind) {
            Some(Detail::Full)
        } else {
            searches(kind).then_some(Detail::Metadata)
        }
    };
    let previous = query.orphans.and_then(|search| search.previous);
    let namespaces = namespaces(query.all, previous);
    let kinds = query.orphans.and_then(|search| search.kinds);
    searched::list(cluster, snapshot, kinds, label, (&namespaces, wanted)).await
}

/// Takes an object for unchanged or missing without a read; returns false if it has to be read.
fn assume(
    seen: Option<&AppliedVersions>,
    previous: &HashSet<ObjectId>,
    reference: &ObjectRef,
    live: &mut LiveObjects,
) -> bool {
    let id = reference.id();
    let object = seen.and_then(|seen| seen.object(&id));
    let is_new = seen.is_none_or(|seen| seen.version(&id).is_none()) && !previous.contains(&id);
    if object.is_none() && !is_new {
        return false;
    }
    if let Some(object) = object.map(Arc::new) {
        live.note_name(reference, &object);
        live.objects.insert(reference.clone(), object);
    }
    live.assumed.insert(reference.clone());
    true
}

async fn read_missing(cluster: &Cluster, query: Query<'_>, live: &mut LiveObjects) -> Result<(), Error> {
    let mut missing: Vec<&ObjectRef> = query
        .refs
        .iter()
        .filter(|reference| !live.objects.contains_key(*reference))
        .collect();
    if let Some(previous) = query.assumes {
        let previous: HashSet<ObjectId> = previous.iter().map(ObjectRef::id).collect();
        missing.retain(|reference| !assume(query.seen, &previous, reference, live));
    }
    let seen = |reference: &ObjectRef| query.seen?.version(&reference.id());
    let reads = missing.into_iter().map(|reference| async move {
        let read = cluster.read_since(reference, seen(reference));
        (reference, read.await)
    });
    let mut reads = concurrent(reads, READS);
    while let Some((reference, found)) = reads.next().await {
        match found {
            Ok(Some((object, warnings))) => {
                let object = Arc::new(object);
                if !warnings.is_empty() {
                    live.warned.insert(reference.clone());
                }
                live.note_name(reference, &object);
                live.objects.insert(reference.clone(), object);
            }
            Ok(None) => {}
            // One object that can't be read must not stop the others.
            Err(error) if error.is_forbidden() || matches!(error, cluster::Error::InvalidName { .. }) => {
                live.unreadable.insert(reference.clone(), Arc::new(error));
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::owner;
    use serde_json::json;

    #[test]
    fn before_returns_the_youngest_object_of_a_name() {
        let object = |name: &str, time: &str| {
            Value::from_json(
                json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name,
                "namespace": "n", "creationTimestamp": time, "annotations": {"example.com/diff-name": "c"}}}),
            )
        };
        let vocabulary = owner().vocabulary;
        let mut live = LiveObjects {
            diff_name: vocabulary.diff_name,
            ..LiveObjects::default()
        };
        let (old, young, next) = (
            object("c-z", "2026-01-01T00:00:00Z"),
            object("c-a", "2026-01-02T00:00:00Z"),
            object("c-b", "2026-01-02T00:00:00Z"),
        );
        for object in [&young, &old, &next].map(|object| Arc::new(object.clone())) {
            live.note_name(&ObjectRef::of(&object).unwrap(), &object);
        }
        let newest = object("c-new", "2026-01-03T00:00:00Z");
        let reference = ObjectRef::of(&newest).unwrap();
        assert_eq!(live.before(&newest, &reference).as_deref(), Some(&next));
        assert_eq!(display_reference(&vocabulary, &newest, &reference).name, "c");
    }
}

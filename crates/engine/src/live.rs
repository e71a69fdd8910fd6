//! What is on the cluster before anything is done.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    sync::Arc,
};

use cluster::{Cluster, Detail, Incomplete, Kind, Listing, Scope, Snapshot};
use futures::{StreamExt as _, stream};
use kluctl::{Inclusion, Rendered};
use objects::{ObjectId, ObjectRef, annotations, meta, orphans};
use yaml::{Map, Value};

use crate::{Error, ObjectError};

/// From how many objects of a kind on it is cheaper to list them than to read each.
const WORTH_A_LIST: usize = 3;

/// The live state of what was rendered.
#[derive(Debug, Default)]
pub(crate) struct Live {
    /// The objects that exist, in the version in which they were rendered.
    pub(crate) rendered: HashMap<ObjectRef, Arc<Value>>,
    /// The objects that may not be read, and what the API server said.
    pub(crate) unreadable: HashMap<ObjectRef, String>,
    /// The youngest object of each name for comparisons, by that name.
    named: HashMap<ObjectRef, Arc<Value>>,
    /// The objects that the API server warns of whenever they are asked for.
    pub(crate) warned: HashSet<ObjectRef>,
    /// What carries the discriminator and is not rendered, if it was looked for, as far as it may be removed.
    pub(crate) orphans: Vec<ObjectRef>,
    /// What could not be looked at.
    pub(crate) warnings: Vec<ObjectError>,
}

/// What is to be found out.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Query<'a> {
    /// What was rendered and counts.
    pub(crate) refs: &'a [ObjectRef],
    /// All that was rendered.
    pub(crate) all: &'a [ObjectRef],
    /// What the live objects carry.
    pub(crate) discriminator: Option<&'a str>,
    /// Which part of the deployment orphans are looked for in; none when they aren't looked for.
    pub(crate) orphans: Option<&'a Inclusion>,
    /// The kinds of which some object is compared under another name.
    pub(crate) renamed: &'a HashSet<(String, String)>,
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

/// The kinds of which some object is compared under another name than its own.
pub(crate) fn renamed_kinds(rendered: &Rendered) -> HashSet<(String, String)> {
    let renamed = rendered
        .objects()
        .filter(|object| meta::annotation(object, annotations::DIFF_NAME).is_some());
    renamed
        .filter_map(|object| ObjectRef::of(object).ok())
        .map(|reference| (reference.group, reference.kind))
        .collect()
}

/// The reference under which an object is compared and shown.
pub(crate) fn shown(object: &Value, reference: &ObjectRef) -> ObjectRef {
    match meta::annotation(object, annotations::DIFF_NAME) {
        Some(name) => ObjectRef {
            name: name.to_owned(),
            ..reference.clone()
        },
        None => reference.clone(),
    }
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

    /// What an object is compared with: itself as it was, or the youngest object that shares its name for comparisons.
    pub(crate) fn before(&self, manifest: &Value, reference: &ObjectRef) -> Option<&Arc<Value>> {
        if meta::annotation(manifest, annotations::DIFF_NAME).is_none() {
            return self.rendered.get(reference);
        }
        self.named
            .get(&shown(manifest, reference))
            .or_else(|| self.rendered.get(reference))
    }

    /// Notes an object that was found, under its name for comparisons.
    fn note_name(&mut self, reference: &ObjectRef, object: &Arc<Value>) {
        if meta::annotation(object, annotations::DIFF_NAME).is_none() {
            return;
        }
        let age = |object: &Value| {
            (
                meta::creation_time(object),
                meta::text(object, "name").map(str::to_owned),
            )
        };
        let name = shown(object, reference);
        let is_younger = self.named.get(&name).is_none_or(|known| age(known) < age(object));
        if is_younger {
            self.named.insert(name, Arc::clone(object));
        }
    }
}

/// Reads the live state of these objects: kinds with several are listed by the discriminator, and what is not found so
/// is read one by one. When orphans are looked for, every kind is listed, the others as metadata alone.
pub(crate) async fn fetch(cluster: &Cluster, query: Query<'_>) -> Result<Live, Error> {
    let mut live = Live::default();
    let discriminator = query
        .discriminator
        .filter(|text| objects::discriminator::check(text).is_ok());
    if let Some(discriminator) = discriminator {
        let listing = list(cluster, query, discriminator).await?;
        let known: HashSet<&ObjectRef> = query.refs.iter().collect();
        let mut candidates = Vec::new();
        for object in listing.objects {
            let reference = ObjectRef::of(&object)?;
            let object = Arc::new(object);
            live.note_name(&reference, &object);
            let is_known = known.contains(&reference);
            if query
                .orphans
                .is_some_and(|inclusion| includes(inclusion, &object))
            {
                candidates.push(head(&object, is_known));
            }
            if is_known {
                let kind = (reference.group.clone(), reference.kind.clone());
                if listing.warned.contains(&kind) {
                    live.warned.insert(reference.clone());
                }
                // Whatever kind is rendered is listed with all that its objects hold.
                live.rendered.insert(reference, object);
            }
        }
        if query.orphans.is_some() {
            live.warnings = warnings(listing.incomplete);
            let snapshot = fresh_snapshot(cluster).await?;
            let selection = orphans::select(&candidates, &identities(query.all, &snapshot))?;
            live.orphans = selection
                .doomed
                .into_iter()
                .map(|doomed| doomed.reference)
                .collect();
        }
    }
    read_missing(cluster, query.refs, &mut live).await?;
    Ok(live)
}

/// An object without its content, with its identity alone when it stays anyway. Of its managers only the names are left:
/// their fields are most of an object.
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

async fn list(cluster: &Cluster, query: Query<'_>, discriminator: &str) -> Result<Listing, Error> {
    let mut count: HashMap<(&str, &str), usize> = HashMap::new();
    for reference in query.refs {
        *count.entry((&reference.group, &reference.kind)).or_default() += 1;
    }
    let wanted = |kind: &Kind| {
        let used = count
            .get(&(&*kind.group, &*kind.kind))
            .copied()
            .unwrap_or_default();
        let renamed =
            !query.renamed.is_empty() && query.renamed.contains(&(kind.group.clone(), kind.kind.clone()));
        if used >= WORTH_A_LIST || renamed || used > 0 && query.orphans.is_some() {
            Some(Detail::Full)
        } else {
            query.orphans.is_some().then_some(Detail::Metadata)
        }
    };
    let label = annotations::DISCRIMINATOR;
    let namespaces = namespaces(query.all);
    Ok(cluster
        .list_labelled(label, discriminator, &namespaces, wanted)
        .await?)
}

async fn read_missing(cluster: &Cluster, refs: &[ObjectRef], live: &mut Live) -> Result<(), Error> {
    let missing: Vec<&ObjectRef> = refs
        .iter()
        .filter(|reference| !live.rendered.contains_key(*reference))
        .collect();
    let reads = missing
        .into_iter()
        .map(|reference| async move { (reference, cluster.read(reference).await) });
    // Collected, because a stream that holds the closure can't be proven to be Send.
    let mut reads = stream::iter(reads.collect::<Vec<_>>()).buffer_unordered(16);
    while let Some((reference, found)) = reads.next().await {
        match found {
            Ok(Some((object, warnings))) => {
                let object = Arc::new(object);
                if !warnings.is_empty() {
                    live.warned.insert(reference.clone());
                }
                live.note_name(reference, &object);
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

/// Lists everything that carries the discriminator and is meant.
pub(crate) async fn candidates(
    cluster: &Cluster,
    refs: &[ObjectRef],
    discriminator: &str,
    inclusion: &Inclusion,
) -> Result<Candidates, Error> {
    let label = annotations::DISCRIMINATOR;
    let listing = cluster
        .list_labelled(label, discriminator, &namespaces(refs), |_| {
            Some(Detail::Metadata)
        })
        .await?;
    let mut objects = listing.objects;
    objects.retain(|object| includes(inclusion, object));
    Ok(Candidates {
        objects,
        warnings: warnings(listing.incomplete),
    })
}

/// What could not be looked at, for people.
fn warnings(incomplete: Vec<Incomplete>) -> Vec<ObjectError> {
    let mut warnings = Vec::new();
    let mut forbidden = false;
    for incomplete in incomplete {
        match incomplete {
            Incomplete::Forbidden { .. } => forbidden = true,
            Incomplete::Failed { kind, reason } => {
                warnings.push(ObjectError::general(format!("can't list {kind}: {reason}")));
            }
        }
    }
    if forbidden {
        warnings.push(ObjectError::general(
            "at least one permission error was encountered while gathering objects by discriminator labels. This might \
             result in orphan object detection to not work properly",
        ));
    }
    warnings
}

/// Whether a live object belongs to the chosen part of a deployment, by the labels and the annotation that it was
/// deployed with.
pub(crate) fn includes(inclusion: &Inclusion, object: &Value) -> bool {
    if inclusion.is_empty() {
        return true;
    }
    let labels = meta::metadata(object).and_then(|metadata| metadata.get_map("labels"));
    let tags = labels
        .into_iter()
        .flat_map(yaml::Map::iter)
        .filter_map(|(name, value)| {
            let number = name.strip_prefix(annotations::TAG_PREFIX)?;
            let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
            value.as_str().filter(|_| is_number).map(str::to_owned)
        });
    let tags: Vec<String> = tags.collect();
    let dir = meta::annotation(object, annotations::ITEM_DIR).and_then(|dir| tree::TreePath::parse(dir).ok());
    inclusion.includes(&tags, dir.as_ref())
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
    let candidates = candidates(cluster, refs, discriminator, &Inclusion::default()).await?;
    warnings.extend(candidates.warnings);
    let selection = orphans::select(&candidates.objects, &identities(refs, &snapshot))?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_part_of_a_deployment_is_known_by_its_labels() {
        let object = Value::from_json(json!({"metadata": {
            "labels": {"kluctl.io/tag-0": "a", "kluctl.io/tag-1": "b", "kluctl.io/tag-x": "c", "kluctl.io/tag-": "d"},
            "annotations": {"kluctl.io/deployment-item-dir": "x/y"},
        }}));
        let list = |text: &str| text.split_whitespace().map(str::to_owned).collect();
        for (tags, not_tags, dirs, not_dirs, expected) in [
            ("", "", "", "", true),
            ("a", "", "", "", true),
            ("c", "", "", "", false),
            ("d", "", "", "", false),
            ("z b", "", "", "", true),
            ("a", "b", "", "", false),
            ("z", "", "x/y", "", true),
            ("", "", "x", "", false),
            ("a", "", "", "x/y", false),
        ] {
            let inclusion = Inclusion {
                include_tags: list(tags),
                exclude_tags: list(not_tags),
                include_dirs: list(dirs),
                exclude_dirs: list(not_dirs),
            };
            assert_eq!(includes(&inclusion, &object), expected, "{inclusion:?}");
        }
    }

    #[test]
    fn the_youngest_object_of_a_name_counts() {
        let object = |name: &str, time: &str| {
            Value::from_json(
                json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name,
                "namespace": "n", "creationTimestamp": time, "annotations": {"kluctl.io/diff-name": "c"}}}),
            )
        };
        let mut live = Live::default();
        let (old, young, next) = (
            object("c-z", "2026-01-01T00:00:00Z"),
            object("c-a", "2026-01-02T00:00:00Z"),
            object("c-b", "2026-01-02T00:00:00Z"),
        );
        for object in [&young, &old, &next].map(|object| Arc::new(object.clone())) {
            live.note_name(&ObjectRef::of(&object).unwrap(), &object);
        }
        let fresh = object("c-new", "2026-01-03T00:00:00Z");
        let reference = ObjectRef::of(&fresh).unwrap();
        assert_eq!(live.before(&fresh, &reference).map(AsRef::as_ref), Some(&next));
        assert_eq!(shown(&fresh, &reference).name, "c");
    }
}

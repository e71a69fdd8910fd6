//! Which live objects a deployment may remove.

use std::collections::{HashMap, HashSet};

use yaml::Value;

use crate::{Error, ObjectId, ObjectRef, annotations as names, managed, meta, order};

/// The field manager of everything that is deployed.
pub const MANAGER: &str = "kluctl";

/// An object that is to be removed, exactly as it was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Doomed {
    /// Which object.
    pub reference: ObjectRef,
    /// Its UID: an object that was created anew is another one.
    pub uid: String,
    /// Its resource version: an object that was changed since is decided about again.
    pub resource_version: String,
}

/// Why a live object that carries the discriminator stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spared {
    /// The deployment holds it.
    Rendered,
    /// An annotation forbids it.
    SkipDelete,
    /// Another object owns it, so it goes with that one.
    Owned,
    /// It was never applied by us: something else copied the label.
    NotManaged,
    /// It has no UID or resource version, so it can't be removed safely.
    Unidentified,
}

/// What was decided about all candidates.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Selection {
    /// What is to be removed, in the order of removal.
    pub doomed: Vec<Doomed>,
    /// What stays, and why.
    pub spared: Vec<(ObjectRef, Spared)>,
}

/// Whether an object is ours: applied by exactly our manager and owned by no other object, or said to be by annotation.
#[must_use]
pub fn is_managed(object: &Value) -> bool {
    meta::flag(object, names::FORCE_MANAGED)
        || (!meta::is_owned(object) && managed::has_manager(object, MANAGER))
}

/// Whether an annotation forbids to delete the object.
#[must_use]
pub fn skips_delete(object: &Value) -> bool {
    meta::flag(object, names::SKIP_DELETE) || meta::annotation(object, names::RESOURCE_POLICY) == Some("keep")
}

/// Why this object stays, whatever the deployment holds; `None` when it may be removed.
#[must_use]
pub fn spared(object: &Value) -> Option<Spared> {
    if skips_delete(object) {
        return Some(Spared::SkipDelete);
    }
    if is_managed(object) {
        return None;
    }
    Some(if meta::is_owned(object) {
        Spared::Owned
    } else {
        Spared::NotManaged
    })
}

/// Selects what is to be removed of the live objects that carry the discriminator. An object that is served by two
/// groups counts as rendered in both.
///
/// # Errors
/// When a candidate is no object.
pub fn select(candidates: &[Value], rendered: &HashSet<ObjectId>) -> Result<Selection, Error> {
    let mut refs = Vec::with_capacity(candidates.len());
    let mut rendered_uids = HashSet::new();
    for object in candidates {
        let reference = ObjectRef::of(object)?;
        if rendered.contains(&reference.id()) {
            rendered_uids.extend(meta::uid(object));
        }
        refs.push((reference, object));
    }
    let mut selection = Selection::default();
    let mut doomed: HashMap<&str, Doomed> = HashMap::new();
    for (reference, object) in refs {
        let uid = meta::uid(object);
        let verdict =
            if rendered.contains(&reference.id()) || uid.is_some_and(|uid| rendered_uids.contains(uid)) {
                Some(Spared::Rendered)
            } else {
                spared(object)
            };
        match (verdict, uid, meta::resource_version(object)) {
            (Some(why), ..) => selection.spared.push((reference, why)),
            (None, Some(uid), Some(resource_version)) => {
                let entry = Doomed {
                    reference,
                    uid: uid.to_owned(),
                    resource_version: resource_version.to_owned(),
                };
                doomed.entry(uid).or_insert(entry);
            }
            (None, ..) => selection.spared.push((reference, Spared::Unidentified)),
        }
    }
    selection.doomed = doomed.into_values().collect();
    selection
        .doomed
        .sort_by(|a, b| order::deletion(&a.reference, &b.reference));
    Ok(selection)
}

#[cfg(test)]
#[allow(
    clippy::needless_pass_by_value,
    reason = "a json! literal reads best by value"
)]
mod tests {
    use super::*;
    use serde_json::{Value as Json, json};

    fn candidate(name: &str, manager: &str, extra: Json) -> Value {
        let mut object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
            "name": name, "namespace": "n", "uid": format!("uid-{name}"), "resourceVersion": "7",
            "managedFields": [{"manager": manager, "operation": "Apply", "fieldsV1": {}}],
        }});
        for (key, value) in extra.as_object().unwrap() {
            object["metadata"][key] = value.clone();
        }
        Value::from_json(object)
    }

    #[test]
    fn each_reason_to_stay() {
        let annotated = |name: &str, value: &str| json!({"annotations": {name: value}});
        let owner = json!({"ownerReferences": [{"kind": "Deployment"}]});
        let mut force_managed_owned = annotated(names::FORCE_MANAGED, "true");
        force_managed_owned["ownerReferences"] = owner["ownerReferences"].clone();
        for (title, object, expected) in [
            ("ours", candidate("a", "kluctl", json!({})), None),
            (
                "rendered",
                candidate("kept", "kluctl", json!({})),
                Some(Spared::Rendered),
            ),
            (
                "skip-delete",
                candidate("a", "kluctl", annotated(names::SKIP_DELETE, "true")),
                Some(Spared::SkipDelete),
            ),
            (
                "skip-delete=false",
                candidate("a", "kluctl", annotated(names::SKIP_DELETE, "false")),
                None,
            ),
            (
                "keep",
                candidate("a", "kluctl", annotated(names::RESOURCE_POLICY, "keep")),
                Some(Spared::SkipDelete),
            ),
            ("owned", candidate("a", "kluctl", owner), Some(Spared::Owned)),
            (
                "another manager",
                candidate("a", "helm", json!({})),
                Some(Spared::NotManaged),
            ),
            (
                "a manager that begins alike",
                candidate("a", "kluctl-x", json!({})),
                Some(Spared::NotManaged),
            ),
            (
                "no managed fields",
                candidate("a", "x", json!({"managedFields": []})),
                Some(Spared::NotManaged),
            ),
            (
                "force-managed",
                candidate("a", "helm", annotated(names::FORCE_MANAGED, "true")),
                None,
            ),
            (
                "force-managed, owned",
                candidate("a", "helm", force_managed_owned),
                None,
            ),
            (
                "without uid",
                candidate("a", "kluctl", json!({"uid": null})),
                Some(Spared::Unidentified),
            ),
        ] {
            let rendered = HashSet::from([ObjectRef::of(&candidate("kept", "x", json!({}))).unwrap().id()]);
            let selection = select(&[object], &rendered).unwrap();
            assert_eq!(selection.spared.first().map(|(_, why)| *why), expected, "{title}");
            assert_eq!(selection.doomed.len(), usize::from(expected.is_none()), "{title}");
        }
    }

    #[test]
    fn the_version_and_the_group_in_which_an_object_is_read_do_not_count() {
        let mut other_group = candidate("kept", "kluctl", json!({}));
        other_group
            .as_map_mut()
            .unwrap()
            .insert("apiVersion", "other.io/v1");
        let mut other_version = candidate("kept", "kluctl", json!({}));
        other_version.as_map_mut().unwrap().insert("apiVersion", "v2");
        let rendered = HashSet::from([ObjectRef::of(&candidate("kept", "x", json!({}))).unwrap().id()]);
        let selection = select(&[other_group, other_version], &rendered).unwrap();
        assert!(selection.doomed.is_empty());
    }

    #[test]
    fn one_object_is_removed_once() {
        let object = candidate("a", "kluctl", json!({}));
        let selection = select(&[object.clone(), object], &HashSet::new()).unwrap();
        assert_eq!(selection.doomed.len(), 1);
        assert_eq!(selection.doomed[0].uid, "uid-a");
    }
}

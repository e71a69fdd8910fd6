//! Selection of the live objects that an owner may delete.

use std::collections::{HashMap, HashSet};

use objects::{ObjectId, ObjectRef, meta, order};
use yaml::Value;

use crate::Owner;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Orphan {
    pub reference: ObjectRef,
    /// Its UID: an object that was created again is another one.
    pub uid: String,
    /// Its resource version: an object that was changed since is checked again before it is deleted.
    pub resource_version: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeepReason {
    Desired,
    SkipDelete,
    /// It lacks the labels of the owner: another one may have taken it over.
    Foreign,
    /// Another object owns it, and is deleted together with it.
    Owned,
    /// The owner never applied it: something else copied the label.
    NotManaged,
    /// It has no UID or resource version, so it can't be deleted safely.
    Unidentified,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Selection {
    pub orphans: Vec<Orphan>,
    pub retained: Vec<(ObjectRef, KeepReason)>,
}

/// Returns the reason why a live object is kept whatever the manifests are; `None` if it may be deleted.
#[must_use]
pub fn keep_reason(owner: &Owner, object: &Value) -> Option<KeepReason> {
    if owner.skips_delete(object) {
        return Some(KeepReason::SkipDelete);
    }
    if !owner.has_member(object) {
        return Some(KeepReason::Foreign);
    }
    if owner.proves(object) {
        return None;
    }
    Some(if meta::is_owned(object) {
        KeepReason::Owned
    } else {
        KeepReason::NotManaged
    })
}

/// Selects the objects to delete among live objects of the owner. An object that is served by two groups counts as desired
/// in both.
///
/// # Errors
/// If a candidate is not an object.
pub fn select(
    owner: &Owner,
    candidates: &[Value],
    desired: &HashSet<ObjectId>,
) -> Result<Selection, objects::Error> {
    let mut refs = Vec::with_capacity(candidates.len());
    let mut desired_uids = HashSet::new();
    for object in candidates {
        let reference = ObjectRef::of(object)?;
        if desired.contains(&reference.id()) {
            desired_uids.extend(meta::uid(object));
        }
        refs.push((reference, object));
    }
    let mut selection = Selection::default();
    let mut orphans: HashMap<&str, Orphan> = HashMap::new();
    for (reference, object) in refs {
        let uid = meta::uid(object);
        let is_desired =
            desired.contains(&reference.id()) || uid.is_some_and(|uid| desired_uids.contains(uid));
        let reason = if is_desired {
            Some(KeepReason::Desired)
        } else {
            keep_reason(owner, object)
        };
        match (reason, uid, meta::resource_version(object)) {
            (Some(reason), ..) => selection.retained.push((reference, reason)),
            (None, Some(uid), Some(resource_version)) => {
                let orphan = Orphan {
                    reference,
                    uid: uid.to_owned(),
                    resource_version: resource_version.to_owned(),
                };
                orphans.entry(uid).or_insert(orphan);
            }
            (None, ..) => selection.retained.push((reference, KeepReason::Unidentified)),
        }
    }
    selection.orphans = orphans.into_values().collect();
    selection
        .orphans
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
    use crate::{Proof, tests::owner};
    use serde_json::{Value as Json, json};

    fn candidate(name: &str, manager: &str, extra: Json) -> Value {
        let mut object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
            "name": name, "namespace": "n", "uid": format!("uid-{name}"), "resourceVersion": "7",
            "labels": {"example.com/owner": "shop"},
            "managedFields": [{"manager": manager, "operation": "Apply", "fieldsV1": {}}],
        }});
        for (key, value) in extra.as_object().unwrap() {
            object["metadata"][key] = value.clone();
        }
        Value::from_json(object)
    }

    #[test]
    fn select_keeps_for_each_reason() {
        let annotated = |name: &str, value: &str| json!({"annotations": {name: value}});
        let references = json!({"ownerReferences": [{"kind": "Deployment"}]});
        let mut force_managed_owned = annotated("example.com/force-managed", "true");
        force_managed_owned["ownerReferences"] = references["ownerReferences"].clone();
        for (title, object, expected) in [
            ("ours", candidate("a", "deployer", json!({})), None),
            (
                "desired",
                candidate("kept", "deployer", json!({})),
                Some(KeepReason::Desired),
            ),
            (
                "skip-delete",
                candidate("a", "deployer", annotated("example.com/skip-delete", "true")),
                Some(KeepReason::SkipDelete),
            ),
            (
                "skip-delete=false",
                candidate("a", "deployer", annotated("example.com/skip-delete", "false")),
                None,
            ),
            (
                "keep",
                candidate("a", "deployer", annotated("example.org/policy", "keep")),
                Some(KeepReason::SkipDelete),
            ),
            (
                "owned",
                candidate("a", "deployer", references),
                Some(KeepReason::Owned),
            ),
            (
                "another manager",
                candidate("a", "other", json!({})),
                Some(KeepReason::NotManaged),
            ),
            (
                "a manager with the same beginning",
                candidate("a", "deployer-x", json!({})),
                Some(KeepReason::NotManaged),
            ),
            (
                "of another owner",
                candidate("a", "deployer", json!({"labels": {"example.com/owner": "other"}})),
                Some(KeepReason::Foreign),
            ),
            (
                "without the label",
                candidate("a", "deployer", json!({"labels": {}})),
                Some(KeepReason::Foreign),
            ),
            (
                "ignored",
                candidate("a", "deployer", annotated("example.com/apply", "Ignore")),
                Some(KeepReason::SkipDelete),
            ),
            (
                "no managed fields",
                candidate("a", "x", json!({"managedFields": []})),
                Some(KeepReason::NotManaged),
            ),
            (
                "force-managed",
                candidate("a", "other", annotated("example.com/force-managed", "true")),
                None,
            ),
            (
                "force-managed, owned",
                candidate("a", "other", force_managed_owned),
                None,
            ),
            (
                "without uid",
                candidate("a", "deployer", json!({"uid": null})),
                Some(KeepReason::Unidentified),
            ),
        ] {
            let desired = HashSet::from([ObjectRef::of(&candidate("kept", "x", json!({}))).unwrap().id()]);
            let selection = select(&owner(), &[object], &desired).unwrap();
            assert_eq!(
                selection.retained.first().map(|(_, why)| *why),
                expected,
                "{title}"
            );
            assert_eq!(
                selection.orphans.len(),
                usize::from(expected.is_none()),
                "{title}"
            );
        }
    }

    #[test]
    fn select_takes_labels_as_a_proof_if_the_owner_says_so() {
        let object = candidate("a", "other", json!({"ownerReferences": [{"kind": "Deployment"}]}));
        for (proof, orphans) in [(Proof::Applied, 0), (Proof::Labels, 1)] {
            let owner = Owner { proof, ..owner() };
            let selection = select(&owner, std::slice::from_ref(&object), &HashSet::new()).unwrap();
            assert_eq!(selection.orphans.len(), orphans, "{proof:?}");
        }
    }

    #[test]
    fn select_ignores_version_and_group_of_the_request() {
        let mut other_group = candidate("kept", "deployer", json!({}));
        other_group
            .as_map_mut()
            .unwrap()
            .insert("apiVersion", "other.io/v1");
        let mut other_version = candidate("kept", "deployer", json!({}));
        other_version.as_map_mut().unwrap().insert("apiVersion", "v2");
        let desired = HashSet::from([ObjectRef::of(&candidate("kept", "x", json!({}))).unwrap().id()]);
        let selection = select(&owner(), &[other_group, other_version], &desired).unwrap();
        assert!(selection.orphans.is_empty());
    }

    #[test]
    fn select_returns_an_object_once() {
        let object = candidate("a", "deployer", json!({}));
        let selection = select(&owner(), &[object.clone(), object], &HashSet::new()).unwrap();
        assert_eq!(selection.orphans.len(), 1);
        assert_eq!(selection.orphans[0].uid, "uid-a");
    }
}

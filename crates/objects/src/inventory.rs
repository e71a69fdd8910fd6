//! The written form of a list of applied objects, as cli-utils writes it: `namespace_name_group_kind`, and the version apart.

use std::collections::HashSet;

use crate::{ObjectId, ObjectRef};

/// The group whose names may hold colons, which are written as two underscores.
const RBAC: &str = "rbac.authorization.k8s.io";

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Entry {
    /// `namespace_name_group_kind`; namespace and group may be empty.
    pub id: String,
    /// The API version without the group.
    pub version: String,
}

impl Entry {
    #[must_use]
    pub fn of(reference: &ObjectRef) -> Self {
        let name = match reference.group.as_str() {
            RBAC => reference.name.replace(':', "__"),
            _ => reference.name.clone(),
        };
        let namespace = reference.namespace.as_deref().unwrap_or_default();
        Self {
            id: format!("{namespace}_{name}_{}_{}", reference.group, reference.kind),
            version: reference.version.clone(),
        }
    }

    /// Returns the object; `None` if the id has too few parts, or no name or kind.
    #[must_use]
    pub fn reference(&self) -> Option<ObjectRef> {
        let (namespace, rest) = self.id.split_once('_')?;
        let (rest, kind) = rest.rsplit_once('_')?;
        let (name, group) = rest.rsplit_once('_')?;
        let name = name.replace("__", ":");
        (!name.is_empty() && !kind.is_empty()).then(|| ObjectRef {
            group: group.to_owned(),
            version: self.version.clone(),
            kind: kind.to_owned(),
            namespace: (!namespace.is_empty()).then(|| namespace.to_owned()),
            name,
        })
    }
}

/// Returns the objects of an old inventory that the new one lacks, whatever their versions, in the order of the old one.
#[must_use]
pub fn stale(old: &[ObjectRef], new: &[ObjectRef]) -> Vec<ObjectRef> {
    let new: HashSet<ObjectId> = new.iter().map(ObjectRef::id).collect();
    let stale = old.iter().filter(|one| !new.contains(&one.id()));
    stale.cloned().collect()
}

/// Returns the inventory with the objects that could not be deleted, so that they are tried again.
#[must_use]
pub fn merge(inventory: &[ObjectRef], survivors: &[ObjectRef]) -> Vec<ObjectRef> {
    let survivors = stale(survivors, inventory);
    inventory.iter().cloned().chain(survivors).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reference(namespace: &str, name: &str, api_version: &str, kind: &str) -> ObjectRef {
        let (group, version) = crate::split_api_version(api_version);
        ObjectRef {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
            namespace: (!namespace.is_empty()).then(|| namespace.to_owned()),
            name: name.to_owned(),
        }
    }

    #[test]
    fn entries_are_written_and_parsed() {
        for (object, id) in [
            (reference("", "system", "v1", "Namespace"), "_system__Namespace"),
            (
                reference("n", "a", "apps/v1", "Deployment"),
                "n_a_apps_Deployment",
            ),
            (
                reference("n", "a:b", "rbac.authorization.k8s.io/v1", "Role"),
                "n_a__b_rbac.authorization.k8s.io_Role",
            ),
            (
                reference(
                    "",
                    "things.x.io",
                    "apiextensions.k8s.io/v1",
                    "CustomResourceDefinition",
                ),
                "_things.x.io_apiextensions.k8s.io_CustomResourceDefinition",
            ),
        ] {
            let entry = Entry::of(&object);
            assert_eq!(entry.id, id);
            assert_eq!(entry.reference(), Some(object));
        }
    }

    #[test]
    fn malformed_entries_have_no_reference() {
        for id in ["", "a", "n_a", "n_a_b", "___Kind", "n_a_apps_"] {
            let entry = Entry {
                id: id.to_owned(),
                version: "v1".to_owned(),
            };
            assert_eq!(entry.reference(), None, "{id}");
        }
    }

    #[test]
    fn stale_ignores_versions_and_merge_keeps_survivors_once() {
        let object = |name: &str, version: &str| reference("n", name, version, "A");
        let old = [object("a", "x.io/v1"), object("b", "x.io/v1")];
        let new = [object("a", "x.io/v2"), object("c", "x.io/v1")];
        assert_eq!(stale(&old, &new), [object("b", "x.io/v1")]);
        let merged = merge(&new, &old);
        assert_eq!(merged, [new[0].clone(), new[1].clone(), old[1].clone()]);
    }
}

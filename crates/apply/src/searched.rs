//! The kinds that a search for orphans has to list.
//!
//! knows which kinds may have objects of an owner names them. The objects themselves are always listed live, under
//! the identity that deletes them.

use std::{collections::HashSet, sync::Arc, time::Duration};

use cluster::{Cluster, Detail, Listing, ResourceKind, Restriction, Snapshot};
use objects::ObjectRef;

use crate::Error;

/// Maximum age of discovery for decisions about deletions.
const KINDS_AGE: Duration = Duration::from_secs(10);

type Kinds = HashSet<(String, String)>;

/// The kinds that may have objects of an owner that are no longer desired: no other kind has any.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SearchedKinds {
    /// Groups and kinds of objects that the owner applied before.
    pub applied: Kinds,
    /// Groups and kinds of which somebody with more rights saw objects with the label. Kinds among them that the identity of a search
    /// may not list are not reported: that would reveal objects of others.
    pub hinted: Kinds,
}

impl SearchedKinds {
    /// Returns true if objects of a kind are listed and its gaps reported: the applied kinds and, because one object may be served by
    /// two groups, the desired kinds that have the name of a kind to search.
    pub(crate) fn include(&self, kind: &ResourceKind, desired: &[ObjectRef]) -> bool {
        let has_name = |(_, name): &(String, String)| *name == kind.kind;
        let is_desired = |one: &ObjectRef| one.group == kind.group && one.kind == kind.kind;
        self.applied.contains(&(kind.group.clone(), kind.kind.clone()))
            || self.all().any(has_name) && desired.iter().any(is_desired)
    }

    fn all(&self) -> impl Iterator<Item = &(String, String)> {
        self.applied.iter().chain(&self.hinted)
    }
}

/// Returns the served kinds for a search: as they are now, unless the kinds to search are known and all of them are served.
pub(crate) async fn snapshot(
    cluster: &Cluster,
    kinds: Option<&SearchedKinds>,
) -> Result<Arc<Snapshot>, Error> {
    if let Some(kinds) = kinds {
        let snapshot = cluster.snapshot().await?;
        let is_served = |(group, kind): &(String, String)| snapshot.scope(group, kind).is_some();
        if snapshot.stale().is_empty() && kinds.all().all(is_served) {
            return Ok(snapshot);
        }
    }
    Ok(cluster.recent_snapshot(KINDS_AGE).await?)
}

/// Lists the objects with a label, of the kinds that `wanted` accepts and of those that are only hinted at.
pub(crate) async fn list(
    cluster: &Cluster,
    snapshot: &Snapshot,
    kinds: Option<&SearchedKinds>,
    label: (&str, &str),
    (namespaces, wanted): (&[String], impl Fn(&ResourceKind) -> Option<Detail>),
) -> Result<Listing, Error> {
    let mut listing = cluster.list_kinds(snapshot, label, namespaces, &wanted).await?;
    if kinds.is_some_and(|kinds| kinds.applied.is_empty()) {
        listing.restriction = Restriction::None;
    }
    let Some(hinted) = kinds
        .map(|kinds| &kinds.hinted)
        .filter(|hinted| !hinted.is_empty())
    else {
        return Ok(listing);
    };
    let only_hinted = |kind: &ResourceKind| {
        let is_hinted = hinted.contains(&(kind.group.clone(), kind.kind.clone()));
        (is_hinted && wanted(kind).is_none()).then_some(Detail::Metadata)
    };
    let found = cluster
        .list_kinds(snapshot, label, namespaces, only_hinted)
        .await?;
    listing.add_objects(found);
    Ok(listing)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(group: &str, name: &str) -> ResourceKind {
        ResourceKind {
            group: group.to_owned(),
            version: "v1".to_owned(),
            kind: name.to_owned(),
            plural: name.to_lowercase(),
            namespaced: true,
            listable: true,
            deletable: true,
            preferred: true,
            status: false,
        }
    }

    fn key(group: &str, name: &str) -> (String, String) {
        (group.to_owned(), name.to_owned())
    }

    #[test]
    fn searched_kinds_include_desired_kinds_of_the_same_name() {
        let kinds = SearchedKinds {
            applied: HashSet::from([key("extensions", "Ingress")]),
            hinted: HashSet::from([key("x.io", "Thing")]),
        };
        let desired = |group: &str, name: &str| ObjectRef {
            group: group.to_owned(),
            version: "v1".to_owned(),
            kind: name.to_owned(),
            namespace: None,
            name: "a".to_owned(),
        };
        let all = [
            desired("networking.k8s.io", "Ingress"),
            desired("y.io", "Thing"),
            desired("", "ConfigMap"),
        ];
        for (group, name, expected) in [
            ("extensions", "Ingress", true),
            ("networking.k8s.io", "Ingress", true),
            ("y.io", "Thing", true),
            ("x.io", "Thing", false),
            ("z.io", "Thing", false),
            ("", "ConfigMap", false),
        ] {
            assert_eq!(
                kinds.include(&kind(group, name), &all),
                expected,
                "{group}/{name}"
            );
        }
        assert!(!kinds.include(&kind("networking.k8s.io", "Ingress"), &[]));
    }
}

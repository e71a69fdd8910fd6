//! The kinds that a cluster served at one time.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
    time::{Duration, Instant},
};

use kube::core::discovery::v2::APIGroupDiscoveryList;
use parking_lot::RwLock;
use tokio::sync::Mutex;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    Namespaced,
    Cluster,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceKind {
    pub group: String,
    pub version: String,
    pub kind: String,
    pub plural: String,
    pub namespaced: bool,
    pub listable: bool,
    /// False for kinds that are computed, like metrics.
    pub deletable: bool,
    pub preferred: bool,
    pub status: bool,
}

impl ResourceKind {
    /// Returns `group/version`, or the version alone for the core group.
    #[must_use]
    pub fn api_version(&self) -> String {
        objects::join_api_version(&self.group, &self.version)
    }

    /// Returns true for Events: there are many, they end by themselves, and nobody deploys them.
    #[must_use]
    pub fn is_event(&self) -> bool {
        self.kind == "Event" && matches!(self.group.as_str(), "" | "events.k8s.io")
    }

    #[must_use]
    pub fn scope(&self) -> Scope {
        if self.namespaced {
            Scope::Namespaced
        } else {
            Scope::Cluster
        }
    }
}

/// The kinds that a cluster served at one time.
#[derive(Debug)]
pub struct Snapshot {
    kinds: Vec<ResourceKind>,
    /// Versions of groups whose kinds could not be read, or only from an outdated copy.
    stale: Vec<GroupVersion>,
    by_kind: HashMap<(String, String), Vec<usize>>,
    taken: Instant,
}

impl Snapshot {
    pub(crate) fn new(Discovered { kinds, stale }: Discovered) -> Self {
        let mut by_kind: HashMap<_, Vec<usize>> = HashMap::new();
        for (index, kind) in kinds.iter().enumerate() {
            by_kind
                .entry((kind.group.clone(), kind.kind.clone()))
                .or_default()
                .push(index);
        }
        Self {
            kinds,
            stale,
            by_kind,
            taken: Instant::now(),
        }
    }

    #[must_use]
    pub fn find(&self, group: &str, version: &str, kind: &str) -> Option<&ResourceKind> {
        self.versions(group, kind).find(|found| found.version == version)
    }

    /// Returns the scope of a kind in any version; `None` for unknown kinds.
    #[must_use]
    pub fn scope(&self, group: &str, kind: &str) -> Option<Scope> {
        self.versions(group, kind).next().map(ResourceKind::scope)
    }

    fn versions(&self, group: &str, kind: &str) -> impl Iterator<Item = &ResourceKind> {
        let found = self.by_kind.get(&(group.to_owned(), kind.to_owned()));
        found
            .into_iter()
            .flatten()
            .filter_map(|index| self.kinds.get(*index))
    }

    /// Returns all kinds in all versions.
    #[must_use]
    pub fn kinds(&self) -> &[ResourceKind] {
        &self.kinds
    }

    /// Returns one version of every kind that can be listed, without kinds that only mirror others.
    pub fn listable(&self) -> impl Iterator<Item = &ResourceKind> {
        self.kinds.iter().filter(|kind| {
            kind.listable
                && kind.preferred
                && !(kind.group == "extensions" && kind.plural == "ingresses")
                && kind.plural != "componentstatuses"
        })
    }

    /// Returns the preferred versions of the kinds in a group, with a name, or both.
    #[must_use]
    pub fn matching(&self, group: Option<&str>, kind: Option<&str>) -> Vec<ResourceKind> {
        let matches = |found: &&ResourceKind| {
            found.preferred
                && group.is_none_or(|group| found.group == group)
                && kind.is_none_or(|kind| found.kind == kind)
        };
        self.kinds.iter().filter(matches).cloned().collect()
    }

    #[must_use]
    pub fn api_versions(&self) -> Vec<String> {
        let mut served = BTreeSet::new();
        for kind in &self.kinds {
            served.insert(kind.api_version());
            served.insert(format!("{}/{}", kind.api_version(), kind.kind));
        }
        served.into_iter().collect()
    }

    /// Returns the versions of groups whose API server is down: their kinds are unknown, or known from an outdated copy.
    #[must_use]
    pub fn stale(&self) -> &[GroupVersion] {
        &self.stale
    }

    pub(crate) fn is_older_than(&self, age: Duration) -> bool {
        self.taken.elapsed() > age
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupVersion {
    pub group: String,
    pub version: String,
}

#[derive(Debug, Default)]
pub(crate) struct Discovered {
    pub(crate) kinds: Vec<ResourceKind>,
    pub(crate) stale: Vec<GroupVersion>,
}

#[derive(Default)]
pub(crate) struct Discovery {
    current: RwLock<Option<Arc<Snapshot>>>,
    pub(crate) refreshing: Mutex<()>,
}

impl Discovery {
    pub(crate) fn current(&self) -> Option<Arc<Snapshot>> {
        self.current.read().clone()
    }

    pub(crate) fn set(&self, snapshot: Arc<Snapshot>) {
        *self.current.write() = Some(snapshot);
    }
}

impl Discovered {
    pub(crate) fn bytes(&self) -> usize {
        let kinds = self.kinds.iter().map(|kind| {
            [&kind.group, &kind.version, &kind.kind, &kind.plural]
                .map(String::len)
                .iter()
                .sum::<usize>()
        });
        let stale = self
            .stale
            .iter()
            .map(|stale| stale.group.len() + stale.version.len());
        kinds.chain(stale).sum()
    }

    pub(crate) fn add_aggregated(&mut self, list: APIGroupDiscoveryList) {
        for group in list.items {
            let name = group
                .metadata
                .and_then(|metadata| metadata.name)
                .unwrap_or_default();
            for version in group.versions {
                let number = version.version.unwrap_or_default();
                if version.freshness.as_deref() == Some("Stale") {
                    self.stale.push(GroupVersion {
                        group: name.clone(),
                        version: number.clone(),
                    });
                }
                for resource in version.resources {
                    let (Some(plural), Some(kind)) =
                        (resource.resource, resource.response_kind.and_then(|gvk| gvk.kind))
                    else {
                        continue;
                    };
                    // A kind may be served only by a version that is not the first: that one is preferred then.
                    let preferred = !self
                        .kinds
                        .iter()
                        .any(|known| known.group == name && known.plural == plural);
                    self.kinds.push(ResourceKind {
                        preferred,
                        group: name.clone(),
                        version: number.clone(),
                        kind,
                        plural,
                        namespaced: resource.scope.as_deref() == Some("Namespaced"),
                        listable: resource.verbs.iter().any(|verb| verb == "list"),
                        deletable: resource.verbs.iter().any(|verb| verb == "delete"),
                        status: resource
                            .subresources
                            .iter()
                            .any(|sub| sub.subresource.as_deref() == Some("status")),
                    });
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snapshot_prefers_one_version_of_each_kind() {
        let list = serde_json::from_value(serde_json::json!({"items": [{
            "metadata": {"name": "x.io"},
            "versions": [
                {"version": "v2", "resources": [{"resource": "things", "responseKind": {"kind": "Thing"},
                    "scope": "Namespaced", "verbs": ["list"], "subresources": [{"subresource": "status"}]}]},
                {"version": "v0", "freshness": "Stale"},
                {"version": "v1", "resources": [
                    {"resource": "things", "responseKind": {"kind": "Thing"}, "scope": "Namespaced", "verbs": ["list"]},
                    {"resource": "olds", "responseKind": {"kind": "Old"}, "scope": "Cluster", "verbs": ["list"]},
                    {"resource": "reviews", "responseKind": {"kind": "Review"}, "scope": "Cluster", "verbs": ["create"]},
                    {"resource": "nokind"}]},
            ],
        }]}))
        .unwrap();
        let mut found = Discovered::default();
        found.add_aggregated(list);
        let snapshot = Snapshot::new(found);
        assert_eq!(snapshot.stale().len(), 1);
        let listable: Vec<_> = snapshot
            .listable()
            .map(|kind| format!("{} {}", kind.api_version(), kind.kind))
            .collect();
        assert_eq!(listable, ["x.io/v2 Thing", "x.io/v1 Old"]);
        assert!(snapshot.find("x.io", "v2", "Thing").unwrap().status);
        assert_eq!(snapshot.scope("x.io", "Old"), Some(Scope::Cluster));
        assert_eq!(snapshot.find("x.io", "v1", "Nothing"), None);
        let matching = |group, kind| {
            snapshot
                .matching(group, kind)
                .iter()
                .map(ResourceKind::api_version)
                .collect::<Vec<_>>()
        };
        assert_eq!(matching(None, Some("Thing")), ["x.io/v2"]);
        assert_eq!(matching(Some("x.io"), None), ["x.io/v2", "x.io/v1", "x.io/v1"]);
        assert!(matching(Some("y.io"), Some("Thing")).is_empty());
        assert_eq!(
            snapshot.api_versions(),
            [
                "x.io/v1",
                "x.io/v1/Old",
                "x.io/v1/Review",
                "x.io/v1/Thing",
                "x.io/v2",
                "x.io/v2/Thing"
            ]
        );
    }
}

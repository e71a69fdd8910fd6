//! Which kinds a cluster serves.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, PoisonError, RwLock},
    time::{Duration, Instant},
};

use kube::core::discovery::v2::APIGroupDiscoveryList;
use tokio::sync::Mutex;

use crate::{Cluster, Error, connection::Call, legacy};

/// Asks for everything at once.
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
                          application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";

/// Whether objects of a kind live in namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// They do.
    Namespaced,
    /// They don't.
    Cluster,
}

/// A kind in a version, as it is served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kind {
    /// API group, empty for the core group.
    pub group: String,
    /// Version.
    pub version: String,
    /// Kind.
    pub kind: String,
    /// Its name in URLs.
    pub plural: String,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
    /// Whether its objects can be listed.
    pub listable: bool,
    /// Whether this is the version to prefer.
    pub preferred: bool,
    /// Whether it has a status subresource.
    pub status: bool,
}

impl Kind {
    /// `group/version`, or the version alone for the core group.
    #[must_use]
    pub fn api_version(&self) -> String {
        objects::join_api_version(&self.group, &self.version)
    }

    /// Where its objects live.
    #[must_use]
    pub fn scope(&self) -> Scope {
        if self.namespaced {
            Scope::Namespaced
        } else {
            Scope::Cluster
        }
    }
}

/// What a cluster served at one moment.
#[derive(Debug)]
pub struct Snapshot {
    kinds: Vec<Kind>,
    /// By group and kind, preferred versions first.
    by_kind: HashMap<(String, String), Vec<usize>>,
    taken: Instant,
}

impl Snapshot {
    pub(crate) fn new(kinds: Vec<Kind>) -> Self {
        let mut by_kind: HashMap<_, Vec<usize>> = HashMap::new();
        for (index, kind) in kinds.iter().enumerate() {
            by_kind
                .entry((kind.group.clone(), kind.kind.clone()))
                .or_default()
                .push(index);
        }
        Self {
            kinds,
            by_kind,
            taken: Instant::now(),
        }
    }

    /// A kind in a version.
    #[must_use]
    pub fn find(&self, group: &str, version: &str, kind: &str) -> Option<&Kind> {
        self.versions(group, kind).find(|found| found.version == version)
    }

    /// Where objects of a kind live, in whatever version.
    #[must_use]
    pub fn scope(&self, group: &str, kind: &str) -> Option<Scope> {
        self.versions(group, kind).next().map(Kind::scope)
    }

    fn versions(&self, group: &str, kind: &str) -> impl Iterator<Item = &Kind> {
        let found = self.by_kind.get(&(group.to_owned(), kind.to_owned()));
        found
            .into_iter()
            .flatten()
            .filter_map(|index| self.kinds.get(*index))
    }

    /// One version of every kind that can be listed. Kinds that only mirror others are left out.
    pub fn listable(&self) -> impl Iterator<Item = &Kind> {
        self.kinds.iter().filter(|kind| {
            kind.listable
                && kind.preferred
                && !(kind.group == "extensions" && kind.plural == "ingresses")
                && kind.plural != "componentstatuses"
        })
    }

    /// The preferred versions of the kinds in a group, with a name, or both.
    #[must_use]
    pub fn matching(&self, group: Option<&str>, kind: Option<&str>) -> Vec<Kind> {
        let is_meant = |found: &&Kind| {
            found.preferred
                && group.is_none_or(|group| found.group == group)
                && kind.is_none_or(|kind| found.kind == kind)
        };
        self.kinds.iter().filter(is_meant).cloned().collect()
    }

    /// All that is served, as `group/version` and as `group/version/Kind`.
    #[must_use]
    pub fn api_versions(&self) -> Vec<String> {
        let mut served = BTreeSet::new();
        for kind in &self.kinds {
            served.insert(kind.api_version());
            served.insert(format!("{}/{}", kind.api_version(), kind.kind));
        }
        served.into_iter().collect()
    }

    /// Whether it is older than this.
    pub(crate) fn is_older_than(&self, age: Duration) -> bool {
        self.taken.elapsed() > age
    }
}

/// The snapshot that all identities on a cluster share.
#[derive(Default)]
pub(crate) struct Discovery {
    current: RwLock<Option<Arc<Snapshot>>>,
    refreshing: Mutex<()>,
}

impl Discovery {
    fn current(&self) -> Option<Arc<Snapshot>> {
        self.current
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn set(&self, snapshot: Arc<Snapshot>) {
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Some(snapshot);
    }
}

impl Cluster {
    /// What the cluster serves, as far as it is known.
    ///
    /// # Errors
    /// When the API server can't be asked.
    pub async fn snapshot(&self) -> Result<Arc<Snapshot>, Error> {
        match self.discovery().current() {
            Some(snapshot) => Ok(snapshot),
            None => self.refresh(None).await,
        }
    }

    /// What the cluster serves, not older than `age`.
    ///
    /// # Errors
    /// When the API server can't be asked.
    pub async fn recent_snapshot(&self, age: Duration) -> Result<Arc<Snapshot>, Error> {
        let snapshot = self.snapshot().await?;
        if snapshot.is_older_than(age) {
            self.refresh(Some(&snapshot)).await
        } else {
            Ok(snapshot)
        }
    }

    /// Asks anew, unless somebody else did since `seen`.
    ///
    /// # Errors
    /// When the API server can't be asked.
    pub async fn refresh(&self, seen: Option<&Arc<Snapshot>>) -> Result<Arc<Snapshot>, Error> {
        let _one_at_a_time = self.discovery().refreshing.lock().await;
        if let Some(current) = self.discovery().current()
            && seen.is_none_or(|seen| !Arc::ptr_eq(seen, &current))
        {
            return Ok(current);
        }
        let snapshot = Arc::new(Snapshot::new(self.discover().await?));
        self.discovery().set(Arc::clone(&snapshot));
        Ok(snapshot)
    }

    /// A kind in a version. A kind that is not known is looked for once more.
    ///
    /// # Errors
    /// [`Error::NoMatch`] when the cluster does not serve it.
    pub async fn kind(&self, group: &str, version: &str, kind: &str) -> Result<Kind, Error> {
        let mut snapshot = self.snapshot().await?;
        if snapshot.find(group, version, kind).is_none() && snapshot.is_older_than(Duration::from_millis(200))
        {
            snapshot = self.refresh(Some(&snapshot)).await?;
        }
        snapshot
            .find(group, version, kind)
            .cloned()
            .ok_or_else(|| Error::NoMatch {
                kind: kind.to_owned(),
                api_version: if group.is_empty() {
                    version.to_owned()
                } else {
                    format!("{group}/{version}")
                },
            })
    }

    /// Where objects of a kind live; `None` when the cluster does not serve it.
    ///
    /// # Errors
    /// When the API server can't be asked.
    pub async fn scope(&self, group: &str, kind: &str) -> Result<Option<Scope>, Error> {
        let snapshot = self.snapshot().await?;
        if let Some(scope) = snapshot.scope(group, kind) {
            return Ok(Some(scope));
        }
        if !snapshot.is_older_than(Duration::from_secs(2)) {
            return Ok(None);
        }
        Ok(self.refresh(Some(&snapshot)).await?.scope(group, kind))
    }

    /// The preferred versions of the kinds in a group, with a name, or both. When none is known, they are looked for once
    /// more.
    ///
    /// # Errors
    /// When the API server can't be asked.
    pub async fn kinds(&self, group: Option<&str>, kind: Option<&str>) -> Result<Vec<Kind>, Error> {
        let snapshot = self.snapshot().await?;
        let found = snapshot.matching(group, kind);
        if !found.is_empty() || !snapshot.is_older_than(Duration::from_millis(200)) {
            return Ok(found);
        }
        Ok(self.refresh(Some(&snapshot)).await?.matching(group, kind))
    }

    async fn discover(&self) -> Result<Vec<Kind>, Error> {
        let mut kinds = Vec::new();
        for root in ["/api", "/apis"] {
            let call = Call {
                accept: AGGREGATED,
                ..Call::get(root.to_owned())
            };
            let answer = self.send("discovery", &call).await?.success(None)?;
            match serde_json::from_slice::<APIGroupDiscoveryList>(&answer.body) {
                Ok(list) if answer.is_kind("APIGroupDiscoveryList") => kinds.extend(from_aggregated(list)),
                _ => kinds.extend(self.discover_legacy(root, &answer).await?),
            }
        }
        Ok(kinds)
    }

    async fn discover_legacy(
        &self,
        root: &str,
        answer: &crate::connection::Answer,
    ) -> Result<Vec<Kind>, Error> {
        let mut kinds = Vec::new();
        for served in legacy::versions(root, &answer.value("discovery")?) {
            let answer = self.send("discovery", &Call::get(served.url.clone())).await?;
            // A group whose own server is down must not hide the others.
            if let Ok(answer) = answer.success(None) {
                kinds.extend(legacy::kinds(&served, &answer.value("discovery")?));
            }
        }
        Ok(kinds)
    }
}

fn from_aggregated(list: APIGroupDiscoveryList) -> Vec<Kind> {
    let mut kinds: Vec<Kind> = Vec::new();
    for group in list.items {
        let name = group
            .metadata
            .and_then(|metadata| metadata.name)
            .unwrap_or_default();
        for version in group.versions {
            let number = version.version.unwrap_or_default();
            for resource in version.resources {
                let (Some(plural), Some(kind)) =
                    (resource.resource, resource.response_kind.and_then(|gvk| gvk.kind))
                else {
                    continue;
                };
                // A kind may be served only by a version that is not the first: that one is to be preferred then.
                let preferred = !kinds
                    .iter()
                    .any(|known| known.group == name && known.plural == plural);
                kinds.push(Kind {
                    preferred,
                    group: name.clone(),
                    version: number.clone(),
                    kind,
                    plural,
                    namespaced: resource.scope.as_deref() == Some("Namespaced"),
                    listable: resource.verbs.iter().any(|verb| verb == "list"),
                    status: resource
                        .subresources
                        .iter()
                        .any(|sub| sub.subresource.as_deref() == Some("status")),
                });
            }
        }
    }
    kinds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_one_preferred_version() {
        let list = serde_json::from_value(serde_json::json!({"items": [{
            "metadata": {"name": "x.io"},
            "versions": [
                {"version": "v2", "resources": [{"resource": "things", "responseKind": {"kind": "Thing"},
                    "scope": "Namespaced", "verbs": ["list"], "subresources": [{"subresource": "status"}]}]},
                {"version": "v1", "resources": [
                    {"resource": "things", "responseKind": {"kind": "Thing"}, "scope": "Namespaced", "verbs": ["list"]},
                    {"resource": "olds", "responseKind": {"kind": "Old"}, "scope": "Cluster", "verbs": ["list"]},
                    {"resource": "reviews", "responseKind": {"kind": "Review"}, "scope": "Cluster", "verbs": ["create"]},
                    {"resource": "nokind"}]},
            ],
        }]}))
        .unwrap();
        let snapshot = Snapshot::new(from_aggregated(list));
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
                .map(Kind::api_version)
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

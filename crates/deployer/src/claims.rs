//! Claims of other owners on deployed objects: objects of the controller that deploy under the same mark, such as a discriminator, to the
//! same cluster. To each of them, the objects of the others look like orphans.

mod foreign;

use std::fmt;

use api::KubeConfig;
use kube::{ResourceExt as _, core::DynamicObject};
use runtime::ObjectKey;
use serde::Deserialize as _;
use serde_json::Value;

use crate::{ClusterIdentity, Clusters};

pub use foreign::{ForeignOwners, Refusal};

/// The words of messages about claims.
#[derive(Debug, Clone, Copy)]
pub struct ClaimWords {
    /// The kind of the owners, such as `KluctlDeployment`.
    pub kind: &'static str,
    /// The mark that they share, such as `discriminator`.
    pub mark: &'static str,
}

/// An object whose status says that it deploys under the mark, read field by field from the untyped object: one that does not decode must
/// not hide the others, and its claim counts all the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The owner as messages name it, such as `KluctlDeployment apps/shop`.
    pub name: String,
    pub key: ObjectKey,
    pub target: ClaimedTarget,
    /// The ServiceAccount that it names.
    pub service_account: Option<String>,
    /// False if its status shows that it never applied an object: then it owns none, and its claim counts for no other namespace.
    pub has_applied: bool,
}

/// The cluster that a claiming object deploys to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClaimedTarget {
    Local,
    Remote(KubeConfig),
    /// Unknown: `spec.kubeConfig` does not decode.
    Unknown,
}

impl ClaimedTarget {
    fn read(object: &DynamicObject) -> Self {
        let value = object.data.pointer("/spec/kubeConfig");
        match value.filter(|value| !value.is_null()) {
            None => Self::Local,
            Some(value) => KubeConfig::deserialize(value).map_or(Self::Unknown, Self::Remote),
        }
    }
}

impl Claim {
    /// Reads cluster and ServiceAccount of an owner. `kind` is its kind as messages name it.
    #[must_use]
    pub fn of(object: &DynamicObject, kind: &str, has_applied: bool) -> Self {
        let account = object.data.pointer("/spec/serviceAccountName");
        let key = ObjectKey::new(object.namespace().unwrap_or_default(), object.name_any());
        Self {
            name: format!("{kind} {key}"),
            key,
            target: ClaimedTarget::read(object),
            service_account: account.and_then(Value::as_str).map(str::to_owned),
            has_applied,
        }
    }

    /// Returns true if the owner may deploy to a cluster; `None` if its own cluster is unknown, as long as its kubeconfig cannot be read.
    async fn deploys_to(&self, clusters: &Clusters, cluster: &ClusterIdentity) -> Option<bool> {
        let kube_config = match &self.target {
            ClaimedTarget::Unknown => return None,
            ClaimedTarget::Local => None,
            ClaimedTarget::Remote(config) => Some(config),
        };
        let target = clusters.of(&self.key.namespace, kube_config, None).await;
        Some(target.ok()?.identity.may_be(cluster))
    }
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// Other objects that deploy under the same mark.
#[derive(Debug, Default)]
pub struct Sharers {
    /// Owners of the same namespace that may deploy to the same cluster, as `KluctlDeployment apps/shop`: while there is one, nothing is
    /// deleted.
    pub own: Vec<String>,
    /// Owners in [`Self::own`] whose cluster is unknown: it may be another one.
    pub uncertain: Vec<String>,
    /// Owners of other namespaces: they count only for objects that they have rights to ([`ForeignOwners`]).
    pub foreign: Vec<Claim>,
}

impl Sharers {
    /// Sorts the claims of others by their meaning for an object of this namespace, which deploys to the cluster `own`.
    pub async fn sort(
        claims: impl IntoIterator<Item = Claim>,
        namespace: &str,
        clusters: &Clusters,
        own: &ClusterIdentity,
    ) -> Self {
        let mut sharers = Self::default();
        for claim in claims {
            if claim.key.namespace != namespace {
                sharers.foreign.push(claim);
                continue;
            }
            let deploys = claim.deploys_to(clusters, own).await;
            if deploys != Some(false) {
                sharers.own.push(claim.to_string());
            }
            if deploys.is_none() {
                sharers.uncertain.push(claim.to_string());
            }
        }
        sharers
    }

    /// Returns one that deploys to the same cluster for all that is known.
    #[must_use]
    pub fn certain(&self) -> Option<&String> {
        self.own.iter().find(|one| !self.uncertain.contains(one))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sharer_whose_cluster_is_unknown_is_not_certain() {
        let sharers = |uncertain: &[&str]| Sharers {
            own: vec!["a".to_owned(), "b".to_owned()],
            uncertain: uncertain.iter().map(|name| (*name).to_owned()).collect(),
            foreign: Vec::new(),
        };
        assert_eq!(sharers(&[]).certain().map(String::as_str), Some("a"));
        assert_eq!(sharers(&["a"]).certain().map(String::as_str), Some("b"));
        assert_eq!(sharers(&["a", "b"]).certain(), None);
    }
}

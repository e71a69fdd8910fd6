//! The identity of an object: group, version, kind, name and namespace.

use std::{
    borrow::Cow,
    fmt,
    hash::{Hash, Hasher},
};

use yaml::Node;

use crate::tables;

/// The effective namespace of cluster-scoped objects.
pub(crate) const NO_NAMESPACE: &str = "_non_namespaceable_";

/// The effective namespace of objects without one.
pub(crate) const DEFAULT_NAMESPACE: &str = "default";

/// The kinds that come first in sorted output, in their order.
pub(crate) const FIRST_KINDS: &[&str] = &[
    "Namespace",
    "ResourceQuota",
    "StorageClass",
    "CustomResourceDefinition",
    "ServiceAccount",
    "PodSecurityPolicy",
    "Role",
    "ClusterRole",
    "RoleBinding",
    "ClusterRoleBinding",
    "ConfigMap",
    "Secret",
    "Endpoints",
    "Service",
    "LimitRange",
    "PriorityClass",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Deployment",
    "StatefulSet",
    "CronJob",
    "PodDisruptionBudget",
];

pub(crate) const LAST_KINDS: &[&str] = &["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"];

/// Group, version and kind; in a selector, empty parts select everything.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
pub(crate) struct Gvk {
    pub(crate) group: Cow<'static, str>,
    pub(crate) version: Cow<'static, str>,
    pub(crate) kind: Cow<'static, str>,
}

impl Gvk {
    pub(crate) const fn of(group: &'static str, version: &'static str, kind: &'static str) -> Self {
        Self {
            group: Cow::Borrowed(group),
            version: Cow::Borrowed(version),
            kind: Cow::Borrowed(kind),
        }
    }

    /// Reads apiVersion and kind of an object; missing parts are empty.
    pub(crate) fn read(object: &Node) -> Self {
        let text = |key: &str| object.get(key).and_then(Node::as_text).unwrap_or_default();
        let (group, version) = split_api_version(text("apiVersion"));
        Self {
            group: group.to_owned().into(),
            version: version.to_owned().into(),
            kind: text("kind").to_owned().into(),
        }
    }

    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone().into_owned()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// Returns true if every part that `selector` sets is equal.
    pub(crate) fn is_selected_by(&self, selector: &Self) -> bool {
        let fits = |selector: &str, own: &str| selector.is_empty() || selector == own;
        fits(&selector.kind, &self.kind)
            && fits(&selector.group, &self.group)
            && fits(&selector.version, &self.version)
    }

    /// Returns the sort key of field specs and of the kinds that they refer to: kinds that others need come first.
    pub(crate) fn rank(&self) -> (i64, String) {
        let position = |kinds: &[&str]| kinds.iter().position(|kind| *kind == self.kind);
        let rank = |index: usize| i64::try_from(index).unwrap_or(i64::MAX);
        let rank = match (position(FIRST_KINDS), position(LAST_KINDS)) {
            (Some(index), _) => rank(index).saturating_sub(rank(FIRST_KINDS.len())),
            (None, Some(index)) => rank(index).saturating_add(1),
            (None, None) => 0,
        };
        (rank, self.sort_text())
    }

    /// Returns the sort key of kinds of one rank, in which the mark of an empty part comes after all letters.
    pub(crate) fn sort_text(&self) -> String {
        let parts = [(&self.group, "~G"), (&self.version, "~V"), (&self.kind, "~K")];
        parts.map(|(text, missing)| or(text, missing)).join("_")
    }

    /// Returns true if the kind is known to be cluster-scoped; unknown kinds are not.
    pub(crate) fn is_cluster_scoped(&self) -> bool {
        tables::namespaced(&self.api_version(), &self.kind) == Some(false)
    }
}

pub(crate) fn split_api_version(api_version: &str) -> (&str, &str) {
    api_version.split_once('/').unwrap_or(("", api_version))
}

impl fmt::Display for Gvk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = or(&self.kind, "[noKind]");
        let version = or(&self.version, "[noVer]");
        let group = or(&self.group, "[noGrp]");
        write!(f, "{kind}.{version}.{group}")
    }
}

/// The identity of an object. Two are equal if kind, name and effective namespace are; no namespace equals `default`, and
/// cluster-scoped kinds ignore it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Id {
    pub(crate) gvk: Gvk,
    pub(crate) name: String,
    /// As written; empty if there is none.
    pub(crate) namespace: String,
    cluster_scoped: bool,
}

impl Id {
    pub(crate) fn new(gvk: Gvk, name: impl Into<String>, namespace: impl Into<String>) -> Self {
        let cluster_scoped = gvk.is_cluster_scoped();
        let (name, namespace) = (name.into(), namespace.into());
        Self {
            gvk,
            name,
            namespace,
            cluster_scoped,
        }
    }

    /// Makes an earlier identity of an object, with its effective namespace at that time.
    pub(crate) fn previous(gvk: Gvk, name: String, effective_namespace: String) -> Self {
        Self {
            gvk,
            name,
            namespace: effective_namespace,
            cluster_scoped: false,
        }
    }

    /// Marks the kind as cluster-scoped, as a custom schema says.
    pub(crate) fn cluster_scoped(self) -> Self {
        Self {
            cluster_scoped: true,
            ..self
        }
    }

    pub(crate) fn read(object: &Node) -> Self {
        let metadata = object.get("metadata");
        let text = |key: &str| {
            let value = metadata.and_then(|metadata| metadata.get(key));
            value.and_then(Node::as_text).unwrap_or_default()
        };
        Self::new(Gvk::read(object), text("name"), text("namespace"))
    }

    pub(crate) fn is_cluster_scoped(&self) -> bool {
        self.cluster_scoped
    }

    /// Never empty.
    pub(crate) fn effective_namespace(&self) -> &str {
        if self.cluster_scoped {
            NO_NAMESPACE
        } else if self.namespace.is_empty() {
            DEFAULT_NAMESPACE
        } else {
            &self.namespace
        }
    }

    pub(crate) fn same_namespace(&self, other: &Self) -> bool {
        self.effective_namespace() == other.effective_namespace()
    }

    pub(crate) fn same_kind_and_name(&self, other: &Self) -> bool {
        self.name == other.name && self.gvk == other.gvk
    }
}

impl PartialEq for Id {
    fn eq(&self, other: &Self) -> bool {
        self.same_kind_and_name(other) && self.same_namespace(other)
    }
}

impl Eq for Id {}

impl Hash for Id {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.gvk.hash(state);
        self.name.hash(state);
        self.effective_namespace().hash(state);
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = or(&self.name, "[noName]");
        let namespace = or(&self.namespace, "[noNs]");
        write!(f, "{}/{name}.{namespace}", self.gvk)
    }
}

fn or<'a>(text: &'a str, missing: &'a str) -> &'a str {
    if text.is_empty() { missing } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identity_display_marks_missing_parts() {
        let id = Id::new(Gvk::of("", "v1", "A"), "a", "");
        assert_eq!(id.to_string(), "A.v1.[noGrp]/a.[noNs]");
        assert_eq!(
            Id::default().to_string(),
            "[noKind].[noVer].[noGrp]/[noName].[noNs]"
        );
    }

    #[test]
    fn identity_comparison_includes_the_namespace() {
        let map = |namespace| Id::new(Gvk::of("", "v1", "ConfigMap"), "a", namespace);
        assert_eq!(map(""), map("default"));
        assert_ne!(map(""), map("other"));
        let role = |namespace| {
            let gvk = Gvk::of("rbac.authorization.k8s.io", "v1", "ClusterRole");
            Id::new(gvk, "a", namespace)
        };
        assert_eq!(role(""), role("other"));
        assert_eq!(role("other").effective_namespace(), NO_NAMESPACE);
    }
}

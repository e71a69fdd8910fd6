//! What makes an object itself.

use std::fmt;

use yaml::Value;

/// The cluster-scoped kinds that kustomize knows, by exact apiVersion. Every other kind counts as namespaced.
const CLUSTER_SCOPED: &[(&str, &str, &[&str])] = &[
    (
        "",
        "v1",
        &["ComponentStatus", "Namespace", "Node", "PersistentVolume"],
    ),
    ("admissionregistration.k8s.io", "v1 v1beta1", WEBHOOKS),
    (
        "apiextensions.k8s.io",
        "v1 v1beta1",
        &["CustomResourceDefinition"],
    ),
    ("apiregistration.k8s.io", "v1 v1beta1", &["APIService"]),
    (
        "certificates.k8s.io",
        "v1 v1beta1",
        &["CertificateSigningRequest"],
    ),
    (
        "flowcontrol.apiserver.k8s.io",
        "v1beta1",
        &["FlowSchema", "PriorityLevelConfiguration"],
    ),
    ("networking.k8s.io", "v1 v1beta1", &["IngressClass"]),
    ("node.k8s.io", "v1 v1alpha1 v1beta1", &["RuntimeClass"]),
    ("policy", "v1beta1", &["PodSecurityPolicy"]),
    (
        "rbac.authorization.k8s.io",
        "v1 v1alpha1 v1beta1",
        &["ClusterRole", "ClusterRoleBinding"],
    ),
    ("scheduling.k8s.io", "v1 v1alpha1 v1beta1", &["PriorityClass"]),
    (
        "storage.k8s.io",
        "v1 v1beta1",
        &["CSIDriver", "CSINode", "StorageClass", "VolumeAttachment"],
    ),
    ("storage.k8s.io", "v1alpha1", &["VolumeAttachment"]),
];

const WEBHOOKS: &[&str] = &["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"];

/// Group, version, kind, name and namespace of an object.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Id {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) name: String,
    /// Empty when it isn't written.
    pub(crate) namespace: String,
}

impl Id {
    /// Reads the identity of an object.
    pub(crate) fn of(object: &Value) -> Self {
        let text = |path: &[&str]| {
            object
                .pointer(path)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let api_version = text(&["apiVersion"]);
        let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
        Self {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: text(&["kind"]),
            name: text(&["metadata", "name"]),
            namespace: text(&["metadata", "namespace"]),
        }
    }

    /// Whether the kind is known to live outside of namespaces.
    pub(crate) fn is_cluster_scoped(&self) -> bool {
        CLUSTER_SCOPED.iter().any(|(group, versions, kinds)| {
            *group == self.group
                && kinds.contains(&self.kind.as_str())
                && versions.split(' ').any(|version| version == self.version)
        })
    }

    /// The same identity with the namespace that counts: none and `default` are equal.
    pub(crate) fn effective(mut self) -> Self {
        if self.is_cluster_scoped() || self.namespace == "default" {
            self.namespace.clear();
        }
        self
    }

    /// Whether this is a kind of the core or another group.
    pub(crate) fn is(&self, group: &str, kind: &str) -> bool {
        self.group == group && self.kind == kind
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let or = |text: &str, missing: &str| {
            if text.is_empty() {
                missing.to_owned()
            } else {
                text.to_owned()
            }
        };
        write!(
            f,
            "{}.{}.{}/{}.{}",
            or(&self.kind, "[noKind]"),
            or(&self.version, "[noVer]"),
            or(&self.group, "[noGrp]"),
            or(&self.name, "[noName]"),
            or(&self.namespace, "[noNs]"),
        )
    }
}

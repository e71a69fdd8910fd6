//! References between objects.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Refers to an object of the same namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LocalObjectReference {
    /// Name of the object, which must exist.
    pub name: String,
}

/// Refers to an object of this or another namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NamespacedObjectReference {
    /// Name of the object, which must exist.
    pub name: String,
    /// Namespace of the object. Default: the referring object's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// Refers to an object that must exist, or be ready, first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DependencyReference {
    /// API group and version of the object, as in `apps/v1`. Required for another kind. Default: the referring object's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// Kind of the object, as in `Deployment`. Default: the referring object's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Name of the object, which must exist.
    pub name: String,
    /// Namespace of the object. Default: the referring object's for the same kind; none, which is the cluster, for another kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Requires that the object is ready; otherwise it only has to exist. Default: true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<bool>,
    /// CEL expression that is true if the object is ready, over `dep`, the object, and `self`, the referring one. It replaces the other
    /// checks of readiness. The object is read with the ServiceAccount of the referring one; Secrets are without their data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16384))]
    pub ready_expr: Option<String>,
}

impl DependencyReference {
    /// The variables of `readyExpr`.
    pub const EXPRESSION_VARIABLES: [&str; 2] = ["self", "dep"];
}

/// Refers to a source of this or another namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SourceReference {
    /// API group and version of the source, as in `source.toolkit.fluxcd.io/v1`. Default: the kind's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// Kind of the source, as in `GitRepository`.
    pub kind: String,
    /// Name of the source object.
    pub name: String,
    /// Namespace of the source. Default: the referring object's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// Refers to a key of a Secret of the same namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SecretKeyReference {
    /// Name of the Secret object.
    pub name: String,
    /// Key in the Secret. Default: `value`, then `value.yaml`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// Refers to the kubeconfig of a remote cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KubeConfig {
    /// Secret with a kubeconfig. Its current context is used. It must be self-contained: programs, files, proxies and
    /// impersonation are refused, and `insecure-skip-tls-verify` unless the controller has the flag
    /// `--insecure-kubeconfig-tls`.
    pub secret_ref: SecretKeyReference,
}

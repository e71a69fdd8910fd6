//! Health checks of a Kustomization.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Refers to an object of any kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HealthCheckReference {
    /// API group and version of the object. Default: `apps/v1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// Kind of the object, as in `Deployment`.
    pub kind: String,
    /// Name of the object.
    pub name: String,
    /// Namespace of the object. Default: none, which is the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// CEL expressions over the fields of an object, such as `status` and `metadata`. The first one that is true decides: `inProgress`,
/// `failed`, `current`. If none is, the object is in progress.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HealthCheckExpr {
    /// API group and version of the objects. The version has no effect.
    pub api_version: String,
    /// Kind of the objects. Default: all kinds of the group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// True if the object is ready.
    pub current: String,
    /// True if the object is on its way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_progress: Option<String>,
    /// True if the object has failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

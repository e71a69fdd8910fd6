//! Images that a deployment pins.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An image and what it is replaced by.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FixedImage {
    /// Image as the project asks for it.
    pub image: String,
    /// Image that it becomes.
    pub result_image: String,
    /// Image that was deployed when the list was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployed_image: Option<String>,
    /// Image that the registry offered when the list was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registry_image: Option<String>,
    /// Namespace of the object that it holds for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Object that it holds for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<FixedImageObject>,
    /// Workload that it holds for, as in `Deployment/shop`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployment: Option<String>,
    /// Container that it holds for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// Versions that the project allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version_filter: Option<String>,
    /// Tags of the deployment item.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deploy_tags: Vec<String>,
    /// Directory of the deployment item.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployment_dir: Option<String>,
}

/// An object by its coordinates; early releases wrote `id` and `v` instead.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FixedImageObject {
    /// API group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// API version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Name, group, kind and namespace, joined by underscores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// API version beside `id`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub v: Option<String>,
}

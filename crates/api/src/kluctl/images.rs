//! Fixed images of a deployment.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A fixed image: an image and its replacement.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FixedImage {
    /// Image as the project requests it.
    pub image: String,
    /// Image that replaces it.
    pub result_image: String,
    /// Image that was deployed when the list was created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployed_image: Option<String>,
    /// Latest image of the registry when the list was created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registry_image: Option<String>,
    /// Namespace of the objects to replace it in. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Object that had the image when the list was created. It selects nothing: use `deployment`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<FixedImageObject>,
    /// Workload to replace it in, as in `Deployment/shop`. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployment: Option<String>,
    /// Name of the container to replace it in. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// Versions that the project allowed when the list was created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version_filter: Option<String>,
    /// Tags of the deployment item that had the image when the list was created.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deploy_tags: Vec<String>,
    /// Directory of the deployment item that had the image when the list was created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployment_dir: Option<String>,
}

/// Group, version, kind, name and namespace of an object; early releases wrote `id` and `v` instead.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FixedImageObject {
    /// API group of the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// API version of the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Kind of the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Name of the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Namespace of the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Name, group, kind and namespace, joined by underscores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// API version that belongs to `id`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub v: Option<String>,
}

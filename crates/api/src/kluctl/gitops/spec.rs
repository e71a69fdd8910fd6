//! The resource and its spec.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Credentials, KluctlDeploymentStatus, ProjectSource, SourceOverride};
use crate::{GoDuration, KubeConfig, kluctl::Decryption, schema};

/// Describes a deployment: its project, its options and its intervals.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema, CustomResource)]
#[kube(
    group = "gitops.kluctl.io",
    version = "v1beta1",
    kind = "KluctlDeployment",
    plural = "kluctldeployments",
    namespaced,
    status = "KluctlDeploymentStatus",
    derive = "PartialEq",
    doc = "A target of a kluctl project that is fetched and deployed, and kept as the project describes it."
)]
#[serde(rename_all = "camelCase")]
pub struct KluctlDeploymentSpec {
    /// The source of the project.
    pub source: ProjectSource,
    /// Replacements of sources by local files of a command line, for the one-time patch of a request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub source_overrides: Vec<SourceOverride>,
    /// Credentials of the project and of the repositories, registries and charts that it refers to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials: Option<Credentials>,
    /// Decryption of files and variables of the project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decryption: Option<Decryption>,
    /// Time between two reconciliations, as in `5m`. At least 1s is used.
    #[schemars(extend("pattern" = schema::ANY_DURATION))]
    pub interval: GoDuration,
    /// Delay before the next attempt after the project could not be fetched or rendered. Default: `interval`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = schema::ANY_DURATION))]
    pub retry_interval: Option<GoDuration>,
    /// Time between two deployments of unchanged objects. Default: only changes are deployed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = schema::SAFE_DURATION))]
    pub deploy_interval: Option<GoDuration>,
    /// Time between two validations. Default: `interval`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = schema::SAFE_DURATION))]
    pub validate_interval: Option<GoDuration>,
    /// Timeout of a reconciliation; at least 30s is used. Default: `deployInterval`, then `interval`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = schema::ANY_DURATION))]
    pub timeout: Option<GoDuration>,
    /// Suspends reconciliation. Requests by annotation are still handled. An object that is removed while it is suspended
    /// leaves its objects in the cluster. Default: false.
    #[serde(default)]
    pub suspend: bool,
    /// Not supported any more: use `spec.credentials.helm`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::free_list")]
    pub helm_credentials: Option<Value>,
    /// Name of the ServiceAccount to impersonate, from the namespace of the KluctlDeployment; on remote clusters, too.
    /// Default: the flag `--default-service-account`, then the identity of the controller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account_name: Option<String>,
    /// Remote cluster to deploy to. Default: the cluster of the controller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kube_config: Option<KubeConfig>,
    /// Name of the target in `.kluctl.yaml`, 1 to 63 characters. Default: no target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub target: Option<String>,
    /// Name that templates see as `target.name`, 1 to 63 characters. Default: the name of the target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub target_name_override: Option<String>,
    /// Context to use instead of the target's. The only context is `default`. Default: the context of the target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// Arguments of the project: a map with any values. They take precedence over the target's arguments. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::free_object")]
    pub args: Option<Map<String, Value>>,
    /// Fixed images. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<FixedImage>,
    /// Sends all changes as server-side dry runs, removals included. Default: false.
    #[serde(default)]
    pub dry_run: bool,
    /// Does not wait until objects are ready (at barriers, for hooks and for `waitReadiness`). Default: false.
    #[serde(default)]
    pub no_wait: bool,
    /// Takes over conflicting fields from all other field managers. Default: false.
    #[serde(default)]
    pub force_apply: bool,
    /// Replaces objects that cannot be patched. Default: false.
    #[serde(default)]
    pub replace_on_error: bool,
    /// Deletes and recreates objects that cannot be replaced. Default: false.
    #[serde(default)]
    pub force_replace_on_error: bool,
    /// Stops the deployment at the first error. Default: false.
    #[serde(default)]
    pub abort_on_error: bool,
    /// Tags of the deployment items to deploy. Default: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub include_tags: Vec<String>,
    /// Tags of the deployment items to leave out. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude_tags: Vec<String>,
    /// Directories of the deployment items to deploy. Default: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub include_deployment_dirs: Vec<String>,
    /// Directories of the deployment items to leave out. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude_deployment_dirs: Vec<String>,
    /// Mode of the deployment: `full-deploy`, the default, or `poke-images`, which changes only the images of deployed objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["full-deploy", "poke-images"], "default" = "full-deploy"))]
    pub deploy_mode: Option<String>,
    /// Checks after a deployment that all objects exist and are ready. Default: true.
    #[serde(default = "yes")]
    pub validate: bool,
    /// Prunes orphans: deletes deployed objects that the project no longer renders. The project needs a discriminator.
    /// Default: false.
    #[serde(default)]
    pub prune: bool,
    /// Deletes the deployed objects when the KluctlDeployment is deleted. Default: false.
    #[serde(default)]
    pub delete: bool,
    /// Deploys only objects that are approved by `manualObjectsHash`, or requested. Default: false.
    #[serde(default)]
    pub manual: bool,
    /// Approved hash: the value of `status.lastObjectsHash` of the objects to deploy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manual_objects_hash: Option<String>,
}

/// A fixed image: an image and its replacement.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FixedImage {
    /// Image as the project requests it. Either this or `imageRegex` is required.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Regular expression of images as the project requests them, instead of `image`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image_regex: Option<String>,
    /// Image that replaces it.
    pub result_image: String,
    /// Image that was deployed when the list was created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployed_image: Option<String>,
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
    /// Tags of the deployment item that had the image when the list was created.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deploy_tags: Vec<String>,
    /// Directory of the deployment item that had the image when the list was created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deployment_dir: Option<String>,
}

/// Group, version, kind, name and namespace of an object.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FixedImageObject {
    /// API group of the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// API version of the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Kind of the object.
    pub kind: String,
    /// Name of the object.
    pub name: String,
    /// Namespace of the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

const fn yes() -> bool {
    true
}

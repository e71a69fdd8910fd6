//! KluctlDeployment of `flux.kluctl.io/v1alpha1`: a target of a kluctl project, deployed from a source.
//!
//! One schema for all releases that served this version: the union of their fields.

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::FixedImage;
use crate::{
    Condition, DurationOrNever, GoDuration, KubeConfig, LocalObjectReference, NamespacedObjectReference,
    SourceReference, Time, UrlText, schema,
};

/// What to deploy, how, and how often.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema, CustomResource)]
#[kube(
    group = "flux.kluctl.io",
    version = "v1alpha1",
    kind = "KluctlDeployment",
    plural = "kluctldeployments",
    namespaced,
    status = "KluctlDeploymentStatus",
    derive = "PartialEq",
    doc = "A target of a kluctl project, deployed from a source and kept as the source says."
)]
#[serde(rename_all = "camelCase")]
pub struct KluctlDeploymentSpec {
    /// Source that holds the project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_ref: Option<SourceReference>,
    /// Directory of the project in the source; its root if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Git repository that the controller itself fetches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<GitSource>,
    /// KluctlDeployments that must be ready first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<NamespacedObjectReference>,
    /// How often to look, even if the source did not change.
    #[schemars(extend("pattern" = schema::DURATION, "maxLength" = schema::DURATION_LENGTH))]
    pub interval: GoDuration,
    /// How soon to look again after a failure; `interval` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = schema::DURATION, "maxLength" = schema::DURATION_LENGTH))]
    pub retry_interval: Option<GoDuration>,
    /// How often to deploy; `interval` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = schema::DURATION_OR_NEVER, "maxLength" = schema::DURATION_LENGTH))]
    pub deploy_interval: Option<DurationOrNever>,
    /// Whether a change of the rendered objects causes a deployment.
    #[serde(default = "yes")]
    pub deploy_on_changes: bool,
    /// Whether to check the health of what is deployed.
    #[serde(default = "yes")]
    pub validate: bool,
    /// How often to check the health; `interval` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = schema::DURATION_OR_NEVER, "maxLength" = schema::DURATION_LENGTH))]
    pub validate_interval: Option<DurationOrNever>,
    /// How long one pass may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = schema::DURATION, "maxLength" = schema::DURATION_LENGTH))]
    pub timeout: Option<GoDuration>,
    /// Whether to leave the deployment alone.
    #[serde(default)]
    pub suspend: bool,
    /// Credentials of image registries; without effect in later releases.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub registry_secrets: Vec<LocalObjectReference>,
    /// Credentials of Helm repositories.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub helm_credentials: Vec<HelmCredentials>,
    /// ServiceAccount that deploys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account_name: Option<String>,
    /// Cluster to deploy to; the own one if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kube_config: Option<KubeConfig>,
    /// Other names for contexts, so that targets fit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rename_contexts: Vec<RenameContext>,
    /// How to decrypt files of the project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decryption: Option<Decryption>,
    /// Target of the project; none if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub target: Option<String>,
    /// Name that templates see instead of the target's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub target_name_override: Option<String>,
    /// Context to use instead of the target's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// Arguments of the project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::free_object")]
    pub args: Option<Map<String, Value>>,
    /// Whether to ask registries for newer images; without effect in later releases.
    #[serde(default)]
    pub update_images: bool,
    /// Images that are pinned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<FixedImage>,
    /// Whether to only pretend.
    #[serde(default)]
    pub dry_run: bool,
    /// Whether not to wait for readiness while deploying.
    #[serde(default)]
    pub no_wait: bool,
    /// Whether to take over fields from any other manager.
    #[serde(default)]
    pub force_apply: bool,
    /// Whether to replace objects that cannot be patched.
    #[serde(default)]
    pub replace_on_error: bool,
    /// Whether to delete and create objects that cannot be replaced.
    #[serde(default)]
    pub force_replace_on_error: bool,
    /// Whether to stop at the first error.
    #[serde(default)]
    pub abort_on_error: bool,
    /// Tags of the items to deploy; all if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub include_tags: Vec<String>,
    /// Tags of the items to leave out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude_tags: Vec<String>,
    /// Directories of the items to deploy; all if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub include_deployment_dirs: Vec<String>,
    /// Directories of the items to leave out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude_deployment_dirs: Vec<String>,
    /// What a deployment does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["full-deploy", "poke-images"], "default" = "full-deploy"))]
    pub deploy_mode: Option<String>,
    /// Whether to remove objects that the project no longer holds.
    #[serde(default)]
    pub prune: bool,
    /// Whether to remove all objects with the KluctlDeployment. If absent, `prune` decides, as in the releases that
    /// did not know this field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delete: Option<bool>,
}

/// A Git repository that the controller itself fetches.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GitSource {
    /// Address of the repository.
    pub url: UrlText,
    /// What to follow.
    #[serde(default, rename = "ref", skip_serializing_if = "Option::is_none")]
    pub reference: Option<GitRef>,
    /// Directory of the project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Secret with the credentials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalObjectReference>,
}

/// What to follow in a Git repository.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GitRef {
    /// Branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// Range of versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub semver: Option<String>,
    /// Hash of a commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}

/// Credentials of a Helm repository.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HelmCredentials {
    /// Secret with the credentials.
    pub secret_ref: LocalObjectReference,
}

/// Another name for a context.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RenameContext {
    /// Name in the kubeconfig.
    #[schemars(length(min = 1))]
    pub old_context: String,
    /// Name that the targets use.
    #[schemars(length(min = 1))]
    pub new_context: String,
}

/// How to decrypt files of a project.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Decryption {
    /// Tool that encrypted them.
    #[schemars(extend("enum" = ["sops"]))]
    pub provider: String,
    /// Secret with the keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalObjectReference>,
    /// ServiceAccount whose cloud identity may use the keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account: Option<String>,
}

/// What is true of the deployment.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KluctlDeploymentStatus {
    /// Last value of the annotation `reconcile.fluxcd.io/requestedAt` that was handled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,
    /// Last value of the annotation `deploy.flux.kluctl.io/requestedAt` that was handled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_handled_deploy_at: Option<String>,
    /// Generation that was last reconciled to an end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// What is true of the deployment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// Revision of the source that was last tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_attempted_revision: Option<String>,
    /// How the last deployment ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_deploy_result: Option<ReconcileResult>,
    /// How the last pruning ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_prune_result: Option<ReconcileResult>,
    /// How the last health check ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_validate_result: Option<ReconcileResult>,
    /// What marks the objects of the deployment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discriminator: Option<String>,
    /// What marked the objects in releases without a discriminator.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub common_labels: BTreeMap<String, String>,
    /// The target as it was resolved, in YAML.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_target: Option<String>,
    /// Whether a KluctlDeployment of `gitops.kluctl.io` may take over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_for_migration: Option<bool>,
}

/// How a step ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReconcileResult {
    /// When it was done.
    pub time: Time,
    /// Revision of the source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// Target of the project.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Target of the project, as early releases called it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_name: Option<String>,
    /// Name that templates saw instead of the target's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_name_override: Option<String>,
    /// SHA-256 over the rendered objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objects_hash: Option<String>,
    /// The result in YAML, without the objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_result: Option<String>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

const fn yes() -> bool {
    true
}

//! KluctlDeployment of `flux.kluctl.io/v1alpha1`: a target of a kluctl project, deployed from a source.
//!
//! One schema for all releases that served this version: the union of their fields.

use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{CustomResource, CustomResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::FixedImage;
use crate::{
    Condition, DependencyReference, DurationOrNever, GoDuration, KubeConfig, LocalObjectReference,
    SourceReference, Time, UrlText,
    conditions::HasConditions,
    crd::definition::{Version, age, build, column, ready, selectable, status},
    schema,
};

/// Describes a deployment: its project, its options and its intervals.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema, CustomResource)]
#[kube(
    group = "flux.kluctl.io",
    version = "v1alpha1",
    kind = "KluctlDeployment",
    plural = "kluctldeployments",
    namespaced,
    status = "KluctlDeploymentStatus",
    derive = "PartialEq",
    doc = "A target of a kluctl project that is deployed from a source, and kept as the source describes it."
)]
#[serde(rename_all = "camelCase")]
pub struct KluctlDeploymentSpec {
    /// The source of the project: a GitRepository, Bucket or OCIRepository. Required without `source`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_ref: Option<SourceReference>,
    /// Path of the project directory in the source. It may not lead out of the source. Default: the root of the source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Git repository to fetch without a source object, at each interval. Not together with `sourceRef` and `path`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<GitSource>,
    /// Objects that must be ready first; KluctlDeployments, unless a kind is given. One that has the same source must have attempted the same
    /// revision.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<DependencyReference>,
    /// Time between two reconciliations without a change, at least 1s, as in `5m`. It is spread by a few percent.
    #[schemars(extend("pattern" = schema::DURATION, "maxLength" = schema::DURATION_LENGTH))]
    pub interval: GoDuration,
    /// Delay before the next attempt after a failure, at least 1s. Default: `interval`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = schema::DURATION, "maxLength" = schema::DURATION_LENGTH))]
    pub retry_interval: Option<GoDuration>,
    /// Time between two comparisons of the cluster with the rendered objects, which correct differences; at least 1s, or
    /// `never`. Default: `interval`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = schema::DURATION_OR_NEVER, "maxLength" = schema::DURATION_LENGTH))]
    pub deploy_interval: Option<DurationOrNever>,
    /// Deploys when the rendered objects change. Default: true.
    #[serde(default = "yes")]
    pub deploy_on_changes: bool,
    /// Checks after a deployment that all objects exist and are ready. Default: true.
    #[serde(default = "yes")]
    pub validate: bool,
    /// Time between two validations, at least 1s, or `never`. Default: `interval`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = schema::DURATION_OR_NEVER, "maxLength" = schema::DURATION_LENGTH))]
    pub validate_interval: Option<DurationOrNever>,
    /// Timeout of a reconciliation, at least 30s. Default: `deployInterval`, then `interval`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = schema::DURATION, "maxLength" = schema::DURATION_LENGTH))]
    pub timeout: Option<GoDuration>,
    /// Suspends reconciliation. An object that is removed while it is suspended leaves its objects in the cluster. Default:
    /// false.
    #[serde(default)]
    pub suspend: bool,
    /// Secrets with credentials of image registries. Accepted without effect: images are never looked up in registries.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub registry_secrets: Vec<LocalObjectReference>,
    /// Secrets with credentials of Helm repositories and of registries with charts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub helm_credentials: Vec<HelmCredentials>,
    /// Name of the ServiceAccount to impersonate, from the namespace of the KluctlDeployment; on remote clusters, too.
    /// Default: the flag `--default-service-account`, then the identity of the controller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account_name: Option<String>,
    /// Remote cluster to deploy to. Default: the cluster of the controller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kube_config: Option<KubeConfig>,
    /// New names of contexts, applied in order. The only context is `default`; targets that name another need a new name
    /// for it, or `context`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rename_contexts: Vec<RenameContext>,
    /// Decryption of files of the project. Default: encrypted files are refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decryption: Option<Decryption>,
    /// Name of the target in `.kluctl.yaml`, 1 to 63 characters. Default: no target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub target: Option<String>,
    /// Name that templates see as `target.name`, 1 to 63 characters. Default: the name of the target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub target_name_override: Option<String>,
    /// Context to use instead of the target's. Default: the context of the target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// Arguments of the project: a map with any values. They take precedence over the target's arguments. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::free_object")]
    pub args: Option<Map<String, Value>>,
    /// Accepted without effect, as in the last releases of the original: images are never looked up in registries. Default: false.
    #[serde(default)]
    pub update_images: bool,
    /// Images that are used in place of those that the project requests. Later entries win, and all win over the target's. Default: none.
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
    /// Replaces objects that cannot be applied. Default: false.
    #[serde(default)]
    pub replace_on_error: bool,
    /// Deletes and recreates objects that cannot be replaced. Default: false.
    #[serde(default)]
    pub force_replace_on_error: bool,
    /// Stops the deployment at the first error. Default: false.
    #[serde(default)]
    pub abort_on_error: bool,
    /// Tags of the deployment items to deploy; an item needs one of them. Other items are not deployed, pruned, validated or deleted,
    /// either. Default: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub include_tags: Vec<String>,
    /// Tags of the deployment items to leave out. They win over those to deploy. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude_tags: Vec<String>,
    /// Directories of the deployment items to deploy, relative to the root of the source. Default: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub include_deployment_dirs: Vec<String>,
    /// Directories of the deployment items to leave out, relative to the root of the source. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude_deployment_dirs: Vec<String>,
    /// Mode of the deployment: `full-deploy` applies all objects, `poke-images` replaces the images of deployed objects and changes nothing
    /// else. Default: full-deploy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["full-deploy", "poke-images"], "default" = "full-deploy"))]
    pub deploy_mode: Option<String>,
    /// Prunes orphans: deletes deployed objects that the project no longer renders. The project needs a discriminator.
    /// Default: false.
    #[serde(default)]
    pub prune: bool,
    /// Deletes the deployed objects when the KluctlDeployment is deleted. Default: the value of `prune`, as in releases
    /// without this field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delete: Option<bool>,
}

/// A Git repository that is fetched without a source.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GitSource {
    /// URL of the Git repository.
    pub url: UrlText,
    /// Reference to follow. Default: the default branch.
    #[serde(default, rename = "ref", skip_serializing_if = "Option::is_none")]
    pub reference: Option<GitRef>,
    /// Path of the project directory. Default: the root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Secret with the credentials of the repository, in the namespace of the KluctlDeployment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalObjectReference>,
}

/// A reference of a Git repository.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GitRef {
    /// Name of a branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Name of a tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// Range of semantic versions of tags. Refused, as in the original.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub semver: Option<String>,
    /// Full hash of a commit. Refused, as in the original.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}

/// Credentials of a Helm repository.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HelmCredentials {
    /// Secret with the credentials of the repository, in the namespace of the KluctlDeployment.
    pub secret_ref: LocalObjectReference,
}

/// A new name of a context.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RenameContext {
    /// Name of the context before.
    #[schemars(length(min = 1))]
    pub old_context: String,
    /// Name that targets refer to. No other context may have it.
    #[schemars(length(min = 1))]
    pub new_context: String,
}

/// Decryption of files of a project.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Decryption {
    /// Tool that encrypted the files: `sops`.
    #[schemars(extend("enum" = ["sops"]))]
    pub provider: String,
    /// Secret with the keys, in the namespace of the KluctlDeployment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalObjectReference>,
    /// ServiceAccount whose AWS role may use KMS keys. Default: `serviceAccountName`, then the flag `--default-service-account`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account: Option<String>,
}

/// Observed state of the deployment.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KluctlDeploymentStatus {
    /// Value of the annotation `reconcile.fluxcd.io/requestedAt` that was last handled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,
    /// Value of the annotation `deploy.flux.kluctl.io/requestedAt` that was last handled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_handled_deploy_at: Option<String>,
    /// Generation that the status describes: the last finished reconciliation's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Conditions of the deployment: Ready, and Reconciling or Stalled.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// Revision of the source that was last attempted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_attempted_revision: Option<String>,
    /// Result of the last deployment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_deploy_result: Option<ReconcileResult>,
    /// Result of the last prune; absent if `spec.prune` is off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_prune_result: Option<ReconcileResult>,
    /// Result of the last validation; absent if `spec.validate` is off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_validate_result: Option<ReconcileResult>,
    /// Discriminator: the value of the label `kluctl.io/discriminator` on all deployed objects. Prune and delete select
    /// objects by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discriminator: Option<String>,
    /// Labels of the deployed objects, as releases without a discriminator wrote them. Without a discriminator, delete
    /// selects the objects that have all of them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub common_labels: BTreeMap<String, String>,
    /// The resolved target as YAML.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_target: Option<String>,
    /// Git repositories that the project includes, with the commits of the last reconciliation; at most 50.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub involved_repos: Vec<InvolvedRepo>,
    /// True if a KluctlDeployment of `gitops.kluctl.io` may take over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_for_migration: Option<bool>,
}

impl HasConditions for KluctlDeploymentStatus {
    fn conditions(&self) -> &Vec<Condition> {
        &self.conditions
    }

    fn conditions_mut(&mut self) -> &mut Vec<Condition> {
        &mut self.conditions
    }
}

/// A Git repository that the project includes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InvolvedRepo {
    /// URL of the repository, without credentials.
    pub url: String,
    /// References that the project follows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub patterns: Vec<InvolvedRef>,
}

/// A reference of an included Git repository.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InvolvedRef {
    /// Reference as the project names it: `HEAD`, a branch, a tag or a commit.
    pub pattern: String,
    /// Commits by the name of their reference.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub refs: BTreeMap<String, String>,
}

/// Result of a command: deploy, prune or validate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReconcileResult {
    /// Time of the command.
    pub time: Time,
    /// Revision of the source. The deployed files are from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// Name of the target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// Name of the target, as releases up to 0.7 wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_name: Option<String>,
    /// Value of `spec.targetNameOverride` at that time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_name_override: Option<String>,
    /// SHA-256 of the rendered objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objects_hash: Option<String>,
    /// Command result as YAML, without the objects; at most 48 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_result: Option<String>,
    /// Errors of the command; empty or absent if it succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

const fn yes() -> bool {
    true
}

#[must_use]
pub fn definition() -> CustomResourceDefinition {
    let columns = vec![
        column("DryRun", "boolean", ".spec.dryRun"),
        column("Deployed", "date", ".status.lastDeployResult.time"),
        column("Pruned", "date", ".status.lastPruneResult.time"),
        column("Validated", "date", ".status.lastValidateResult.time"),
        ready(),
        status(),
        age(),
    ];
    let version = Version {
        name: "v1alpha1",
        deprecated: false,
        columns,
    };
    selectable(
        build(KluctlDeployment::crd(), &[version]),
        ".status.discriminator",
    )
}

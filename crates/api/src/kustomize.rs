//! Kustomization of `kustomize.toolkit.fluxcd.io`: objects that are built from a source, and applied.
//!
//! One schema for `v1`, `v1beta2` and `v1beta1`: the union of their fields.

mod health;
mod patches;
mod status;

use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{CustomResource, CustomResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    DependencyReference, GoDuration, KubeConfig, LocalObjectReference, SourceReference,
    crd::definition::{ServedKind, Version, age, build, default_status, ready, status},
    schema,
};

pub use health::{HealthCheckExpr, HealthCheckReference};
pub use patches::{CommonMetadata, IgnoreRule, Image, Json6902Patch, ObjectSelector, Patch};
pub use status::{Inventory, InventoryEntry, KustomizationStatus, Snapshot};

pub(crate) const KINDS: &[ServedKind] = &[ServedKind::of::<Kustomization>(definition)];

/// Describes the objects: their source, the changes that are made to them, and the rules by which they are applied.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema, CustomResource)]
#[kube(
    group = "kustomize.toolkit.fluxcd.io",
    version = "v1",
    kind = "Kustomization",
    plural = "kustomizations",
    shortname = "ks",
    category = "all",
    category = "fluxcd",
    category = "fluxcd-appliers",
    namespaced,
    status = "KustomizationStatus",
    derive = "PartialEq",
    doc = "Objects that are built from a source, applied to a cluster, and kept as the source describes them."
)]
#[serde(rename_all = "camelCase")]
pub struct KustomizationSpec {
    /// Time between two reconciliations without a change, as in `5m`. It is spread by a few percent.
    #[schemars(extend("pattern" = schema::DURATION, "maxLength" = schema::DURATION_LENGTH))]
    pub interval: GoDuration,
    /// Delay before the next attempt after a failure. Default: `interval`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = schema::DURATION, "maxLength" = schema::DURATION_LENGTH))]
    pub retry_interval: Option<GoDuration>,
    /// Timeout of a reconciliation with its health checks, at least 30s. Default: `interval` minus 30s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = schema::DURATION, "maxLength" = schema::DURATION_LENGTH))]
    pub timeout: Option<GoDuration>,
    /// Source of the files: a GitRepository, OCIRepository, Bucket or ExternalArtifact.
    pub source_ref: SourceReference,
    /// Path of the directory to build. It may not lead out of the source. Default: the root of the source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Deletes applied objects that left the source.
    pub prune: bool,
    /// Objects on deletion: `MirrorPrune` follows `prune`, `Delete` deletes them, `WaitForTermination` waits until they are gone, too,
    /// `Orphan` leaves them. Default: `MirrorPrune`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["MirrorPrune", "Delete", "WaitForTermination", "Orphan"]))]
    pub deletion_policy: Option<String>,
    /// Suspends reconciliation. An object that is removed while it is suspended leaves its objects in the cluster. Default: false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub suspend: bool,
    /// Deletes an object and creates it again if a change of an immutable field is refused. Default: false.
    #[serde(default)]
    pub force: bool,
    /// Waits until all applied objects are ready. Default: false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub wait: bool,
    /// Objects that must be ready first; Kustomizations, unless a kind is given. One with the same source must have applied the same
    /// revision.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<DependencyReference>,
    /// Namespace of all objects, 1 to 63 characters. Default: the objects' own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub target_namespace: Option<String>,
    /// Prefix of the names of all objects, 1 to 200 characters. It replaces the one of the kustomization.yaml.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 200))]
    pub name_prefix: Option<String>,
    /// Suffix of the names of all objects, 1 to 200 characters. It replaces the one of the kustomization.yaml.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 200))]
    pub name_suffix: Option<String>,
    /// Labels and annotations of all objects; they replace equal ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub common_metadata: Option<CommonMetadata>,
    /// Patches, strategic or JSON 6902, that are added to the patches of the kustomization.yaml.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub patches: Vec<Patch>,
    /// Strategic merge patches, as objects. Deprecated by Flux: use `patches`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::free_list")]
    pub patches_strategic_merge: Vec<serde_json::Value>,
    /// JSON 6902 patches. Deprecated by Flux: use `patches`.
    #[serde(default, rename = "patchesJson6902", skip_serializing_if = "Vec::is_empty")]
    pub patches_json6902: Vec<Json6902Patch>,
    /// New names, tags and digests of images. They are merged with the images of the kustomization.yaml by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
    /// Paths of components, relative to the kustomization.yaml, that are added to its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub components: Vec<String>,
    /// Leaves out components whose directories are missing. Default: false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ignore_missing_components: bool,
    /// Annotations that kustomize adds to objects: `originAnnotations`, `transformerAnnotations`. They replace the ones of
    /// the kustomization.yaml.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub build_metadata: Vec<String>,
    /// Substitution of variables in the built objects. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub post_build: Option<PostBuild>,
    /// Decryption of files and Secrets. Default: encrypted Secrets are refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decryption: Option<Decryption>,
    /// Name of the ServiceAccount to impersonate, from the namespace of the Kustomization; on remote clusters, too. Default: the flag
    /// `--default-service-account`, then the identity of the controller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account_name: Option<String>,
    /// Remote cluster to apply to. Default: the cluster of the controller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kube_config: Option<ClusterAccess>,
    /// Objects that must be ready after the apply. Ignored with `wait`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub health_checks: Vec<HealthCheckReference>,
    /// CEL expressions that decide about the health of objects of some kinds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub health_check_exprs: Vec<HealthCheckExpr>,
    /// Fields whose changes by others are kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignore: Vec<IgnoreRule>,
    /// Validation before the apply, as in v1beta1: `none`, `client` or `server`. Both of the latter are a dry run on the server. Default:
    /// `none`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["none", "client", "server"]))]
    pub validation: Option<String>,
}

/// Variables, and the rule by which they are substituted.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PostBuild {
    /// `WithVariables` substitutes if there are any variables, `Always` in any case. Default: `WithVariables`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["WithVariables", "Always"]))]
    pub substitute_strategy: Option<String>,
    /// Variables by name. They take precedence over variables of `substituteFrom`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub substitute: BTreeMap<String, String>,
    /// ConfigMaps and Secrets with variables, in the namespace of the Kustomization. Later ones take precedence.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub substitute_from: Vec<SubstituteReference>,
}

/// Refers to an object with variables.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SubstituteReference {
    /// Kind of the object: `ConfigMap` or `Secret`.
    #[schemars(extend("enum" = ["Secret", "ConfigMap"]))]
    pub kind: String,
    /// Name of the object, 1 to 253 characters.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Allows that the object is missing. Default: false.
    #[serde(default)]
    pub optional: bool,
}

/// Decryption by SOPS.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Decryption {
    /// Program that encrypted the files: `sops`.
    #[schemars(extend("enum" = ["sops"]))]
    pub provider: String,
    /// Secret with the keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalObjectReference>,
    /// ServiceAccount whose cloud identity may use the keys of a key service. Default: the flag
    /// `--default-decryption-service-account`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account_name: Option<String>,
}

/// Refers to the access to a remote cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "has(self.configMapRef) || has(self.secretRef)",
        "message": "exactly one of spec.kubeConfig.configMapRef or spec.kubeConfig.secretRef must be specified"
    },
    {
        "rule": "!has(self.configMapRef) || !has(self.secretRef)",
        "message": "exactly one of spec.kubeConfig.configMapRef or spec.kubeConfig.secretRef must be specified"
    },
]))]
pub struct ClusterAccess {
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "SecretAccess")]
    pub secret: Option<KubeConfig>,
    /// ConfigMap with the address of the cluster and the provider of its identities.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_map_ref: Option<LocalObjectReference>,
}

/// The schema of [`KubeConfig`], whose field may be missing here.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
#[expect(dead_code, reason = "it only describes a schema")]
struct SecretAccess {
    /// Secret with a kubeconfig. Its current context is used. It must be self-contained: programs, files, proxies and
    /// impersonation are refused, and `insecure-skip-tls-verify` unless the controller has the flag
    /// `--insecure-kubeconfig-tls`.
    #[schemars(default)]
    secret_ref: Option<crate::SecretKeyReference>,
}

#[must_use]
pub fn definition() -> CustomResourceDefinition {
    let versions = [("v1", false), ("v1beta2", true), ("v1beta1", true)];
    let versions = versions.map(|(name, deprecated)| Version {
        name,
        deprecated,
        columns: match name {
            "v1beta1" => vec![ready(), status(), age()],
            _ => vec![age(), ready(), status()],
        },
    });
    let mut crd = build(Kustomization::crd(), &versions);
    default_status(&mut crd);
    crd
}

#[cfg(test)]
mod tests;

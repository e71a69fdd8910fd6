//! GitRepository: a reference in a Git repository, served as an artifact.
//!
//! One schema for `v1`, `v1beta2` and `v1beta1`: the union of their fields.

use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{CustomResource, CustomResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Artifact, Condition, GoDuration, LocalObjectReference, UrlText,
    crd::definition::{Version, age, build, column, default_status, ready, status},
    schema,
};

/// What to fetch, how, and how often.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema, CustomResource)]
#[kube(
    group = "source.toolkit.fluxcd.io",
    version = "v1",
    kind = "GitRepository",
    plural = "gitrepositories",
    shortname = "gitrepo",
    category = "all",
    category = "fluxcd",
    category = "fluxcd-sources",
    namespaced,
    status = "GitRepositoryStatus",
    derive = "PartialEq",
    doc = "A reference in a Git repository, served to other controllers as an artifact."
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "!has(self.serviceAccountName) || (has(self.provider) && self.provider in ['azure', 'aws'])",
    "message": "serviceAccountName may only be set with provider 'azure' or 'aws'",
}]))]
pub struct GitRepositorySpec {
    /// Address of the repository.
    #[schemars(extend("pattern" = "^(http|https|ssh)://.*$"))]
    pub url: UrlText,
    /// Secret with the credentials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalObjectReference>,
    /// Who authenticates: `generic` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["generic", "aws", "azure", "github"]))]
    pub provider: Option<String>,
    /// ServiceAccount whose cloud identity is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account_name: Option<String>,
    /// How often to look for changes.
    #[schemars(extend("pattern" = schema::DURATION, "maxLength" = schema::DURATION_LENGTH))]
    pub interval: GoDuration,
    /// How long one look may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = schema::SHORT_DURATION, "maxLength" = schema::DURATION_LENGTH, "default" = "60s"))]
    pub timeout: Option<GoDuration>,
    /// What to follow; branch `master` if absent.
    #[serde(default, rename = "ref", skip_serializing_if = "Option::is_none")]
    pub reference: Option<GitRepositoryRef>,
    /// Which signatures to demand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify: Option<GitRepositoryVerification>,
    /// Secret with the address of a proxy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy_secret_ref: Option<LocalObjectReference>,
    /// Lines as in `.gitignore`: what to leave out of the artifact. Replaces the default excludes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignore: Option<String>,
    /// Whether to leave the repository alone.
    #[serde(default, skip_serializing_if = "is_false")]
    pub suspend: bool,
    /// Whether to fetch submodules too.
    #[serde(default, skip_serializing_if = "is_false")]
    pub recurse_submodules: bool,
    /// Other repositories whose artifacts are laid into this one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub include: Vec<GitRepositoryInclude>,
    /// Directories to fetch; all if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sparse_checkout: Vec<String>,
    /// Library that early releases fetched with; without effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["go-git", "libgit2"]))]
    pub git_implementation: Option<String>,
    /// Namespaces that may use the source; never enforced for sources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access_from: Option<AccessFrom>,
}

/// What to follow. Of several, the first of commit, name, tag, semver, branch counts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GitRepositoryRef {
    /// Branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// Range of versions; the highest tag within it is followed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub semver: Option<String>,
    /// Full name of a reference, as in `refs/heads/main`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Hash of a commit, all 40 digits; a `branch` that is set too only names it in the revision, and need not hold it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}

/// Which signatures to demand.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GitRepositoryVerification {
    /// What must be signed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["head", "HEAD", "Tag", "TagAndHEAD"], "default" = "HEAD"))]
    pub mode: Option<String>,
    /// Secret with the public keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalObjectReference>,
}

/// Another repository whose artifact is laid into this one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GitRepositoryInclude {
    /// The other GitRepository.
    pub repository: LocalObjectReference,
    /// Directory there; its root if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_path: Option<String>,
    /// Directory here; the name of the other if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_path: Option<String>,
}

/// Namespaces that may use a source.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AccessFrom {
    /// Selectors, any of which suffices.
    pub namespace_selectors: Vec<NamespaceSelector>,
}

/// Selects namespaces.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NamespaceSelector {
    /// Labels that the namespace must have.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub match_labels: BTreeMap<String, String>,
}

/// What is true of the repository and its artifact.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GitRepositoryStatus {
    /// Generation that was last reconciled to an end; -1 before the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// What is true of the repository.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// What is stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact: Option<Artifact>,
    /// Address of the latest artifact, whatever its revision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Artifacts that were laid into this one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub included_artifacts: Vec<Artifact>,
    /// Excludes of the stored artifact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_ignore: Option<String>,
    /// Whether the stored artifact holds submodules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_recurse_submodules: Option<bool>,
    /// Includes of the stored artifact.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub observed_include: Vec<GitRepositoryInclude>,
    /// Directories of the stored artifact.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub observed_sparse_checkout: Vec<String>,
    /// What was last verified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_verification_mode: Option<String>,
    /// Fingerprint of the verified keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_verification_fingerprint: Option<String>,
    /// Checksum of what early releases observed of the spec.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_config_checksum: Option<String>,
    /// Last value of the annotation `reconcile.fluxcd.io/requestedAt` that was handled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,
}

/// Returns the definition of GitRepository.
#[must_use]
pub fn definition() -> CustomResourceDefinition {
    let url = || column("URL", "string", ".spec.url");
    let newer = || vec![url(), age(), ready(), status()];
    let mut crd = build(
        GitRepository::crd(),
        &[
            Version {
                name: "v1",
                deprecated: false,
                columns: newer(),
            },
            Version {
                name: "v1beta2",
                deprecated: true,
                columns: newer(),
            },
            Version {
                name: "v1beta1",
                deprecated: true,
                columns: vec![url(), ready(), status(), age()],
            },
        ],
    );
    default_status(&mut crd);
    crd
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

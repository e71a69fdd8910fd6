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

/// Describes a reference to fetch, and the interval.
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
    doc = "A commit of a Git repository, which is served to other controllers as an artifact."
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "!has(self.serviceAccountName) || (has(self.provider) && self.provider in ['azure', 'aws'])",
    "message": "serviceAccountName may only be set with provider 'azure' or 'aws'",
}]))]
pub struct GitRepositorySpec {
    /// URL of the repository: `http`, `https` or `ssh`.
    #[schemars(extend("pattern" = "^(http|https|ssh)://.*$"))]
    pub url: UrlText,
    /// Secret with `username` and `password`, and with `ca.crt` for verifying the server. Default: anonymous access.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalObjectReference>,
    /// Provider of credentials. Default: `generic`, which takes them from `secretRef`. `github` is a GitHub App, `aws` CodeCommit, `azure`
    /// Azure DevOps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["generic", "aws", "azure", "github"]))]
    pub provider: Option<String>,
    /// ServiceAccount whose cloud identity is used, with the providers `aws` and `azure`. Default: the flag
    /// `--default-service-account`, or the identity of the controller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account_name: Option<String>,
    /// Time between two checks for changes, as in `5m`. It is spread by a few percent.
    #[schemars(extend("pattern" = schema::DURATION, "maxLength" = schema::DURATION_LENGTH))]
    pub interval: GoDuration,
    /// Timeout of the comparison of references, and of the download. Default: 60s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = schema::SHORT_DURATION, "maxLength" = schema::DURATION_LENGTH, "default" = "60s"))]
    pub timeout: Option<GoDuration>,
    /// Reference to follow. Default: the branch `master`.
    #[serde(default, rename = "ref", skip_serializing_if = "Option::is_none")]
    pub reference: Option<GitRepositoryRef>,
    /// Verification of the signatures of the commit or the tag. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify: Option<GitRepositoryVerification>,
    /// Secret with the URL (`address`) and the credentials of a proxy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy_secret_ref: Option<LocalObjectReference>,
    /// Files to leave out of the artifact, in the format of `.gitignore`. Default: files of version control, CI and archives,
    /// as in Flux.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignore: Option<String>,
    /// Suspends reconciliation; the last artifact is still served. Default: false.
    #[serde(default, skip_serializing_if = "is_false")]
    pub suspend: bool,
    /// Fetches submodules, too, at most 10 levels deep. Default: false.
    #[serde(default, skip_serializing_if = "is_false")]
    pub recurse_submodules: bool,
    /// GitRepositories of the namespace whose artifacts are copied into this one; at most 100.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub include: Vec<GitRepositoryInclude>,
    /// Directories to keep in the artifact; each must exist. Default: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sparse_checkout: Vec<String>,
    /// Git library of releases up to 0.31. No effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["go-git", "libgit2"]))]
    pub git_implementation: Option<String>,
    /// Namespaces that may use the source. Not supported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access_from: Option<AccessFrom>,
}

/// A reference of a Git repository. Of several fields, the first of `commit`, `name`, `tag`, `semver`, `branch` is used.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GitRepositoryRef {
    /// Name of a branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// Name of a tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// Range of semantic versions, as in `>=1.0.0 <2.0.0`; the highest tag within it is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub semver: Option<String>,
    /// Full name of a reference, as in `refs/heads/main` or `refs/pull/1/head`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Full hash of a commit (40 hexadecimal digits). It must be on the `branch` beside it, if there is
    /// one, which the revision names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
}

/// Verification of the signatures of commits and tags.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GitRepositoryVerification {
    /// Signed objects: `HEAD` (the commit, the default), `Tag` or `TagAndHEAD`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["head", "HEAD", "Tag", "TagAndHEAD"], "default" = "HEAD"))]
    pub mode: Option<String>,
    /// Secret with the public keys of trusted authors: OpenPGP key rings, and SSH keys under names that end with `.sshpub`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalObjectReference>,
}

/// A GitRepository whose artifact is copied into another.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GitRepositoryInclude {
    /// GitRepository to copy from, in the same namespace.
    pub repository: LocalObjectReference,
    /// Directory to copy from. Default: the root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_path: Option<String>,
    /// Directory to copy to. Default: the name of the GitRepository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_path: Option<String>,
}

/// The namespaces that may use a source.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AccessFrom {
    /// Selectors of namespaces; one must match.
    pub namespace_selectors: Vec<NamespaceSelector>,
}

/// Selects namespaces by their labels.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NamespaceSelector {
    /// Labels that the namespace must have.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub match_labels: BTreeMap<String, String>,
}

/// Observed state of the repository and its artifact.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GitRepositoryStatus {
    /// Generation that the status describes; -1 before the first reconciliation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Conditions of the repository: Ready, ArtifactInStorage, and problems.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// Artifact that is stored and served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact: Option<Artifact>,
    /// URL of the latest artifact, which stays the same for all revisions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Artifacts that were copied into this one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub included_artifacts: Vec<Artifact>,
    /// `spec.ignore` of the stored artifact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_ignore: Option<String>,
    /// `spec.recurseSubmodules` of the stored artifact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_recurse_submodules: Option<bool>,
    /// `spec.include` of the stored artifact.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub observed_include: Vec<GitRepositoryInclude>,
    /// `spec.sparseCheckout` of the stored artifact.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub observed_sparse_checkout: Vec<String>,
    /// `spec.verify.mode` of the last verification.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_verification_mode: Option<String>,
    /// Digest of the public keys of the last verification.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_verification_fingerprint: Option<String>,
    /// Checksum of fields of the spec, as early releases wrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_config_checksum: Option<String>,
    /// Value of the annotation `reconcile.fluxcd.io/requestedAt` that was last handled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,
}

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

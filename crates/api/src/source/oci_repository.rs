//! OCIRepository: an artifact in an OCI registry, served as an artifact.
//!
//! One schema for `v1` and `v1beta2`: the union of their fields.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{CustomResource, CustomResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Artifact, Condition, GoDuration, LocalObjectReference, UrlText,
    crd::definition::{Version, age, build, column, default_status, ready, status},
    schema,
};

/// Describes an artifact to pull, and the interval.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema, CustomResource)]
#[kube(
    group = "source.toolkit.fluxcd.io",
    version = "v1",
    kind = "OCIRepository",
    plural = "ocirepositories",
    shortname = "ocirepo",
    category = "all",
    category = "fluxcd",
    category = "fluxcd-sources",
    namespaced,
    status = "OCIRepositoryStatus",
    derive = "PartialEq",
    doc = "A layer of an artifact in an OCI registry, which is served to other controllers as an artifact."
)]
#[serde(rename_all = "camelCase")]
pub struct OCIRepositorySpec {
    /// URL of the repository in the registry, as in `oci://ghcr.io/org/manifests`. It has no tag.
    #[schemars(extend("pattern" = "^oci://.*$"))]
    pub url: UrlText,
    /// Artifact to follow. Default: the tag `latest`.
    #[serde(default, rename = "ref", skip_serializing_if = "Option::is_none")]
    pub reference: Option<OCIRepositoryRef>,
    /// Layer of the artifact. Default: the first one, unpacked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layer_selector: Option<OCILayerSelector>,
    /// Provider of credentials. Default: `generic`, which takes them from `secretRef` and `serviceAccountName`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["generic", "aws", "azure", "gcp"], "default" = "generic"))]
    pub provider: Option<String>,
    /// Secret with the credentials of Docker (`.dockerconfigjson`). Default: anonymous access.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalObjectReference>,
    /// Verification of signatures. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify: Option<OCIRepositoryVerification>,
    /// ServiceAccount whose `imagePullSecrets` are used, and whose cloud identity with other providers than `generic`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account_name: Option<String>,
    /// Secret with `ca.crt` for verifying the registry, and `tls.crt` and `tls.key` of a client certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cert_secret_ref: Option<LocalObjectReference>,
    /// Secret with the URL (`address`) and the credentials of a proxy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy_secret_ref: Option<LocalObjectReference>,
    /// Time between two checks for changes, as in `5m`. It is spread by a few percent.
    #[schemars(extend("pattern" = schema::DURATION, "maxLength" = schema::DURATION_LENGTH))]
    pub interval: GoDuration,
    /// Timeout of the check, and of the download. Default: 60s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = schema::SHORT_DURATION, "maxLength" = schema::DURATION_LENGTH, "default" = "60s"))]
    pub timeout: Option<GoDuration>,
    /// Files to leave out of the artifact, in the format of `.gitignore`. Default: files of version control, CI and archives,
    /// as in Flux.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignore: Option<String>,
    /// Allows a registry without TLS, or with a certificate that isn't trusted. Default: false.
    #[serde(default, skip_serializing_if = "is_false")]
    pub insecure: bool,
    /// Suspends reconciliation; the last artifact is still served. Default: false.
    #[serde(default, skip_serializing_if = "is_false")]
    pub suspend: bool,
}

/// An artifact in a repository. Of several fields, the first of `digest`, `semver`, `tag` is used.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OCIRepositoryRef {
    /// Digest of the manifest, as in `sha256:<hex>`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Range of semantic versions, as in `>=1.0.0 <2.0.0`; the highest tag within it is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub semver: Option<String>,
    /// Regular expression in Go's syntax for the tags that `semver` chooses from. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub semver_filter: Option<String>,
    /// Name of a tag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
}

/// A layer of an artifact, and its processing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OCILayerSelector {
    /// Media type of the layer; the first one with it is used. Default: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// `extract` unpacks the layer and applies the ignore rules, `copy` serves it as it is. Default: `extract`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["extract", "copy"]))]
    pub operation: Option<String>,
}

/// Verification of the signatures of an artifact.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OCIRepositoryVerification {
    /// Format of the signatures: `cosign` or `notation`.
    #[serde(default = "cosign")]
    #[schemars(extend("enum" = ["cosign", "notation"]))]
    pub provider: String,
    /// Secret with the public keys of trusted signers, in keys that end with `.pub`. Without it, signatures by
    /// identities are verified. For `notation`: `trustpolicy.json`, and certificates in keys that end with `.crt` or `.pem`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalObjectReference>,
    /// Identities of signers without keys: one of them must match. Default: all that the trusted root has certificates for.
    #[serde(default, rename = "matchOIDCIdentity", skip_serializing_if = "Vec::is_empty")]
    pub match_oidc_identity: Vec<OIDCIdentityMatch>,
    /// Secret with the trusted root of a sigstore (`trusted_root.json`). Default: the controller's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trusted_root_secret_ref: Option<LocalObjectReference>,
}

/// An identity of a signer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OIDCIdentityMatch {
    /// Regular expression for the issuer.
    pub issuer: String,
    /// Regular expression for the subject.
    pub subject: String,
}

/// Observed state of the repository and its artifact.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OCIRepositoryStatus {
    /// Generation that the status describes; -1 before the first reconciliation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Conditions of the repository: Ready, ArtifactInStorage, SourceVerified, and problems.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// URL of the latest artifact, which stays the same for all revisions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Artifact that is stored and served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact: Option<Artifact>,
    /// `spec.ignore` of the stored artifact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_ignore: Option<String>,
    /// `spec.layerSelector` of the stored artifact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_layer_selector: Option<OCILayerSelector>,
    /// Fingerprint of the trusted keys of the last verification.
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
    let columns = || vec![column("URL", "string", ".spec.url"), ready(), status(), age()];
    let mut crd = build(
        OCIRepository::crd(),
        &[
            Version {
                name: "v1",
                deprecated: false,
                columns: columns(),
            },
            Version {
                name: "v1beta2",
                deprecated: true,
                columns: columns(),
            },
        ],
    );
    default_status(&mut crd);
    crd
}

fn cosign() -> String {
    "cosign".to_owned()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

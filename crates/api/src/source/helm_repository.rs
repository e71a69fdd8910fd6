//! HelmRepository: the index of a Helm repository, served as an artifact, or the address of charts in an OCI registry.
//!
//! One schema for `v1`, `v1beta2` and `v1beta1`: the union of their fields.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{CustomResource, CustomResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::AccessFrom;
use crate::{
    Artifact, Condition, GoDuration, LocalObjectReference, UrlText,
    crd::definition::{Version, age, build, column, default_status, ready, status},
    schema,
};

/// Describes a repository of charts, and the interval of fetching its index.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema, CustomResource)]
#[kube(
    group = "source.toolkit.fluxcd.io",
    version = "v1",
    kind = "HelmRepository",
    plural = "helmrepositories",
    shortname = "helmrepo",
    category = "all",
    category = "fluxcd",
    category = "fluxcd-sources",
    namespaced,
    status = "HelmRepositoryStatus",
    derive = "PartialEq",
    doc = "The index of a Helm repository, which is served as an artifact, or the address of charts in an OCI registry."
)]
#[serde(rename_all = "camelCase")]
pub struct HelmRepositorySpec {
    /// URL of the repository, as in `https://charts.example.com`; for the type `oci`, the URL of the registry, as in
    /// `oci://ghcr.io/org/charts`.
    #[schemars(extend("pattern" = "^(http|https|oci)://.*$"))]
    pub url: UrlText,
    /// Secret with `username` and `password`; for the type `oci` also one with the credentials of Docker (`.dockerconfigjson`).
    /// Default: anonymous access.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalObjectReference>,
    /// Secret with `ca.crt` for verifying the server, and `tls.crt` and `tls.key` of a client certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cert_secret_ref: Option<LocalObjectReference>,
    /// Sends the credentials also to other hosts that the index names. Default: false.
    #[serde(default, skip_serializing_if = "is_false")]
    pub pass_credentials: bool,
    /// Time between two fetches of the index, as in `10m`. It is spread by a few percent. Default: 1m.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = schema::DURATION, "maxLength" = schema::DURATION_LENGTH))]
    pub interval: Option<GoDuration>,
    /// Allows a registry without TLS, for the type `oci`. Default: false.
    #[serde(default, skip_serializing_if = "is_false")]
    pub insecure: bool,
    /// Timeout of fetching the index. Default: 60s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = schema::SHORT_DURATION, "maxLength" = schema::DURATION_LENGTH))]
    pub timeout: Option<GoDuration>,
    /// Suspends reconciliation; the last artifact is still served. Default: false.
    #[serde(default, skip_serializing_if = "is_false")]
    pub suspend: bool,
    /// Namespaces that may use the source. Not supported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access_from: Option<AccessFrom>,
    /// Kind of the repository: `default` has an index, `oci` is a registry. Default: `default`.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["default", "oci"]))]
    pub kind: Option<String>,
    /// Provider of credentials for the type `oci` without `secretRef`. Default: `generic`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["generic", "aws", "azure", "gcp"], "default" = "generic"))]
    pub provider: Option<String>,
}

impl HelmRepositorySpec {
    /// Returns true if the repository is a registry: there is nothing to fetch until a chart is asked for.
    #[must_use]
    pub fn is_oci(&self) -> bool {
        self.kind.as_deref() == Some("oci")
    }
}

/// Observed state of the repository and its artifact.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HelmRepositoryStatus {
    /// Generation that the status describes; -1 before the first reconciliation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Conditions of the repository: Ready, ArtifactInStorage, and problems.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// URL of the latest artifact, which stays the same for all revisions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Index that is stored and served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact: Option<Artifact>,
    /// Value of the annotation `reconcile.fluxcd.io/requestedAt` that was last handled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,
}

#[must_use]
pub fn definition() -> CustomResourceDefinition {
    let columns = || vec![column("URL", "string", ".spec.url"), age(), ready(), status()];
    let version = |name, deprecated| Version {
        name,
        deprecated,
        columns: columns(),
    };
    let mut crd = build(
        HelmRepository::crd(),
        &[
            version("v1", false),
            version("v1beta2", true),
            version("v1beta1", true),
        ],
    );
    default_status(&mut crd);
    crd
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

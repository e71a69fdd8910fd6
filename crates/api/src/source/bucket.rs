//! Bucket: the objects of a bucket, served as an artifact.
//!
//! One schema for `v1`, `v1beta2` and `v1beta1`: the union of their fields.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{CustomResource, CustomResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::AccessFrom;
use crate::{
    Artifact, Condition, GoDuration, LocalObjectReference,
    crd::definition::{Version, age, build, column, default_status, ready, status},
    schema,
};

/// Describes a bucket to fetch, and the interval.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema, CustomResource)]
#[kube(
    group = "source.toolkit.fluxcd.io",
    version = "v1",
    kind = "Bucket",
    plural = "buckets",
    category = "all",
    category = "fluxcd",
    category = "fluxcd-sources",
    namespaced,
    status = "BucketStatus",
    derive = "PartialEq",
    doc = "The objects of a bucket, which are served to other controllers as an artifact."
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "self.provider == 'aws' || self.provider == 'generic' || !has(self.sts)",
        "message": "STS configuration is only supported for the 'aws' and 'generic' Bucket providers",
    },
    {
        "rule": "self.provider != 'aws' || !has(self.sts) || self.sts.provider == 'aws'",
        "message": "'aws' is the only supported STS provider for the 'aws' Bucket provider",
    },
    {
        "rule": "self.provider != 'generic' || !has(self.sts) || self.sts.provider == 'ldap'",
        "message": "'ldap' is the only supported STS provider for the 'generic' Bucket provider",
    },
    {
        "rule": "!has(self.sts) || self.sts.provider != 'aws' || !has(self.sts.secretRef)",
        "message": "spec.sts.secretRef is not required for the 'aws' STS provider",
    },
    {
        "rule": "!has(self.sts) || self.sts.provider != 'aws' || !has(self.sts.certSecretRef)",
        "message": "spec.sts.certSecretRef is not required for the 'aws' STS provider",
    },
    {
        "rule": "self.provider != 'generic' || !has(self.serviceAccountName)",
        "message": "ServiceAccountName is not supported for the 'generic' Bucket provider",
    },
    {
        "rule": "!has(self.secretRef) || !has(self.serviceAccountName)",
        "message": "cannot set both .spec.secretRef and .spec.serviceAccountName",
    },
]))]
pub struct BucketSpec {
    /// Service with the bucket. Default: `generic`, which is any S3-compatible one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["generic", "aws", "gcp", "azure"], "default" = "generic"))]
    pub provider: Option<String>,
    /// Name of the bucket, or of the container of Azure.
    pub bucket_name: String,
    /// Host and port of the service, as in `minio.example.com:9000`; for Azure, the URL of the storage account.
    pub endpoint: String,
    /// Token service that gives temporary credentials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sts: Option<BucketSts>,
    /// Asks the service by http instead of https. Default: false.
    #[serde(default, skip_serializing_if = "is_false")]
    pub insecure: bool,
    /// Region of the bucket. Default: the endpoint's, or the one that the service names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// Beginning of the names of the objects to fetch. Default: all objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// Secret with credentials. Default: anonymous access with `generic`, the identity of the controller with other providers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalObjectReference>,
    /// ServiceAccount whose cloud identity is used, with other providers than `generic`. Default: the flag
    /// `--default-service-account`, or the identity of the controller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account_name: Option<String>,
    /// Secret with `ca.crt` for verifying the service, and `tls.crt` and `tls.key` for a client certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cert_secret_ref: Option<LocalObjectReference>,
    /// Secret with the URL (`address`) and the credentials of a proxy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy_secret_ref: Option<LocalObjectReference>,
    /// Time between two checks for changes, as in `5m`. It is spread by a few percent.
    #[schemars(extend("pattern" = schema::DURATION, "maxLength" = schema::DURATION_LENGTH))]
    pub interval: GoDuration,
    /// Timeout of listing the objects, and of fetching them. Default: 60s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = schema::SHORT_DURATION, "maxLength" = schema::DURATION_LENGTH, "default" = "60s"))]
    pub timeout: Option<GoDuration>,
    /// Objects to leave out, in the format of `.gitignore`. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignore: Option<String>,
    /// Suspends reconciliation; the last artifact is still served. Default: false.
    #[serde(default, skip_serializing_if = "is_false")]
    pub suspend: bool,
    /// Namespaces that may use the source. Not supported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access_from: Option<AccessFrom>,
}

/// A token service that gives temporary credentials for a bucket.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BucketSts {
    /// Kind of the token service: `aws` for the provider `aws`, `ldap` for the provider `generic`.
    #[schemars(extend("enum" = ["aws", "ldap"]))]
    pub provider: String,
    /// URL of the token service.
    #[schemars(extend("pattern" = "^(http|https)://.*$"))]
    pub endpoint: String,
    /// Secret with `username` and `password` of a user of LDAP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalObjectReference>,
    /// Secret with `ca.crt` for verifying the token service, and `tls.crt` and `tls.key` for a client certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cert_secret_ref: Option<LocalObjectReference>,
}

/// Observed state of the bucket and its artifact.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BucketStatus {
    /// Generation that the status describes; -1 before the first reconciliation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Conditions of the bucket: Ready, ArtifactInStorage, and problems.
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
    /// Value of the annotation `reconcile.fluxcd.io/requestedAt` that was last handled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,
}

#[must_use]
pub fn definition() -> CustomResourceDefinition {
    let endpoint = || column("Endpoint", "string", ".spec.endpoint");
    let newer = || vec![endpoint(), age(), ready(), status()];
    let mut crd = build(
        Bucket::crd(),
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
                columns: vec![endpoint(), ready(), status(), age()],
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

//! Receiver: a webhook that requests reconciliations.
//!
//! One schema for `v1`, `v1beta2` and `v1beta1`: the union of their fields.

use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{CustomResource, CustomResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Condition, GoDuration, LocalObjectReference,
    crd::definition::{Version, age, build, default_status, ready, status},
    schema,
};

/// All types that the original has.
pub const RECEIVER_TYPES: [&str; 13] = [
    "generic",
    "generic-hmac",
    "generic-oidc",
    "github",
    "gitlab",
    "bitbucket",
    "harbor",
    "dockerhub",
    "quay",
    "gcr",
    "nexus",
    "acr",
    "cdevents",
];

/// Describes a webhook that requests reconciliations.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema, CustomResource)]
#[kube(
    group = "notification.toolkit.fluxcd.io",
    version = "v1",
    kind = "Receiver",
    plural = "receivers",
    category = "all",
    category = "fluxcd",
    category = "fluxcd-notifications",
    namespaced,
    status = "ReceiverStatus",
    derive = "PartialEq",
    doc = "A webhook that requests reconciliations."
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "self.type != 'generic-oidc' || (has(self.oidcProviders) && size(self.oidcProviders) > 0)",
        "message": "oidcProviders must have an entry when type is 'generic-oidc'",
    },
    {
        "rule": "self.type == 'generic-oidc' || !has(self.oidcProviders) || size(self.oidcProviders) == 0",
        "message": "oidcProviders may only be set when type is 'generic-oidc'",
    },
    {
        "rule": "self.type != 'generic-oidc' || !has(self.secretRef)",
        "message": "secretRef must not be set when type is 'generic-oidc'",
    },
    {
        "rule": "self.type == 'generic-oidc' || has(self.secretRef)",
        "message": "secretRef is required unless type is 'generic-oidc'",
    },
]))]
pub struct ReceiverSpec {
    /// Type of the sender, which says how its requests are verified.
    #[serde(rename = "type")]
    #[schemars(extend("enum" = RECEIVER_TYPES))]
    pub type_: String,
    /// Interval at which the Secret is read again. Default: 10m.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = schema::DURATION, "maxLength" = schema::DURATION_LENGTH, "default" = "10m"))]
    pub interval: Option<GoDuration>,
    /// Events that are handled, in upper or lower case; only `github`, `gitlab`, `bitbucket` and `cdevents` name theirs. Default: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<String>,
    /// Objects whose reconciliation is requested.
    pub resources: Vec<ReceiverResource>,
    /// CEL expression of the type bool over `res` (the metadata of an object), `req` (the JSON of the request) and `claims` (of the
    /// token of `generic-oidc`): only objects for which it is true are reconciled. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_filter: Option<String>,
    /// Secret with the key `token`, in the same namespace; not allowed for `generic-oidc`, required otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalObjectReference>,
    /// Issuers whose tokens are accepted; for `generic-oidc` only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["issuerURL"]))]
    pub oidc_providers: Vec<OidcProvider>,
    /// Suspends the handling of requests, which get 503. Default: false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub suspend: bool,
}

impl ReceiverSpec {
    /// Returns the filter of all resources; `None` if it is empty, as by the original.
    #[must_use]
    pub fn common_filter(&self) -> Option<&str> {
        self.resource_filter.as_deref().filter(|text| !text.is_empty())
    }

    /// Returns the variables of expressions in filters. Only senders with tokens of OpenID Connect have claims.
    #[must_use]
    pub fn filter_variables(&self) -> &'static [&'static str] {
        match self.type_.as_str() {
            "generic-oidc" => &["res", "req", "claims"],
            _ => &["res", "req"],
        }
    }
}

/// Selects objects by kind, name and labels.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReceiverResource {
    /// API version of the objects. Default: `v1` of sources and ImageRepositories; required for other kinds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// Kind of the objects, 1 to 253 characters.
    #[schemars(length(min = 1, max = 253))]
    pub kind: String,
    /// Name of the object, 1 to 253 characters, or `*` for all with `matchLabels`.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Namespace of the objects, 1 to 253 characters. Default: the Receiver's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub namespace: Option<String>,
    /// Labels that the objects must have; required with the name `*`, and ignored otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub match_labels: Option<BTreeMap<String, String>>,
    /// CEL expression as `resourceFilter`, for these objects only. Both must be true. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
}

impl ReceiverResource {
    /// Returns the filter of this resource alone; `None` if it is empty, as by the original.
    #[must_use]
    pub fn own_filter(&self) -> Option<&str> {
        self.filter.as_deref().filter(|text| !text.is_empty())
    }
}

/// Names an issuer of tokens, and the conditions on these.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OidcProvider {
    /// URL of the issuer, exactly as the claim `iss` has it.
    #[serde(rename = "issuerURL")]
    #[schemars(extend("pattern" = "^https?://"))]
    pub issuer_url: String,
    /// Audience that the tokens must have. Default: `notification-controller`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audience: Option<String>,
    /// CEL expressions over `claims` and the `vars` before them, for use in the validations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<OidcVariable>,
    /// CEL expressions of the type bool over `claims` and `vars`, all of which must be true; at least one.
    #[schemars(length(min = 1))]
    pub validations: Vec<OidcValidation>,
}

/// Names the value of an expression.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OidcVariable {
    /// Name of the variable in `vars`, at least one character.
    #[schemars(length(min = 1))]
    pub name: String,
    /// CEL expression of any type.
    #[schemars(length(min = 1))]
    pub expression: String,
}

/// Condition on the claims of a token.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OidcValidation {
    /// CEL expression of the type bool.
    #[schemars(length(min = 1))]
    pub expression: String,
    /// Message for the log, if the expression is false.
    #[schemars(length(min = 1))]
    pub message: String,
}

/// Observed state of the object.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReceiverStatus {
    /// Generation that the status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Conditions of the object, Ready above all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// Path of the webhook, `/hook/` and a digest of token, name and namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook_path: Option<String>,
    /// The same path, as releases with `v1beta1` and `v1beta2` wrote it. Read only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Value of the annotation `reconcile.fluxcd.io/requestedAt` that was last handled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,
}

#[must_use]
pub fn definition() -> CustomResourceDefinition {
    let versions = [("v1", false), ("v1beta2", true), ("v1beta1", true)];
    let mut crd = build(
        Receiver::crd(),
        &versions.map(|(name, deprecated)| Version {
            name,
            deprecated,
            columns: vec![age(), ready(), status()],
        }),
    );
    default_status(&mut crd);
    crd
}

//! Provider: a service that notifications are sent to.
//!
//! One schema for `v1beta3`, `v1beta2` and `v1beta1`: the union of their fields.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{CustomResource, CustomResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::AlertStatus;
use crate::{GoDuration, LocalObjectReference, Secret, UrlText, crd::definition::build, schema};

/// All types that releases of Flux have known. The controller refuses those that it does not support.
const TYPES: &[&str] = &[
    "alertmanager",
    "azuredevops",
    "azureeventhub",
    "bitbucket",
    "bitbucketserver",
    "datadog",
    "discord",
    "generic",
    "generic-hmac",
    "gitea",
    "giteapullrequestcomment",
    "github",
    "githubdispatch",
    "githubpullrequestcomment",
    "gitlab",
    "gitlabmergerequestcomment",
    "googlechat",
    "googlepubsub",
    "grafana",
    "incident.io",
    "lark",
    "matrix",
    "msteams",
    "nats",
    "opsgenie",
    "otel",
    "pagerduty",
    "rocket",
    "sentry",
    "slack",
    "telegram",
    "webex",
    "zoom",
    "zulip",
];

/// Describes a service that notifications are sent to.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema, CustomResource)]
#[kube(
    group = "notification.toolkit.fluxcd.io",
    version = "v1beta3",
    kind = "Provider",
    plural = "providers",
    category = "all",
    category = "fluxcd",
    category = "fluxcd-notifications",
    namespaced,
    status = "ProviderStatus",
    derive = "PartialEq",
    doc = "A service that notifications are sent to."
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "!has(self.commitStatusExpr) || self.type in ['github', 'gitlab', 'gitea', 'bitbucketserver', \
             'bitbucket', 'azuredevops']",
    "message": "commitStatusExpr may only be set with a type that sets commit statuses",
}]))]
pub struct ProviderSpec {
    /// Type of the service.
    #[serde(rename = "type")]
    #[schemars(extend("enum" = TYPES))]
    pub type_: String,
    /// URL of the service, at most 2048 characters. The key `address` of the Secret takes precedence, and is where URLs
    /// with a token belong.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "Secret::serialize_exposed"
    )]
    #[schemars(with = "Option<String>", length(max = 2048))]
    pub address: Option<Secret<String>>,
    /// Channel to send to, at most 2048 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048))]
    pub channel: Option<String>,
    /// Name of the sender of messages, at most 2048 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048))]
    pub username: Option<String>,
    /// Interval of releases that reconciled Providers. No effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = schema::DURATION, "maxLength" = schema::DURATION_LENGTH))]
    pub interval: Option<GoDuration>,
    /// Timeout of a delivery with its retries, at most 5m. Default: 15s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = schema::SHORT_DURATION, "maxLength" = schema::DURATION_LENGTH))]
    pub timeout: Option<GoDuration>,
    /// URL of an HTTP proxy, which may have a username and a password, at most 2048 characters. Deprecated by Flux: use
    /// `proxySecretRef`, which takes precedence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = "^(http|https)://.*$"), length(max = 2048))]
    pub proxy: Option<UrlText>,
    /// Secret with `address`, the URL of an HTTP proxy, and `username` and `password` for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy_secret_ref: Option<LocalObjectReference>,
    /// Secret with `address`, `token`, `headers`, `username` with `password`, and the keys of a GitHub App.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalObjectReference>,
    /// Secret with `ca.crt` for verifying the server, and `tls.crt` and `tls.key` for client authentication.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cert_secret_ref: Option<LocalObjectReference>,
    /// ServiceAccount whose cloud identity is used, with the types `azuredevops`, `azureeventhub` and `googlepubsub`. Default: the flag
    /// `--default-service-account`, or the identity of the controller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account_name: Option<String>,
    /// CEL expression over `event`, `alert` and `provider` for the name of a commit status. Default: kind and name of the object, and
    /// the UID of the Provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit_status_expr: Option<String>,
    /// Suspends sending. Default: false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub suspend: bool,
}

impl ProviderSpec {
    /// The variables of `commitStatusExpr`.
    pub const EXPRESSION_VARIABLES: [&str; 3] = ["event", "alert", "provider"];
}

/// Observed state of the provider.
pub type ProviderStatus = AlertStatus;

#[must_use]
pub fn definition() -> CustomResourceDefinition {
    build(Provider::crd(), &super::versions())
}

//! Provider: where notifications go.
//!
//! One schema for `v1beta3`, `v1beta2` and `v1beta1`: the union of their fields.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::AlertStatus;
use crate::{GoDuration, LocalObjectReference, Secret, UrlText, schema};

/// Every type that a release of the field has known; which are obeyed is the controller's business.
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

/// Where notifications go, and how.
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
    doc = "Where notifications go, and how."
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "!has(self.commitStatusExpr) || self.type in ['github', 'gitlab', 'gitea', 'bitbucketserver', \
             'bitbucket', 'azuredevops']",
    "message": "commitStatusExpr may only be set with a type that sets commit statuses",
}]))]
pub struct ProviderSpec {
    /// Kind of receiver.
    #[serde(rename = "type")]
    #[schemars(extend("enum" = TYPES))]
    pub type_: String,
    /// Address; the Secret's key `address` has precedence. Chat systems give whoever knows it the right to post.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        serialize_with = "Secret::serialize_exposed"
    )]
    #[schemars(with = "Option<String>", length(max = 2048))]
    pub address: Option<Secret<String>>,
    /// Channel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048))]
    pub channel: Option<String>,
    /// Name under which messages appear.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048))]
    pub username: Option<String>,
    /// Without effect in later releases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = schema::DURATION, "maxLength" = schema::DURATION_LENGTH))]
    pub interval: Option<GoDuration>,
    /// How long one delivery may take; 15s if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = schema::SHORT_DURATION, "maxLength" = schema::DURATION_LENGTH))]
    pub timeout: Option<GoDuration>,
    /// Address of a proxy; `proxySecretRef` has precedence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = "^(http|https)://.*$"), length(max = 2048))]
    pub proxy: Option<UrlText>,
    /// Secret with the address and the credentials of a proxy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy_secret_ref: Option<LocalObjectReference>,
    /// Secret with address, token and headers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<LocalObjectReference>,
    /// Secret with the certificates to trust and to show.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cert_secret_ref: Option<LocalObjectReference>,
    /// ServiceAccount whose cloud identity is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account_name: Option<String>,
    /// Expression that makes the name of a commit status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit_status_expr: Option<String>,
    /// Whether to send nothing for now.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub suspend: bool,
}

/// What is true of the provider.
pub type ProviderStatus = AlertStatus;

//! Alert: selects events and the provider to send them to.
//!
//! One schema for `v1beta3`, `v1beta2` and `v1beta1`: the union of their fields.

use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{CustomResource, CustomResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Condition, LocalObjectReference, crd::definition::build, schema};

/// Selects events, and the Provider to send them to.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema, CustomResource)]
#[kube(
    group = "notification.toolkit.fluxcd.io",
    version = "v1beta3",
    kind = "Alert",
    plural = "alerts",
    category = "all",
    category = "fluxcd",
    category = "fluxcd-notifications",
    namespaced,
    status = "AlertStatus",
    derive = "PartialEq",
    doc = "Selects events, and the Provider to send them to."
)]
#[serde(rename_all = "camelCase")]
pub struct AlertSpec {
    /// Provider to send to, in the same namespace.
    pub provider_ref: LocalObjectReference,
    /// Lowest severity to send: `info` (the default), which includes errors, or `error`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["info", "error"], "default" = "info"))]
    pub event_severity: Option<String>,
    /// Objects whose events are sent; an event must match one of them.
    pub event_sources: Vec<CrossNamespaceObjectReference>,
    /// Regular expressions, one of which must match the message; at most 100. Default: all messages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inclusion_list: Vec<String>,
    /// Regular expressions, none of which may match the message; at most 100. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclusion_list: Vec<String>,
    /// Metadata that is added to each event. Keys of the event itself and `summary` take precedence.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub event_metadata: BTreeMap<String, String>,
    /// Short description of the impact that is added to each event, at most 255 characters. Deprecated by Flux: use
    /// `eventMetadata`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub summary: Option<String>,
    /// Suspends sending. Default: false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub suspend: bool,
}

/// Selects objects by kind, name and labels.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CrossNamespaceObjectReference {
    /// API version of the objects. No effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// Kind of the objects, 1 to 253 characters: any kind whose controller sends events.
    #[schemars(length(min = 1, max = 253))]
    pub kind: String,
    /// Name of the object, 1 to 253 characters, or `*` for all.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Namespace of the objects, 1 to 253 characters. Default: the Alert's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub namespace: Option<String>,
    /// Labels that the objects must have at the time of the event. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub match_labels: Option<BTreeMap<String, String>>,
}

/// Observed state of the object.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AlertStatus {
    /// Generation that the status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Conditions of the object, Ready above all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// Value of the annotation `reconcile.fluxcd.io/requestedAt` that was last handled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,
}

#[must_use]
pub fn definition() -> CustomResourceDefinition {
    build(Alert::crd(), &super::versions())
}

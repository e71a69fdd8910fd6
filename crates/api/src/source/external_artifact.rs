//! ExternalArtifact: an artifact that a controller of a third party produces. No controller of this project reconciles it.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{CustomResource, CustomResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Artifact, Condition,
    crd::definition::{Version, age, build, column, ready, status},
    schema,
};

/// Describes the origin of the artifact.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema, CustomResource)]
#[kube(
    group = "source.toolkit.fluxcd.io",
    version = "v1",
    kind = "ExternalArtifact",
    plural = "externalartifacts",
    shortname = "ea",
    category = "all",
    category = "fluxcd",
    category = "fluxcd-sources",
    namespaced,
    status = "ExternalArtifactStatus",
    derive = "PartialEq",
    doc = "An artifact that another controller produces and serves; consumers use it like those of other sources."
)]
#[serde(rename_all = "camelCase")]
pub struct ExternalArtifactSpec {
    /// Object that the artifact is made of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_ref: Option<ExternalSourceReference>,
}

/// An object of any kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExternalSourceReference {
    /// Group and version of the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// Kind of the object.
    pub kind: String,
    /// Name of the object.
    pub name: String,
    /// Namespace of the object. Default: the ExternalArtifact's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

/// The artifact, as its producer writes it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExternalArtifactStatus {
    /// Artifact that the producer serves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact: Option<Artifact>,
    /// Conditions of the artifact: Ready.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
}

#[must_use]
pub fn definition() -> CustomResourceDefinition {
    let source = column("Source", "string", ".spec.sourceRef.name");
    build(
        ExternalArtifact::crd(),
        &[Version {
            name: "v1",
            deprecated: false,
            columns: vec![age(), ready(), status(), source],
        }],
    )
}

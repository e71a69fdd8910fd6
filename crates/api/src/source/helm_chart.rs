//! HelmChart: a chart from a Helm repository or out of another source, served as an artifact.
//!
//! One schema for `v1`, `v1beta2` and `v1beta1`: the union of their fields.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{CustomResource, CustomResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AccessFrom, OCIRepositoryVerification};
use crate::{
    Artifact, Condition, GoDuration,
    crd::definition::{Version, age, build, column, default_status, ready, status},
    schema,
};

/// Describes a chart, and the interval of the checks for it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema, CustomResource)]
#[kube(
    group = "source.toolkit.fluxcd.io",
    version = "v1",
    kind = "HelmChart",
    plural = "helmcharts",
    shortname = "hc",
    category = "all",
    category = "fluxcd",
    category = "fluxcd-sources",
    namespaced,
    status = "HelmChartStatus",
    derive = "PartialEq",
    doc = "A chart from a Helm repository or out of another source, which is served as an artifact."
)]
#[serde(rename_all = "camelCase")]
pub struct HelmChartSpec {
    /// Name of the chart in a Helm repository, or its path in the artifact of another source.
    pub chart: String,
    /// Version, or range of versions, as in `1.2.x`. Sources other than Helm repositories have one version only, and ignore it.
    /// Default: `*`, the newest version except pre-releases.
    #[serde(default = "any_version")]
    #[schemars(extend("default" = "*"))]
    pub version: String,
    /// Source that has the chart.
    pub source_ref: HelmChartSourceReference,
    /// Time between two checks of the source, as in `10m`. It is spread by a few percent.
    #[schemars(extend("pattern" = schema::DURATION, "maxLength" = schema::DURATION_LENGTH))]
    pub interval: GoDuration,
    /// Makes a new artifact when the version of the chart changes (`ChartVersion`), or with each revision of the source (`Revision`), which
    /// is appended to the version. Default: `ChartVersion`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["ChartVersion", "Revision"], "default" = "ChartVersion"))]
    pub reconcile_strategy: Option<String>,
    /// Files of values that are merged to the `values.yaml` of the chart, later ones over earlier ones: files of the chart, or of the
    /// artifact for sources other than Helm repositories. Default: the chart's own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("maxItems" = 100))]
    pub values_files: Vec<String>,
    /// File of values that is merged after `valuesFiles`. Deprecated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values_file: Option<String>,
    /// Leaves out files of values that don't exist. Default: false.
    #[serde(default, skip_serializing_if = "is_false")]
    pub ignore_missing_values_files: bool,
    /// Suspends reconciliation; the last artifact is still served. Default: false.
    #[serde(default, skip_serializing_if = "is_false")]
    pub suspend: bool,
    /// Verification of signatures, for a Helm repository of the type `oci`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify: Option<OCIRepositoryVerification>,
    /// Namespaces that may use the source. Not supported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access_from: Option<AccessFrom>,
}

/// A reference to the source of a chart, in the same namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HelmChartSourceReference {
    /// API version of the source. It is ignored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_version: Option<String>,
    /// Kind of the source.
    #[schemars(extend("enum" = ["HelmRepository", "GitRepository", "Bucket"]))]
    pub kind: String,
    /// Name of the source.
    pub name: String,
}

impl HelmChartSpec {
    /// Returns the files of values in the order of merging. The list of nothing but `values.yaml` counts as none, as in the
    /// original.
    #[must_use]
    pub fn merged_files(&self) -> Vec<&str> {
        let last = self.values_file.as_deref().filter(|file| !file.is_empty());
        let files: Vec<&str> = self.values_files.iter().map(String::as_str).chain(last).collect();
        match files.as_slice() {
            ["values.yaml"] => Vec::new(),
            _ => files,
        }
    }
}

/// Observed state of the chart and its artifact.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HelmChartStatus {
    /// Generation that the status describes; -1 before the first reconciliation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Revision of the source's artifact that the chart was looked for in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_source_artifact_revision: Option<String>,
    /// Name of the stored chart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_chart_name: Option<String>,
    /// Files of values that were merged, if missing ones are ignored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub observed_values_files: Vec<String>,
    /// Conditions of the chart: Ready, ArtifactInStorage, SourceVerified, and problems.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// URL of the latest artifact, which stays the same for all revisions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Chart that is stored and served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact: Option<Artifact>,
    /// Value of the annotation `reconcile.fluxcd.io/requestedAt` that was last handled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_handled_reconcile_at: Option<String>,
}

#[must_use]
pub fn definition() -> CustomResourceDefinition {
    let columns = || {
        vec![
            column("Chart", "string", ".spec.chart"),
            column("Version", "string", ".spec.version"),
            column("Source Kind", "string", ".spec.sourceRef.kind"),
            column("Source Name", "string", ".spec.sourceRef.name"),
            age(),
            ready(),
            status(),
        ]
    };
    let version = |name, deprecated| Version {
        name,
        deprecated,
        columns: columns(),
    };
    let mut crd = build(
        HelmChart::crd(),
        &[
            version("v1", false),
            version("v1beta2", true),
            version("v1beta1", true),
        ],
    );
    default_status(&mut crd);
    crd
}

fn any_version() -> String {
    "*".to_owned()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

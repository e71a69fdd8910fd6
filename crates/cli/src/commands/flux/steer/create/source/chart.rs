//! `weir create source chart`.

use anyhow::{Context as _, Result, ensure};
use clap::Args;
use yaml::Value;

use super::flags::{SourceFlags, VerifyFlags};
use crate::{
    commands::flux::steer::{
        fields::{Fields, Identity},
        words::Named,
    },
    usage::boolean_flag,
};

/// Kinds of sources that charts are taken from.
pub(in crate::commands::flux::steer::create) const CHART_SOURCES: [&str; 3] =
    ["HelmRepository", "GitRepository", "Bucket"];

const EXAMPLES: &str = "Examples:
  # A chart of a HelmRepository
  weir create source chart podinfo \\
    --source=HelmRepository/podinfo \\
    --chart=podinfo \\
    --chart-version=6.x

  # A chart in a Git repository
  weir create source chart podinfo \\
    --source=GitRepository/podinfo \\
    --chart=./charts/podinfo

  # A chart of an OCI registry whose signature is verified
  weir create source chart podinfo \\
    --source=HelmRepository/podinfo \\
    --chart=podinfo \\
    --chart-version=6.6.2 \\
    --verify-provider=cosign \\
    --verify-issuer=https://token.actions.githubusercontent.com \\
    --verify-subject=https://github.com/stefanprodan/podinfo/.github/workflows/release.yml@refs/tags/6.6.2";

/// Create or update a HelmChart, and wait until it is fetched
#[derive(Args)]
#[command(mut_args = boolean_flag, args_override_self = true, after_help = EXAMPLES)]
pub(crate) struct ChartArgs {
    /// Name of the chart, or its path in the source
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    chart: String,
    /// Version of the chart, or a range; not for charts of GitRepositories
    #[arg(long, value_name = "RANGE", default_value = "", hide_default_value = true)]
    chart_version: String,
    /// Source of the chart: a HelmRepository, GitRepository or Bucket
    #[arg(
        long = "source",
        value_name = "KIND/NAME",
        default_value = "",
        hide_default_value = true
    )]
    from: String,
    /// Make a new artifact for each new version of the chart (ChartVersion), or for each revision of the source (Revision)
    #[arg(long, value_name = "STRATEGY", default_value = "ChartVersion")]
    reconcile_strategy: String,
    #[command(flatten)]
    verify: VerifyFlags,
    #[command(flatten)]
    pub(super) source: SourceFlags,
}

impl ChartArgs {
    pub(super) fn object(&self, namespace: &str) -> Result<Value> {
        ensure!(!self.from.is_empty(), "chart source is required");
        let from = chart_source(Named::of_kind(&self.from), &self.from)?;
        ensure!(!self.chart.is_empty(), "chart name or path is required");
        let source = &self.source;
        let spec = Fields::default()
            .set("chart", &*self.chart)
            .text("version", &self.chart_version)
            .duration("interval", source.interval.interval)
            .text("reconcileStrategy", &self.reconcile_strategy)
            .set(
                "sourceRef",
                Fields::default().set("kind", from.kind).set("name", from.name),
            )
            .optional("verify", self.verify.fields()?);
        let identity = Identity {
            name: &source.create.name,
            namespace,
            labels: &source.create.labels()?,
        };
        Ok(identity.object(&fleet::kind::HELM_CHART, spec))
    }
}

/// Checks the source of a chart.
pub(in crate::commands::flux::steer::create) fn chart_source(from: Named, text: &str) -> Result<Named> {
    ensure!(
        !from.kind.is_empty() && !from.name.is_empty(),
        "invalid helm chart source '{text}', must be in format <kind>/<name>"
    );
    from.one_of("source", &CHART_SOURCES)
        .with_context(|| format!("invalid helm chart source '{text}'"))
}

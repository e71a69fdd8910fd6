//! `weir create helmrelease`.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use api::GoDuration;
use clap::Args;
use tree::Budget;
use yaml::{Map, Value};

use super::{
    flags::{CreateFlags, IntervalFlag, depends_on},
    source::chart_source,
};
use crate::{
    commands::flux::steer::{
        fields::{Fields, Identity},
        words::Named,
    },
    files::read_text,
    usage::{boolean_flag, split_list},
};

const CHART_REFERENCES: [&str; 2] = ["OCIRepository", "HelmChart"];
const VALUES_KINDS: [&str; 2] = ["Secret", "ConfigMap"];
/// Maximum size of a file of values: the API server takes objects of about this size.
const MAX_VALUES: u64 = 2 << 20;

const EXAMPLES: &str = "Examples:
  # A chart of a HelmRepository
  weir create helmrelease podinfo \\
    --interval=10m \\
    --source=HelmRepository/podinfo \\
    --chart=podinfo \\
    --chart-version='>4.0.0'

  # A chart in a GitRepository, with values of a Secret
  weir create helmrelease podinfo \\
    --source=GitRepository/podinfo \\
    --chart=./charts/podinfo \\
    --values-from=Secret/my-secret-values

  # A chart of an OCIRepository, in a namespace that is created
  weir create helmrelease podinfo \\
    --chart-ref=OCIRepository/podinfo.flux-system \\
    --target-namespace=apps \\
    --create-target-namespace=true";

/// Create or update a HelmRelease, and wait until it is installed
#[derive(Args)]
#[command(mut_args = boolean_flag, args_override_self = true, after_help = EXAMPLES)]
pub(crate) struct HelmReleaseArgs {
    #[command(flatten)]
    interval: IntervalFlag,
    /// Name of the release; defaults to [TARGET_NAMESPACE-]NAME
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    release_name: String,
    /// Source of the chart: a HelmRepository, GitRepository or Bucket
    #[arg(
        long,
        value_name = "KIND/NAME[.NAMESPACE]",
        default_value = "",
        hide_default_value = true
    )]
    source: String,
    /// Name of the chart, or its path in the source
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    chart: String,
    /// Version of the chart, or a range; not for charts of GitRepositories
    #[arg(long, value_name = "RANGE", default_value = "", hide_default_value = true)]
    chart_version: String,
    /// An OCIRepository or HelmChart with the chart, instead of --source and --chart
    #[arg(
        long,
        value_name = "KIND/NAME[.NAMESPACE]",
        default_value = "",
        hide_default_value = true
    )]
    chart_ref: String,
    /// Interval of looking for new versions of the chart
    #[arg(long, value_name = "DURATION")]
    chart_interval: Option<GoDuration>,
    /// Make a new release for each new version of the chart (ChartVersion), or for each revision of the source (Revision)
    #[arg(long, value_name = "STRATEGY", default_value = "ChartVersion")]
    reconcile_strategy: String,
    /// HelmRelease that must be ready before. Can be repeated
    #[arg(long, value_name = "[NAMESPACE/]NAME,...")]
    depends_on: Vec<String>,
    /// Namespace of the release; defaults to the namespace of the HelmRelease
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    target_namespace: String,
    /// Namespace of the records of the release; defaults to the target namespace
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    storage_namespace: String,
    /// Create the target namespace
    #[arg(long)]
    create_target_namespace: bool,
    /// ServiceAccount whose rights the controller uses
    #[arg(long, value_name = "NAME", default_value = "", hide_default_value = true)]
    service_account: String,
    /// Treatment of the definitions (CRDs) of the chart by upgrades
    #[arg(long, value_name = "POLICY", value_parser = ["Skip", "Create", "CreateReplace"])]
    crds: Option<String>,
    /// YAML file with values. Can be repeated: later files win
    #[arg(long, value_name = "FILE,...")]
    values: Vec<String>,
    /// A Secret or ConfigMap with values in the key values.yaml. Can be repeated
    #[arg(long, value_name = "KIND/NAME,...")]
    values_from: Vec<String>,
    /// Name of an existing Secret with the kubeconfig of another cluster
    #[arg(long, value_name = "NAME")]
    kubeconfig_secret_ref: Option<String>,
    #[command(flatten)]
    pub(super) create: CreateFlags,
}

impl HelmReleaseArgs {
    pub(super) fn object(&self, namespace: &str) -> Result<Value> {
        let (chart, reference) = self.chart()?;
        ensure!(
            matches!(&*self.reconcile_strategy, "Revision" | "ChartVersion"),
            "'{}' is an invalid reconcile strategy(valid: Revision, ChartVersion)",
            self.reconcile_strategy
        );
        let storage = match &*self.storage_namespace {
            "" => &self.target_namespace,
            storage => storage,
        };
        let crds = self.crds.as_deref();
        let install = Fields::default()
            .flag("createNamespace", self.create_target_namespace)
            .optional("crds", crds.map(|_| "Create"));
        let spec = Fields::default()
            .text("releaseName", &self.release_name)
            .duration("interval", self.interval.interval)
            .text("targetNamespace", &self.target_namespace)
            .text("storageNamespace", storage)
            .list("dependsOn", depends_on(&self.depends_on)?)
            .optional("chart", chart)
            .optional("chartRef", reference)
            .map(
                "kubeConfig",
                Fields::default().reference("secretRef", self.kubeconfig_secret_ref.as_deref()),
            )
            .map("install", install)
            .map("upgrade", Fields::default().optional("crds", crds))
            .text("serviceAccountName", &self.service_account)
            .optional("values", values(&split_list(&self.values)?)?)
            .list("valuesFrom", values_from(&self.values_from)?);
        let identity = Identity {
            name: &self.create.name,
            namespace,
            labels: &self.create.labels()?,
        };
        Ok(identity.object(&fleet::kind::HELM_RELEASE, spec))
    }

    /// Returns `spec.chart` or `spec.chartRef`.
    fn chart(&self) -> Result<(Option<Fields>, Option<Fields>)> {
        match (&*self.chart, &*self.chart_ref) {
            ("", "") => bail!("chart or chart-ref is required"),
            ("", reference) => {
                let named = Named::of_namespace(reference).one_of("chart reference", &CHART_REFERENCES)?;
                Ok((None, Some(object_reference(named))))
            }
            (chart, "") => {
                let source = match &*self.source {
                    "" => bail!("source is required with --chart"),
                    source => chart_source(Named::of_namespace(source), source)?,
                };
                let interval = self
                    .chart_interval
                    .filter(|interval| *interval != GoDuration::ZERO);
                let spec = Fields::default()
                    .set("chart", chart)
                    .text("version", &self.chart_version)
                    .set("sourceRef", object_reference(source))
                    .text("reconcileStrategy", &self.reconcile_strategy)
                    .optional("interval", interval.map(|interval| interval.to_string()));
                Ok((Some(Fields::default().set("spec", spec)), None))
            }
            _ => bail!("cannot use --chart in combination with --chart-ref"),
        }
    }
}

fn object_reference(named: Named) -> Fields {
    Fields::default()
        .set("kind", named.kind)
        .set("name", named.name)
        .text("namespace", &named.namespace)
}

fn values_from(flags: &[String]) -> Result<Vec<Value>> {
    let references = split_list(flags)?;
    let value = |text: &String| {
        let named = Named::of_kind(text);
        ensure!(
            !named.kind.is_empty(),
            "invalid Kubernetes object reference '{text}', must be in format <kind>/<name>"
        );
        Ok(object_reference(named.one_of("reference", &VALUES_KINDS)?).into())
    };
    references.iter().map(value).collect()
}

/// Reads and merges files of values; `None` if there are none.
fn values(files: &[String]) -> Result<Option<Value>> {
    if files.is_empty() {
        return Ok(None);
    }
    let mut merged = Map::new();
    for file in files {
        let read = read_values(&PathBuf::from(file));
        merge(
            &mut merged,
            read.with_context(|| format!("reading values from {file} failed"))?,
        );
    }
    Ok(Some(Value::Map(merged)))
}

fn read_values(file: &Path) -> Result<Map> {
    let text = read_text(file, MAX_VALUES)?;
    match yaml::read::goyaml(&text, &Budget::default())?.value {
        Value::Null => Ok(Map::new()),
        Value::Map(mut map) => {
            map.values_mut().for_each(whole_numbers);
            Ok(map)
        }
        _ => bail!("expected a map of values"),
    }
}

/// Writes numbers without a fraction as integers, as the way through JSON does.
fn whole_numbers(value: &mut Value) {
    match value {
        Value::Float(number) if number.fract() == 0.0 && number.abs() < 1e15 => {
            #[allow(clippy::cast_possible_truncation, reason = "the range is checked")]
            let whole = *number as i64;
            *value = Value::Int(whole);
        }
        Value::Map(map) => map.values_mut().for_each(whole_numbers),
        Value::Seq(items) => items.iter_mut().for_each(whole_numbers),
        _ => {}
    }
}

/// Merges maps at all levels; other values are replaced.
fn merge(into: &mut Map, from: Map) {
    for (key, value) in from {
        match (into.get_mut(&key), value) {
            (Some(Value::Map(into)), Value::Map(from)) => merge(into, from),
            (_, value) => drop(into.insert(key, value)),
        }
    }
}

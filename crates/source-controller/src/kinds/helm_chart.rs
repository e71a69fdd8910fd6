//! HelmChart: a chart of a Helm repository, or out of the artifact of another source.
//!
//! - [`spec`] refuses invalid and unsupported fields (pure);
//! - [`origin`] reads the source;
//! - [`source`] tells apart the artifacts of one revision;
//! - [`lookup`] finds name and version of the current chart of the source;
//! - [`build`] downloads and packages it, with [`dependencies`];
//! - [`failure`] has the words and reasons of failures (pure).

mod build;
mod build_metadata;
mod dependencies;
mod failure;
mod lookup;
mod origin;
mod source;

use std::{fs::File, io, path::Path, path::PathBuf, sync::Arc, time::Duration};

use api::{
    Artifact, Fault, Reason, condition_type as types, conditions,
    revision::Style,
    source::{Bucket, GitRepository, HelmChart, HelmChartSpec, HelmChartStatus, HelmRepository},
};
use artifact::{
    Storage,
    pack::{self, Packed},
    storage::ArtifactWriter,
};
use futures::stream::BoxStream;
use kube::Resource as _;
use limits::{ByteBudget, TenantPermits};
use net::AddressPolicy;
use runtime::{Context, Trigger};
use source_specs::helm_chart as spec;
use tokio::runtime::Handle;

use self::{
    lookup::ChartLocation,
    source::{ChartArtifact, SeenArtifacts},
};
use super::{helm_repository::HelmRepositories, oci_repository::OciRepositories};
use crate::{
    blocking::Job,
    flags::HelmLimits,
    identity::Identities,
    source_kind::{
        BuildError, Details, Identity, Inputs, KindSettings, Named, Pack, PackOptions, Resolve, SourceKind,
        SourceObject, SourceSecrets, SourceSpec, Verification, Verify, Words,
    },
    temp_files::Filled,
    wake::{self, Wake},
};

pub(crate) struct HelmCharts {
    runtime: Handle,
    client: kube::Client,
    storage: Arc<Storage>,
    identities: Arc<Identities>,
    requeue_dependency: Duration,
    scratch: PathBuf,
    disk: ByteBudget,
    processors: TenantPermits,
    sizes: HelmLimits,
    addresses: AddressPolicy,
    repositories: HelmRepositories,
    registries: OciRepositories,
    wake: Wake,
    seen: SeenArtifacts,
}

#[derive(Clone)]
pub(crate) struct ChartRequest {
    namespace: String,
    name: String,
    generation: Option<i64>,
    spec: HelmChartSpec,
    past: Option<HelmChartStatus>,
}

#[derive(Clone)]
pub(crate) struct ResolvedChart {
    name: String,
    /// With the build metadata that the object asks for.
    version: String,
    /// Revision of the source's artifact; `None` for registries, which have none.
    source_revision: Option<String>,
    /// The artifact with the chart; `None` for charts of a HelmRepository.
    source: Option<ChartArtifact>,
    /// True if the archive is made here, and is not the source's.
    packaged: bool,
    values_files: Vec<String>,
    ignores_missing: bool,
    location: ChartLocation,
}

/// An archive in a file, with the lifetime of the directory.
pub(crate) struct FetchedChart {
    archive: PathBuf,
    source: Option<ChartArtifact>,
    values_files: Vec<String>,
    dependencies: usize,
}

impl SourceObject for HelmCharts {
    type Object = HelmChart;
    type Status = HelmChartStatus;

    const DIRECTORY: &'static str = "helmchart";

    fn spec(object: &HelmChart) -> SourceSpec<'_> {
        SourceSpec {
            interval: object.spec.interval.as_duration(),
            // The timeout of the HelmRepository, which the pass reads, is shorter.
            timeout: lookup::LONGEST,
            suspend: object.spec.suspend,
            ignore: None,
        }
    }

    /// The Secrets are the source's, and read with it.
    fn secrets(_: &HelmChart) -> Named<'_> {
        Vec::new()
    }

    fn validate(object: &HelmChart) -> Result<(), Fault> {
        spec::validate(&object.spec)
    }
}

impl Identity for HelmCharts {}

impl Resolve for HelmCharts {
    type Request = ChartRequest;
    type Resolved = ResolvedChart;

    fn request(object: &HelmChart, _: &SourceSecrets) -> Result<ChartRequest, Fault> {
        Ok(ChartRequest {
            namespace: object.meta().namespace.clone().unwrap_or_default(),
            name: object.meta().name.clone().unwrap_or_default(),
            generation: object.meta().generation,
            spec: object.spec.clone(),
            past: object.status.clone(),
        })
    }

    fn server(request: &ChartRequest) -> String {
        let source = &request.spec.source_ref;
        format!("{}/{}/{}", source.kind, request.namespace, source.name)
    }

    fn resolve(&self, request: &ChartRequest, job: &Job) -> Result<ResolvedChart, Fault> {
        self.wake.start();
        self.lookup(request, job)
    }

    fn revision(chart: &ResolvedChart, _: Style) -> String {
        chart.version.clone()
    }

    fn file_name(chart: &ResolvedChart) -> String {
        format!("{}-{}.tgz", chart.name, chart.version)
    }
}

impl Inputs for HelmCharts {
    /// Each generation is built again, as in the original: the values may be others.
    fn config_changed(object: &HelmChart) -> bool {
        let observed = object
            .status
            .as_ref()
            .and_then(|status| status.observed_generation);
        observed != object.meta().generation
    }

    fn inputs_changed(object: &HelmChart, chart: &ResolvedChart) -> bool {
        let observed = object.status.as_ref();
        observed.and_then(|status| status.observed_chart_name.as_deref()) != Some(chart.name.as_str())
    }

    fn observe_inputs(status: &mut HelmChartStatus, chart: &ResolvedChart) {
        status.observed_chart_name = Some(chart.name.clone());
        status
            .observed_source_artifact_revision
            .clone_from(&chart.source_revision);
        status.observed_values_files = match chart.ignores_missing {
            true => chart.values_files.clone(),
            false => Vec::new(),
        };
    }
}

impl Pack for HelmCharts {
    type Fetched = Filled<FetchedChart>;

    fn fetch(
        &self,
        request: &ChartRequest,
        chart: &ResolvedChart,
        job: &Job,
        scratch: &Path,
    ) -> Result<Filled<FetchedChart>, Fault> {
        self.build(request, chart, job, scratch)
    }

    fn fetched(fetched: &Filled<FetchedChart>, chart: ResolvedChart) -> ResolvedChart {
        ResolvedChart {
            values_files: fetched.values_files.clone(),
            ..chart
        }
    }

    fn pack(
        fetched: &Filled<FetchedChart>,
        options: &PackOptions,
        out: &mut ArtifactWriter<'_>,
    ) -> Result<Packed, BuildError> {
        options.budget.check()?;
        let archive = File::open(&fetched.archive).map_err(|error| disk(&error))?;
        Ok(pack::copy(archive, options.algorithm, u64::MAX, out)?)
    }

    fn details(fetched: &Filled<FetchedChart>) -> Details {
        let description = match fetched.dependencies {
            0 => None,
            count => Some(format!("resolved {count} chart dependencies")),
        };
        Details {
            description,
            metadata: fetched
                .source
                .as_ref()
                .map(ChartArtifact::metadata)
                .unwrap_or_default(),
            ..Details::default()
        }
    }
}

impl Verify for HelmCharts {
    fn verifies(object: &HelmChart) -> bool {
        object.spec.verify.is_some()
    }

    /// The keys are not recorded, so each pass verifies, as in the original.
    fn keys_changed(object: &HelmChart, _: &ChartRequest) -> bool {
        object.spec.verify.is_some()
    }

    fn verify(
        &self,
        _: &ChartRequest,
        chart: &ResolvedChart,
        job: &Job,
    ) -> Result<Option<Verification>, Fault> {
        self.verify_chart(chart, job)
    }
}

impl Words for HelmCharts {
    const LEGACY_READY: Reason = Reason::ChartPullSucceeded;

    fn ready(chart: &ResolvedChart, _: &str) -> (Reason, String) {
        (chart.reason(), chart.summary())
    }

    fn outdated(_: &HelmChart, chart: &ResolvedChart, _: &str) -> (Reason, String) {
        let (name, version) = (&chart.name, &chart.version);
        let message = format!("new '{name}' chart with version '{version}'");
        (Reason::NewChart, message)
    }

    fn event_reason(chart: &ResolvedChart) -> Option<Reason> {
        Some(chart.reason())
    }

    fn event_message(chart: &ResolvedChart, _: &Artifact, description: Option<&str>) -> String {
        match description {
            Some(description) => format!("{}; {description}", chart.summary()),
            None => chart.summary(),
        }
    }

    fn failure_conditions(reason: Reason) -> &'static [&'static str] {
        failure::conditions(reason)
    }
}

impl SourceKind for HelmCharts {
    fn new(settings: KindSettings) -> Self {
        Self {
            runtime: Handle::current(),
            repositories: HelmRepositories::new(settings.clone()),
            registries: OciRepositories::new(settings.clone()),
            client: settings.client,
            storage: settings.storage,
            identities: settings.identities,
            requeue_dependency: settings.requeue_dependency,
            scratch: settings.scratch,
            disk: settings.disk,
            processors: settings.processors,
            sizes: settings.helm,
            addresses: settings.addresses,
            wake: Wake::default(),
            seen: SeenArtifacts::default(),
        }
    }

    fn triggers(&self, ctx: &Context) -> Vec<BoxStream<'static, Trigger>> {
        let changes = vec![
            wake::changes::<HelmChart>(ctx, "HelmChart"),
            wake::changes::<HelmRepository>(ctx, "HelmRepository"),
            wake::changes::<GitRepository>(ctx, "GitRepository"),
            wake::changes::<Bucket>(ctx, "Bucket"),
        ];
        vec![self.wake.triggers("HelmChart", changes)]
    }
}

impl ResolvedChart {
    fn reason(&self) -> Reason {
        match self.packaged {
            true => Reason::ChartPackageSucceeded,
            false => Reason::ChartPullSucceeded,
        }
    }

    /// Describes the stored chart in the words of the original.
    fn summary(&self) -> String {
        let action = if self.packaged { "packaged" } else { "pulled" };
        let (name, version) = (&self.name, &self.version);
        let values = match self.values_files.as_slice() {
            [] => String::new(),
            files => format!(" and merged values files [{}]", files.join(" ")),
        };
        format!("{action} '{name}' chart with version '{version}'{values}")
    }
}

impl ChartRequest {
    /// Returns the status of the last pass, if it succeeded for the same generation of the object and the same revision of the source: then
    /// the lookup is skipped.
    fn known(&self, revision: &str) -> Option<&HelmChartStatus> {
        self.succeeded()
            .filter(|past| past.observed_source_artifact_revision.as_deref() == Some(revision))
    }

    /// Returns true if this is the stored chart.
    fn has_stored(&self, chart: &ResolvedChart) -> bool {
        let stored = self.succeeded().filter(|past| {
            let revision = past.artifact.as_ref().map(|artifact| artifact.revision.as_str());
            revision == Some(chart.version.as_str())
        });
        stored.and_then(|past| past.observed_chart_name.as_deref()) == Some(chart.name.as_str())
    }

    /// Returns the status of the last pass, if it succeeded for the same generation of the object.
    fn succeeded(&self) -> Option<&HelmChartStatus> {
        self.past.as_ref().filter(|past| {
            past.observed_generation == self.generation && conditions::is_true(&past.conditions, types::READY)
        })
    }
}

fn disk(error: &io::Error) -> Fault {
    let message = format!("failed to use the temporary working directory: {error}");
    Fault::retry(Reason::DirectoryCreationFailed, message)
}

#[cfg(test)]
mod tests;

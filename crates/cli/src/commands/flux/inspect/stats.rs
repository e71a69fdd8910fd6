//! `weir stats`.

use anyhow::{Result, ensure};
use clap::Args;
use cluster::Selection;
use fleet::{Kind, Stats, Table, kind, stats};
use futures::{StreamExt as _, stream};

use super::super::{Flux, FluxFlags, served};
use crate::{output, usage::boolean_flag};

/// Kinds in the order of the original, whose rows are printed even without objects.
static KINDS: [&Kind; 13] = [
    &kind::GIT_REPOSITORY,
    &kind::OCI_REPOSITORY,
    &kind::HELM_REPOSITORY,
    &kind::HELM_CHART,
    &kind::BUCKET,
    &kind::KUSTOMIZATION,
    &kind::HELM_RELEASE,
    &kind::ALERT,
    &kind::PROVIDER,
    &kind::RECEIVER,
    &kind::IMAGE_UPDATE_AUTOMATION,
    &kind::IMAGE_POLICY,
    &kind::IMAGE_REPOSITORY,
];
/// Kinds that the original doesn't know. They share a row, which is printed if the cluster has one of them.
static MORE: [&Kind; 2] = [&kind::GITOPS_KLUCTL_DEPLOYMENT, &kind::FLUX_KLUCTL_DEPLOYMENT];
/// Lists that are requested at a time.
const AT_A_TIME: usize = 6;

const EXAMPLES: &str = "Examples:
  # The numbers of the whole cluster
  weir stats -A";

/// Count objects by their state, and the storage of sources
///
/// For each kind, prints the number of objects that are reconciled, not ready and suspended, and the size of all artifacts.
#[derive(Args)]
#[command(mut_args = boolean_flag, args_override_self = true, after_help = EXAMPLES)]
pub(crate) struct StatsArgs {
    /// Count the objects of all namespaces
    #[arg(short = 'A', long, help_heading = "Selection")]
    all_namespaces: bool,
    #[command(flatten)]
    flux: FluxFlags,
}

pub(crate) fn run(args: &StatsArgs) -> Result<()> {
    let flux = Flux::open(&args.flux)?;
    flux.block_on(print(&flux, args))
}

async fn print(flux: &Flux, args: &StatsArgs) -> Result<()> {
    let snapshot = flux.cluster.snapshot().await?;
    let selection = Selection {
        namespace: (!args.all_namespaces).then(|| flux.namespace.clone()),
        ..Selection::default()
    };
    let kinds = KINDS.into_iter().chain(MORE);
    let counts: Vec<_> = kinds
        .clone()
        .map(|kind| count(flux, served(&snapshot, kind), &selection))
        .collect();
    let counts: Vec<Result<Stats>> = stream::iter(counts).buffered(AT_A_TIME).collect().await;
    let mut table = Table::new(stats::COLUMNS);
    let mut kluctl = None;
    let mut failures = 0;
    for (kind, counted) in kinds.zip(counts) {
        match counted {
            Ok(stats) if !MORE.contains(&kind) => table.push(stats.cells(kind.kind)),
            Ok(stats) if served(&snapshot, kind).is_some() => {
                kluctl = Some(kluctl.unwrap_or_else(Stats::default).with(stats));
            }
            Ok(_) => {}
            Err(error) => {
                failures += 1;
                flux.failure(&output::error_chain(&error));
            }
        }
    }
    if let Some(stats) = kluctl {
        table.push(stats.cells("KluctlDeployment"));
    }
    output::print(&table.text())?;
    ensure!(failures == 0, "{failures} kinds could not be listed");
    Ok(())
}

async fn count(flux: &Flux, resource: Option<cluster::ResourceKind>, selection: &Selection) -> Result<Stats> {
    let mut stats = Stats::default();
    let Some(resource) = resource else {
        return Ok(stats);
    };
    let add = |json: &str| -> Result<(), anyhow::Error> {
        stats.add(&super::get::decode(json)?);
        Ok(())
    };
    flux.cluster.each_object(&resource, selection, add).await?;
    Ok(stats)
}

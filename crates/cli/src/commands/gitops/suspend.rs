//! `weir gitops suspend` and `weir gitops resume`.

use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::Args;
use cluster::Patch;
use objects::ObjectRef;
use yaml::{Map, Value};

use super::{
    GitOps, MANAGER,
    flags::{SelectFlags, TimeoutFlag, UnusedFlags, YesFlag},
    select::{Unnamed, full_name, generations, live},
};
use crate::{flags::ClusterFlags, usage::boolean_flag};

/// Interval of reading the status.
const POLL: Duration = Duration::from_millis(500);

const EXAMPLES: &str = "Examples:
  # Suspend a KluctlDeployment, and go on with it
  weir gitops suspend --name shop -n apps
  weir gitops resume --name shop -n apps

  # All of a namespace, without a question
  weir gitops suspend --all -n apps --yes";

/// Set spec.suspend, and wait until the controller has seen it
///
/// Requests by `weir gitops` are handled for suspended KluctlDeployments, too. Without --name, --label-selector and --all, the
/// KluctlDeployments with the Git repository and directory of the local project are selected.
#[derive(Args)]
#[command(mut_args = boolean_flag, args_override_self = true, after_help = EXAMPLES)]
pub(crate) struct SuspendArgs {
    #[command(flatten)]
    select: SelectFlags,
    /// Select all KluctlDeployments, in the namespace of --namespace or in all namespaces
    #[arg(long, help_heading = "Selection", conflicts_with_all = ["name", "label_selector"])]
    all: bool,
    #[command(flatten)]
    cluster: ClusterFlags,
    #[command(flatten)]
    waiting: TimeoutFlag,
    #[command(flatten)]
    confirm: YesFlag,
    #[command(flatten)]
    _unused: UnusedFlags,
}

pub(crate) fn run(args: &SuspendArgs, suspend: bool) -> Result<()> {
    let ops = GitOps::open(&args.cluster, args.waiting.timeout)?;
    let (verb, done) = match suspend {
        true => ("suspend", "Suspended"),
        false => ("resume", "Resumed"),
    };
    let unnamed = if args.all {
        Unnamed::ConfirmAll
    } else {
        Unnamed::Confirm
    };
    let found = ops.select(&args.select, unnamed, verb, args.confirm.yes)?;
    for of in &found {
        let step = ops.terminal.start(format!(
            "{}: Waiting for the controller to {verb} it",
            full_name(of)
        ));
        ops.block_on(set(&ops, of, suspend))
            .with_context(|| format!("{verb} KluctlDeployment {}", full_name(of)))?;
        step.done();
        ops.terminal.success(&format!("{done} {}", full_name(of)));
    }
    Ok(())
}

/// Sets the field, and waits until the controller has seen it.
async fn set(ops: &GitOps, of: &ObjectRef, suspend: bool) -> Result<()> {
    let value = if suspend { Value::from(true) } else { Value::Null };
    let patch = Map::from([("spec", Map::from([("suspend", value)]))]);
    let mut object = ops
        .cluster
        .patch(of, &Patch::Merge(Value::Map(patch)), MANAGER)
        .await?;
    let (wanted, _) = generations(&object);
    while generations(&object).1 < wanted {
        let next = async {
            ops.cluster.pause(POLL).await?;
            live(&ops.cluster, of).await
        };
        object = match next.await {
            Err(error) if ops.cluster.cancellation().is_cancelled() => {
                return Err(error).context("spec.suspend is set, but the controller has not confirmed it");
            }
            read => read?,
        };
    }
    Ok(())
}

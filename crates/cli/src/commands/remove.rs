//! `weir prune` and `weir delete`.

use anyhow::Result;
use clap::Args;
use engine::DeployOptions;

use super::operate::Operation;
use crate::{
    flags::{ChoiceFlags, ConfirmFlags, OutputFlags, ResultFlags},
    session::{Asked, Session},
    usage::boolean,
};

/// Deletes what carries the discriminator of a target and is no longer rendered.
#[derive(Args)]
#[command(mut_args = boolean, args_override_self = true)]
pub(crate) struct PruneArgs {
    #[command(flatten)]
    common: RemoveFlags,
}

/// Deletes everything that carries the discriminator of a target.
#[derive(Args)]
#[command(mut_args = boolean, args_override_self = true)]
pub(crate) struct DeleteArgs {
    #[command(flatten)]
    common: RemoveFlags,
    /// Don't wait until the objects are gone
    #[arg(long)]
    no_wait: bool,
}

#[derive(Args)]
struct RemoveFlags {
    #[command(flatten)]
    choice: ChoiceFlags,
    #[command(flatten)]
    confirm: ConfirmFlags,
    #[command(flatten)]
    output: OutputFlags,
    #[command(flatten)]
    results: ResultFlags,
    /// What marks the objects, in place of what the target says
    #[arg(long, value_name = "TEXT", help_heading = "Target")]
    discriminator: Option<String>,
}

/// Deletes what is no longer rendered.
pub(crate) fn prune(args: &PruneArgs) -> Result<()> {
    remove(&args.common, false, false)
}

/// Deletes everything.
pub(crate) fn delete(args: &DeleteArgs) -> Result<()> {
    remove(&args.common, true, args.no_wait)
}

fn remove(flags: &RemoveFlags, all: bool, no_wait: bool) -> Result<()> {
    let session = Session::open(&Asked {
        discriminator: flags.discriminator.as_deref(),
        ..Asked::new(&flags.choice)
    })?;
    let cluster = session.cluster()?;
    let rendered = session.render(Some(&cluster))?;
    let yes = flags.confirm.yes || flags.confirm.dry_run;
    let operation = Operation::new(&session, &cluster, &rendered, &flags.output, yes);
    let options = DeployOptions {
        dry_run: flags.confirm.dry_run,
        no_wait,
        contents: true,
        inclusion: session.request.inclusion.clone(),
        ..DeployOptions::default()
    };
    operation.carry_out(
        options,
        Some(&flags.results),
        async |project, options| match all {
            true => engine::commands::delete(project, None, options).await,
            false => engine::commands::prune(project, options).await,
        },
    )
}

//! `weir deploy`.

use anyhow::Result;
use clap::Args;

use super::operate::Operation;
use crate::{
    flags::{ApplyFlags, ChoiceFlags, ConfirmFlags, FilesFlag, OutputFlags, ResultFlags, WaitFlags},
    output,
    session::{Asked, Session},
    usage::boolean,
};

/// Deploys a target of a project to its cluster.
///
/// Shows what would change, asks, and applies it: items in their order, at most eight at once, up to each barrier. With
/// --prune, what is no longer rendered is deleted.
#[derive(Args)]
#[command(mut_args = boolean, args_override_self = true)]
pub(crate) struct DeployArgs {
    #[command(flatten)]
    choice: ChoiceFlags,
    #[command(flatten)]
    confirm: ConfirmFlags,
    #[command(flatten)]
    apply: ApplyFlags,
    #[command(flatten)]
    wait: WaitFlags,
    #[command(flatten)]
    output: OutputFlags,
    #[command(flatten)]
    files: FilesFlag,
    #[command(flatten)]
    results: ResultFlags,
    /// Delete what carries the discriminator and is no longer rendered
    #[arg(long, help_heading = "How objects are applied")]
    prune: bool,
    /// What marks the objects, in place of what the target says
    #[arg(long, value_name = "TEXT", help_heading = "Target")]
    discriminator: Option<String>,
}

/// Does the command.
pub(crate) fn run(args: &DeployArgs) -> Result<()> {
    let session = Session::open(&Asked {
        discriminator: args.discriminator.as_deref(),
        keep_files: args.files.render_output_dir.is_some(),
        ..Asked::new(&args.choice)
    })?;
    let cluster = session.cluster()?;
    let rendered = session.render(Some(&cluster))?;
    output::write_files(&rendered, args.files.render_output_dir.as_deref(), false)?;
    let yes = args.confirm.yes || args.confirm.dry_run;
    let operation = Operation::new(&session, &cluster, &rendered, &args.output, yes);
    let mut options = args.apply.options(session.request.inclusion.clone());
    options.dry_run = args.confirm.dry_run;
    options.no_wait = args.wait.no_wait;
    options.readiness_timeout = args.wait.readiness_timeout;
    operation.carry_out(options, Some(&args.results), async |project, options| {
        engine::commands::deploy(project, options, args.prune).await
    })
}

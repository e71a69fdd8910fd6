//! `weir deploy`.

use std::sync::Arc;

use anyhow::Result;
use clap::Args;
use engine::DeployOptions;
use tree::Tree;

use super::operation::Operation;
use crate::{
    flags::{
        ApplyFlags, ConfirmFlags, OutputFlags, RenderInputFlags, RenderOutputFlag, ResultFlags, WaitFlags,
    },
    output,
    session::{ProjectOptions, Session},
    usage::boolean_flag,
};

const EXAMPLES: &str = "Examples:
  # Deploy a target, after a diff and a question
  weir deploy -t prod

  # Deploy with an argument, without a question, and delete orphans
  weir deploy -t prod -a version=1.2.3 --prune --yes

  # Deploy the items with a tag only
  weir deploy -t prod -I database";

/// Deploy a target to its cluster
///
/// Renders the project, shows the diff, asks for confirmation, and applies all objects in the order of the deployment items. Items
/// are deployed in parallel (8 at a time) up to the next barrier. With --prune, objects that are no longer rendered are deleted.
#[derive(Args)]
#[command(mut_args = boolean_flag, args_override_self = true, after_help = EXAMPLES)]
pub(crate) struct DeployArgs {
    #[command(flatten)]
    input: RenderInputFlags,
    #[command(flatten)]
    confirm: ConfirmFlags,
    #[command(flatten)]
    apply: ApplyFlags,
    #[command(flatten)]
    wait: WaitFlags,
    #[command(flatten)]
    output: OutputFlags,
    #[command(flatten)]
    files: RenderOutputFlag,
    #[command(flatten)]
    results: ResultFlags,
    /// Prune orphan objects: delete objects with the discriminator that are no longer rendered
    #[arg(long, help_heading = "Apply options")]
    prune: bool,
    /// Override the discriminator of the target
    #[arg(long, value_name = "DISCRIMINATOR", help_heading = "Target")]
    discriminator: Option<String>,
}

pub(crate) fn run(args: &DeployArgs) -> Result<()> {
    let session = Session::open(&ProjectOptions {
        discriminator: args.discriminator.as_deref(),
        keep_files: args.files.render_output_dir.is_some(),
        ..ProjectOptions::new(&args.input)
    })?;
    let cluster = session.cluster()?;
    let rendered = session.render(Some(&cluster))?;
    output::write_files(&rendered, args.files.render_output_dir.as_deref(), false)?;
    let yes = args.confirm.yes || args.confirm.dry_run;
    let operation = Operation::new(&session, &cluster, &rendered, &args.output, yes);
    operation.warn_without_discriminator();
    let mut options = args.apply.options(session.request.inclusion.clone());
    options.dry_run = args.confirm.dry_run;
    options.no_wait = args.wait.no_wait;
    options.readiness_timeout = args.wait.readiness_timeout;
    operation.run(options, Some(&args.results), async |project, options| {
        engine::commands::deploy(project, options, args.prune).await
    })
}

/// Deploys a project that is a part of the program.
pub(super) fn embedded(
    tree: &Arc<dyn Tree>,
    input: &RenderInputFlags,
    confirm: &ConfirmFlags,
    output: &OutputFlags,
    results: &ResultFlags,
) -> Result<()> {
    let session = Session::open(&ProjectOptions {
        embedded: Some(tree),
        ..ProjectOptions::new(input)
    })?;
    let cluster = session.cluster()?;
    let rendered = session.render(Some(&cluster))?;
    let yes = confirm.yes || confirm.dry_run;
    let operation = Operation::new(&session, &cluster, &rendered, output, yes);
    let options = DeployOptions {
        dry_run: confirm.dry_run,
        contents: true,
        ..DeployOptions::default()
    };
    operation.run(options, Some(results), async |project, options| {
        engine::commands::deploy(project, options, false).await
    })
}

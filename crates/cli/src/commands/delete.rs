//! `weir prune` and `weir delete`.

use anyhow::Result;
use clap::{ArgMatches, Args, Command, Error, FromArgMatches, Subcommand as _};
use engine::DeployOptions;

use super::{
    flux::{ByKind, steer},
    operation::Operation,
};
use crate::{
    deferred::Deferred,
    flags::{ConfirmFlags, OutputFlags, RenderInputFlags, RenderOutputFlag, ResultFlags},
    output,
    session::{ProjectOptions, Session},
    usage::boolean_flag,
};

const PRUNE_EXAMPLES: &str = "Examples:
  # Show the orphans of a target, and delete them after a question
  weir prune -t prod

  # Show them only
  weir prune -t prod --dry-run";

/// Delete objects that are no longer part of the target (orphans)
///
/// Deletes all objects on the cluster that have the discriminator of the target and are not rendered any more.
#[derive(Args)]
#[command(mut_args = boolean_flag, args_override_self = true, after_help = PRUNE_EXAMPLES)]
pub(crate) struct PruneArgs {
    #[command(flatten)]
    common: RemoveFlags,
}

const DELETE_EXAMPLES: &str = "Examples:
  # Delete all objects of a target, after a question
  weir delete -t test

  # Delete a single object of Flux
  weir delete kustomization podinfo --silent";

/// Delete all objects of a target
///
/// Deletes all objects on the cluster that have the discriminator of the target.
#[derive(Args)]
#[command(mut_args = boolean_flag, args_override_self = true, after_help = DELETE_EXAMPLES)]
pub(crate) struct DeleteArgs {
    #[command(flatten)]
    common: RemoveFlags,
    /// Don't wait for the objects to be deleted
    #[arg(long)]
    no_wait: bool,
}

/// `weir delete`: of a target, or of objects of the kind that a subcommand names.
pub(crate) enum DeleteCommand {
    Target(Deferred<DeleteArgs>),
    Objects(ByKind<steer::delete::Delete>),
}

impl Args for DeleteCommand {
    fn augment_args(command: Command) -> Command {
        let command = ByKind::<steer::delete::Delete>::augment_subcommands(command)
            .subcommand_required(false)
            .arg_required_else_help(false)
            .args_conflicts_with_subcommands(true);
        Deferred::<DeleteArgs>::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for DeleteCommand {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        match matches.subcommand() {
            Some(_) => ByKind::from_arg_matches(matches).map(Self::Objects),
            None => Deferred::from_arg_matches(matches).map(Self::Target),
        }
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

#[derive(Args)]
struct RemoveFlags {
    #[command(flatten)]
    input: RenderInputFlags,
    #[command(flatten)]
    confirm: ConfirmFlags,
    #[command(flatten)]
    output: OutputFlags,
    #[command(flatten)]
    files: RenderOutputFlag,
    #[command(flatten)]
    results: ResultFlags,
    /// Override the discriminator of the target
    #[arg(long, value_name = "DISCRIMINATOR", help_heading = "Target")]
    discriminator: Option<String>,
}

pub(crate) fn prune(args: &PruneArgs) -> Result<()> {
    remove(&args.common, false, false)
}

pub(crate) fn delete(command: &DeleteCommand) -> Result<()> {
    match command {
        DeleteCommand::Target(args) => remove(&args.common, true, args.no_wait),
        DeleteCommand::Objects(command) => steer::delete::run(command),
    }
}

fn remove(flags: &RemoveFlags, all: bool, no_wait: bool) -> Result<()> {
    let discriminator = flags.discriminator.as_deref();
    let session = Session::open(&ProjectOptions {
        // The target of `delete` keeps its own discriminator: the given one only selects the deleted objects.
        discriminator: discriminator.filter(|_| !all),
        keep_files: flags.files.render_output_dir.is_some(),
        ..ProjectOptions::new(&flags.input)
    })?;
    let cluster = session.cluster()?;
    let rendered = session.render(Some(&cluster))?;
    output::write_files(&rendered, flags.files.render_output_dir.as_deref(), false)?;
    let yes = flags.confirm.yes || flags.confirm.dry_run;
    let operation = Operation::new(&session, &cluster, &rendered, &flags.output, yes);
    let options = DeployOptions {
        dry_run: flags.confirm.dry_run,
        no_wait,
        contents: true,
        inclusion: session.request.inclusion.clone(),
        ..DeployOptions::default()
    };
    operation.run(
        options,
        Some(&flags.results),
        async |project, options| match all {
            true => engine::commands::delete(project, discriminator, options).await,
            false => engine::commands::prune(project, options).await,
        },
    )
}

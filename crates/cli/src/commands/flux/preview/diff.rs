//! `weir diff` and its subcommands; `weir diff kustomization` shows the changes that local manifests would make.

use std::collections::HashSet;

use anyhow::{Error, Result, ensure};
use clap::{ArgAction, ArgMatches, Args, Command as ClapCommand, FromArgMatches, Subcommand};

use super::{
    Failure,
    builder::Builder,
    compare::Comparison,
    flags::BuildFlags,
    repository::{self, RepositoryArgs},
};
use crate::{
    commands::{diff, flux::Flux},
    deferred::Deferred,
    output::{self, error_chain},
    usage::{boolean_flag, parse_bool},
};

const EXAMPLES: &str = "Examples:
  # The changes that local manifests would make
  weir diff kustomization my-app --path ./path/to/local/manifests

  # With the Kustomization of a local file
  weir diff kustomization my-app --path ./path/to/local/manifests \\
    --kustomization-file ./path/to/local/my-app.yaml

  # Without some of the files
  weir diff kustomization my-app --path ./path/to/local/manifests \\
    --ignore-paths \"/to_ignore/**/*.yaml,ignore.yaml\"

  # With the Kustomizations among the objects
  weir diff kustomization my-app --path ./path/to/local/manifests \\
    --recursive \\
    --local-sources GitRepository/flux-system/my-repo=./path/to/local/git

Exit codes: 0 without differences, 1 with some, 2 if the comparison failed";

/// `weir diff`: of a target, a Kustomization or a repository.
pub(crate) enum DiffCommand {
    Target(Deferred<diff::DiffArgs>),
    Flux(Command),
}

/// Subcommands of `weir diff`.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Show the changes that local manifests of a Kustomization would make
    #[command(visible_alias = "ks")]
    Kustomization(Deferred<KustomizationArgs>),
    /// Show the changes that a checked-out repository would make in the cluster
    #[command(visible_alias = "repo")]
    Repository(Deferred<RepositoryArgs>),
}

/// Show the changes that local manifests of a Kustomization would make
///
/// Builds as weir build kustomization does, applies the objects in a server-side dry run, and prints the differences, and the objects that
/// would be deleted. Fields of spec.ignore are left out. Values of Secrets are masked, and encrypted ones count as equal.
#[derive(Args)]
#[command(mut_args = boolean_flag, args_override_self = true, after_help = EXAMPLES)]
pub(crate) struct KustomizationArgs {
    #[command(flatten)]
    build: BuildFlags,
    /// Show the progress on a terminal
    #[arg(long, value_name = "BOOL", action = ArgAction::Set, num_args = 0..=1, require_equals = true,
        default_value = "true", default_missing_value = "true", value_parser = parse_bool)]
    progress_bar: bool,
    /// Take a Kustomization that is not in the cluster for a new one: needs --kustomization-file
    #[arg(long)]
    ignore_not_found: bool,
}

impl Args for DiffCommand {
    fn augment_args(command: ClapCommand) -> ClapCommand {
        let command = Command::augment_subcommands(command)
            .subcommand_required(false)
            .arg_required_else_help(false)
            .args_conflicts_with_subcommands(true);
        Deferred::<diff::DiffArgs>::augment_args(command)
    }

    fn augment_args_for_update(command: ClapCommand) -> ClapCommand {
        Self::augment_args(command)
    }
}

impl FromArgMatches for DiffCommand {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        match matches.subcommand() {
            Some(_) => Command::from_arg_matches(matches).map(Self::Flux),
            None => Deferred::from_arg_matches(matches).map(Self::Target),
        }
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

pub(crate) fn run(command: &DiffCommand) -> Result<()> {
    match command {
        DiffCommand::Target(args) => diff::run(args),
        DiffCommand::Flux(Command::Kustomization(args)) => kustomization(args).map_err(as_failure),
        DiffCommand::Flux(Command::Repository(args)) => repository::run(args).map_err(as_failure),
    }
}

/// Gives an error of the comparison the exit code that tells it from a difference.
fn as_failure(error: Error) -> Error {
    match error.downcast::<Failure>() {
        Ok(failure) => failure.into(),
        Err(error) => failed(error_chain(&error)).into(),
    }
}

fn failed(message: String) -> Failure {
    Failure { code: 2, message }
}

fn kustomization(args: &KustomizationArgs) -> Result<()> {
    let flags = &args.build;
    let dir = flags.dir()?;
    ensure!(
        !args.ignore_not_found || flags.kustomization_file.is_some(),
        "kustomization file is required when assuming new kustomizations"
    );
    let flux = Flux::open(&flags.flux)?;
    let cancel = flux.cluster.cancellation().clone();
    let builder = Builder {
        accepts_new: args.ignore_not_found,
        ..Builder::new(flags, flux.namespace.clone(), Some(flux.cluster.clone()), cancel)?
    };
    let progress = args
        .progress_bar
        .then(|| flux.terminal.spinner("Kustomization diffing... running dry-run"))
        .flatten();
    let found = flux.block_on(async {
        let subject = builder.subject().await?;
        let mut comparison = Comparison {
            builder: &builder,
            cluster: &flux.cluster,
            visited: HashSet::new(),
        };
        comparison.compare(&subject, dir).await
    });
    if let Some(progress) = progress {
        progress.finish_and_clear();
    }
    let found = found?;
    output::print(&found.text)?;
    if !found.errors.is_empty() {
        return Err(failed(found.errors.join("\n")).into());
    }
    match found.differs {
        true => Err(Failure::differs().into()),
        false => Ok(()),
    }
}

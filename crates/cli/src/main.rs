//! The command line program `weir`.

mod archive;
mod arguments;
mod color;
mod commands;
mod deferred;
mod environment;
mod flags;
mod logins;
mod output;
mod progress;
mod session;
mod terminal;
mod usage;

use std::{ffi::OsString, io::Write as _, process::ExitCode};

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use commands::{
    completion, controller, delete, deploy, diff, gitops, helm, helm_pull, helm_update, kustomize, list, oci,
    poke_images, render, validate,
};
use deferred::Deferred;
use environment::FlagDefaults;

/// Deploy kluctl projects, build kustomizations and render Helm charts
#[derive(Parser)]
#[command(
    name = "weir",
    version,
    subcommand_required = true,
    arg_required_else_help = true
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Deploy a target to its cluster
    Deploy(Deferred<deploy::DeployArgs>),
    /// Show the changes that a deployment would make
    Diff(Deferred<diff::DiffArgs>),
    /// Delete objects that are no longer part of a target (orphans)
    Prune(Deferred<delete::PruneArgs>),
    /// Delete all objects of a target
    Delete(Deferred<delete::DeleteArgs>),
    /// Check that all objects of a target exist and are ready
    Validate(Deferred<validate::ValidateArgs>),
    /// Update images of deployed objects
    PokeImages(Deferred<poke_images::PokeArgs>),
    /// Render a target without deploying it
    Render(Deferred<render::RenderArgs>),
    /// List the targets of a project
    ListTargets(Deferred<list::TargetsArgs>),
    /// List the images of a target
    ListImages(Deferred<list::ImagesArgs>),
    /// Pull the Helm charts of a project into .helm-charts
    HelmPull(Deferred<helm_pull::PullArgs>),
    /// Check the Helm charts of a project for new versions, and upgrade them
    HelmUpdate(Deferred<helm_update::UpdateArgs>),
    /// Drive the kluctl-controller: deploy, diff, validate, suspend and more by requests to it
    #[command(subcommand)]
    Gitops(gitops::Command),
    /// Install the kluctl-controller
    #[command(subcommand)]
    Controller(controller::Command),
    /// Push projects to OCI registries
    #[command(subcommand)]
    Oci(oci::Command),
    /// Build kustomizations
    #[command(subcommand)]
    Kustomize(kustomize::Command),
    /// Render Helm charts
    #[command(subcommand)]
    Helm(helm::Command),
    /// Print the version
    Version,
    /// Generate a shell completion script
    Completion(Deferred<completion::CompletionArgs>),
    /// Generate man pages
    Man(Deferred<completion::ManArgs>),
}

fn main() -> ExitCode {
    tree::panics::print_with(|position| {
        let _ = writeln!(
            std::io::stderr(),
            "Error: an internal error at {position}: please report it"
        );
    });
    let result = match parse(std::env::args_os().collect()) {
        Err(ParseError::Usage(error)) => return usage::report(&error, unsupported_flags()),
        Err(ParseError::Defaults(error)) => Err(error),
        Ok(Cli { command }) => run(command),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "Error: {}", output::error_chain(&error));
            ExitCode::FAILURE
        }
    }
}

enum ParseError {
    Usage(clap::Error),
    Defaults(anyhow::Error),
}

/// Parses the arguments, with the defaults of the environment and the config file.
fn parse(args: Vec<OsString>) -> Result<Cli, ParseError> {
    let mut program = Cli::command();
    let args = arguments::subcommand_first(&program, args);
    // The defaults are kluctl's; these commands have no counterpart in kluctl.
    let is_foreign = |word: &OsString| {
        ["kustomize", "helm", "version", "completion", "man"]
            .iter()
            .any(|name| word == name)
    };
    let args = if args.get(1).is_none_or(is_foreign) {
        args
    } else {
        let defaults = FlagDefaults::read().map_err(ParseError::Defaults)?;
        defaults.insert(&program, args)
    };
    program
        .try_get_matches_from_mut(args)
        .and_then(|matches| Cli::from_arg_matches(&matches))
        .map_err(|error| ParseError::Usage(error.format(&mut program)))
}

fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Deploy(args) => deploy::run(&args),
        Command::Diff(args) => diff::run(&args),
        Command::Prune(args) => delete::prune(&args),
        Command::Delete(args) => delete::delete(&args),
        Command::Validate(args) => validate::run(&args),
        Command::PokeImages(args) => poke_images::run(&args),
        Command::Render(args) => render::run(&args),
        Command::ListTargets(args) => list::targets(&args),
        Command::ListImages(args) => list::images(&args),
        Command::Kustomize(command) => kustomize::run(&command),
        Command::Helm(command) => helm::run(&command),
        Command::HelmPull(args) => helm_pull::run(&args),
        Command::HelmUpdate(args) => helm_update::run(&args),
        Command::Gitops(command) => gitops::run(&command),
        Command::Controller(command) => controller::run(&command),
        Command::Oci(command) => oci::run(&command),
        Command::Version => output::print(concat!(env!("CARGO_PKG_VERSION"), "\n")),
        Command::Completion(args) => completion::complete(&args, Cli::command()),
        Command::Man(args) => completion::man(&args, Cli::command()),
    }
}

/// Returns the unsupported flags of the original of the invoked command.
fn unsupported_flags() -> usage::UnsupportedFlags {
    match std::env::args().nth(1).as_deref() {
        Some("kustomize") => kustomize::UNSUPPORTED_FLAGS,
        Some("helm") => helm::UNSUPPORTED_FLAGS,
        _ => commands::UNSUPPORTED_FLAGS,
    }
}

//! The command line program `weir`.

mod charts;
mod commands;
mod environment;
mod fetch;
mod flags;
mod helm;
mod helm_pull;
mod helm_update;
mod inflate;
mod kustomize;
mod later;
mod logins;
mod output;
mod paint;
mod place;
mod progress;
mod project;
mod session;
mod terminal;
mod usage;

use std::{ffi::OsString, io::Write as _, process::ExitCode};

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use commands::{completion, deploy, diff, list, poke_images, remove, render, validate};
use environment::Defaults;
use later::Later;

/// GitOps for Kubernetes: what the controllers do, by hand.
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
    /// What kustomize does
    #[command(subcommand)]
    Kustomize(kustomize::Command),
    /// What helm does
    #[command(subcommand)]
    Helm(helm::Command),
    /// Pull the charts of a kluctl project
    HelmPull(Later<helm_pull::PullArgs>),
    /// Tell which charts of a kluctl project have newer versions
    HelmUpdate(Later<helm_update::UpdateArgs>),
    /// Deploy a target of a kluctl project
    Deploy(Later<deploy::DeployArgs>),
    /// Show what a deployment would change
    Diff(Later<diff::DiffArgs>),
    /// Delete what is no longer rendered
    Prune(Later<remove::PruneArgs>),
    /// Delete everything of a target
    Delete(Later<remove::DeleteArgs>),
    /// Look whether everything is there and ready
    Validate(Later<validate::ValidateArgs>),
    /// Replace images in what runs
    PokeImages(Later<poke_images::PokeArgs>),
    /// Render a project, and change nothing
    Render(Later<render::RenderArgs>),
    /// Print the targets of a project
    ListTargets(Later<list::TargetsArgs>),
    /// Print the images that templates ask for
    ListImages(Later<list::ImagesArgs>),
    /// Print a script that completes commands and flags in a shell
    Completion(Later<completion::CompletionArgs>),
    /// Write manual pages
    Man(Later<completion::ManArgs>),
}

fn main() -> ExitCode {
    let done = match parsed(std::env::args_os().collect()) {
        Err(Unparsed::Usage(error)) => return usage::tell(&error, refused()),
        Err(Unparsed::Defaults(error)) => Err(error),
        Ok(Cli { command }) => run(command),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "Error: {}", output::words(&error));
            ExitCode::FAILURE
        }
    }
}

/// Why arguments could not be read.
enum Unparsed {
    Usage(clap::Error),
    Defaults(anyhow::Error),
}

/// The arguments, with what the environment adds to them.
fn parsed(args: Vec<OsString>) -> Result<Cli, Unparsed> {
    let mut program = Cli::command();
    // What other programs do has other programs' defaults.
    let is_foreign = |word: &OsString| {
        ["kustomize", "helm", "completion", "man"]
            .iter()
            .any(|name| word == name)
    };
    let args = if args.get(1).is_none_or(is_foreign) {
        args
    } else {
        let defaults = Defaults::read().map_err(Unparsed::Defaults)?;
        defaults.insert(&program, args)
    };
    program
        .try_get_matches_from_mut(args)
        .and_then(|matches| Cli::from_arg_matches(&matches))
        .map_err(|error| Unparsed::Usage(error.format(&mut program)))
}

fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Deploy(args) => deploy::run(&args),
        Command::Diff(args) => diff::run(&args),
        Command::Prune(args) => remove::prune(&args),
        Command::Delete(args) => remove::delete(&args),
        Command::Validate(args) => validate::run(&args),
        Command::PokeImages(args) => poke_images::run(&args),
        Command::Render(args) => render::run(&args),
        Command::ListTargets(args) => list::targets(&args),
        Command::ListImages(args) => list::images(&args),
        Command::Kustomize(command) => kustomize::run(&command),
        Command::Helm(command) => helm::run(&command),
        Command::HelmPull(args) => helm_pull::run(&args),
        Command::HelmUpdate(args) => helm_update::run(&args),
        Command::Completion(args) => completion::complete(&args, Cli::command()),
        Command::Man(args) => completion::man(&args, Cli::command()),
    }
}

/// The flags that the command of this call refuses by name.
fn refused() -> usage::Refused {
    match std::env::args().nth(1).as_deref() {
        Some("kustomize") => kustomize::REFUSED,
        Some("helm") => helm::REFUSED,
        _ => commands::REFUSED,
    }
}

//! The command line program `weir`.

mod charts;
mod fetch;
mod helm;
mod helm_pull;
mod helm_update;
mod inflate;
mod kustomize;
mod output;
mod place;
mod project;
mod usage;

use std::{io::Write as _, process::ExitCode};

use clap::{Parser, Subcommand};

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
    HelmPull(Box<helm_pull::PullArgs>),
    /// Tell which charts of a kluctl project have newer versions
    HelmUpdate(Box<helm_update::UpdateArgs>),
}

fn main() -> ExitCode {
    let done = match Cli::try_parse() {
        Err(error) => return usage::tell(&error, refused()),
        Ok(Cli { command }) => match command {
            Command::Kustomize(command) => kustomize::run(&command),
            Command::Helm(command) => helm::run(&command),
            Command::HelmPull(args) => helm_pull::run(&args),
            Command::HelmUpdate(args) => helm_update::run(&args),
        },
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "Error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The flags that the command of this call refuses by name.
fn refused() -> usage::Refused {
    match std::env::args().nth(1).as_deref() {
        Some("kustomize") => kustomize::REFUSED,
        Some("helm") => helm::REFUSED,
        Some("helm-update") => helm_update::REFUSED,
        _ => &[],
    }
}

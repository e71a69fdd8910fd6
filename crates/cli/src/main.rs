//! The command line program `weir`.

mod fetch;
mod helm;
mod kustomize;
mod output;
mod place;
mod usage;

use std::{io::Write as _, process::ExitCode};

use clap::{Parser, Subcommand};

/// GitOps for Kubernetes: what the controllers do, by hand.
#[derive(Debug, Parser)]
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

#[derive(Debug, Subcommand)]
enum Command {
    /// What kustomize does
    #[command(subcommand)]
    Kustomize(kustomize::Command),
    /// What helm does
    #[command(subcommand)]
    Helm(helm::Command),
}

fn main() -> ExitCode {
    let done = match Cli::try_parse() {
        Err(error) => return usage::tell(&error, refused()),
        Ok(Cli { command }) => match command {
            Command::Kustomize(command) => kustomize::run(&command),
            Command::Helm(command) => helm::run(&command),
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
        _ => &[],
    }
}

//! The command line program `weir`.

mod fetch;
mod kustomize;
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
}

fn main() -> ExitCode {
    let done = match Cli::try_parse() {
        Err(error) => return usage::tell(&error),
        Ok(Cli {
            command: Command::Kustomize(command),
        }) => kustomize::run(&command),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "Error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

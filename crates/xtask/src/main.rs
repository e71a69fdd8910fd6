//! Generated files and structural checks: what `make gen` and `make verify` call.

mod fields;
mod generate;
mod layers;
mod manifest;
mod tidy;
mod tree;

#[cfg(test)]
mod deploy_tests;
#[cfg(test)]
mod pages_tests;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(about = "Generated files and structural checks")]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Clone, Copy, Subcommand)]
enum Command {
    /// Write crds/ and the field tables of docs/spec/.
    Gen {
        /// Only compare, and fail if a file would change.
        #[arg(long)]
        check: bool,
    },
    /// Compare the layer table of ARCHITECTURE.md with the manifests.
    Layers,
    /// Check the form of the sources.
    Tidy,
}

fn main() -> Result<ExitCode> {
    let root = tree::root();
    let (what, findings) = match Args::parse().command {
        Command::Gen { check } => ("generated files", generate::run(&root, check)?),
        Command::Layers => ("layers", layers::run(&root)?),
        Command::Tidy => ("tidy", tidy::run(&root)?),
    };
    report(what, &findings);
    Ok(if findings.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

#[expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the result of a command for people"
)]
fn report(what: &str, findings: &[String]) {
    for finding in findings {
        eprintln!("{finding}");
    }
    match findings.len() {
        0 => println!("{what}: ok"),
        n => eprintln!("{what}: {n} to correct"),
    }
}

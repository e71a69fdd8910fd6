//! Generated files, structural checks and test runs, for `make gen`, `make verify` and `make test`.

mod fields;
mod generate;
mod layers;
mod manifest;
mod schemas;
mod suites;
mod tidy;
mod tree;

#[cfg(test)]
mod advisories_tests;
#[cfg(test)]
mod deploy_tests;
#[cfg(test)]
mod pages_tests;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(about = "Generated files, structural checks and test runs")]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Clone, Subcommand)]
enum Command {
    /// Write crds/, its JSON schemas and the field tables of docs/spec/.
    Gen {
        /// Only compare, and fail if a file would change.
        #[arg(long)]
        check: bool,
    },
    /// Compare the layer table of ARCHITECTURE.md with the manifests.
    Layers,
    /// Check rules for sources, names, comments and commit subjects that no compiler checks.
    Tidy(tidy::Selection),
    /// Run the tests of all crates side by side, and list the slowest
    Test(suites::Options),
}

#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) findings: Vec<String>,
    /// Remarks that do not make it fail, such as skipped checks.
    pub(crate) notes: Vec<String>,
}

impl From<Vec<String>> for Report {
    fn from(findings: Vec<String>) -> Self {
        let notes = Vec::new();
        Self { findings, notes }
    }
}

fn main() -> Result<ExitCode> {
    let root = tree::root();
    let (name, report) = match Args::parse().command {
        Command::Gen { check } => ("generated files", generate::run(&root, check)?.into()),
        Command::Layers => ("layers", layers::run(&root)?.into()),
        Command::Test(options) => return suites::run(&root, &options),
        Command::Tidy(selection) => ("tidy", tidy::run(&root, &selection)?),
    };
    print(name, &report);
    Ok(if report.findings.is_empty() {
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
fn print(name: &str, report: &Report) {
    for finding in &report.findings {
        eprintln!("{finding}");
    }
    for note in &report.notes {
        println!("{name}: {note}");
    }
    match report.findings.len() {
        0 => println!("{name}: ok"),
        n => eprintln!("{name}: {n} findings"),
    }
}

//! The kustomize-controller process.

use std::process::ExitCode;

use clap::Parser as _;
use kustomize_controller::{Cli, run, spec};

fn main() -> ExitCode {
    let cli = Cli::parse();
    runtime::start(spec(&cli), cli.common.clone(), move |ctx| run(ctx, cli.own))
}

//! The source-controller process.

use std::process::ExitCode;

use clap::Parser;
use source_controller::{Cli, run, spec};

fn main() -> ExitCode {
    let cli = Cli::parse();
    runtime::start(spec(&cli.events), cli.common, move |ctx| run(ctx, cli.own))
}

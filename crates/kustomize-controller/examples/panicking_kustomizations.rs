//! The kustomize-controller with a kind that panics on demand. The tests of this crate run it as a process.
#![allow(clippy::panic, reason = "it panics on demand")]

#[path = "../../deployer/tests/panicking/kind.rs"]
mod kind;

use std::process::ExitCode;

use clap::Parser as _;
use kind::Panicking;
use kustomize_controller::{Cli, run_within, spec};

fn main() -> ExitCode {
    let cli = Cli::parse();
    runtime::start(spec(&cli), cli.common.clone(), move |ctx| {
        run_within(ctx, cli.own, Panicking::new)
    })
}

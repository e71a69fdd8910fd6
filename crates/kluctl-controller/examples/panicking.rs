//! The kluctl-controller with kinds that panic on demand. The tests of this crate run it as a process.
#![allow(clippy::panic, reason = "it panics on demand")]

#[path = "../../deployer/tests/panicking/kind.rs"]
mod kind;

use std::process::ExitCode;

use kind::Panicking;
use kluctl_controller::{flags, run_within, spec};

fn main() -> ExitCode {
    let texts = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let cli = flags::parse(std::env::args_os(), &texts.collect()).unwrap_or_else(|error| error.exit());
    runtime::start(spec(&cli), cli.common(), move |ctx| {
        run_within(ctx, cli.own, Panicking::new, Panicking::new)
    })
}

//! The kluctl-controller process.

use std::process::ExitCode;

use kluctl_controller::{flags, run, spec};

fn main() -> ExitCode {
    let texts = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let cli = flags::parse(std::env::args_os(), &texts.collect()).unwrap_or_else(|error| error.exit());
    runtime::start(spec(&cli), cli.common(), move |ctx| run(ctx, cli.own))
}

//! `weir validate`.

use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use engine::{
    Patience, ValidateResult,
    text::{self, Style},
};

use super::operate::{self, Operation};
use crate::{
    flags::{ChoiceFlags, OutputFlags, duration, output::Format},
    session::{Asked, Session},
    usage::boolean,
};

/// Looks whether everything of a target is there and ready.
#[derive(Args)]
#[command(mut_args = boolean, args_override_self = true)]
pub(crate) struct ValidateArgs {
    #[command(flatten)]
    choice: ChoiceFlags,
    #[command(flatten)]
    output: OutputFlags,
    /// Look again until everything is ready, or this time is over
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    wait: Option<Duration>,
    /// How long to wait between two looks
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = duration)]
    sleep: Duration,
    /// Fail at warnings, too
    #[arg(long)]
    warnings_as_errors: bool,
}

/// Does the command.
pub(crate) fn run(args: &ValidateArgs) -> Result<()> {
    let session = Session::open(&Asked::new(&args.choice))?;
    let cluster = session.cluster()?;
    let rendered = session.render(Some(&cluster))?;
    let operation = Operation::new(&session, &cluster, &rendered, &args.output, true);
    let patience = args.wait.map(|limit| Patience {
        limit,
        pause: args.sleep,
    });
    let told = session.terminal.clone();
    let attempt = |result: &ValidateResult| {
        told.plain(text::validate_result(result, Style::default()).trim_end());
    };
    let project = operation.project()?;
    let result = session
        .runtime
        .block_on(engine::commands::validate(&project, patience, attempt))?;
    for output in operate::formats(&args.output) {
        let text = match output.format {
            Format::Text => text::validate_result(&result, operate::style(&args.output)),
            Format::Yaml => yaml::print::goyaml(&result.to_value()),
            Format::Json => operate::json(&result.to_value()),
        };
        operate::print(&output, &text)?;
    }
    if !result.errors.is_empty() || args.warnings_as_errors && !result.warnings.is_empty() {
        bail!("Validation failed");
    }
    session.terminal.success("Validation succeeded");
    Ok(())
}

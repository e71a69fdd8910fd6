//! `weir validate`.

use std::{path::PathBuf, time::Duration};

use anyhow::{Result, bail, ensure};
use clap::{Arg, Args};
use engine::ValidationPolling;
use results::{
    ValidateResult,
    text::{self, Style},
};

use super::{
    flux::preview::offline,
    operation::{self, Operation},
};
use crate::{
    flags::{OutputFlags, RenderInputFlags, RenderOutputFlag, duration, output::OutputFormat},
    output,
    session::{ProjectOptions, Session},
    usage::boolean_flag,
};

const EXAMPLES: &str = "Examples:
  # Wait until all objects of a target are ready
  weir validate -t prod --wait 5m

  # Check manifests in files, without a cluster
  weir validate --offline clusters

  # Check what another program prints
  weir build kustomization apps --path ./apps --dry-run --kustomization-file apps.yaml | weir validate --offline -";

/// Check that all objects of a target exist and are ready, or with --offline manifests in files
///
/// With --offline, no project and no cluster is needed: the objects of Weir's kinds in files, in the files below directories, and in the standard input (-), are
/// checked by the schemas and rules of their definitions.
#[derive(Args)]
#[command(mut_args = |flag| not_offline(as_by_kluctl(boolean_flag(flag))), args_override_self = true, after_help = EXAMPLES)]
pub(crate) struct ValidateArgs {
    #[command(flatten)]
    input: RenderInputFlags,
    #[command(flatten)]
    output: OutputFlags,
    #[command(flatten)]
    files: RenderOutputFlag,
    /// Repeat the validation until all objects are ready, for at most this long
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    wait: Option<Duration>,
    /// Interval between two validations with --wait
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = duration)]
    sleep: Duration,
    /// Treat warnings as errors
    #[arg(long)]
    warnings_as_errors: bool,
    /// Check manifests in files by the schemas of their kinds, without a cluster
    #[arg(long, help_heading = "Offline")]
    offline: bool,
    /// Files and directories with manifests, or - for the standard input, for --offline
    #[arg(value_name = "PATH", help_heading = "Offline")]
    paths: Vec<PathBuf>,
}

/// Adds the name that kluctl has for `--output-format` of this command, and of `weir gitops validate`.
pub(super) fn as_by_kluctl(flag: Arg) -> Arg {
    match flag.get_long() {
        Some("output-format") => flag.alias("output"),
        _ => flag,
    }
}

/// Lets the flags of projects and clusters conflict with `--offline`, which needs neither.
fn not_offline(flag: Arg) -> Arg {
    const OBEYED: [&str; 7] = [
        "offline",
        "paths",
        "output_format",
        "debug",
        "no_color",
        "_no_update_check",
        "_use_system_python",
    ];
    match OBEYED.contains(&flag.get_id().as_str()) {
        true => flag,
        false => flag.conflicts_with("offline"),
    }
}

pub(crate) fn run(args: &ValidateArgs) -> Result<()> {
    if args.offline {
        let formats = operation::formats(&args.output.output_format);
        return offline::validate(&args.paths, &formats, &args.input.project.terminal.terminal());
    }
    ensure!(args.paths.is_empty(), "paths of manifests need --offline");
    let session = Session::open(&ProjectOptions {
        keep_files: args.files.render_output_dir.is_some(),
        ..ProjectOptions::new(&args.input)
    })?;
    let cluster = session.cluster()?;
    let rendered = session.render(Some(&cluster))?;
    output::write_files(&rendered, args.files.render_output_dir.as_deref(), false)?;
    let operation = Operation::new(&session, &cluster, &rendered, &args.output, true);
    let polling = args.wait.map(|limit| ValidationPolling {
        limit,
        pause: args.sleep,
    });
    let terminal = session.terminal.clone();
    let attempt = |result: &ValidateResult| {
        terminal.plain(text::validate_result(result, Style::default()).trim_end());
    };
    let project = operation.project()?;
    let result = session
        .runtime
        .block_on(engine::commands::validate(&project, polling, attempt))?;
    for output in operation::formats(&args.output.output_format) {
        let text = match output.format {
            OutputFormat::Text => text::validate_result(&result, operation::style(args.output.short_output)),
            OutputFormat::Yaml => yaml::print::goyaml(&result.to_value()),
            OutputFormat::Json => operation::json(&result.to_value()),
        };
        operation::print(&output, &text)?;
    }
    if !result.errors.is_empty() || args.warnings_as_errors && !result.warnings.is_empty() {
        bail!("Validation failed");
    }
    session.terminal.success("Validation succeeded");
    Ok(())
}

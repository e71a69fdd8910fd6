//! Flags that several `weir gitops` commands share.

use std::{path::PathBuf, time::Duration};

use anyhow::{Result, ensure};
use clap::Args;

use crate::{
    flags::{
        ImageFlags, InclusionFlags, LocalSourceFlags, duration,
        output::OutputTarget,
        path::{existing_dir, existing_file},
    },
    usage::parse_bool,
};

/// Timeout of a command that waits.
#[derive(Args)]
#[command(next_help_heading = "Waiting")]
pub(super) struct TimeoutFlag {
    /// Timeout for the whole command. The controller is not bound by it
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = duration)]
    pub(super) timeout: Duration,
}

/// Selection of KluctlDeployments.
#[derive(Args)]
#[command(next_help_heading = "Selection")]
pub(super) struct SelectFlags {
    /// Name of the KluctlDeployment. Without it, the objects of the local project are selected
    #[arg(long, value_name = "NAME")]
    pub(super) name: Option<String>,
    /// Namespace; with --name, it defaults to the namespace of the kubeconfig context, otherwise to all namespaces
    #[arg(short, long, value_name = "NAME")]
    pub(super) namespace: Option<String>,
    /// Select KluctlDeployments by their labels, such as team=shop,stage!=test
    #[arg(short = 'l', long, value_name = "SELECTOR")]
    pub(super) label_selector: Option<String>,
    /// Directory of the local project whose KluctlDeployments are selected; defaults to the current directory
    #[arg(long, value_name = "DIR", value_parser = existing_dir)]
    pub(super) project_dir: Option<PathBuf>,
}

impl SelectFlags {
    /// Refuses flags that contradict each other.
    pub(super) fn check(&self) -> Result<()> {
        ensure!(
            self.name.is_none() || self.label_selector.is_none(),
            "either name or label selector must be set, not both"
        );
        Ok(())
    }
}

#[derive(Args)]
#[command(next_help_heading = "Confirmation")]
pub(super) struct YesFlag {
    /// Skip the confirmation prompt, and take all KluctlDeployments that are selected
    #[arg(short, long)]
    pub(super) yes: bool,
}

#[derive(Args)]
#[command(next_help_heading = "Logs")]
pub(super) struct LogFlags {
    /// Namespace of the controller; by default kluctl-system, then flux-system
    #[arg(long, value_name = "NAME")]
    pub(super) controller_namespace: Option<String>,
    /// Show log lines that are at most this old
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = duration)]
    pub(super) log_since: Duration,
    /// Group the lines of a reconciliation that arrive within this time
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = duration)]
    pub(super) log_grouping_time: Duration,
    /// Show the time of each line
    #[arg(long)]
    pub(super) log_time: bool,
}

/// One-time overrides of the spec. Only flags that are set have an effect; the KluctlDeployment itself isn't changed.
#[derive(Args)]
#[command(next_help_heading = "Overrides")]
pub(super) struct OverrideFlags {
    /// Override spec.dryRun
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = parse_bool)]
    pub(super) dry_run: Option<bool>,
    /// Override spec.forceApply
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = parse_bool)]
    pub(super) force_apply: Option<bool>,
    /// Override spec.replaceOnError
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = parse_bool)]
    pub(super) replace_on_error: Option<bool>,
    /// Override spec.forceReplaceOnError
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = parse_bool)]
    pub(super) force_replace_on_error: Option<bool>,
    /// Override spec.abortOnError
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = parse_bool)]
    pub(super) abort_on_error: Option<bool>,
    /// Override spec.target
    #[arg(short, long, value_name = "NAME")]
    pub(super) target: Option<String>,
    /// Override spec.targetNameOverride
    #[arg(short = 'T', long, value_name = "NAME")]
    pub(super) target_name_override: Option<String>,
    /// Override spec.context
    #[arg(long, value_name = "NAME")]
    pub(super) target_context: Option<String>,
    /// Set a project argument, in addition to spec.args; NAME=@FILE loads its value from a YAML file. Can be repeated
    #[arg(short, long, value_name = "NAME=VALUE", allow_hyphen_values = true)]
    pub(super) arg: Vec<String>,
    /// Load project arguments from a YAML file; they take precedence over --arg. Can be repeated
    #[arg(long, value_name = "FILE", value_parser = existing_file)]
    pub(super) args_from_file: Vec<PathBuf>,
    #[command(flatten)]
    pub(super) images: ImageFlags,
    #[command(flatten)]
    pub(super) inclusion: InclusionFlags,
    #[command(flatten)]
    pub(super) sources: LocalSourceFlags,
    /// Local port that leads to the port source-override of the controller, through which it reads local sources. Default: a connection through
    /// the cluster to the port of that name of its Pod
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    pub(super) local_source_override_port: u16,
}

/// Overrides of requests that deploy.
#[derive(Default, Args)]
#[command(next_help_heading = "Overrides")]
pub(super) struct DeployOverrideFlags {
    /// Override spec.noWait
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = parse_bool)]
    pub(super) no_wait: Option<bool>,
    /// Override spec.prune
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true", value_parser = parse_bool)]
    pub(super) prune: Option<bool>,
}

/// Output of stored results.
#[derive(Args)]
#[command(next_help_heading = "Output")]
pub(super) struct ResultOutputFlags {
    /// Namespace in which the controller stores results
    #[arg(long, value_name = "NAME", default_value = "kluctl-results")]
    pub(super) command_result_namespace: String,
    /// Output format: text, yaml or json, with =FILE to write to a file. Can be repeated
    #[arg(short, long, value_name = "FORMAT[=FILE]")]
    pub(super) output_format: Vec<OutputTarget>,
    /// Print object names only, without the diff of each object
    #[arg(long)]
    pub(super) short_output: bool,
    /// Accepted for compatibility with kluctl; stored results have no values of Secrets
    #[arg(long = "no-obfuscate", hide = true)]
    _no_obfuscate: bool,
}

/// A flag that kluctl's commands for KluctlDeployments have in common, for those that print no result.
#[derive(Args)]
pub(super) struct UnusedResultFlag {
    /// Accepted for compatibility with kluctl; this command prints no result
    #[arg(long = "command-result-namespace", value_name = "NAME", hide = true)]
    _command_result_namespace: Option<String>,
}

/// A flag that kluctl's commands for KluctlDeployments have in common, for those that request nothing.
#[derive(Args)]
pub(super) struct UnusedPortFlag {
    /// Accepted for compatibility with kluctl; this command gives the controller no local sources
    #[arg(long = "local-source-override-port", value_name = "PORT", hide = true)]
    _local_source_override_port: Option<u16>,
}

/// Flags that kluctl's commands for KluctlDeployments have in common, for those that print neither logs nor results.
#[derive(Args)]
pub(super) struct UnusedFlags {
    #[command(flatten)]
    _port: UnusedPortFlag,
    #[command(flatten)]
    _result: UnusedResultFlag,
    /// Accepted for compatibility with kluctl; this command reads no logs
    #[arg(long = "controller-namespace", value_name = "NAME", hide = true)]
    _controller_namespace: Option<String>,
    /// Accepted for compatibility with kluctl; this command reads no logs
    #[arg(long = "log-since", value_name = "DURATION", value_parser = duration, hide = true)]
    _log_since: Option<Duration>,
    /// Accepted for compatibility with kluctl; this command reads no logs
    #[arg(long = "log-grouping-time", value_name = "DURATION", value_parser = duration, hide = true)]
    _log_grouping_time: Option<Duration>,
    /// Accepted for compatibility with kluctl; this command reads no logs
    #[arg(long = "log-time", hide = true)]
    _log_time: bool,
    /// Accepted for compatibility with kluctl; this command prints no result
    #[arg(
        short = 'o',
        long = "output-format",
        value_name = "FORMAT[=FILE]",
        hide = true
    )]
    _output_format: Vec<OutputTarget>,
    /// Accepted for compatibility with kluctl; this command prints no result
    #[arg(long = "short-output", hide = true)]
    _short_output: bool,
}

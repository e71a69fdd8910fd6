//! Flags that select the project and the target.

use std::{path::PathBuf, time::Duration};

use api::GoDuration;
use clap::Args;

use super::{
    ImageFlags, InclusionFlags, LocalSourceFlags,
    path::{existing_dir, existing_file},
};
use crate::{logins::LoginFlags, terminal::Terminal};

/// Parses a duration in Go's format, such as `5m` or `1h30m`.
pub(crate) fn duration(text: &str) -> Result<Duration, api::InvalidDuration> {
    text.parse::<GoDuration>().map(GoDuration::as_duration)
}

/// Project directory, arguments, overrides and credentials.
#[derive(Args)]
#[command(next_help_heading = "Project")]
pub(crate) struct ProjectFlags {
    /// Project directory; defaults to the current directory
    #[arg(long, value_name = "DIR", value_parser = existing_dir)]
    pub(crate) project_dir: Option<PathBuf>,
    /// Project configuration file; defaults to .kluctl.yaml in the project directory
    #[arg(short = 'c', long, value_name = "FILE", value_parser = existing_file)]
    pub(crate) project_config: Option<PathBuf>,
    /// Set a project argument; NAME=@FILE loads its value from a YAML file. Can be repeated
    #[arg(short, long, value_name = "NAME=VALUE", allow_hyphen_values = true)]
    pub(crate) arg: Vec<String>,
    /// Load project arguments from a YAML file; they take precedence over --arg. Can be repeated
    #[arg(long, value_name = "FILE", value_parser = existing_file)]
    pub(crate) args_from_file: Vec<PathBuf>,
    /// Timeout for the whole command
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = duration)]
    pub(crate) timeout: Duration,
    /// Accepted for compatibility with kluctl; weir has no Git cache, and fetches the needed commit on each run
    #[arg(long = "git-cache-update-interval", hide = true, value_parser = duration)]
    _git_cache_update_interval: Option<Duration>,
    #[command(flatten)]
    pub(crate) sources: LocalSourceFlags,
    #[command(flatten)]
    pub(crate) logins: LoginFlags,
    #[command(flatten)]
    pub(crate) terminal: TerminalFlags,
}

/// Messages on stderr.
#[derive(Args)]
#[command(next_help_heading = "Terminal")]
pub(crate) struct TerminalFlags {
    /// Print progress as plain lines instead of live status lines
    #[arg(long)]
    pub(crate) debug: bool,
    /// Disable colors
    #[arg(long)]
    pub(crate) no_color: bool,
    /// Accepted for compatibility with kluctl; weir never checks for updates
    #[arg(long = "no-update-check", hide = true)]
    _no_update_check: bool,
    /// Accepted for compatibility with kluctl; weir doesn't use Python
    #[arg(long = "use-system-python", hide = true)]
    _use_system_python: bool,
}

impl TerminalFlags {
    pub(crate) fn terminal(&self) -> Terminal {
        Terminal::new(self.no_color, self.debug)
    }
}

/// Input of a render: project, target, images and the selected items.
#[derive(Args)]
pub(crate) struct RenderInputFlags {
    #[command(flatten)]
    pub(crate) project: ProjectFlags,
    #[command(flatten)]
    pub(crate) target: TargetFlags,
    #[command(flatten)]
    pub(crate) images: ImageFlags,
    #[command(flatten)]
    pub(crate) inclusion: InclusionFlags,
}

/// Target and cluster.
#[derive(Default, Args)]
#[command(next_help_heading = "Target")]
pub(crate) struct TargetFlags {
    /// Name of the target to use
    #[arg(short, long, value_name = "NAME")]
    pub(crate) target: Option<String>,
    /// Override the target name; templates see it as target.name
    #[arg(short = 'T', long, value_name = "NAME")]
    pub(crate) target_name_override: Option<String>,
    /// Kubeconfig context to use instead of the target's
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,
    /// Kubeconfig file; defaults to $KUBECONFIG, then ~/.kube/config
    #[arg(long, value_name = "FILE", value_parser = existing_file)]
    pub(crate) kubeconfig: Option<PathBuf>,
}

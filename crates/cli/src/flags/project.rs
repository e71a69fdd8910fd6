//! Which project, which target, and for how long.

use std::{path::PathBuf, time::Duration};

use api::GoDuration;
use clap::Args;

use super::{ImageFlags, InclusionFlags};
use crate::logins::LoginArgs;

/// A duration as Go writes it.
pub(crate) fn duration(text: &str) -> Result<Duration, api::InvalidDuration> {
    text.parse::<GoDuration>().map(GoDuration::as_duration)
}

/// The project.
#[derive(Args)]
#[command(next_help_heading = "Project")]
pub(crate) struct ProjectFlags {
    /// The directory of the project; the current one if not given
    #[arg(long, value_name = "DIR")]
    pub(crate) project_dir: Option<PathBuf>,
    /// The file of the project, in place of .kluctl.yaml
    #[arg(short = 'c', long, value_name = "FILE")]
    pub(crate) project_config: Option<PathBuf>,
    /// Set an argument of the project; @FILE reads its value from a file
    #[arg(short, long, value_name = "NAME=VALUE", allow_hyphen_values = true)]
    pub(crate) arg: Vec<String>,
    /// Read arguments from a YAML file; they win over --arg
    #[arg(long, value_name = "FILE")]
    pub(crate) args_from_file: Vec<PathBuf>,
    /// How long the whole command may take
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = duration)]
    pub(crate) timeout: Duration,
    /// Use a directory in place of a Git repository
    #[arg(long, value_name = "HOST/PATH=DIR")]
    pub(crate) local_git_override: Vec<String>,
    /// Use directories in place of all Git repositories of a group
    #[arg(long, value_name = "HOST/PATH=DIR")]
    pub(crate) local_git_group_override: Vec<String>,
    /// Use a directory in place of an artifact of a registry
    #[arg(long, value_name = "HOST/PATH=DIR")]
    pub(crate) local_oci_override: Vec<String>,
    /// Use directories in place of all artifacts of a group
    #[arg(long, value_name = "HOST/PATH=DIR")]
    pub(crate) local_oci_group_override: Vec<String>,
    #[command(flatten)]
    pub(crate) logins: LoginArgs,
    #[command(flatten)]
    pub(crate) terminal: TerminalFlags,
}

/// What is said on stderr.
#[derive(Args)]
#[command(next_help_heading = "Terminal")]
pub(crate) struct TerminalFlags {
    /// Tell what is done line by line
    #[arg(long)]
    pub(crate) debug: bool,
    /// Use no colours
    #[arg(long)]
    pub(crate) no_color: bool,
    /// For scripts that were written for kluctl: nobody is asked for a newer version anyway
    #[arg(long = "no-update-check", hide = true)]
    _no_update_check: bool,
    /// For scripts that were written for kluctl: there is no Python
    #[arg(long = "use-system-python", hide = true)]
    _use_system_python: bool,
}

/// What of a project a command is about.
#[derive(Args)]
pub(crate) struct ChoiceFlags {
    #[command(flatten)]
    pub(crate) project: ProjectFlags,
    #[command(flatten)]
    pub(crate) target: TargetFlags,
    #[command(flatten)]
    pub(crate) images: ImageFlags,
    #[command(flatten)]
    pub(crate) inclusion: InclusionFlags,
}

/// The target.
#[derive(Default, Args)]
#[command(next_help_heading = "Target")]
pub(crate) struct TargetFlags {
    /// The target of the project
    #[arg(short, long, value_name = "NAME")]
    pub(crate) target: Option<String>,
    /// The name that templates see as target.name
    #[arg(short = 'T', long, value_name = "NAME")]
    pub(crate) target_name_override: Option<String>,
    /// The context of the kubeconfig, in place of the target's
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,
    /// The kubeconfig, in place of $KUBECONFIG and ~/.kube/config
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
}

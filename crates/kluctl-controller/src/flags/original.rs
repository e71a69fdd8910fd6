//! The flags of the original's `controller run` that the other controllers don't have.

use std::path::PathBuf;

use clap::Args;
use runtime::flags::{Idle, idle};

/// The flags of the original's `controller run`, apart from those that are other names of our own ([`super::ALIASES`]).
#[derive(Debug, Clone, Args)]
#[allow(clippy::struct_excessive_bools, reason = "they are flags")]
pub struct OriginalFlags {
    /// Kubeconfig of the cluster to control; by default $KUBECONFIG, then the access of the Pod.
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,

    /// Context of the kubeconfig to use instead of its current one.
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,

    /// Watch only objects in this namespace, with rights in this namespace.
    #[arg(long, value_name = "NAME", conflicts_with = "watch_all_namespaces")]
    pub namespace: Option<String>,

    /// Name of the controller in events and as field manager, so that several can run in one cluster.
    #[arg(long, value_name = "NAME", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub controller_name: Option<String>,

    /// Address to listen on for command lines with local sources (`weir gitops deploy --local-git-override`), such as :8082. Off by default;
    /// 0 turns it off, too.
    #[arg(long, value_name = "ADDRESS")]
    pub source_override_bind_address: Option<String>,

    /// Log all details, like --log-level=debug.
    #[arg(long, default_value_t = false, default_missing_value = "true", num_args = 0..=1, require_equals = true, action = clap::ArgAction::Set, conflicts_with = "log_level")]
    pub debug: bool,

    /// Accepted for compatibility; there is no check for updates.
    #[arg(long, default_value_t = false, default_missing_value = "true", num_args = 0..=1, require_equals = true, action = clap::ArgAction::Set)]
    pub no_update_check: bool,

    /// Accepted for compatibility; Python is not used.
    #[arg(long, default_value_t = false, default_missing_value = "true", num_args = 0..=1, require_equals = true, action = clap::ArgAction::Set)]
    pub use_system_python: bool,

    /// Accepted for compatibility; there is no Go runtime.
    #[arg(long, default_value_t = false, default_missing_value = "true", num_args = 0..=1, require_equals = true, action = clap::ArgAction::Set)]
    pub gops_agent: bool,

    /// Accepted for compatibility; there is no Go runtime.
    #[arg(long, value_name = "ADDRESS")]
    pub gops_agent_addr: Option<String>,

    /// Accepted for compatibility; there is no Go runtime.
    #[arg(long, value_name = "FILE")]
    pub cpu_profile: Option<PathBuf>,
}

impl OriginalFlags {
    pub(super) fn idle(&self) -> Vec<Idle> {
        const GO: &str = "it is specific to the Go runtime";
        idle([
            (
                "--no-update-check",
                self.no_update_check,
                "there is no check for updates",
            ),
            (
                "--use-system-python",
                self.use_system_python,
                "Python is not used",
            ),
            ("--gops-agent", self.gops_agent, GO),
            ("--gops-agent-addr", self.gops_agent_addr.is_some(), GO),
            ("--cpu-profile", self.cpu_profile.is_some(), GO),
        ])
    }
}

/// The results of commands that are stored in the cluster.
#[derive(Debug, Clone, Args)]
pub struct ResultFlags {
    /// Namespace in which results of commands are stored.
    #[arg(long, value_name = "NAME", default_value = "kluctl-results", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub command_result_namespace: String,

    /// Store results of commands in the cluster.
    #[arg(long, default_value_t = true, default_missing_value = "true", num_args = 0..=1, require_equals = true, action = clap::ArgAction::Set)]
    pub write_command_result: bool,

    /// Store results of dry runs, too.
    #[arg(long, default_value_t = false, default_missing_value = "true", num_args = 0..=1, require_equals = true, action = clap::ArgAction::Set)]
    pub force_write_command_result: bool,

    /// Number of results of commands to keep per KluctlDeployment, project and target.
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub keep_command_results_count: usize,

    /// Number of results of validations to keep per KluctlDeployment, project and target.
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub keep_validate_results_count: usize,
}

impl ResultFlags {
    #[must_use]
    pub fn keep(&self) -> results::Retention {
        results::Retention {
            commands: self.keep_command_results_count,
            validations: self.keep_validate_results_count,
        }
    }

    /// Returns true if the result of a command is to be stored.
    #[must_use]
    pub fn stores(&self, is_dry_run: bool) -> bool {
        self.write_command_result && !is_dry_run || self.force_write_command_result
    }
}

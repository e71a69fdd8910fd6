//! How an operation works on the cluster, how its result is printed, and where it is kept.

use std::{path::PathBuf, time::Duration};

use clap::Args;
use engine::{DeployOptions, Keep};
use kluctl::Inclusion;
use objects::rules::IgnoreRule;

use super::{duration, output::Output};

/// What is asked before anything is changed.
#[derive(Args)]
#[command(next_help_heading = "Confirmation")]
pub(crate) struct ConfirmFlags {
    /// Don't ask, do it
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Do everything but change the cluster
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// How objects are applied.
#[derive(Args)]
#[command(next_help_heading = "How objects are applied")]
#[allow(clippy::struct_excessive_bools, reason = "they are flags")]
pub(crate) struct ApplyFlags {
    /// Win all conflicts with other field managers
    #[arg(long)]
    pub(crate) force_apply: bool,
    /// Replace an object when it can't be patched
    #[arg(long)]
    pub(crate) replace_on_error: bool,
    /// Delete an object and apply it anew when it can't be replaced either
    #[arg(long)]
    pub(crate) force_replace_on_error: bool,
    /// Begin nothing new after the first error
    #[arg(long)]
    pub(crate) abort_on_error: bool,
}

impl ApplyFlags {
    /// The options of an operation with these flags.
    pub(crate) fn options(&self, inclusion: Inclusion) -> DeployOptions {
        DeployOptions {
            force_apply: self.force_apply,
            replace_on_error: self.replace_on_error,
            force_replace_on_error: self.force_replace_on_error,
            abort_on_error: self.abort_on_error,
            inclusion,
            contents: true,
            ..DeployOptions::default()
        }
    }
}

/// How objects are waited for.
#[derive(Args)]
#[command(next_help_heading = "Waiting")]
pub(crate) struct WaitFlags {
    /// Wait for nothing
    #[arg(long)]
    pub(crate) no_wait: bool,
    /// How long one object may take to be ready
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = duration)]
    pub(crate) readiness_timeout: Duration,
}

/// Which differences don't matter.
#[derive(Default, Args)]
#[command(next_help_heading = "Differences that don't matter")]
#[allow(clippy::struct_excessive_bools, reason = "they are flags")]
pub(crate) struct IgnoreFlags {
    /// Leave out changes of the labels that hold tags
    #[arg(long)]
    ignore_tags: bool,
    /// Leave out changes of labels
    #[arg(long)]
    ignore_labels: bool,
    /// Leave out changes of annotations
    #[arg(long)]
    ignore_annotations: bool,
    /// Leave out changes of all that is written into objects besides what the project says
    #[arg(long)]
    ignore_kluctl_metadata: bool,
}

impl IgnoreFlags {
    /// The rules that the flags stand for.
    pub(crate) fn rules(&self) -> Vec<IgnoreRule> {
        let tags = r#"metadata\.labels\["kluctl\.io/tag-.*"\]"#;
        let mut rule = IgnoreRule::default();
        if self.ignore_tags || self.ignore_kluctl_metadata {
            rule.path_patterns.push(tags.to_owned());
        }
        for (asked, path) in [
            (self.ignore_labels, "metadata.labels.*"),
            (self.ignore_annotations, "metadata.annotations.*"),
            (
                self.ignore_kluctl_metadata,
                "metadata.labels['kluctl.io/discriminator']",
            ),
            (
                self.ignore_kluctl_metadata,
                "metadata.annotations['kluctl.io/deployment-item-dir']",
            ),
        ] {
            if asked {
                rule.paths.push(path.to_owned());
            }
        }
        let is_empty = rule.paths.is_empty() && rule.path_patterns.is_empty();
        if is_empty { Vec::new() } else { vec![rule] }
    }
}

/// How results are printed.
#[derive(Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputFlags {
    /// Print the result in this form: text, yaml or json; =FILE prints into a file
    #[arg(short, long, value_name = "FORMAT[=FILE]")]
    pub(crate) output_format: Vec<Output>,
    /// Show the values of Secrets
    #[arg(long)]
    pub(crate) no_obfuscate: bool,
    /// Show names alone, no differences
    #[arg(long)]
    pub(crate) short_output: bool,
}

/// Where the rendered files go.
#[derive(Default, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct FilesFlag {
    /// Write the rendered files into this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) render_output_dir: Option<PathBuf>,
}

/// Where results are kept.
#[derive(Args)]
#[command(next_help_heading = "Results in the cluster")]
pub(crate) struct ResultFlags {
    /// The namespace for results
    #[arg(long, value_name = "NAME", default_value = "kluctl-results")]
    pub(crate) command_result_namespace: String,
    /// Whether the result is kept in the cluster
    #[arg(long, value_name = "BOOL", default_value = "true", default_missing_value = "true", num_args = 0..=1,
          require_equals = true, action = clap::ArgAction::Set)]
    pub(crate) write_command_result: bool,
    /// Keep the result even of a dry run
    #[arg(long)]
    pub(crate) force_write_command_result: bool,
    /// How many results of operations are kept for a target
    #[arg(long, value_name = "N", default_value_t = 5)]
    keep_command_results_count: usize,
    /// How many results of validations are kept for a target
    #[arg(long, value_name = "N", default_value_t = 2)]
    keep_validate_results_count: usize,
}

impl ResultFlags {
    /// How many results are kept.
    pub(crate) fn keep(&self) -> Keep {
        Keep {
            commands: self.keep_command_results_count,
            validations: self.keep_validate_results_count,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_rules() {
        assert!(IgnoreFlags::default().rules().is_empty());
        let all = IgnoreFlags {
            ignore_kluctl_metadata: true,
            ..IgnoreFlags::default()
        };
        let rules = all.rules();
        assert_eq!(
            (rules.len(), rules[0].paths.len(), rules[0].path_patterns.len()),
            (1, 2, 1)
        );
    }
}

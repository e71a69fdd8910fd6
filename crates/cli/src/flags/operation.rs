//! Flags of commands that work on a cluster: confirmation, apply options, output and stored results.

use std::{path::PathBuf, time::Duration};

use clap::Args;
use engine::DeployOptions;
use kluctl::Inclusion;
use objects::rules::IgnoreRule;
use results::Retention;

use super::{duration, output::OutputTarget};

/// Confirmation and dry run.
#[derive(Args)]
#[command(next_help_heading = "Confirmation")]
pub(crate) struct ConfirmFlags {
    /// Skip the confirmation prompt
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Run as server-side dry run: show the result without changing the cluster
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// Conflicts and errors when objects are applied.
#[derive(Args)]
#[command(next_help_heading = "Apply options")]
#[allow(clippy::struct_excessive_bools, reason = "they are flags")]
pub(crate) struct ApplyFlags {
    /// Take ownership of all fields that are in conflict with other field managers
    #[arg(long)]
    pub(crate) force_apply: bool,
    /// Replace an object if server-side apply fails
    #[arg(long)]
    pub(crate) replace_on_error: bool,
    /// Delete and recreate an object if replacing it fails
    #[arg(long)]
    pub(crate) force_replace_on_error: bool,
    /// Stop at the first error instead of continuing with other objects
    #[arg(long)]
    pub(crate) abort_on_error: bool,
}

impl ApplyFlags {
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

/// Waiting for readiness.
#[derive(Args)]
#[command(next_help_heading = "Waiting")]
pub(crate) struct WaitFlags {
    /// Don't wait for objects to become ready
    #[arg(long)]
    pub(crate) no_wait: bool,
    /// Timeout for a single object to become ready
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = duration)]
    pub(crate) readiness_timeout: Duration,
}

/// Differences to leave out of a diff.
#[derive(Default, Args)]
#[command(next_help_heading = "Diff options")]
#[allow(clippy::struct_excessive_bools, reason = "they are flags")]
pub(crate) struct IgnoreFlags {
    /// Ignore changes of tag labels (kluctl.io/tag-*)
    #[arg(long)]
    ignore_tags: bool,
    /// Ignore changes of labels
    #[arg(long)]
    ignore_labels: bool,
    /// Ignore changes of annotations
    #[arg(long)]
    ignore_annotations: bool,
    /// Ignore changes of the labels and annotations that are added to each object (tags, discriminator, item directory)
    #[arg(long)]
    ignore_kluctl_metadata: bool,
}

impl IgnoreFlags {
    pub(crate) fn rules(&self) -> Vec<IgnoreRule> {
        let tags = r#"metadata\.labels\["kluctl\.io/tag-.*"\]"#;
        let mut rule = IgnoreRule::default();
        if self.ignore_tags || self.ignore_kluctl_metadata {
            rule.path_patterns.push(tags.to_owned());
        }
        for (enabled, path) in [
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
            if enabled {
                rule.paths.push(path.to_owned());
            }
        }
        let is_empty = rule.paths.is_empty() && rule.path_patterns.is_empty();
        if is_empty { Vec::new() } else { vec![rule] }
    }
}

/// Output of results.
#[derive(Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputFlags {
    /// Output format: text, yaml or json, with =FILE to write to a file. Can be repeated
    #[arg(short, long, value_name = "FORMAT[=FILE]")]
    pub(crate) output_format: Vec<OutputTarget>,
    /// Show the values of Secrets in diffs and results
    #[arg(long)]
    pub(crate) no_obfuscate: bool,
    /// Print object names only, without the diff of each object
    #[arg(long)]
    pub(crate) short_output: bool,
}

/// Destination of the rendered files.
#[derive(Default, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct RenderOutputFlag {
    /// Write the rendered files to this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) render_output_dir: Option<PathBuf>,
}

/// Command results that are stored in the cluster.
#[derive(Args)]
#[command(next_help_heading = "Command results")]
pub(crate) struct ResultFlags {
    /// Namespace in which command results are stored
    #[arg(long, value_name = "NAME", default_value = "kluctl-results")]
    pub(crate) command_result_namespace: String,
    /// Store the command result in the cluster
    #[arg(long, value_name = "BOOL", default_value = "true", default_missing_value = "true", num_args = 0..=1,
          require_equals = true, action = clap::ArgAction::Set)]
    pub(crate) write_command_result: bool,
    /// Store the command result of a dry run, too
    #[arg(long)]
    pub(crate) force_write_command_result: bool,
    /// Number of command results to keep per target
    #[arg(long, value_name = "N", default_value_t = 5)]
    keep_command_results_count: usize,
    /// Number of validation results to keep per target
    #[arg(long, value_name = "N", default_value_t = 2)]
    keep_validate_results_count: usize,
}

impl ResultFlags {
    pub(crate) fn retention(&self) -> Retention {
        Retention {
            commands: self.keep_command_results_count,
            validations: self.keep_validate_results_count,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignore_kluctl_metadata_becomes_one_rule() {
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

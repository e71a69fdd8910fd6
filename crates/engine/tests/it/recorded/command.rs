//! The command lines of recordings.

use std::time::Duration;

use anyhow::Result;
use cluster::Cluster;
use engine::HiddenDifferences;
use engine::{CommandResult, Contents, DeployOptions, Error, ValidateResult, commands};
use kluctl::Rendered;
use yaml::Value;

use super::expect::strings;

/// A command and its options.
#[derive(Default)]
pub(crate) struct Command {
    pub(crate) verb: String,
    pub(crate) target: Option<String>,
    pub(crate) discriminator: Option<String>,
    pub(crate) options: DeployOptions,
    /// True if a deployment prunes, too.
    prune: bool,
}

/// The outcome of a command.
pub(crate) struct Ended {
    /// The last line of its error output.
    pub(crate) error: Option<String>,
    pub(crate) result: Option<Value>,
}

impl Command {
    /// Reads a command line.
    pub(crate) fn parse(args: &Value) -> Result<Self> {
        let mut args = strings(Some(args));
        let mut command = Self {
            verb: args.next().unwrap_or_default().to_owned(),
            ..Self::default()
        };
        command.options.readiness_timeout = Duration::from_secs(300);
        let mut hidden = HiddenDifferences::default();
        while let Some(flag) = args.next() {
            let options = &mut command.options;
            let mut next = || args.next().unwrap_or_default().to_owned();
            match flag {
                "--dry-run" => options.dry_run = true,
                "--prune" => command.prune = true,
                "--force-apply" => options.force_apply = true,
                "--replace-on-error" => options.replace_on_error = true,
                "--force-replace-on-error" => options.force_replace_on_error = true,
                "--abort-on-error" => options.abort_on_error = true,
                "--no-wait" => options.no_wait = true,
                "--readiness-timeout" => {
                    options.readiness_timeout = next().parse::<api::GoDuration>()?.as_duration();
                }
                "-t" | "--target" => command.target = Some(next()),
                "--discriminator" => command.discriminator = Some(next()),
                "-I" | "--include-tag" => options.inclusion.include_tags.push(next()),
                "-E" | "--exclude-tag" => options.inclusion.exclude_tags.push(next()),
                "--include-deployment-dir" => options.inclusion.include_dirs.push(next()),
                "--exclude-deployment-dir" => options.inclusion.exclude_dirs.push(next()),
                "--ignore-tags" => hidden.tags = true,
                "--ignore-labels" => hidden.labels = true,
                "--ignore-annotations" => hidden.annotations = true,
                "--ignore-kluctl-metadata" => hidden.marks = true,
                other => anyhow::bail!("unknown flag {other}"),
            }
        }
        command.options.hidden = hidden.rules();
        Ok(command)
    }

    /// Runs the command as the command line does.
    pub(crate) async fn run(&self, cluster: &Cluster, rendered: &Rendered) -> Ended {
        match self.execute(cluster, rendered).await {
            Ok(ended) => ended,
            Err(error) => Ended {
                error: Some(error.to_string()),
                result: None,
            },
        }
    }

    async fn execute(&self, cluster: &Cluster, rendered: &Rendered) -> Result<Ended, Error> {
        let project = commands::Project::new(cluster, rendered);
        let options = &self.options;
        Ok(match self.verb.as_str() {
            "deploy" => commanded(&commands::deploy(&project, options, self.prune).await?),
            "diff" => commanded(&commands::diff(&project, options).await?),
            "prune" => commanded(&commands::prune(&project, options).await?),
            "delete" => commanded(&commands::delete(&project, self.discriminator.as_deref(), options).await?),
            "validate" => validated(&commands::validate(&project, None, |_| {}).await?),
            other => Ended {
                error: Some(format!("unknown command {other}")),
                result: None,
            },
        })
    }
}

fn commanded(result: &CommandResult) -> Ended {
    Ended {
        error: (!result.errors.is_empty()).then(|| "command failed".to_owned()),
        result: Some(without_empty(
            result.to_value(Contents::None),
            &["objects", "errors", "warnings"],
        )),
    }
}

fn validated(result: &ValidateResult) -> Ended {
    Ended {
        error: (!result.errors.is_empty()).then(|| "Validation failed".to_owned()),
        result: Some(without_empty(
            result.to_value(),
            &["errors", "warnings", "results"],
        )),
    }
}

fn without_empty(mut value: Value, lists: &[&str]) -> Value {
    if let Some(map) = value.as_map_mut() {
        for list in lists {
            if map
                .get(list)
                .and_then(Value::as_seq)
                .is_some_and(<[Value]>::is_empty)
            {
                map.remove(list);
            }
        }
    }
    value
}

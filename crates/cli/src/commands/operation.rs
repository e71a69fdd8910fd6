//! Shared parts of commands that work on a cluster: confirmation, output, and storing of results.

use std::{sync::Arc, time::Duration};

use anyhow::{Context as _, Result, bail};
use cluster::Cluster;
use engine::{Confirm, DeployOptions, commands::Project};
use futures::future::BoxFuture;
use kluctl::Rendered;
use objects::ObjectRef;
use results::{
    CommandResult, Contents, GitInfo, Initiator, Origin, ProjectKey, ResultStore,
    text::{self, Style},
};
use tokio_util::sync::CancellationToken;
use yaml::Value;

use crate::{
    color,
    flags::{
        OutputFlags, ResultFlags,
        output::{OutputFormat, OutputTarget},
    },
    output,
    progress::ProgressLines,
    session::Session,
    terminal::Terminal,
};

const STORE_TIMEOUT: Duration = Duration::from_secs(60);

/// Confirmation prompt on the terminal, which shows the changes first.
pub(super) struct ConfirmationPrompt {
    terminal: Terminal,
    style: Style,
}

impl Confirm for ConfirmationPrompt {
    fn changes<'a>(&'a self, trial: &'a CommandResult) -> BoxFuture<'a, bool> {
        let text = text::command_result(trial, self.style);
        self.terminal.plain(text.trim_end());
        let question = match trial.errors.is_empty() {
            true => "The diff succeeded, do you want to proceed?",
            false => "The diff resulted in errors, do you still want to proceed?",
        };
        Box::pin(self.ask(question.to_owned()))
    }

    fn deletions<'a>(&'a self, objects: &'a [ObjectRef]) -> BoxFuture<'a, bool> {
        self.terminal.plain("The following objects will be deleted:");
        for object in objects {
            self.terminal.plain(&format!("  {object}"));
        }
        Box::pin(self.ask(format!("Do you really want to delete {} objects?", objects.len())))
    }
}

impl ConfirmationPrompt {
    async fn ask(&self, question: String) -> bool {
        let terminal = self.terminal.clone();
        tokio::task::spawn_blocking(move || terminal.ask(&question))
            .await
            .unwrap_or(false)
    }
}

/// Operation of a command on a rendered project and its cluster.
pub(super) struct Operation<'a> {
    pub(super) session: &'a Session,
    pub(super) cluster: &'a Cluster,
    pub(super) rendered: &'a Rendered,
    pub(super) output: &'a OutputFlags,
    confirmation: Option<ConfirmationPrompt>,
}

impl<'a> Operation<'a> {
    /// Creates an operation that asks for confirmation unless `yes` is true.
    pub(super) fn new(
        session: &'a Session,
        cluster: &'a Cluster,
        rendered: &'a Rendered,
        output: &'a OutputFlags,
        yes: bool,
    ) -> Self {
        let terminal = session.terminal.clone();
        let confirmation = (!yes).then(|| ConfirmationPrompt {
            terminal,
            style: style(output.short_output),
        });
        Self {
            session,
            cluster,
            rendered,
            output,
            confirmation,
        }
    }

    /// Warns if the objects of the target can't be told from others.
    pub(super) fn warn_without_discriminator(&self) {
        if self.rendered.target.discriminator.is_none() {
            let warning = "No discriminator configured. Orphan object detection will not work";
            self.session.terminal.warning(warning);
        }
    }

    pub(super) fn project(&self) -> Result<Project<'_>> {
        let mut project = Project::new(self.cluster, self.rendered);
        project.origin = self.origin()?;
        project.confirm = self.confirmation.as_ref().map(|prompt| prompt as &dyn Confirm);
        Ok(project)
    }

    /// Adds the output flags and the progress display to the options.
    fn options(&self, options: DeployOptions) -> DeployOptions {
        DeployOptions {
            show_secrets: self.output.no_obfuscate,
            progress: Some(Arc::new(ProgressLines::on(&self.session.terminal))),
            ..options
        }
    }

    fn origin(&self) -> Result<Origin> {
        let request = &self.session.request;
        // The cluster ID needs read access to the namespace kube-system; everything else works without it.
        let cluster_id = self.session.runtime.block_on(self.cluster.id());
        let cluster_id = cluster_id.unwrap_or_else(|error| {
            let terminal = &self.session.terminal;
            let why = match error.is_forbidden() {
                true => " due to missing get/list permissions for the kube-system namespace",
                false => "",
            };
            terminal.warning(&format!("failed to determine cluster ID{why}: {error}"));
            String::new()
        });
        let git = self.session.git_info();
        Ok(Origin {
            initiator: Initiator::CommandLine,
            project: ProjectKey {
                repo_key: git.as_ref().map(|git| git.repo_key.clone()).unwrap_or_default(),
                sub_dir: request.project_dir.as_str().to_owned(),
            },
            git: git.map(|git| git.info),
            cluster_id,
            target_name_override: request.target_name_override.clone().unwrap_or_default(),
            context_override: request.context_override.clone().unwrap_or_default(),
            args: request.args.clone(),
            images: request
                .images
                .iter()
                .map(|image| Value::Map(image.to_map()))
                .collect(),
            ..Origin::default()
        })
    }

    /// Runs an engine command, prints the result, and stores it in the cluster if `store` is set. Fails with `command failed` if the
    /// result has errors.
    pub(super) fn run<A>(&self, options: DeployOptions, store: Option<&ResultFlags>, command: A) -> Result<()>
    where
        A: AsyncFnOnce(&Project<'_>, &DeployOptions) -> Result<CommandResult, engine::Error>,
    {
        let options = self.options(options);
        let project = self.project()?;
        let result = self.session.runtime.block_on(command(&project, &options))?;
        // Removes the status lines before the result is printed.
        drop(options);
        self.finish(&result, store)
    }

    fn finish(&self, result: &CommandResult, store: Option<&ResultFlags>) -> Result<()> {
        for output in formats(&self.output.output_format) {
            let text = match output.format {
                OutputFormat::Text => text::command_result(result, style(self.output.short_output)),
                OutputFormat::Yaml => yaml::print::goyaml(&result.to_value(Contents::Compacted)),
                OutputFormat::Json => json(&result.to_value(Contents::Compacted)),
            };
            print(&output, &text)?;
        }
        // The text output is on stdout; kluctl prints these on stderr, too.
        let is_cancelled_wait = |message: &str| message.starts_with("context cancelled while waiting");
        for error in result
            .errors
            .iter()
            .filter(|error| is_cancelled_wait(&error.message))
        {
            self.session.terminal.failure(&error.message);
        }
        if let Some(flags) = store {
            self.store(result, flags)?;
        }
        if !result.errors.is_empty() {
            bail!("command failed");
        }
        Ok(())
    }

    fn store(&self, result: &CommandResult, flags: &ResultFlags) -> Result<()> {
        let wanted = flags.write_command_result && !result.dry_run || flags.force_write_command_result;
        if !wanted {
            return Ok(());
        }
        let step = self.session.terminal.start("Writing command result");
        // The result of a cancelled operation is stored, too.
        let cluster = self.cluster.until(CancellationToken::new());
        let store = ResultStore::new(cluster, &flags.command_result_namespace, flags.retention());
        let work = async { tokio::time::timeout(STORE_TIMEOUT, store.write_command(result)).await };
        let written = self.session.runtime.block_on(work);
        match written.context("store the command result in the cluster: timeout")? {
            Err(error) if error.is_denied() => {
                drop(step);
                let terminal = &self.session.terminal;
                terminal.warning("Not enough permissions to write to the result store.");
                Ok(())
            }
            Err(error) => Err(error).context("store the command result in the cluster"),
            Ok(()) => {
                step.done();
                Ok(())
            }
        }
    }
}

/// Git commit of a project and the key of its repository, for results.
pub(crate) struct ProjectCommit {
    pub(crate) info: GitInfo,
    pub(crate) repo_key: String,
}

/// Returns the requested outputs; text on stdout if there are none.
pub(super) fn formats(requested: &[OutputTarget]) -> Vec<OutputTarget> {
    if requested.is_empty() {
        let (format, file) = (OutputFormat::Text, None);
        return vec![OutputTarget { format, file }];
    }
    requested.to_vec()
}

pub(super) fn style(short: bool) -> Style {
    Style {
        short,
        width: output::width().unwrap_or(Style::default().width),
    }
}

pub(super) fn json(value: &Value) -> String {
    format!("{}\n", yaml::print::json(value))
}

pub(super) fn print(output: &OutputTarget, text: &str) -> Result<()> {
    match &output.file {
        None if output.format == OutputFormat::Text => color::print(text),
        file => output::print_to(file.as_deref(), text),
    }
}

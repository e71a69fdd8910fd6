//! What all operations on a cluster have in common: who is asked, what is printed, what is kept.

use std::{sync::Arc, time::Duration};

use anyhow::{Context as _, Result, bail};
use cluster::Cluster;
use engine::{
    CommandResult, Confirm, Contents, DeployOptions, GitInfo, Initiator, Origin, ProjectKey, ResultStore,
    commands::Project,
    text::{self, Style},
};
use futures::future::BoxFuture;
use kluctl::Rendered;
use objects::ObjectRef;
use tokio_util::sync::CancellationToken;
use yaml::Value;

use crate::{
    flags::{
        OutputFlags, ResultFlags,
        output::{Format, Output},
    },
    output, paint,
    progress::Shown,
    session::Session,
    terminal::Terminal,
};

/// How long keeping a result may take.
const KEEPING: Duration = Duration::from_secs(60);

/// Somebody at the terminal, who is shown what would change.
pub(super) struct Asking {
    terminal: Terminal,
    style: Style,
}

impl Confirm for Asking {
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

impl Asking {
    async fn ask(&self, question: String) -> bool {
        let terminal = self.terminal.clone();
        tokio::task::spawn_blocking(move || terminal.ask(&question))
            .await
            .unwrap_or(false)
    }
}

/// An operation under way.
pub(super) struct Operation<'a> {
    pub(super) session: &'a Session,
    pub(super) cluster: &'a Cluster,
    pub(super) rendered: &'a Rendered,
    pub(super) output: &'a OutputFlags,
    asking: Option<Asking>,
}

impl<'a> Operation<'a> {
    /// An operation that asks before it changes anything, unless `yes`.
    pub(super) fn new(
        session: &'a Session,
        cluster: &'a Cluster,
        rendered: &'a Rendered,
        output: &'a OutputFlags,
        yes: bool,
    ) -> Self {
        let terminal = session.terminal.clone();
        let asking = (!yes).then(|| Asking {
            terminal,
            style: style(output),
        });
        Self {
            session,
            cluster,
            rendered,
            output,
            asking,
        }
    }

    /// The project, as the engine wants it.
    pub(super) fn project(&self) -> Result<Project<'_>> {
        let mut project = Project::new(self.cluster, self.rendered);
        project.origin = self.origin()?;
        project.confirm = self.asking.as_ref().map(|asking| asking as &dyn Confirm);
        Ok(project)
    }

    /// The options with what the flags of output say.
    fn options(&self, options: DeployOptions) -> DeployOptions {
        DeployOptions {
            show_secrets: self.output.no_obfuscate,
            progress: Some(Arc::new(Shown::on(&self.session.terminal))),
            ..options
        }
    }

    fn origin(&self) -> Result<Origin> {
        let request = &self.session.request;
        // Who may not read the namespace can do all else.
        let cluster_id = self.session.runtime.block_on(self.cluster.id());
        let cluster_id = cluster_id.unwrap_or_else(|error| {
            let terminal = &self.session.terminal;
            terminal.warning(&format!("The identity of the cluster is not known: {error}"));
            String::new()
        });
        let git = self.session.git_info();
        Ok(Origin {
            initiator: Initiator::CommandLine,
            project: ProjectKey {
                repo_key: git.as_ref().map(|git| git.repo_key.clone()).unwrap_or_default(),
                sub_dir: request.project_dir.to_string(),
            },
            git: git.map(|git| git.info),
            cluster_id,
            target_name_override: request.target_name_override.clone().unwrap_or_default(),
            context_override: request.context_override.clone().unwrap_or_default(),
            args: request.args.clone(),
            ..Origin::default()
        })
    }

    /// Lets the engine act, prints the result, keeps it where it is told to, and fails when it holds errors.
    pub(super) fn carry_out<A>(
        &self,
        options: DeployOptions,
        kept: Option<&ResultFlags>,
        act: A,
    ) -> Result<()>
    where
        A: AsyncFnOnce(&Project<'_>, &DeployOptions) -> Result<CommandResult, engine::Error>,
    {
        let options = self.options(options);
        let project = self.project()?;
        let result = self.session.runtime.block_on(act(&project, &options))?;
        // The lines of the progress end before the result begins.
        drop(options);
        self.conclude(&result, kept)
    }

    fn conclude(&self, result: &CommandResult, kept: Option<&ResultFlags>) -> Result<()> {
        for output in formats(self.output) {
            let text = match output.format {
                Format::Text => text::command_result(result, style(self.output)),
                Format::Yaml => yaml::print::goyaml(&result.to_value(Contents::Compacted)),
                Format::Json => json(&result.to_value(Contents::Compacted)),
            };
            print(&output, &text)?;
        }
        if let Some(flags) = kept {
            self.keep(result, flags)?;
        }
        if !result.errors.is_empty() {
            bail!("command failed");
        }
        Ok(())
    }

    fn keep(&self, result: &CommandResult, flags: &ResultFlags) -> Result<()> {
        let wanted = flags.write_command_result && !result.dry_run || flags.force_write_command_result;
        if !wanted {
            return Ok(());
        }
        let step = self.session.terminal.start("Writing command result");
        // What was interrupted is kept, too.
        let cluster = self.cluster.until(CancellationToken::new());
        let store = ResultStore::new(cluster, &flags.command_result_namespace, flags.keep());
        let work = async { tokio::time::timeout(KEEPING, store.write_command(result)).await };
        let written = self.session.runtime.block_on(work);
        match written.context("keep the result in the cluster: it took too long")? {
            Err(error) if error.is_denied() => {
                drop(step);
                let terminal = &self.session.terminal;
                terminal.warning("Not enough permissions to write to the result store.");
                Ok(())
            }
            Err(error) => Err(error).context("keep the result in the cluster"),
            Ok(()) => {
                step.done();
                Ok(())
            }
        }
    }
}

/// What is known of the commit that results are made of.
pub(crate) struct Commit {
    pub(crate) info: GitInfo,
    pub(crate) repo_key: String,
}

/// The forms that are asked for: text on stdout, if none is.
pub(super) fn formats(flags: &OutputFlags) -> Vec<Output> {
    if flags.output_format.is_empty() {
        let (format, file) = (Format::Text, None);
        return vec![Output { format, file }];
    }
    flags.output_format.clone()
}

pub(super) fn style(flags: &OutputFlags) -> Style {
    Style {
        short: flags.short_output,
        width: output::width().unwrap_or(Style::default().width),
    }
}

pub(super) fn json(value: &Value) -> String {
    format!("{}\n", yaml::print::json(value))
}

/// Prints to stdout or into a file.
pub(super) fn print(output: &Output, text: &str) -> Result<()> {
    match &output.file {
        None if output.format == Format::Text => paint::print(text),
        file => output::print_to(file.as_deref(), text),
    }
}

//! `weir gitops`: commands that drive the kluctl-controller through KluctlDeployments of `gitops.kluctl.io`.
//!
//! A request is an annotation with a unique value. The controller removes it, does the work, and reports in the status; its result is
//! in the store of results.

mod flags;
mod list;
mod logs;
mod patch;
mod request;
mod results;
mod select;
mod sources;
mod suspend;

use std::{ops::Deref, time::Duration};

use anyhow::Result;
use api::kluctl::gitops::RequestKind;
use clap::{Args, Subcommand};
use objects::ObjectRef;

use super::validate::as_by_kluctl;
use crate::{
    deferred::Deferred,
    flags::{ClusterFlags, Connection},
    usage::boolean_flag,
};
use flags::{
    DeployOverrideFlags, LogFlags, OverrideFlags, ResultOutputFlags, SelectFlags, TimeoutFlag,
    UnusedResultFlag, YesFlag,
};
use patch::Overrides;
use request::{Handled, Request};
use select::Unnamed;

/// Field manager of the patches: kluctl's.
const MANAGER: &str = "kluctl";

/// Subcommands of `weir gitops`.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// List KluctlDeployments with their state
    List(Deferred<list::ListArgs>),
    /// Suspend KluctlDeployments: they are not reconciled until they are resumed
    Suspend(Deferred<suspend::SuspendArgs>),
    /// Resume suspended KluctlDeployments
    Resume(Deferred<suspend::SuspendArgs>),
    /// Request a reconciliation, and wait for it
    Reconcile(Deferred<ReconcileArgs>),
    /// Show the changes that a deployment by the controller would make
    Diff(Deferred<DiffArgs>),
    /// Request a deployment, and print its result
    Deploy(Deferred<DeployArgs>),
    /// Request that orphans are deleted, and print the result
    Prune(Deferred<PruneArgs>),
    /// Request a validation, and print its result
    Validate(Deferred<ValidateArgs>),
    /// Print the logs of the controller about KluctlDeployments
    Logs(Deferred<logs::LogsArgs>),
}

#[derive(Args)]
struct RequestFlags {
    #[command(flatten)]
    select: SelectFlags,
    #[command(flatten)]
    cluster: ClusterFlags,
    #[command(flatten)]
    waiting: TimeoutFlag,
    #[command(flatten)]
    logs: LogFlags,
    #[command(flatten)]
    overrides: OverrideFlags,
}

const RECONCILE_EXAMPLES: &str = "Examples:
  # Reconcile a KluctlDeployment
  weir gitops reconcile --name shop -n apps

  # Reconcile all of a team, without a question
  weir gitops reconcile -l team=shop --yes";

/// Request a reconciliation, and wait for it
///
/// The controller reconciles the KluctlDeployment even if it is suspended, and deploys changes. Without --name and
/// --label-selector, the KluctlDeployments with the Git repository and directory of the local project are selected.
#[derive(Args)]
#[command(mut_args = boolean_flag, args_override_self = true, after_help = RECONCILE_EXAMPLES)]
pub(crate) struct ReconcileArgs {
    #[command(flatten)]
    request: RequestFlags,
    #[command(flatten)]
    confirm: YesFlag,
    #[command(flatten)]
    deploy: DeployOverrideFlags,
    #[command(flatten)]
    _result: UnusedResultFlag,
}

const DIFF_EXAMPLES: &str = "Examples:
  # Show what a deployment would change
  weir gitops diff --name shop -n apps

  # With local files in the place of a repository that the project includes
  weir gitops diff --name shop -n apps --local-git-override github.com/org/lib=../lib";

/// Show the changes that a deployment by the controller would make
///
/// Nothing is changed, and the stored result is deleted after it is printed. Without --name and --label-selector, the
/// KluctlDeployments with the Git repository and directory of the local project are selected.
#[derive(Args)]
#[command(mut_args = boolean_flag, args_override_self = true, after_help = DIFF_EXAMPLES)]
pub(crate) struct DiffArgs {
    #[command(flatten)]
    request: RequestFlags,
    #[command(flatten)]
    output: ResultOutputFlags,
}

const DEPLOY_EXAMPLES: &str = "Examples:
  # Deploy now
  weir gitops deploy --name shop -n apps

  # Deploy once with another argument
  weir gitops deploy --name shop -n apps -a version=1.2.3 --yes";

/// Request a deployment, and print its result
///
/// The controller deploys the current commit of the source, even if the KluctlDeployment is suspended or waits for approval. Without
/// --name and --label-selector, the KluctlDeployments with the Git repository and directory of the local project are selected.
#[derive(Args)]
#[command(mut_args = boolean_flag, args_override_self = true, after_help = DEPLOY_EXAMPLES)]
pub(crate) struct DeployArgs {
    #[command(flatten)]
    request: RequestFlags,
    #[command(flatten)]
    confirm: YesFlag,
    #[command(flatten)]
    deploy: DeployOverrideFlags,
    #[command(flatten)]
    output: ResultOutputFlags,
}

const PRUNE_EXAMPLES: &str = "Examples:
  # Delete the orphans of a KluctlDeployment
  weir gitops prune --name shop -n apps";

/// Request that orphans are deleted, and print the result
///
/// The controller deletes the objects that are no longer part of the project, even if spec.prune is false. Without --name and
/// --label-selector, the KluctlDeployments with the Git repository and directory of the local project are selected.
#[derive(Args)]
#[command(mut_args = boolean_flag, args_override_self = true, after_help = PRUNE_EXAMPLES)]
pub(crate) struct PruneArgs {
    #[command(flatten)]
    request: RequestFlags,
    #[command(flatten)]
    confirm: YesFlag,
    #[command(flatten)]
    output: ResultOutputFlags,
}

const VALIDATE_EXAMPLES: &str = "Examples:
  # Check that all objects of a KluctlDeployment are ready
  weir gitops validate --name shop -n apps --warnings-as-errors";

/// Request a validation, and print its result
///
/// Without --name and --label-selector, the KluctlDeployments with the Git repository and directory of the local project are selected.
#[derive(Args)]
#[command(mut_args = |flag| as_by_kluctl(boolean_flag(flag)), args_override_self = true, after_help = VALIDATE_EXAMPLES)]
pub(crate) struct ValidateArgs {
    #[command(flatten)]
    request: RequestFlags,
    #[command(flatten)]
    confirm: YesFlag,
    #[command(flatten)]
    output: ResultOutputFlags,
    /// Treat warnings as errors
    #[arg(long)]
    warnings_as_errors: bool,
}

pub(crate) fn run(command: &Command) -> Result<()> {
    match command {
        Command::List(args) => list::run(args),
        Command::Suspend(args) => suspend::run(args, true),
        Command::Resume(args) => suspend::run(args, false),
        Command::Logs(args) => logs::run(args),
        Command::Reconcile(args) => {
            let asked = args
                .request
                .ask(RequestKind::Reconcile, &args.deploy, args.confirm.yes)?;
            asked.run(|_, _| Ok(()))
        }
        Command::Diff(args) => {
            let asked = args
                .request
                .ask(RequestKind::Diff, &DeployOverrideFlags::default(), true)?;
            let mut printer = results::Printer::new(&asked.ops, &args.output);
            asked.run(|of, handled| printer.diff(of, handled))
        }
        Command::Deploy(args) => {
            let asked = args
                .request
                .ask(RequestKind::Deploy, &args.deploy, args.confirm.yes)?;
            let mut printer = results::Printer::new(&asked.ops, &args.output);
            asked.run(|of, handled| printer.command(of, handled, "Deployed"))
        }
        Command::Prune(args) => {
            let overrides = DeployOverrideFlags::default();
            let asked = args
                .request
                .ask(RequestKind::Prune, &overrides, args.confirm.yes)?;
            let mut printer = results::Printer::new(&asked.ops, &args.output);
            asked.run(|of, handled| printer.command(of, handled, "Pruned"))
        }
        Command::Validate(args) => {
            let overrides = DeployOverrideFlags::default();
            let asked = args
                .request
                .ask(RequestKind::Validate, &overrides, args.confirm.yes)?;
            let mut printer = results::Printer::new(&asked.ops, &args.output);
            asked.run(|of, handled| printer.validation(of, handled, args.warnings_as_errors))
        }
    }
}

/// A request and its objects.
struct SelectedRequest<'a> {
    ops: GitOps,
    request: Request<'a>,
    found: Vec<ObjectRef>,
}

impl RequestFlags {
    /// Selects the objects of a request, after confirmation unless `yes` is true.
    fn ask(&self, kind: RequestKind, deploy: &DeployOverrideFlags, yes: bool) -> Result<SelectedRequest<'_>> {
        let overrides = Overrides::read(&self.overrides, deploy)?;
        let ops = GitOps::open(&self.cluster, self.waiting.timeout)?;
        // First, so that the confirming user knows the used source.
        let sources = sources::offer(&ops, &self.overrides, &self.logs, &self.select)?;
        if sources.is_empty() {
            ops.warn_of_changes(&self.select);
        }
        let found = ops.select(&self.select, Unnamed::Confirm, kind.name(), yes)?;
        let request = Request::new(kind, overrides.with_sources(sources), &self.logs);
        Ok(SelectedRequest { ops, request, found })
    }
}

impl SelectedRequest<'_> {
    /// Makes the request, and calls `show` with each answer.
    fn run(&self, show: impl FnMut(&ObjectRef, &Handled) -> Result<()>) -> Result<()> {
        request::run(&self.ops, &self.request, &self.found, show)
    }
}

/// Connection to the cluster with the KluctlDeployments.
struct GitOps(Connection);

impl Deref for GitOps {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.0
    }
}

impl GitOps {
    /// Connects to the cluster. Work is cancelled after the timeout, and at Ctrl-C.
    fn open(flags: &ClusterFlags, timeout: Duration) -> Result<Self> {
        Ok(Self(flags.connect(timeout)?))
    }
}

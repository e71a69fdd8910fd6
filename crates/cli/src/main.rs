//! The command line program `weir`.

mod archive;
mod arguments;
mod color;
mod commands;
mod deferred;
mod environment;
mod files;
mod flags;
mod groups;
mod logins;
mod output;
mod pod_logs;
mod progress;
mod session;
mod terminal;
mod usage;

use std::{ffi::OsString, io::Write as _, mem::ManuallyDrop, process::ExitCode};

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use commands::{
    completion, controller, delete, deploy, flux, gitops, helm, helm_pull, helm_update, kustomize, list, oci,
    poke_images, render, validate,
};
use deferred::Deferred;
use environment::FlagDefaults;

/// Deliver from Git to Kubernetes: install the controllers, look at them and steer them, and deploy kluctl projects
#[derive(Parser)]
#[command(
    name = "weir",
    version,
    subcommand_required = true,
    arg_required_else_help = true
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Deploy a target to its cluster
    Deploy(Deferred<deploy::DeployArgs>),
    /// Show the changes that a deployment, or local manifests of a Kustomization, would make
    Diff(flux::preview::diff::DiffCommand),
    /// Delete objects that are no longer part of a target (orphans)
    Prune(Deferred<delete::PruneArgs>),
    /// Delete all objects of a target, or single objects of Flux and kluctl
    Delete(delete::DeleteCommand),
    /// Check that all objects of a target exist and are ready
    Validate(Deferred<validate::ValidateArgs>),
    /// Update images of deployed objects
    PokeImages(Deferred<poke_images::PokeArgs>),
    /// Render a target without deploying it
    Render(Deferred<render::RenderArgs>),
    /// List the targets of a project
    ListTargets(Deferred<list::TargetsArgs>),
    /// List the images of a target
    ListImages(Deferred<list::ImagesArgs>),
    /// Pull the Helm charts of a project into .helm-charts
    HelmPull(Deferred<helm_pull::PullArgs>),
    /// Check the Helm charts of a project for new versions, and upgrade them
    HelmUpdate(Deferred<helm_update::UpdateArgs>),
    /// Print objects of Flux and kluctl in the cluster, with their state
    #[command(subcommand)]
    Get(flux::ByKind<flux::inspect::get::Get>),
    /// Create or update sources, deployments, alerts, tenants and Secrets in the cluster, or print them
    #[command(subcommand)]
    Create(flux::steer::create::Command),
    /// Build Kustomizations of Flux from local manifests
    #[command(subcommand)]
    Build(flux::preview::build::Command),
    /// Request reconciliations of objects in the cluster, and wait for them
    #[command(subcommand)]
    Reconcile(flux::ByKind<flux::steer::reconcile::Reconcile>),
    /// Suspend objects in the cluster: their controllers leave them alone
    #[command(subcommand)]
    Suspend(flux::ByKind<flux::steer::suspend::Suspend>),
    /// Resume suspended objects in the cluster
    #[command(subcommand)]
    Resume(flux::ByKind<flux::steer::suspend::Resume>),
    /// Send webhooks to Receivers
    #[command(subcommand)]
    Trigger(flux::steer::trigger::Command),
    /// Show the problems of the cluster, grouped by cause, with remedies
    Status(Deferred<flux::inspect::status::StatusArgs>),
    /// Explain why an object is not ready
    Explain(Deferred<flux::inspect::explain::ExplainArgs>),
    /// Print Kubernetes events about objects of Flux and kluctl
    Events(Deferred<flux::inspect::events::EventsArgs>),
    /// Print the objects that a Kustomization, HelmRelease or KluctlDeployment deployed, or an ArtifactGenerator made
    #[command(subcommand)]
    Tree(flux::ByKind<flux::inspect::tree::Inventories>),
    /// Print the status, history, variables, values or arguments of one object
    #[command(subcommand)]
    Debug(flux::inspect::debug::Command),
    /// Show which objects of Flux and kluctl an object in the cluster comes from
    Trace(Deferred<flux::inspect::trace::TraceArgs>),
    /// Print objects of Flux and kluctl as YAML that can be applied
    #[command(subcommand)]
    Export(flux::ByKind<flux::inspect::export::Export>),
    /// Count objects by their state, and the storage of sources
    Stats(Deferred<flux::inspect::stats::StatsArgs>),
    /// Print the logs of the controllers about objects, in the order of time
    Logs(Deferred<flux::inspect::logs::LogsArgs>),
    /// Drive the kluctl-controller: deploy, diff, validate, suspend and more by requests to it
    #[command(subcommand)]
    Gitops(gitops::Command),
    /// Install the kluctl-controller
    #[command(subcommand)]
    Controller(controller::Command),
    /// Push projects to OCI registries
    #[command(subcommand)]
    Oci(oci::Command),
    /// Build kustomizations
    #[command(subcommand)]
    Kustomize(kustomize::Command),
    /// Render Helm charts
    #[command(subcommand)]
    Helm(helm::Command),
    /// Install the controllers, or upgrade them
    Install(Deferred<flux::life::InstallArgs>),
    /// Install the controllers, and let them follow a Git repository
    #[command(subcommand)]
    Bootstrap(flux::life::bootstrap::Command),
    /// Check the cluster and the controllers
    Check(Deferred<flux::life::CheckArgs>),
    /// Move objects or files to the newest versions of the APIs
    Migrate(Deferred<flux::life::MigrateArgs>),
    /// Remove the controllers; their deployments stay
    Uninstall(Deferred<flux::life::UninstallArgs>),
    /// Print the versions of weir, the controllers and Kubernetes
    Version(Deferred<flux::life::VersionArgs>),
    /// Generate a shell completion script
    Completion(Deferred<completion::CompletionArgs>),
    /// Generate man pages
    Man(Deferred<completion::ManArgs>),
}

fn main() -> ExitCode {
    tree::panics::print_with(|position| {
        let _ = writeln!(
            std::io::stderr(),
            "Error: an internal error at {position}: please report it"
        );
    });
    let result = match parse(std::env::args_os().collect()) {
        Err(ParseError::Usage(error, subcommands)) => {
            return usage::report(&error, &subcommands, unsupported_command(), unsupported_flags());
        }
        Err(ParseError::Defaults(error)) => Err(error),
        Ok(Cli { command }) => run(command),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let sign = if flux::is_invoked() { "✗" } else { "Error:" };
            let _ = writeln!(std::io::stderr(), "{sign} {}", output::error_chain(&error));
            flux::preview::Failure::exit_code(&error)
        }
    }
}

enum ParseError {
    /// The error, and the subcommands of the last command that was understood.
    Usage(clap::Error, Vec<String>),
    Defaults(anyhow::Error),
}

/// Parses the arguments, with the defaults of the environment and the config file.
fn parse(args: Vec<OsString>) -> Result<Cli, ParseError> {
    // The process ends soon: taking hundreds of commands apart would be a part of the time of a short one.
    let mut program = ManuallyDrop::new(groups::grouped(Cli::command()));
    let args = arguments::subcommand_first(&program, args);
    // The defaults are kluctl's; these commands have no counterpart in kluctl.
    let is_foreign = |word: &OsString| {
        ["kustomize", "helm", "completion", "man"]
            .iter()
            .any(|name| word == name)
    };
    let args = if args.get(1).is_none_or(is_foreign) {
        args
    } else {
        let defaults = FlagDefaults::read().map_err(ParseError::Defaults)?;
        let is_flux = args.get(1..).is_some_and(flux::is_command);
        // Flags of the same name have another meaning for flux, except for those that select the cluster.
        defaults.insert(&program, args, |flag| {
            !is_flux || ["kubeconfig", "context"].contains(&flag)
        })
    };
    program
        .try_get_matches_from_mut(&args)
        .and_then(|matches| Cli::from_arg_matches(&matches))
        .map_err(|error| {
            let subcommands = subcommands(&program, &args);
            ParseError::Usage(error.format(&mut program), subcommands)
        })
}

/// Returns the subcommands of the last command that the arguments name.
fn subcommands(program: &clap::Command, args: &[OsString]) -> Vec<String> {
    let mut command = program;
    for word in args.iter().skip(1) {
        match word.to_str().and_then(|word| command.find_subcommand(word)) {
            Some(next) => command = next,
            None => break,
        }
    }
    let known = command
        .get_subcommands()
        .filter(|known| !known.is_hide_set() && known.get_name() != "help");
    known.map(|known| known.get_name().to_owned()).collect()
}

fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Deploy(args) => deploy::run(&args),
        Command::Diff(command) => flux::preview::diff::run(&command),
        Command::Prune(args) => delete::prune(&args),
        Command::Delete(command) => delete::delete(&command),
        Command::Validate(args) => validate::run(&args),
        Command::PokeImages(args) => poke_images::run(&args),
        Command::Render(args) => render::run(&args),
        Command::ListTargets(args) => list::targets(&args),
        Command::ListImages(args) => list::images(&args),
        Command::Kustomize(command) => kustomize::run(&command),
        Command::Helm(command) => helm::run(&command),
        Command::HelmPull(args) => helm_pull::run(&args),
        Command::HelmUpdate(args) => helm_update::run(&args),
        Command::Get(command) => flux::inspect::get::run(&command),
        Command::Create(command) => flux::steer::create::run(&command),
        Command::Build(command) => flux::preview::build::run(&command),
        Command::Reconcile(command) => flux::steer::reconcile::run(&command),
        Command::Suspend(command) => flux::steer::suspend::suspend(&command),
        Command::Resume(command) => flux::steer::suspend::resume(&command),
        Command::Trigger(command) => flux::steer::trigger::run(&command),
        Command::Status(args) => flux::inspect::status::run(&args),
        Command::Explain(args) => flux::inspect::explain::run(&args),
        Command::Debug(command) => flux::inspect::debug::run(&command),
        Command::Events(args) => flux::inspect::events::run(&args),
        Command::Tree(command) => flux::inspect::tree::run(&command),
        Command::Trace(args) => flux::inspect::trace::run(&args),
        Command::Export(command) => flux::inspect::export::run(&command),
        Command::Stats(args) => flux::inspect::stats::run(&args),
        Command::Logs(args) => flux::inspect::logs::run(&args),
        Command::Gitops(command) => gitops::run(&command),
        Command::Controller(command) => controller::run(&command),
        Command::Oci(command) => oci::run(&command),
        Command::Install(args) => flux::life::install(&args),
        Command::Bootstrap(command) => flux::life::bootstrap::run(&command),
        Command::Check(args) => flux::life::check(&args),
        Command::Migrate(args) => flux::life::migrate(&args),
        Command::Uninstall(args) => flux::life::uninstall(&args),
        Command::Version(args) => flux::life::version(&args),
        Command::Completion(args) => completion::complete(&args, Cli::command()),
        Command::Man(args) => completion::man(&args, Cli::command()),
    }
}

/// Returns the refusal of the invoked command if an original has it and weir has not.
fn unsupported_command() -> Option<String> {
    flux::unsupported_command(&std::env::args_os().skip(1).collect::<Vec<_>>())
}

/// Returns the unsupported flags of the original of the invoked command.
fn unsupported_flags() -> usage::UnsupportedFlags {
    match std::env::args().nth(1).as_deref() {
        Some("kustomize") => kustomize::UNSUPPORTED_FLAGS,
        Some("helm") => helm::UNSUPPORTED_FLAGS,
        _ if flux::is_invoked() => flux::UNSUPPORTED_FLAGS,
        _ => commands::UNSUPPORTED_FLAGS,
    }
}

#[cfg(test)]
mod tests;

//! `weir controller`: installs the kluctl-controller.

use std::{path::PathBuf, sync::Arc};

use anyhow::Result;
use clap::{Args, FromArgMatches as _, Subcommand};
use tree::Tree;

use crate::{
    deferred::Deferred,
    flags::{ConfirmFlags, OutputFlags, RenderInputFlags, ResultFlags, TerminalFlags, path::existing_file},
    usage::boolean_flag,
};

/// Subcommands of `weir controller`.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Install the kluctl-controller, or upgrade it
    Install(Deferred<InstallArgs>),
}

const EXAMPLES: &str = "Examples:
  # Install the controller, or upgrade it, after a diff and a question
  weir controller install

  # Install it into another cluster, from a mirror of its image
  weir controller install --context prod --kluctl-image registry.example.com/kluctl-controller --yes";

/// Install the kluctl-controller, or upgrade it
///
/// Deploys the controller to the namespace kluctl-system, after a diff and a confirmation. It acts as cluster-admin, as kluctl's does;
/// deploy/README.md has manifests with fewer rights.
#[derive(Args)]
#[command(mut_args = boolean_flag, args_override_self = true, after_help = EXAMPLES)]
pub(crate) struct InstallArgs {
    #[command(flatten)]
    controller: ControllerFlags,
    #[command(flatten)]
    cluster: ClusterFlags,
    #[command(flatten)]
    confirm: ConfirmFlags,
    #[command(flatten)]
    output: OutputFlags,
    #[command(flatten)]
    results: ResultFlags,
}

#[derive(Args)]
#[command(next_help_heading = "Controller")]
struct ControllerFlags {
    /// Version of the controller, the tag of its image
    #[arg(long, value_name = "VERSION", default_value = install::VERSION)]
    kluctl_version: String,
    /// Image of the controller, without its tag
    #[arg(long, value_name = "IMAGE", default_value = "weir/kluctl-controller")]
    kluctl_image: String,
    /// Set an argument of the installation, such as controller_args=[--debug]; NAME=@FILE loads its value from a YAML file. Can be repeated
    #[arg(short, long, value_name = "NAME=VALUE", allow_hyphen_values = true)]
    arg: Vec<String>,
}

#[derive(Args)]
#[command(next_help_heading = "Cluster")]
struct ClusterFlags {
    /// Kubeconfig file; defaults to $KUBECONFIG, then ~/.kube/config
    #[arg(long, value_name = "FILE", value_parser = existing_file)]
    kubeconfig: Option<PathBuf>,
    /// Kubeconfig context; defaults to the current one
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    #[command(flatten)]
    terminal: TerminalFlags,
}

pub(crate) fn run(command: &Command) -> Result<()> {
    match command {
        Command::Install(args) => install(args),
    }
}

fn install(args: &InstallArgs) -> Result<()> {
    // The flags of a project have their defaults, apart from these.
    let command = RenderInputFlags::augment_args(clap::Command::new("install").no_binary_name(true));
    let mut input = RenderInputFlags::from_arg_matches(&command.try_get_matches_from([""; 0])?)?;
    let (project, cluster) = (&mut input.project, &args.cluster);
    project.arg.clone_from(&args.controller.arg);
    for (name, value) in [
        ("kluctl_version", &args.controller.kluctl_version),
        ("kluctl_image", &args.controller.kluctl_image),
    ] {
        project.arg.push(format!("{name}={value:?}"));
    }
    project.terminal.debug = cluster.terminal.debug;
    project.terminal.no_color = cluster.terminal.no_color;
    input.target.kubeconfig.clone_from(&cluster.kubeconfig);
    input.target.context.clone_from(&cluster.context);
    let files: Arc<dyn Tree> = Arc::new(install::kluctl_project()?);
    super::deploy::embedded(&files, &input, &args.confirm, &args.output, &args.results)
}

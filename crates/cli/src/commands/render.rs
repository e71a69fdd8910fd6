//! `weir render`.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use crate::{
    flags::RenderInputFlags,
    output,
    session::{ProjectOptions, Session},
    usage::boolean_flag,
};

const EXAMPLES: &str = "Examples:
  # Print all objects of a target
  weir render -t prod --print-all

  # Write the files of a target, without a cluster
  weir render -t prod --render-output-dir rendered --offline-kubernetes";

/// Render a target
///
/// Writes the rendered files to a directory, or prints all rendered objects with --print-all. Nothing is deployed.
#[derive(Args)]
#[command(mut_args = boolean_flag, args_override_self = true, after_help = EXAMPLES)]
pub(crate) struct RenderArgs {
    #[command(flatten)]
    input: RenderInputFlags,
    /// Print all rendered objects to stdout instead of writing files
    #[arg(long)]
    print_all: bool,
    /// Write the rendered files to this directory; defaults to a new temporary directory
    #[arg(long, value_name = "DIR")]
    render_output_dir: Option<PathBuf>,
    /// Don't connect to a Kubernetes cluster
    #[arg(long)]
    offline_kubernetes: bool,
    /// Kubernetes version to use for Helm charts, for example with --offline-kubernetes
    #[arg(long, value_name = "VERSION")]
    kubernetes_version: Option<String>,
}

pub(crate) fn run(args: &RenderArgs) -> Result<()> {
    let session = Session::open(&ProjectOptions {
        offline: args.offline_kubernetes,
        kube_version: args.kubernetes_version.as_deref(),
        keep_files: !args.print_all || args.render_output_dir.is_some(),
        ..ProjectOptions::new(&args.input)
    })?;
    let cluster = session.connect()?;
    let rendered = session.render(cluster.as_ref())?;
    if let Some(dir) = output::write_files(&rendered, args.render_output_dir.as_deref(), !args.print_all)? {
        session
            .terminal
            .success(&format!("Rendered into {}", dir.display()));
    }
    if args.print_all {
        output::print(&yaml::print::all(rendered.objects(), yaml::print::goyaml))?;
    }
    Ok(())
}

//! `weir render`.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use crate::{
    flags::ChoiceFlags,
    output,
    session::{Asked, Session},
    usage::boolean,
};

/// Renders a project, and changes nothing.
///
/// Without --print-all, the rendered files are written into a directory.
#[derive(Args)]
#[command(mut_args = boolean, args_override_self = true)]
pub(crate) struct RenderArgs {
    #[command(flatten)]
    choice: ChoiceFlags,
    /// Print all objects, and write nothing
    #[arg(long)]
    print_all: bool,
    /// Write the rendered files into this directory
    #[arg(long, value_name = "DIR")]
    render_output_dir: Option<PathBuf>,
    /// Ask no cluster for anything
    #[arg(long)]
    offline_kubernetes: bool,
    /// The version of Kubernetes that charts see
    #[arg(long, value_name = "VERSION")]
    kubernetes_version: Option<String>,
}

/// Does the command.
pub(crate) fn run(args: &RenderArgs) -> Result<()> {
    let session = Session::open(&Asked {
        offline: args.offline_kubernetes,
        kube_version: args.kubernetes_version.as_deref(),
        keep_files: !args.print_all || args.render_output_dir.is_some(),
        ..Asked::new(&args.choice)
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

//! `weir list-targets` and `weir list-images`.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use yaml::Value;

use crate::{
    flags::{ChoiceFlags, ProjectFlags, TargetFlags},
    output,
    session::{Asked, Session},
    usage::boolean,
};

/// Prints the targets of a project.
#[derive(Args)]
#[command(mut_args = boolean, args_override_self = true)]
pub(crate) struct TargetsArgs {
    #[command(flatten)]
    project: ProjectFlags,
    /// Print into this file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print names alone
    #[arg(long)]
    only_names: bool,
}

/// Prints the images that templates ask for, and those that they get.
///
/// The output can be given back by --fixed-images-file.
#[derive(Args)]
#[command(mut_args = boolean, args_override_self = true)]
pub(crate) struct ImagesArgs {
    #[command(flatten)]
    choice: ChoiceFlags,
    /// Print into this file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Leave out where images are used
    #[arg(long)]
    simple: bool,
    /// Ask no cluster for anything
    #[arg(long)]
    offline_kubernetes: bool,
    /// The version of Kubernetes that charts see
    #[arg(long, value_name = "VERSION")]
    kubernetes_version: Option<String>,
}

/// Prints the targets.
pub(crate) fn targets(args: &TargetsArgs) -> Result<()> {
    let target = TargetFlags::default();
    let asked = Asked {
        offline: true,
        ..Asked::whole(&args.project, &target)
    };
    let session = Session::open(&asked)?;
    let (targets, warnings) = session.targets()?;
    warnings
        .iter()
        .for_each(|warning| session.terminal.warning(warning));
    let text = match args.only_names {
        true => names(&targets),
        false => yaml::print::goyaml(&targets),
    };
    output::print_to(args.output.as_deref(), &text)
}

fn names(targets: &Value) -> String {
    let names = targets.as_seq().unwrap_or_default().iter();
    let names = names.filter_map(|target| target.get("name")?.as_str());
    names.map(|name| format!("{name}\n")).collect()
}

/// Prints the images.
pub(crate) fn images(args: &ImagesArgs) -> Result<()> {
    let asked = Asked {
        offline: args.offline_kubernetes,
        kube_version: args.kubernetes_version.as_deref(),
        ..Asked::new(&args.choice)
    };
    let session = Session::open(&asked)?;
    let cluster = session.connect()?;
    let rendered = session.render(cluster.as_ref())?;
    let deployed = match &cluster {
        Some(cluster) if !args.simple => session
            .runtime
            .block_on(engine::deployed_images(cluster, &rendered))?,
        _ => Vec::new(),
    };
    let images = kluctl::list_images(&rendered, &deployed, args.simple);
    output::print_to(args.output.as_deref(), &yaml::print::goyaml(&images))
}

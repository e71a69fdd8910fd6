//! `weir list-targets` and `weir list-images`.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use yaml::Value;

use crate::{
    flags::{ProjectFlags, RenderInputFlags, RenderOutputFlag, TargetFlags},
    output,
    session::{ProjectOptions, Session},
    usage::boolean_flag,
};

const TARGETS_EXAMPLES: &str = "Examples:
  # The targets of the project in the current directory
  weir list-targets

  # Their names only
  weir list-targets --only-names";

/// List the targets of a project
#[derive(Args)]
#[command(mut_args = boolean_flag, args_override_self = true, after_help = TARGETS_EXAMPLES)]
pub(crate) struct TargetsArgs {
    #[command(flatten)]
    project: ProjectFlags,
    /// Write the output to a file instead of stdout; - means stdout. Can be repeated
    #[arg(short, long, value_name = "FILE")]
    output: Vec<PathBuf>,
    /// Print target names only
    #[arg(long)]
    only_names: bool,
}

const IMAGES_EXAMPLES: &str = "Examples:
  # The images of a target, in a file that --fixed-images-file takes
  weir list-images -t prod --simple -o images.yaml";

/// List the images of a target
///
/// Lists each image that templates request with images.get_image(), with the image that is used. The output can be passed to
/// --fixed-images-file.
#[derive(Args)]
#[command(mut_args = boolean_flag, args_override_self = true, after_help = IMAGES_EXAMPLES)]
pub(crate) struct ImagesArgs {
    #[command(flatten)]
    input: RenderInputFlags,
    /// Write the output to a file instead of stdout; - means stdout. Can be repeated
    #[arg(short, long, value_name = "FILE")]
    output: Vec<PathBuf>,
    #[command(flatten)]
    files: RenderOutputFlag,
    /// Print images and results only, without the objects and containers that use them
    #[arg(long)]
    simple: bool,
    /// Don't connect to a Kubernetes cluster
    #[arg(long)]
    offline_kubernetes: bool,
    /// Kubernetes version to use for Helm charts, for example with --offline-kubernetes
    #[arg(long, value_name = "VERSION")]
    kubernetes_version: Option<String>,
}

pub(crate) fn targets(args: &TargetsArgs) -> Result<()> {
    let target = TargetFlags::default();
    let options = ProjectOptions {
        offline: true,
        ..ProjectOptions::whole(&args.project, &target)
    };
    let session = Session::open(&options)?;
    let (targets, warnings) = session.targets()?;
    warnings
        .iter()
        .for_each(|warning| session.terminal.warning(warning));
    let text = match args.only_names {
        true => names(&targets),
        false => yaml::print::goyaml(&targets),
    };
    output::print_to_all(&args.output, &text)
}

fn names(targets: &Value) -> String {
    let names = targets.as_seq().unwrap_or_default().iter();
    let names = names.filter_map(|target| target.get("name")?.as_str());
    names.map(|name| format!("{name}\n")).collect()
}

pub(crate) fn images(args: &ImagesArgs) -> Result<()> {
    let options = ProjectOptions {
        offline: args.offline_kubernetes,
        kube_version: args.kubernetes_version.as_deref(),
        keep_files: args.files.render_output_dir.is_some(),
        ..ProjectOptions::new(&args.input)
    };
    let session = Session::open(&options)?;
    let cluster = session.connect()?;
    let rendered = session.render(cluster.as_ref())?;
    output::write_files(&rendered, args.files.render_output_dir.as_deref(), false)?;
    let deployed = match &cluster {
        Some(cluster) if !args.simple => session
            .runtime
            .block_on(engine::deployed_images(cluster, &rendered))?,
        _ => Vec::new(),
    };
    let images = kluctl::list_images(&rendered, &deployed, args.simple);
    output::print_to_all(&args.output, &yaml::print::goyaml(&images))
}

//! `weir poke-images`.

use anyhow::Result;
use clap::Args;
use engine::DeployOptions;

use super::operation::Operation;
use crate::{
    flags::{ConfirmFlags, OutputFlags, RenderInputFlags, RenderOutputFlag, ResultFlags},
    output,
    session::{ProjectOptions, Session},
    usage::boolean_flag,
};

const EXAMPLES: &str = "Examples:
  # Replace an image of deployed objects
  weir poke-images -t prod -F registry.example.com/shop=registry.example.com/shop:1.2.3";

/// Update images of deployed objects
///
/// Replaces images in the objects on the cluster without a full deployment. Only images that templates request with
/// images.get_image() are replaced.
#[derive(Args)]
#[command(mut_args = boolean_flag, args_override_self = true, after_help = EXAMPLES)]
pub(crate) struct PokeArgs {
    #[command(flatten)]
    input: RenderInputFlags,
    #[command(flatten)]
    confirm: ConfirmFlags,
    #[command(flatten)]
    output: OutputFlags,
    #[command(flatten)]
    files: RenderOutputFlag,
    #[command(flatten)]
    results: ResultFlags,
}

pub(crate) fn run(args: &PokeArgs) -> Result<()> {
    let session = Session::open(&ProjectOptions {
        keep_files: args.files.render_output_dir.is_some(),
        ..ProjectOptions::new(&args.input)
    })?;
    let cluster = session.cluster()?;
    let rendered = session.render(Some(&cluster))?;
    output::write_files(&rendered, args.files.render_output_dir.as_deref(), false)?;
    let yes = args.confirm.yes || args.confirm.dry_run;
    let operation = Operation::new(&session, &cluster, &rendered, &args.output, yes);
    let options = DeployOptions {
        dry_run: args.confirm.dry_run,
        contents: true,
        inclusion: session.request.inclusion.clone(),
        ..DeployOptions::default()
    };
    operation.run(options, Some(&args.results), engine::commands::poke_images)
}

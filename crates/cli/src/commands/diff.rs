//! `weir diff`.

use anyhow::Result;
use clap::Args;

use super::operation::Operation;
use crate::{
    flags::{ApplyFlags, IgnoreFlags, OutputFlags, RenderInputFlags, RenderOutputFlag},
    output,
    session::{ProjectOptions, Session},
    usage::boolean_flag,
};

const EXAMPLES: &str = "Examples:
  # Show what a deployment of a target would change
  weir diff -t prod

  # Show what local manifests would change
  weir diff kustomization podinfo --path ./apps/podinfo";

/// Show the changes that a deployment would make
///
/// Compares the rendered objects with the cluster by server-side dry-run apply, which includes defaults of the API server and
/// changes by admission webhooks. Nothing is changed.
#[derive(Args)]
#[command(mut_args = boolean_flag, args_override_self = true, after_help = EXAMPLES)]
pub(crate) struct DiffArgs {
    #[command(flatten)]
    input: RenderInputFlags,
    #[command(flatten)]
    apply: ApplyFlags,
    #[command(flatten)]
    ignore: IgnoreFlags,
    #[command(flatten)]
    output: OutputFlags,
    #[command(flatten)]
    files: RenderOutputFlag,
    /// Override the discriminator of the target
    #[arg(long, value_name = "DISCRIMINATOR", help_heading = "Target")]
    discriminator: Option<String>,
}

pub(crate) fn run(args: &DiffArgs) -> Result<()> {
    let session = Session::open(&ProjectOptions {
        discriminator: args.discriminator.as_deref(),
        keep_files: args.files.render_output_dir.is_some(),
        ..ProjectOptions::new(&args.input)
    })?;
    let cluster = session.cluster()?;
    let rendered = session.render(Some(&cluster))?;
    output::write_files(&rendered, args.files.render_output_dir.as_deref(), false)?;
    let operation = Operation::new(&session, &cluster, &rendered, &args.output, true);
    operation.warn_without_discriminator();
    let mut options = args.apply.options(session.request.inclusion.clone());
    options.hidden = args.ignore.rules();
    operation.run(options, None, engine::commands::diff)
}

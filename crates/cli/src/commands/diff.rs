//! `weir diff`.

use anyhow::Result;
use clap::Args;

use super::operate::Operation;
use crate::{
    flags::{ApplyFlags, ChoiceFlags, FilesFlag, IgnoreFlags, OutputFlags},
    output,
    session::{Asked, Session},
    usage::boolean,
};

/// Shows what a deployment would change, and changes nothing.
///
/// The API server is asked what it would make of each object, so that its defaults and its webhooks count.
#[derive(Args)]
#[command(mut_args = boolean, args_override_self = true)]
pub(crate) struct DiffArgs {
    #[command(flatten)]
    choice: ChoiceFlags,
    #[command(flatten)]
    apply: ApplyFlags,
    #[command(flatten)]
    ignore: IgnoreFlags,
    #[command(flatten)]
    output: OutputFlags,
    #[command(flatten)]
    files: FilesFlag,
    /// What marks the objects, in place of what the target says
    #[arg(long, value_name = "TEXT", help_heading = "Target")]
    discriminator: Option<String>,
}

/// Does the command.
pub(crate) fn run(args: &DiffArgs) -> Result<()> {
    let session = Session::open(&Asked {
        discriminator: args.discriminator.as_deref(),
        keep_files: args.files.render_output_dir.is_some(),
        ..Asked::new(&args.choice)
    })?;
    let cluster = session.cluster()?;
    let rendered = session.render(Some(&cluster))?;
    output::write_files(&rendered, args.files.render_output_dir.as_deref(), false)?;
    let operation = Operation::new(&session, &cluster, &rendered, &args.output, true);
    let mut options = args.apply.options(session.request.inclusion.clone());
    options.unseen = args.ignore.rules();
    operation.carry_out(options, None, engine::commands::diff)
}

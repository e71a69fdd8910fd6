//! `weir poke-images`.

use anyhow::Result;
use clap::Args;
use engine::DeployOptions;

use super::operate::Operation;
use crate::{
    flags::{ChoiceFlags, ConfirmFlags, OutputFlags, ResultFlags},
    session::{Asked, Session},
    usage::boolean,
};

/// Replaces images in what runs, and changes nothing else.
///
/// Only images that templates get by images.get_image() count.
#[derive(Args)]
#[command(mut_args = boolean, args_override_self = true)]
pub(crate) struct PokeArgs {
    #[command(flatten)]
    choice: ChoiceFlags,
    #[command(flatten)]
    confirm: ConfirmFlags,
    #[command(flatten)]
    output: OutputFlags,
    #[command(flatten)]
    results: ResultFlags,
}

/// Does the command.
pub(crate) fn run(args: &PokeArgs) -> Result<()> {
    let session = Session::open(&Asked::new(&args.choice))?;
    let cluster = session.cluster()?;
    let rendered = session.render(Some(&cluster))?;
    let yes = args.confirm.yes || args.confirm.dry_run;
    let operation = Operation::new(&session, &cluster, &rendered, &args.output, yes);
    let options = DeployOptions {
        dry_run: args.confirm.dry_run,
        contents: true,
        inclusion: session.request.inclusion.clone(),
        ..DeployOptions::default()
    };
    operation.carry_out(options, Some(&args.results), engine::commands::poke_images)
}

//! `weir delete KIND NAME`.

use anyhow::{Result, bail, ensure};
use clap::Args;
use cluster::{DeleteOptions, Deleted};
use fleet::Kind;
use objects::meta;

use super::live::{self, Target};
use crate::{
    commands::flux::{ByKind, Flux, FluxFlags, KindCommand},
    usage::boolean_flag,
};

const EXAMPLES: &str = "Examples:
  # Delete a Kustomization, after a question. What it has applied is deleted, too, if its spec.prune is true
  weir delete kustomization podinfo

  # Delete two sources without a question
  weir delete source git podinfo webapp --silent";

/// `weir delete KIND NAME`.
pub(crate) struct Delete;

/// Delete objects, after a question
#[derive(Args)]
#[command(mut_args = boolean_flag, args_override_self = true, after_help = EXAMPLES)]
pub(crate) struct DeleteArgs {
    /// Names of the objects
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,
    /// Delete without a question
    #[arg(short, long, help_heading = "Confirmation")]
    silent: bool,
    #[command(flatten)]
    flux: FluxFlags,
}

impl KindCommand for Delete {
    type Args = DeleteArgs;
    const LISTS: bool = false;

    fn accepts(_: &Kind) -> bool {
        true
    }

    fn about(kind: &Kind) -> String {
        format!("Delete {} objects", kind.kind)
    }
}

pub(crate) fn run(command: &ByKind<Delete>) -> Result<()> {
    let flux = Flux::open(&command.args.flux)?;
    let names = live::distinct(&command.args.names);
    let mut failures = Vec::new();
    for name in &names {
        if let Err(error) = delete(&flux, command, name) {
            failures.push((*name, error));
        }
    }
    live::report(&flux, "deletion", names.len(), failures)
}

fn delete(flux: &Flux, command: &ByKind<Delete>, name: &str) -> Result<()> {
    let found = flux.block_on(live::find(flux, &command.kinds, name))?;
    ensure!(
        !found.is_empty(),
        "{}",
        live::not_found(flux, &command.kinds, name)
    );
    for target in found {
        let noun = target.kind.noun;
        let question = match command.args.names.len() {
            1 => format!("Are you sure you want to delete this {noun}?"),
            _ => format!("Are you sure you want to delete {noun} {name}?"),
        };
        let confirmed = command.args.silent || flux.terminal.ask_or(&question, "--silent");
        ensure!(confirmed, "aborting");
        flux.action(&format!("deleting {noun} {name} in {} namespace", flux.namespace));
        flux.block_on(delete_one(flux, &target))?;
        flux.success(&format!("{noun} deleted"));
    }
    Ok(())
}

/// Deletes the object that the user saw: one that was created since stays.
async fn delete_one(flux: &Flux, target: &Target) -> Result<()> {
    let options = DeleteOptions {
        uid: meta::uid(&target.object),
        ..DeleteOptions::default()
    };
    match flux.cluster.delete(&target.reference, options).await? {
        Deleted::Yes | Deleted::AlreadyGone => Ok(()),
        Deleted::Changed => bail!("another object has the name now: it was not deleted"),
    }
}

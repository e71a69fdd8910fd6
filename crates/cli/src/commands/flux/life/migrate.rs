//! `weir migrate`: stores the objects of a cluster in the newest version of their API, or rewrites files to it.

mod files;
mod rewrite;
mod stored;

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use crate::{
    commands::flux::{Flux, FluxFlags},
    usage::boolean_flag,
};

/// Move objects or files to the newest versions of the APIs
///
/// Without -f, all objects of the cluster are stored again in the newest version, and the older ones are removed from the definitions, so that
/// a later release can stop to serve them. With -f, the apiVersion of manifests below the current directory is rewritten; the rest of the
/// files stays as it is.
#[derive(Args)]
#[command(mut_args = boolean_flag, args_override_self = true, after_help = EXAMPLES)]
pub(crate) struct MigrateArgs {
    /// File or directory to rewrite
    #[arg(short = 'f', long, value_name = "PATH", help_heading = "Files")]
    path: Option<PathBuf>,
    /// Endings of the names of files in a directory, comma-separated
    #[arg(
        short,
        long,
        value_name = "ENDINGS",
        default_value = ".yaml,.yml",
        requires = "path",
        help_heading = "Files"
    )]
    extensions: Vec<String>,
    /// Release of Flux whose versions are written
    #[arg(
        short = 'v',
        long,
        value_name = "RELEASE",
        default_value = "2.9",
        requires = "path",
        help_heading = "Files"
    )]
    version: String,
    /// Only print the objects or lines that would change
    #[arg(long)]
    dry_run: bool,
    /// Don't ask
    #[arg(short, long, requires = "path", help_heading = "Files")]
    yes: bool,
    #[command(flatten)]
    flux: FluxFlags,
}

const EXAMPLES: &str = "\
Examples:
  # The objects of the cluster; first, what would be stored again
  weir migrate --dry-run
  weir migrate

  # The files of a repository
  weir migrate -f . --dry-run
  weir migrate -f clusters -v 2.6 -y";

pub(crate) fn run(args: &MigrateArgs) -> Result<()> {
    args.flux
        .terminal()
        .plain("► starting migration of custom resources");
    match &args.path {
        Some(path) => files::run(args, path),
        None => {
            let flux = Flux::open(&args.flux)?;
            flux.block_on(stored::run(&flux, args.dry_run))
        }
    }
}

//! `weir completion` and `weir man`.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::{Args, Command};
use clap_complete::Shell;

use crate::output;

const COMPLETION_EXAMPLES: &str = "Examples:
  # Complete the words of this shell
  source <(weir completion bash)

  # Write the script into a file
  weir completion zsh > _weir";

/// Generate a shell completion script
///
/// The script completes subcommands and flags. To load it:
///
/// For bash: source <(weir completion bash)
/// For zsh:  weir completion zsh > "${fpath[1]}/_weir"
/// For fish: weir completion fish | source
#[derive(Args)]
#[command(verbatim_doc_comment, after_help = COMPLETION_EXAMPLES)]
pub(crate) struct CompletionArgs {
    /// Shell to generate the script for
    shell: Shell,
}

const MAN_EXAMPLES: &str = "Examples:
  # Write the pages into a directory
  weir man man1";

/// Generate man pages, one per command
#[derive(Args)]
#[command(after_help = MAN_EXAMPLES)]
pub(crate) struct ManArgs {
    /// Output directory; it is created if it doesn't exist
    dir: PathBuf,
}

pub(crate) fn complete(args: &CompletionArgs, mut program: Command) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut program, "weir", &mut script);
    output::print(&String::from_utf8_lossy(&script))
}

pub(crate) fn man(args: &ManArgs, program: Command) -> Result<()> {
    let dir = &args.dir;
    let failed = || format!("write manual pages into {}", dir.display());
    std::fs::create_dir_all(dir).with_context(failed)?;
    clap_mangen::generate_to(program, dir).with_context(failed)
}

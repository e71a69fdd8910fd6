//! Which items of a project.

use clap::Args;

/// Items by their tags and directories.
#[derive(Default, Args)]
#[command(next_help_heading = "Which items")]
pub(crate) struct InclusionFlags {
    /// Only items with this tag
    #[arg(short = 'I', long, value_name = "TAG")]
    pub(crate) include_tag: Vec<String>,
    /// No items with this tag; wins over all that includes them
    #[arg(short = 'E', long, value_name = "TAG")]
    pub(crate) exclude_tag: Vec<String>,
    /// Only the items in this directory, relative to the root of the repository
    #[arg(long, value_name = "DIR")]
    pub(crate) include_deployment_dir: Vec<String>,
    /// No items in this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) exclude_deployment_dir: Vec<String>,
}

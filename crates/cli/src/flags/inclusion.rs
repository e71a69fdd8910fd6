//! Flags that include and exclude deployment items.

use clap::Args;

/// Selection of deployment items by tag and directory.
#[derive(Default, Args)]
#[command(next_help_heading = "Inclusion and exclusion")]
pub(crate) struct InclusionFlags {
    /// Include deployment items with this tag. Can be repeated; an item needs one of the tags
    #[arg(short = 'I', long, value_name = "TAG")]
    pub(crate) include_tag: Vec<String>,
    /// Exclude deployment items with this tag; exclusion takes precedence over inclusion. Can be repeated
    #[arg(short = 'E', long, value_name = "TAG")]
    pub(crate) exclude_tag: Vec<String>,
    /// Include deployment items in this directory, relative to the root of the repository. Can be repeated
    #[arg(long, value_name = "DIR")]
    pub(crate) include_deployment_dir: Vec<String>,
    /// Exclude deployment items in this directory, relative to the root of the repository. Can be repeated
    #[arg(long, value_name = "DIR")]
    pub(crate) exclude_deployment_dir: Vec<String>,
}

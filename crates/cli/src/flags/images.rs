//! Flags that fix images.

use std::path::PathBuf;

use clap::Args;

use super::path::existing_file;

/// Fixed images, for `images.get_image()` in templates.
#[derive(Default, Args)]
#[command(next_help_heading = "Images")]
pub(crate) struct ImageFlags {
    /// Fix an image: IMAGE[:NAMESPACE[:KIND/NAME[:CONTAINER]]]=RESULT. Can be repeated
    #[arg(short = 'F', long, value_name = "IMAGE=RESULT")]
    pub(crate) fixed_image: Vec<String>,
    /// Read fixed images from a YAML file in the format that list-images prints
    #[arg(long, value_name = "FILE", value_parser = existing_file)]
    pub(crate) fixed_images_file: Option<PathBuf>,
}

//! Which images.

use std::path::PathBuf;

use clap::Args;

/// Images that templates get.
#[derive(Default, Args)]
#[command(next_help_heading = "Images")]
pub(crate) struct ImageFlags {
    /// Use this image: IMAGE[:NAMESPACE[:KIND/NAME[:CONTAINER]]]=RESULT
    #[arg(short = 'F', long, value_name = "IMAGE=RESULT")]
    pub(crate) fixed_image: Vec<String>,
    /// Use the images of a YAML file, as list-images prints it
    #[arg(long, value_name = "FILE")]
    pub(crate) fixed_images_file: Option<PathBuf>,
}

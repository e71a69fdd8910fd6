//! Images that templates request, and the lists of images for them.

mod fixed;
mod requested;

pub use fixed::FixedImage;
pub(crate) use fixed::{list as fixed_images, reference_map};
pub use requested::RequestedImage;
pub(crate) use requested::{ImageContext, resolve};

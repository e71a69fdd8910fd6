//! Images that templates leave open, and the lists that say which images are used.

mod fixed;
mod requested;

pub use fixed::FixedImage;
pub(crate) use fixed::{list as fixed_images, reference_map};
pub use requested::RequestedImage;
pub(crate) use requested::{ImageContext, resolve};

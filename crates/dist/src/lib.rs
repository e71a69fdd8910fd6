//! The files of a release, byte for byte the same whenever they are made of the same programs.
//!
//! [`build`] writes archives, images, manifests, a chart, bills of materials and checksums into a folder, [`push()`] sends images, manifests and
//! chart to a registry, [`sign_checksums`] and `push` sign as cosign does, and [`unpack()`] takes the images apart. All archives are written by [`Files`], which sorts its entries and fixes their owners and times.

mod build;
mod catalogs;
mod chart;
mod crate_list;
mod crates;
mod digest;
mod elf;
mod files;
mod image;
mod layout;
mod output;
mod programs;
mod push;
mod release;
mod sbom;
mod shell;
mod sign;
mod unpack;

pub use build::{Options, build};
pub use elf::{Architecture, Header};
pub use files::Files;
pub use image::{INDEX, MANIFEST};
pub use layout::Layout;
pub use push::push;
pub use release::Release;
pub use sign::{SigningKey, sign_checksums};
pub use unpack::unpack;

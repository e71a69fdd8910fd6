//! The commands.

pub(crate) mod completion;
pub(crate) mod deploy;
pub(crate) mod diff;
pub(crate) mod list;
mod operate;
pub(crate) mod poke_images;
pub(crate) mod remove;
pub(crate) mod render;
pub(crate) mod validate;

pub(crate) use operate::Commit;

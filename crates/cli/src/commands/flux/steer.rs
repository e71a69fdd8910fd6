//! Commands that change objects: create, reconcile, suspend, resume and delete.

pub(crate) mod create;
pub(crate) mod delete;
mod fields;
mod live;
mod ready;
pub(crate) mod reconcile;
pub(crate) mod suspend;
pub(crate) mod trigger;
mod words;

//! Untyped Kubernetes objects: identity, field ownership and conflicts, diff, readiness, orphans, hooks.
//!
//! Everything here is a function of values: no network, no clock, no randomness, no environment. What a decision needs
//! from outside (the live object, the time) is passed in.

pub mod annotations;
pub mod conflict;
pub mod diff;
pub mod discriminator;
pub mod edits;
mod error;
pub mod fixup;
#[cfg(test)]
mod fuzz;
pub mod hooks;
pub mod jsonpath;
pub mod managed;
pub mod meta;
mod normalize;
pub mod order;
pub mod orphans;
pub mod path;
pub mod readiness;
mod reference;
pub mod rules;
pub mod secrets;
pub mod settled;

pub use error::Error;
pub use normalize::{Ignore, normalize};
pub use reference::{ObjectId, ObjectRef, join_api_version, split_api_version};

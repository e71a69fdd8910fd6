//! Untyped Kubernetes objects: identity, field ownership and conflicts, normalization, diff, readiness.
//!
//! Everything here is a function of values: no network, no clock, no randomness, no environment. The live object, the
//! time and the names of annotations ([`Vocabulary`]) are passed in.

#[cfg(test)]
mod bounds;
pub mod conflict;
pub mod diff;
mod error;
pub mod fixup;
#[cfg(test)]
mod fuzz;
pub mod ignored;
pub mod inventory;
pub mod jsonpath;
pub mod kstatus;
pub mod managed;
pub mod meta;
mod normalize;
pub mod order;
pub mod path;
pub mod readiness;
mod reference;
pub mod rules;
pub mod secrets;
pub mod takeover;
pub mod unchanged;
mod unified;
pub mod vocabulary;

pub use error::Error;
pub use normalize::{Ignore, IgnoreTexts, normalize};
pub use reference::{ObjectId, ObjectRef, join_api_version, split_api_version};
pub use vocabulary::{Managers, Marker, Vocabulary};

//! Helm charts, rendered in process as `helm template` does it.
//!
//! [`template`] is Go's text/template, [`functions`] what sprig and Helm add to it. Nothing here does I/O: files come from a
//! [`tree::Tree`], what a cluster would answer from a callback, and time and randomness from the caller.

mod convert;
pub mod functions;
pub mod template;
mod value;

pub use value::{Dict, Kind, List, Object, Value};

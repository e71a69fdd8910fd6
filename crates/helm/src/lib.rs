//! Helm charts, rendered in process as `helm template` does it.
//!
//! [`template`] is Go's text/template, [`functions`] what sprig and Helm add to it. Nothing here does I/O: files come from a
//! [`tree::Tree`], what a cluster would answer from a callback, and time and randomness from the caller.

pub mod chart;
mod convert;
mod error;
mod fields;
pub mod functions;
#[cfg(test)]
mod fuzz;
pub mod manifest;
mod render;
pub mod template;
mod value;
pub mod values;
mod version;

pub use chart::Chart;
pub use convert::ConvertError;
pub use error::{Error, Texts};
pub use render::{DEPRECATED, KubeVersion, KubeVersionError, Options, Rendered, template};
pub use value::{Dict, IntKind, List, Object, Value};

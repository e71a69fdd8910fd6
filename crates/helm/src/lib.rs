//! Helm charts, rendered in process as `helm template` does it.
//!
//! [`template`] is Go's text/template, [`functions`] are the functions of sprig and Helm. Nothing here does I/O: files come from
//! a [`tree::Tree`], cluster lookups from a callback, and time and randomness from the caller.

pub mod chart;
mod convert;
mod error;
mod fields;
pub mod functions;
#[cfg(test)]
mod fuzz;
pub mod manifest;
mod profile;
mod render;
mod sigs_yaml;
pub mod template;
mod value;
pub mod values;
mod version;

pub use chart::Chart;
pub use convert::ConvertError;
pub use error::{Error, TemplateOutput};
pub use profile::{HelmVersion, HelmVersionError};
pub use render::{DEPRECATED, KubeVersion, KubeVersionError, Options, Rendered, template};
pub use value::{Dict, IntKind, List, Object, Value};

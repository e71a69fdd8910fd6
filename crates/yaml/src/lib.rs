//! The value type of the project, with its YAML readers and printers.
//!
//! The crates objects, kustomize, jinja and kluctl share one [`Value`]: ordered maps, exact integers, and the position of
//! every map entry for error messages. A [`Node`] is a document before its scalars are resolved, for callers that must keep
//! them as written. The dialects of YAML differ (`yes` is a boolean for one tool and a string for another), therefore each
//! reader and printer is a function named after its tool. This crate performs no I/O.

mod error;
#[cfg(test)]
mod fuzz;
mod go;
pub mod graph;
mod json;
pub mod map;
pub mod node;
pub mod print;
pub mod read;
mod tag;
mod value;

pub use error::{Error, Problem};
pub use go::GoYaml;
pub use map::{Map, Position};
pub use node::Node;
pub use read::Document;
pub use value::Value;

//! The value type of the project, with its YAML readers and printers.
//!
//! One [`Value`] is what objects, kustomize, jinja and kluctl speak: ordered maps, exact integers, and the position
//! of every map entry, so that an error can name file and line. A [`Node`] is a document before its scalars are resolved, for
//! who has to keep their texts. The dialects of YAML differ (`yes` is a boolean for
//! one tool and a string for another), therefore each reader is a named function. This crate performs no I/O.

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
mod value;

pub use error::{Error, Problem};
pub use go::GoYaml;
pub use map::{Map, Position};
pub use node::Node;
pub use read::Document;
pub use value::Value;

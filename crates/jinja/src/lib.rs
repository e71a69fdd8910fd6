//! The Jinja2 dialect of kluctl projects, in process and without an interpreter of Python.
//!
//! A [`Renderer`] renders files of a [`tree::Tree`], strings, and all strings of a [`yaml::Value`], with [`Vars`] as
//! globals. Undefined variables are errors, nothing is escaped, and values behave as in Python, as in the original (Jinja2
//! in go-jinja2). A template goes `lexer` -> `parser` -> `symbols` (which resolves names to variables) -> `eval`.
//! Steps, output, values and nesting are bounded. This crate reads files only through the given tree; time, randomness and
//! the repository's history come from the caller's [`Environment`].
//!
//! Templates can recurse within limits: run a renderer of untrusted templates on a deep stack ([`tree::on_deep_stack`]).

mod ast;
#[cfg(test)]
mod bounds;
mod checks;
mod digest;
mod entities;
mod environment;
mod error;
mod eval;
mod exc;
mod filters;
mod format;
mod functions;
#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod growth;
mod jsonpath;
mod lexer;
mod loader;
mod meter;
mod methods;
mod parser;
mod patterns;
mod renderer;
mod rt;
mod symbols;
mod table;
mod text;
mod time;
mod value;

pub use environment::{Environment, History, HistoryError};
pub use error::{Error, Failure};
pub use renderer::Renderer;
pub use value::frozen::Vars;

/// The start of the placeholder that `images.get_image()` renders; the request follows up to [`IMAGE_END`], as base64 of JSON.
pub const IMAGE_BEGIN: &str = "XXXXXbegin_get_image_";
/// The end of the placeholder.
pub const IMAGE_END: &str = "_end_get_imageXXXXX";

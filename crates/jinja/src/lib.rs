//! The Jinja2 dialect of kluctl projects, in process and without an interpreter of Python.
//!
//! A [`Renderer`] renders files of a [`tree::Tree`], strings, and all strings of a [`yaml::Value`], with [`Vars`] as
//! globals. Undefined variables are errors, nothing is escaped, and values behave as in Python, as in the original (Jinja2
//! in go-jinja2). A template goes `lexer` -> `parser` -> `symbols` (which resolves names to variables) -> `eval`.
//! Everything is bounded: steps, output, values, nesting. This crate reads only through the tree it is given; time,
//! randomness and history come from the caller as [`Surroundings`].
//!
//! Templates can call themselves and nest, within limits: run a renderer on a deep stack ([`tree::on_deep_stack`]) if they are
//! not trusted.

mod ast;
mod checks;
mod digest;
mod entities;
mod error;
mod eval;
mod exc;
mod filters;
mod format;
mod functions;
#[cfg(test)]
mod fuzz;
mod jsonpath;
mod lexer;
mod loader;
mod methods;
mod parser;
mod renderer;
mod rt;
mod surroundings;
mod symbols;
mod text;
mod time;
mod value;

pub use error::{Error, Failure};
pub use renderer::Renderer;
pub use surroundings::{History, HistoryError, Surroundings};
pub use value::frozen::Vars;

/// The beginning of the placeholder that `images.get_image()` renders; the request follows up to [`IMAGE_END`], as JSON in
/// base64.
pub const IMAGE_BEGIN: &str = "XXXXXbegin_get_image_";
/// The end of the placeholder that `images.get_image()` renders.
pub const IMAGE_END: &str = "_end_get_imageXXXXX";

//! The Jinja2 dialect of kluctl projects, in process and without an interpreter of Python.
//!
//! A [`Renderer`] renders files of a [`tree::Tree`], strings, and all strings of a [`yaml::Value`], with [`Vars`] as
//! globals. Undefined variables are errors, nothing is escaped, values are those of Python. A template goes `lexer` ->
//! `parser` -> `symbols` (which variable a name means) -> `eval`. Everything is bounded: steps, output, values, nesting. This
//! crate reads only through the tree it is given; it knows no clock, no randomness and no environment: what the functions
//! of the dialect need of those, [`Surroundings`] has.
//!
//! Templates call themselves and nest as their author likes, within limits: run a renderer on a deep stack
//! ([`tree::on_deep_stack`]) when they are not trusted.

mod ast;
mod checks;
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
mod symbols;
mod text;
mod time;
mod value;

pub use error::{Error, Failure};
pub use renderer::{History, Renderer, Surroundings};
pub use value::frozen::Vars;

/// What the text that `images.get_image()` gives begins with; between this and [`IMAGE_END`] stands what is
/// asked for, as JSON in base64.
pub const IMAGE_BEGIN: &str = "XXXXXbegin_get_image_";
/// What that text ends with.
pub const IMAGE_END: &str = "_end_get_imageXXXXX";

//! The Jinja2 dialect of kluctl projects, in process and without an interpreter.
//!
//! A [`Renderer`] renders files of a [`tree::Tree`], strings, and all strings of a [`yaml::Value`], with [`Vars`] as
//! globals. Undefined variables are errors, nothing is escaped, values print as Python prints them. Everything is
//! bounded: instructions, output, values, nesting. This crate reads only through the tree it is given; it knows no clock, no
//! randomness and no environment, so the functions of the dialect that need them are refused by name.

mod account;
mod builtins;
mod comparing;
mod convert;
mod error;
mod filters;
mod format;
mod functions;
#[cfg(test)]
mod fuzz;
mod guard;
mod jsonpath;
mod lists;
mod loader;
mod methods;
mod numbers;
mod operators;
mod python;
mod renderer;
mod shape;
mod signature;
mod slug;
mod text;
mod wrap;

pub use convert::Vars;
pub use error::{Error, Failure};
pub use renderer::Renderer;

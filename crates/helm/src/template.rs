//! Go's text/template: the language of charts, with its rules of truth and comparison, its formatting and its errors.
//!
//! A [`Set`] holds parsed templates, an [`Executor`] runs them over [`Value`]s. [`Functions`] provides the functions that are
//! not built in. Templates nest deeply within limits: run parser and executor on a deep stack.

mod builtin;
mod error;
mod executor;
mod format;
mod functions;
mod index;
mod lex;
mod node;
mod notation;
mod number;
mod parse;
mod set;
mod signature;
mod slot;
mod source;
#[cfg(test)]
mod tests;
mod token;
mod types;

pub use error::{Error, FunctionError};
pub use executor::Executor;
pub(crate) use executor::{weight, without_no_value};
pub(crate) use format::printed;
pub use format::{FormatError, print, printf};
pub use functions::Functions;
pub use parse::ParseBuffers;
pub use set::Set;
pub(crate) use signature::DURATION;
pub use signature::{Signature, Type};
pub use types::{kind_name, truth, type_name};

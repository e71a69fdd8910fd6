//! Go's text/template: the language of charts, with its rules of truth and comparison, its formatting and its errors.
//!
//! A [`Set`] holds parsed templates, an [`Executor`] runs them over [`Value`]s. The functions besides the built-in ones come
//! from a [`Functions`]. Templates nest as deep as their author likes, within limits: run parser and executor on a deep stack.

mod builtin;
mod executor;
mod format;
mod lex;
mod node;
mod number;
mod parse;
mod quote;
mod set;
mod slot;
mod source;
#[cfg(test)]
mod tests;
mod token;
mod types;

pub use executor::Executor;
pub(crate) use executor::without_no_value;
pub use format::{float_text, print, printf};
pub use parse::Room;
pub(crate) use quote::is_print;
pub use quote::quote;
pub use set::Set;
pub use types::{Signature, Type, kind_name, truth, type_name};

use crate::Value;

/// What is wrong with a template, in the words of Go.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A text is no template: `template: NAME:LINE: what`.
    #[error("{0}")]
    Parse(String),
    /// A template failed: `template: NAME:LINE:COLUMN: executing "NAME" at <node>: what`.
    #[error("{0}")]
    Execute(String),
    /// There is no template of that name.
    #[error("template: no template {} associated with template {}", quote(.0), quote(.1))]
    Unknown(String, String),
}

impl Error {
    /// The text of the error.
    pub(crate) fn into_text(self) -> String {
        match self {
            Self::Parse(text) | Self::Execute(text) => text,
            Self::Unknown(..) => self.to_string(),
        }
    }
}

/// The functions that templates have besides the built-in ones.
pub trait Functions {
    /// The number that stands for a function; nothing when there is none of that name. Asked when a template is parsed.
    fn find(&self, name: &str) -> Option<u16>;

    /// The parameters of a function. The executor checks number and types of arguments against them, in the words of Go,
    /// and hands `call` only what fits.
    fn signature(&self, function: u16) -> Signature;

    /// Calls a function. Arguments that are no value at all come as [`Value::Nil`].
    ///
    /// # Errors
    /// What the function answers instead of a value; the executor adds `error calling NAME: ` and the place.
    fn call(
        &self,
        function: u16,
        arguments: Vec<Value>,
        executor: &mut Executor<'_>,
    ) -> Result<Value, String>;
}

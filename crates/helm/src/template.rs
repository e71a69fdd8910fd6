//! Go's text/template: the language of charts, with its rules of truth and comparison, its formatting and its errors.
//!
//! A [`Set`] holds parsed templates, an [`Executor`] runs them over [`Value`]s. [`Functions`] provides the functions that are
//! not built in. Templates nest deeply within limits: run parser and executor on a deep stack.

mod builtin;
mod executor;
mod format;
mod lex;
mod node;
mod number;
mod parse;
mod set;
mod slot;
mod source;
#[cfg(test)]
mod tests;
mod token;
mod types;

pub use executor::Executor;
pub(crate) use executor::{weight, without_no_value};
pub use format::{FormatError, print, printf};
pub use parse::ParseBuffers;
pub use set::Set;
pub use types::{Signature, Type, kind_name, truth, type_name};

use go::{strconv::quote, time::DurationError};
use tree::Exceeded;
use versions::VersionError;

use crate::{Value, convert::ConvertError};

/// An error of a template, as Go reports it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The template is invalid: `template: NAME:LINE: problem`.
    #[error("{0}")]
    Parse(String),
    /// The template failed: `template: NAME:LINE:COLUMN: executing "NAME" at <node>: problem`.
    #[error("{0}")]
    Execute(String),
    /// The name of the template is unknown.
    #[error("template: no template {} associated with template {}", quote(.0), quote(.1))]
    Unknown(String, String),
}

impl Error {
    pub(crate) fn into_text(self) -> String {
        match self {
            Self::Parse(text) | Self::Execute(text) => text,
            Self::Unknown(..) => self.to_string(),
        }
    }
}

/// Error of a function or method, in the words of Helm, sprig or Go. The executor adds `error calling NAME: ` and the position.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FunctionError {
    #[error("{0}")]
    Failed(String),
    /// A float that JSON cannot represent: `NaN`, `+Inf` or `-Inf`.
    #[error("json: unsupported value: {0}")]
    NotJson(&'static str),
    // Boxed, so that results of functions stay small.
    #[error(transparent)]
    Exceeded(Box<Exceeded>),
}

impl FunctionError {
    pub(crate) fn into_message(self) -> String {
        match self {
            Self::Failed(message) => message,
            other => other.to_string(),
        }
    }
}

impl From<String> for FunctionError {
    fn from(message: String) -> Self {
        Self::Failed(message)
    }
}

impl From<&str> for FunctionError {
    fn from(message: &str) -> Self {
        Self::Failed(message.to_owned())
    }
}

impl From<Exceeded> for FunctionError {
    fn from(error: Exceeded) -> Self {
        Self::Exceeded(Box::new(error))
    }
}

impl From<FormatError> for FunctionError {
    fn from(error: FormatError) -> Self {
        match error {
            FormatError::Exceeded(error) => error.into(),
            error => Self::Failed(error.to_string()),
        }
    }
}

impl From<DurationError> for FunctionError {
    fn from(error: DurationError) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<VersionError> for FunctionError {
    fn from(error: VersionError) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<ConvertError> for FunctionError {
    fn from(error: ConvertError) -> Self {
        match error {
            ConvertError::Exceeded(error) => error.into(),
            error @ ConvertError::TooDeep => Self::Failed(error.to_string()),
        }
    }
}

/// Functions of templates that are not built in.
pub trait Functions {
    /// Returns the number of a function; `None` if the name is unknown. Called when a template is parsed.
    fn find(&self, name: &str) -> Option<u16>;

    /// Returns the parameters of a function. The executor checks the arguments before it calls `call`.
    fn signature(&self, function: u16) -> Signature;

    /// Calls a function. Missing values among the arguments are [`Value::Nil`].
    fn call(
        &self,
        function: u16,
        arguments: Vec<Value>,
        executor: &mut Executor<'_>,
    ) -> Result<Value, FunctionError>;
}

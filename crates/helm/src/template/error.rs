//! Errors of templates and their functions.

use go::{strconv::quote, time::DurationError};
use tree::Exceeded;
use versions::VersionError;

/// An error of a template, as Go reports it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The template is invalid: `template: NAME:LINE: problem`.
    #[error("{0}")]
    Parse(String),
    /// The template failed: `template: NAME:LINE:COLUMN: executing "NAME" at <node>: problem`.
    #[error("{0}")]
    Execute(String),
    #[error("template: no template {} associated with template {}", quote(.0), quote(.1))]
    Unknown(String, String),
    /// The template reached a limit while it was parsed.
    #[error(transparent)]
    Exceeded(#[from] Exceeded),
}

impl Error {
    pub(crate) fn into_text(self) -> String {
        match self {
            Self::Parse(text) | Self::Execute(text) => text,
            Self::Unknown(..) | Self::Exceeded(_) => self.to_string(),
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
    /// A method whose results templates can't take; the executor adds the position only.
    #[error("{0}")]
    Uncallable(&'static str),
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

//! Errors.

/// The failure of a generator: invalid options, or invalid embedded manifests.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("no component is selected: name some of {0}")]
    NoComponents(String),
    #[error("unknown component '{name}': there are {available}")]
    UnknownComponent { name: String, available: String },
    #[error("{what} '{value}' is invalid: {why}")]
    Invalid {
        what: &'static str,
        value: String,
        why: &'static str,
    },
    #[error("the path '{0}' is not inside of the repository: use a relative path without '..'")]
    OutsidePath(String),
    #[error("the manifests can't be installed: {0}")]
    Manifests(String),
    #[error("the embedded manifests are broken: {0}")]
    Embedded(String),
}

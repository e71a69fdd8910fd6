//! The typed outcomes of single objects. Their words are for programs without words of their own.

use std::{fmt, sync::Arc};

use objects::conflict::LeftField;

use crate::ApplyError;

#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error("it can't be applied: {0}")]
    Apply(ApplyError),
    /// It could not be applied before, either.
    #[error("it can be neither applied nor replaced: {0}")]
    Replace(cluster::Error),
    #[error("it can't be deleted: {0}")]
    Delete(cluster::Error),
    #[error("it was deleted, but can't be created again: {0}")]
    Create(ApplyError),
    #[error("the fields of other managers can't be taken over: {0}")]
    Takeover(cluster::Error),
    /// The live object decides how it is to be treated.
    #[error("it can't be read: {0}")]
    Read(Arc<cluster::Error>),
}

#[derive(Debug)]
pub struct FailedObject {
    pub failure: Box<Failure>,
    pub warnings: Vec<Warning>,
    /// True if it was not deleted and created again because an annotation forbids its deletion.
    pub keeps_object: bool,
}

impl FailedObject {
    pub(crate) fn new(failure: Failure) -> Self {
        Self {
            failure: Box::new(failure),
            warnings: Vec::new(),
            keeps_object: false,
        }
    }

    #[must_use]
    pub fn is_denied(&self) -> bool {
        match self.failure.as_ref() {
            Failure::Apply(error) | Failure::Create(error) => error.is_denied(),
            Failure::Replace(error) | Failure::Delete(error) | Failure::Takeover(error) => error.is_denied(),
            Failure::Read(error) => error.is_denied(),
        }
    }
}

impl fmt::Display for FailedObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.failure.fmt(f)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Warning {
    Server(String),
    /// A field is left to another manager, though the manifest has another value for it.
    FieldLeft(LeftField),
    /// It could not be applied, so it was replaced as a whole.
    Replaced,
    /// It could not be changed, so it was deleted and created again.
    Recreated,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server(words) => f.write_str(words),
            Self::FieldLeft(left) => write!(f, "{} is left to its manager: {}", left.field, left.message),
            Self::Replaced => f.write_str("it could not be applied, so it is replaced as a whole"),
            Self::Recreated => f.write_str("it could not be changed, so it is deleted and created again"),
        }
    }
}

//! The errors of this crate.

use std::sync::Arc;

/// A failure of an operation as a whole. Failures of single objects are in their outcomes.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Cluster(#[from] cluster::Error),
    #[error(transparent)]
    Object(#[from] objects::Error),
    #[error("the field manager has no name: set one")]
    NoManager,
    /// The membership label can't tell the objects of the owner from others.
    #[error(
        "the label {name}={value} can't mark objects: its value must have 1 to 63 letters, digits, '-', '_' and '.', \
         beginning and ending with a letter or digit"
    )]
    InvalidLabel { name: String, value: String },
    #[error(
        "{object} lacks the label {label} of its owner, so it would never be deleted: add it to the manifest"
    )]
    NotMarked {
        object: String,
        /// Name and value, joined by `=`.
        label: String,
    },
    /// Pruning against an empty list would delete every object of the owner.
    #[error("there are no manifests, so nothing is pruned: delete all objects explicitly if that is meant")]
    NothingDesired,
    #[error("the inventory can't be stored: {0}")]
    Inventory(String),
}

#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    #[error(transparent)]
    Cluster(#[from] cluster::Error),
    /// A conflict with another manager could not be resolved, or an annotation or a rule is invalid.
    #[error(transparent)]
    Object(#[from] objects::Error),
    /// The object was changed between each read and write.
    #[error(
        "the object is changed by others all the time, so a conflict with them can't be settled: try again later"
    )]
    Contended,
}

impl ApplyError {
    #[must_use]
    pub fn is_denied(&self) -> bool {
        matches!(self, Self::Cluster(error) if error.is_denied())
    }

    /// Returns true if no other way of applying the object can help.
    pub(crate) fn is_final(&self) -> bool {
        matches!(
            self,
            Self::Cluster(
                cluster::Error::Cancelled
                    | cluster::Error::NoMatch { .. }
                    | cluster::Error::Unreachable { .. }
                    | cluster::Error::Timeout { .. }
                    | cluster::Error::InvalidName { .. }
            )
        )
    }
}

#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    #[error(transparent)]
    Unreadable(Arc<cluster::Error>),
    #[error(transparent)]
    Apply(#[from] ApplyError),
    #[error(transparent)]
    Object(#[from] objects::Error),
    #[error(transparent)]
    Cluster(#[from] cluster::Error),
}

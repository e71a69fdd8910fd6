//! Errors that end an operation as a whole. Failures of one object are in the results.

use std::time::Duration;

use api::{Class, Fault, Reason};

use crate::discriminator::DiscriminatorError;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Render(#[from] kluctl::Error),
    #[error(transparent)]
    Cluster(cluster::Error),
    #[error(transparent)]
    Object(#[from] objects::Error),
    #[error(transparent)]
    Discriminator(#[from] DiscriminatorError),
    /// A render without objects deploys nothing and never prunes.
    #[error(
        "the project renders no objects at all, so nothing is deployed or pruned: check path, target, includes, tags and \
         `when` conditions; to remove what was deployed, delete the KluctlDeployment or run `weir delete`, with the same \
         selection of items"
    )]
    EmptyRender,
    #[error("pruning without a discriminator is not supported")]
    PruneWithoutDiscriminator,
    #[error("deletion without a discriminator is not supported")]
    DeleteWithoutDiscriminator,
    #[error(
        "the last render of {name} has not ended yet, although it was told to, so no other one begins: if this stays, \
         restart the controller, and please report this"
    )]
    StillRendering { name: String },
    #[error(
        "{count} cancelled renders in the namespace {namespace} have not ended, so no other one of it begins: if this stays, remove loops \
         over large values from the projects, or restart the controller"
    )]
    StuckRenders { namespace: String, count: usize },
    #[error(
        "the render of {name} was stopped after {after:?}, because others wait for it; it will be tried again: if this stays, make the \
         project smaller"
    )]
    Evicted { name: String, after: Duration },
    /// The render did not end at its timeout by itself.
    #[error("the render of {name} did not end within the timeout of {after:?}")]
    Timeout { name: String, after: Duration },
    /// The work was cancelled (shutdown, lost lease, timeout, or a newer version to work on).
    #[error("cancelled")]
    Cancelled,
    /// The waits of a deployment were interrupted, because there is something newer to deploy. Started objects were completed.
    #[error("interrupted, because there is something newer to deploy")]
    Interrupted,
    /// The operating system gives no randomness, from which charts make keys.
    #[error("the operating system gives no randomness: {0}")]
    Randomness(String),
    #[error("failed to start a thread: {0}")]
    NoThread(String),
    /// Rendering panicked: a mistake of this program.
    #[error("rendering failed in an unforeseen way: please report this")]
    Panicked,
}

impl From<cluster::Error> for Error {
    fn from(error: cluster::Error) -> Self {
        match error {
            cluster::Error::Cancelled => Self::Cancelled,
            other => Self::Cluster(other),
        }
    }
}

impl From<apply::Error> for Error {
    fn from(error: apply::Error) -> Self {
        match error {
            apply::Error::Cluster(error) => error.into(),
            apply::Error::Object(error) => error.into(),
            apply::Error::InvalidLabel { value, .. } if value.is_empty() => DiscriminatorError::Empty.into(),
            apply::Error::InvalidLabel { value, .. } => DiscriminatorError::Invalid(value).into(),
            apply::Error::NothingDesired => Self::EmptyRender,
            apply::Error::NoManager | apply::Error::NotMarked { .. } | apply::Error::Inventory(_) => {
                Self::Panicked
            }
        }
    }
}

impl Error {
    #[must_use]
    pub fn fault(&self, reason: Reason) -> Fault {
        let (class, reason) = match self {
            Self::EmptyRender => (Class::Stall, Reason::EmptyRender),
            Self::PruneWithoutDiscriminator | Self::DeleteWithoutDiscriminator => (Class::Stall, reason),
            Self::Cluster(error) if error.is_forbidden() => (Class::Retry, Reason::AccessDenied),
            Self::Cluster(cluster::Error::KubeconfigRefused(_)) => (Class::Retry, Reason::AccessDenied),
            Self::Render(_)
            | Self::Cluster(_)
            | Self::Object(_)
            | Self::Discriminator(_)
            | Self::Randomness(_)
            | Self::NoThread(_)
            | Self::StillRendering { .. }
            | Self::StuckRenders { .. }
            | Self::Evicted { .. } => (Class::Retry, reason),
            Self::Timeout { .. } => (Class::Retry, Reason::Timeout),
            Self::Cancelled => (Class::Retry, Reason::Timeout),
            Self::Interrupted => (Class::Retry, Reason::Progressing),
            Self::Panicked => (Class::Bug, Reason::InternalError),
        };
        Fault {
            class,
            reason,
            message: self.to_string(),
        }
    }
}

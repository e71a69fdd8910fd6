//! The errors that end a pass before it deploys.

use std::time::Duration;

use api::{Class, Fault, Reason};
use deployer::credentials::SecretError;
use engine::ProjectError;

use super::spec::InvalidSpec;

/// Delay before the next pass after one that a change of its object ended.
const AT_ONCE: Duration = Duration::from_millis(1);
/// The words of kluctl about a Git server that asks for a login, or refuses one.
const LOGIN_REQUIRED: &str = "http transport: authentication required";

#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    #[error(transparent)]
    Spec(#[from] InvalidSpec),
    #[error("{0}")]
    Request(String),
    #[error(transparent)]
    Secret(#[from] SecretError),
    #[error("spec.credentials: there are more than {0} entries")]
    ManyCredentials(usize),
    #[error(transparent)]
    Fetch(#[from] ProjectError),
    #[error("failed to clone git source: it did not finish within {0:?}")]
    FetchTimeout(Duration),
    #[error("spec.sourceOverrides: the controller was started without --source-override-bind-address")]
    NoOverrides,
    #[error("kluctlDeployment path not found: {0}")]
    NoDirectory(String),
    #[error(transparent)]
    Cluster(#[from] deployer::KubeconfigError),
    /// The project cannot be loaded or rendered.
    #[error("{0}")]
    Render(String, Option<usize>),
    /// The start of the deployment can't be recorded.
    #[error(transparent)]
    Unrecorded(Fault),
    #[error(transparent)]
    Fault(#[from] Fault),
}

impl PrepareError {
    pub(crate) fn superseded() -> Self {
        Self::Fault(Fault::wait(
            AT_ONCE,
            Reason::Progressing,
            "superseded by a change of the object: starting over",
        ))
    }

    /// Returns the number of errors, if it is about the parts of a deployment.
    pub(crate) fn count(&self) -> Option<usize> {
        match self {
            Self::Render(_, count) => *count,
            _ => None,
        }
    }

    /// Returns the error as the status has it. If the source asks for a login, these are the words of kluctl alone, to which others compare
    /// it; the event has the whole text.
    pub(crate) fn in_status(&self) -> String {
        match self {
            Self::Fetch(ProjectError::Git(text)) if text.starts_with(LOGIN_REQUIRED) => {
                ProjectError::Git(LOGIN_REQUIRED.to_owned()).to_string()
            }
            other => other.to_string(),
        }
    }

    /// Returns true if a change of the object ended the work: the next pass begins at once, and this one has found out nothing.
    pub(crate) fn is_superseded(&self) -> bool {
        matches!(self, Self::Fault(fault) | Self::Unrecorded(fault) if fault.reason == Reason::Progressing)
    }

    /// Returns true if the project was rendered, and the status could not be written then.
    pub(crate) fn is_unrecorded(&self) -> bool {
        matches!(self, Self::Unrecorded(_))
    }

    /// Returns the fault, which is retried after the retry interval, or with a backoff if the API server failed.
    pub(crate) fn fault(&self, retry: Duration) -> Fault {
        match self {
            Self::Fault(fault) | Self::Unrecorded(fault)
                if fault.class == Class::Bug || self.is_superseded() =>
            {
                fault.clone()
            }
            Self::Fault(fault) | Self::Unrecorded(fault) if fault.class == Class::Retry => {
                Fault::retry(Reason::PrepareFailed, fault.message.clone())
            }
            other => Fault::wait(retry, Reason::PrepareFailed, other.to_string()),
        }
    }
}

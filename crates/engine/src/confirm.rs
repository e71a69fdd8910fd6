//! Asking somebody before anything is changed.

use futures::future::BoxFuture;
use objects::ObjectRef;

use crate::CommandResult;

/// What is said when somebody says no.
pub(crate) const ABORTED: &str = "aborted";

/// Somebody who is asked.
pub trait Confirm: Send + Sync {
    /// Whether to do what this result of a trial says would be done.
    fn changes<'a>(&'a self, trial: &'a CommandResult) -> BoxFuture<'a, bool>;

    /// Whether to delete these objects.
    fn deletions<'a>(&'a self, objects: &'a [ObjectRef]) -> BoxFuture<'a, bool>;
}

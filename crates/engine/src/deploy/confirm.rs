//! Confirmation by the user before anything is changed.

use futures::future::BoxFuture;
use objects::ObjectRef;

use crate::CommandResult;

/// The error of a refused confirmation.
pub(crate) const ABORTED: &str = "aborted";

/// A user who is asked for confirmation.
pub trait Confirm: Send + Sync {
    /// Returns true if the changes in the result of a dry run are to be made.
    fn changes<'a>(&'a self, trial: &'a CommandResult) -> BoxFuture<'a, bool>;

    /// Returns true if these objects are to be deleted.
    fn deletions<'a>(&'a self, objects: &'a [ObjectRef]) -> BoxFuture<'a, bool>;
}

//! Confirmation by the user before anything is changed.

use futures::future::BoxFuture;
use objects::ObjectRef;

use results::CommandResult;

pub(crate) const ABORTED: &str = "aborted";

pub trait Confirm: Send + Sync {
    /// Returns true if the changes in the result of a dry run are to be made.
    fn changes<'a>(&'a self, trial: &'a CommandResult) -> BoxFuture<'a, bool>;

    fn deletions<'a>(&'a self, objects: &'a [ObjectRef]) -> BoxFuture<'a, bool>;
}

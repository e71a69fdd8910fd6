//! Progress events of a running operation.

use std::{fmt, sync::Arc};

/// Something that happens during an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event<'a> {
    /// A step of the operation begins, as in `Getting remote objects by discriminator`.
    Step(&'a str),
    /// A warning that is not part of the result, as in `skipped forced replace of shop/ConfigMap/map`.
    Warning(&'a str),
    /// Work on an item begins.
    ItemStarted {
        /// The object.
        item: &'a str,
    },
    /// An object of an item was applied.
    Applied {
        /// The item.
        item: &'a str,
        /// Number of its objects that were applied so far.
        done: usize,
        /// Number of its objects.
        of: usize,
    },
    /// Something is waited for, as in `Waiting for shop/Deployment/web to get ready...`.
    Waiting {
        /// The item.
        item: &'a str,
        /// Description of the awaited object.
        what: &'a str,
    },
    /// Work on an item ended.
    ItemFinished {
        /// The object.
        item: &'a str,
        /// Counts of the item.
        counts: ItemCounts,
    },
    /// The operation waits at a barrier.
    Barrier {
        /// Message of the project for the barrier.
        message: Option<&'a str>,
    },
    /// Everything before the barrier is finished.
    BarrierPassed,
}

/// Counts of an item's objects and problems.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ItemCounts {
    /// Objects that were applied, hooks among them.
    pub applied: usize,
    /// Hooks that were applied.
    pub hooks: usize,
    /// Objects that were deleted.
    pub deleted: usize,
    /// Hooks that were deleted.
    pub deleted_hooks: usize,
    /// Number of errors of the item.
    pub errors: usize,
    /// Number of warnings of the item.
    pub warnings: usize,
}

impl fmt::Display for ItemCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::default() {
            return f.write_str("Nothing to apply.");
        }
        let mut first = true;
        for (before, count, what) in [
            ("Applied", self.applied, "objects"),
            ("Applied", self.hooks, "hooks"),
            ("Deleted", self.deleted, "objects"),
            ("Deleted", self.deleted_hooks, "hooks"),
            ("Encountered", self.errors, "errors"),
            ("Encountered", self.warnings, "warnings"),
        ] {
            if count > 0 {
                let blank = if first { "" } else { " " };
                write!(f, "{blank}{before} {count} {what}.")?;
                first = false;
            }
        }
        Ok(())
    }
}

/// A receiver of progress events.
pub trait Progress: fmt::Debug + Send + Sync {
    /// Called for each event, from the work itself, so it should return soon.
    fn tell(&self, event: &Event<'_>);
}

/// Optional receiver of progress events.
pub type Listener = Option<Arc<dyn Progress>>;

/// Sends an event to the listener, if there is one.
pub(crate) fn tell(listener: &Listener, event: &Event<'_>) {
    if let Some(listener) = listener {
        listener.tell(event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn item_counts_display_as_sentences() {
        let none = ItemCounts::default();
        assert_eq!(none.to_string(), "Nothing to apply.");
        let some = ItemCounts {
            applied: 3,
            hooks: 1,
            deleted_hooks: 1,
            errors: 2,
            ..none
        };
        assert_eq!(
            some.to_string(),
            "Applied 3 objects. Applied 1 hooks. Deleted 1 hooks. Encountered 2 errors."
        );
    }
}

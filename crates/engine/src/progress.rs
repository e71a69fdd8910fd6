//! What is told while an operation runs, for people who wait for it.

use std::{fmt, sync::Arc};

/// Something that happens during an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event<'a> {
    /// A step of the operation begins, as in `Getting remote objects by discriminator`.
    Step(&'a str),
    /// Work on an item begins.
    ItemStarted {
        /// Which one.
        item: &'a str,
    },
    /// An object of an item was applied.
    Applied {
        /// Which item.
        item: &'a str,
        /// How many of its objects were applied by now.
        done: usize,
        /// How many objects it has.
        of: usize,
    },
    /// Something is waited for, as in `Waiting for shop/Deployment/web to get ready...`.
    Waiting {
        /// Which item.
        item: &'a str,
        /// For what.
        what: &'a str,
    },
    /// Work on an item ended.
    ItemFinished {
        /// Which one.
        item: &'a str,
        /// What was done.
        counts: ItemCounts,
    },
    /// Everything before a barrier is waited for.
    Barrier {
        /// What the project says about it.
        message: Option<&'a str>,
    },
    /// Everything before the barrier is done.
    BarrierPassed,
}

/// What was done for an item.
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
    /// Errors.
    pub errors: usize,
    /// Warnings.
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

/// Somebody who is told.
pub trait Progress: fmt::Debug + Send + Sync {
    /// Something happens. It is called from the work itself, so it should return soon.
    fn tell(&self, event: &Event<'_>);
}

/// Who is told, if anybody is.
pub type Listener = Option<Arc<dyn Progress>>;

/// Tells whoever listens.
pub(crate) fn tell(listener: &Listener, event: &Event<'_>) {
    if let Some(listener) = listener {
        listener.tell(event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_as_a_sentence() {
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

//! Progress events of a running operation.

use std::{fmt, sync::Arc};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event<'a> {
    /// A step of the operation begins, as in `Getting remote objects by discriminator`.
    Step(&'a str),
    /// A warning that is not part of the result, as in `skipped forced replace of shop/ConfigMap/map`.
    Warning(&'a str),
    ItemStarted {
        item: &'a str,
    },
    Applied {
        item: &'a str,
        done: usize,
        of: usize,
    },
    /// Something is waited for, as in `Waiting for shop/Deployment/web to get ready...`.
    Waiting {
        item: &'a str,
        what: &'a str,
    },
    ItemFinished {
        item: &'a str,
        counts: ItemCounts,
    },
    Barrier {
        message: Option<&'a str>,
    },
    BarrierPassed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ItemCounts {
    pub applied: usize,
    pub hooks: usize,
    pub deleted: usize,
    pub deleted_hooks: usize,
    pub errors: usize,
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

pub trait Progress: fmt::Debug + Send + Sync {
    /// Called for each event by the working task, so it should return soon.
    fn tell(&self, event: &Event<'_>);
}

pub type Listener = Option<Arc<dyn Progress>>;

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

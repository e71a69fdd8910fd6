//! The templates that made containers and iterators.

use std::cell::Cell;

thread_local! {
    /// The number of the template that runs on this thread.
    static RUNNING: Cell<u64> = const { Cell::new(0) };
}

/// The template that made a container or an iterator. Values never leave their thread.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Origin(u64);

impl Origin {
    /// The origin of containers that are variables of a project.
    pub(super) const VARIABLES: Self = Self(0);

    /// Returns the running template.
    pub(crate) fn here() -> Self {
        Self(RUNNING.get())
    }

    /// Returns true for the running template.
    pub(crate) fn is_new(self) -> bool {
        self.0 != Self::VARIABLES.0 && self.0 == RUNNING.get()
    }
}

/// Starts a template: containers and iterators of earlier ones are no longer new.
pub(crate) fn start_template() {
    RUNNING.set(RUNNING.get() + 1);
}

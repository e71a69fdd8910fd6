//! Panics of libraries, which users shall never see as a backtrace.

use std::{
    cell::Cell,
    panic::{self, AssertUnwindSafe},
    sync::Once,
};

thread_local! {
    static CATCHING: Cell<bool> = const { Cell::new(false) };
}

/// The error of a library that panicked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the library failed")]
pub struct Panicked;

/// Calls a library that may panic at malformed input. Its panics are printed nowhere. The caller must drop all values that
/// `work` may have left half changed.
pub fn caught<T>(work: impl FnOnce() -> T) -> Result<T, Panicked> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !CATCHING.get() {
                usual(info);
            }
        }));
    });
    let outer = CATCHING.replace(true);
    let result = panic::catch_unwind(AssertUnwindSafe(work));
    CATCHING.set(outer);
    result.map_err(|_| Panicked)
}

/// Prints every other panic of the process with `print`, which gets the position in the source, and never the message: it
/// may have values.
pub fn print_with(print: fn(&str)) {
    panic::set_hook(Box::new(move |info| {
        let position = info
            .location()
            .map_or_else(|| "?".to_owned(), |at| format!("{}:{}", at.file(), at.line()));
        print(&position);
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caught_panics_are_errors() {
        assert_eq!(caught(|| 5), Ok(5));
        assert_eq!(caught(|| panic!("inside")), Err::<(), _>(Panicked));
        assert!(!CATCHING.get());
    }
}

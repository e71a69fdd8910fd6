//! A deep stack for recursive work on hostile input.

#[cfg(test)]
mod tests;

use std::{
    io,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
};

/// Address space, not memory: pages are only used once they are touched.
const STACK_BYTES: usize = 256 << 20;
/// The minimum size in bytes of the remaining stack for nested work that shares the stack.
const ENOUGH_BYTES: usize = STACK_BYTES / 8 * 7;

/// Runs `work` in this thread, on a stack that is deep enough for anything that stays within its limits.
///
/// Templates can nest values and calls as deep as their budget of steps allows; printing and dropping such values recurses.
/// A panic of `work` continues in the caller.
///
/// # Errors
/// Fails if the operating system has no room for the stack.
pub fn on_deep_stack<T>(work: impl FnOnce() -> T) -> io::Result<T> {
    let mut work = Some(work);
    // `stacker` panics if there is no room for the stack.
    let done = catch_unwind(AssertUnwindSafe(|| {
        stacker::maybe_grow(ENOUGH_BYTES, STACK_BYTES, || work.take().map(|work| work()))
    }));
    match done {
        Ok(Some(result)) => Ok(result),
        Err(panic) if work.is_none() => resume_unwind(panic),
        Ok(None) | Err(_) => Err(io::ErrorKind::OutOfMemory.into()),
    }
}

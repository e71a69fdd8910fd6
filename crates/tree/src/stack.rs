//! A deep stack for recursive work on hostile input.

#[cfg(test)]
mod tests;

use std::{
    io,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
};

/// Address space, not memory: pages are only used once they are touched.
const STACK_BYTES: usize = 256 << 20;
/// Minimum size of the remaining stack, in bytes, for nested calls that share it.
const ENOUGH_BYTES: usize = STACK_BYTES / 8 * 7;

/// Runs `work` in this thread, on a stack that is deep enough for anything that stays within its limits: templates can nest
/// values and calls as deep as their budget of steps allows, and printing and dropping such values recurses. A panic of
/// `work` continues in the caller.
pub fn on_deep_stack<T>(work: impl FnOnce() -> T) -> io::Result<T> {
    let mut work = Some(work);
    // `stacker` panics if it can't allocate the stack.
    let done = catch_unwind(AssertUnwindSafe(|| {
        stacker::maybe_grow(ENOUGH_BYTES, STACK_BYTES, || work.take().map(|work| work()))
    }));
    match done {
        Ok(Some(result)) => Ok(result),
        Err(panic) if work.is_none() => resume_unwind(panic),
        Ok(None) | Err(_) => Err(io::ErrorKind::OutOfMemory.into()),
    }
}

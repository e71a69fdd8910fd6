//! A deep stack for recursive work on hostile input.

#[cfg(test)]
mod tests;

use std::{
    io,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
};

/// Address space, not memory: pages are only used once they are touched.
const STACK_BYTES: usize = 256 << 20;
/// What work that is nested in other work finds left, at least, of the stack that they share.
const ENOUGH_BYTES: usize = STACK_BYTES / 8 * 7;

/// Runs `work` in this thread, on a stack that is deep enough for anything that stays within its limits.
///
/// Templates can nest values and calls as deep as their budget of steps allows; printing and dropping such values
/// recurses. A panic of `work` goes on in the caller.
///
/// # Errors
/// When the operating system has no room for the stack.
pub fn on_deep_stack<T>(work: impl FnOnce() -> T) -> io::Result<T> {
    let mut work = Some(work);
    // Who makes the stack panics when there is no room.
    let done = catch_unwind(AssertUnwindSafe(|| {
        stacker::maybe_grow(ENOUGH_BYTES, STACK_BYTES, || work.take().map(|work| work()))
    }));
    match done {
        Ok(Some(result)) => Ok(result),
        Err(panic) if work.is_none() => resume_unwind(panic),
        Ok(None) | Err(_) => Err(io::ErrorKind::OutOfMemory.into()),
    }
}

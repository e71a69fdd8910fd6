//! A deep stack for recursive work on hostile input.

/// Address space, not memory: pages are only used once they are touched.
const STACK_BYTES: usize = 256 << 20;

/// Runs `work` on a thread of its own whose stack is deep enough for anything that stays within its limits.
///
/// Templates can nest values and calls as deep as their budget of steps allows; printing and dropping such values
/// recurses. A panic of `work` goes on in the caller.
///
/// # Errors
/// When the operating system refuses the thread.
pub fn on_deep_stack<T: Send>(work: impl FnOnce() -> T + Send) -> std::io::Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .name("render".to_owned())
            .stack_size(STACK_BYTES);
        match thread.spawn_scoped(scope, work)?.join() {
            Ok(result) => Ok(result),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

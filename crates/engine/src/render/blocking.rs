//! Runs asynchronous work from the blocking thread of a render.

use kluctl::CallbackError;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

/// The runtime and the cancellation of one render, for code that runs on the blocking thread of that render.
#[derive(Debug, Clone)]
pub(crate) struct BlockingContext {
    runtime: Handle,
    cancelled: CancellationToken,
}

impl BlockingContext {
    /// Creates a context that ends when `cancelled` is cancelled. Must be called within a Tokio runtime.
    pub(crate) fn new(cancelled: CancellationToken) -> Self {
        Self {
            runtime: Handle::current(),
            cancelled,
        }
    }

    /// Blocks until the future completes, and returns its output.
    ///
    /// # Errors
    /// Fails when the render is cancelled before that.
    pub(crate) fn block_on<T>(&self, future: impl Future<Output = T>) -> Result<T, CallbackError> {
        let output = self.runtime.block_on(self.cancelled.run_until_cancelled(future));
        output.ok_or_else(|| CallbackError::new("cancelled"))
    }

    /// Returns the runtime that runs the futures.
    pub(crate) fn runtime(&self) -> &Handle {
        &self.runtime
    }

    /// Returns the token that is cancelled when the render ends or its caller is gone.
    pub(crate) fn cancelled(&self) -> &CancellationToken {
        &self.cancelled
    }
}

//! Runs asynchronous work from the blocking thread of a render.

use cluster::Cluster;
use kluctl::CallbackError;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

/// The runtime and the cancellation of one render, for code that runs on the blocking thread of that render.
#[derive(Debug, Clone)]
pub(crate) struct BlockingContext {
    runtime: Handle,
    cancelled: CancellationToken,
    /// The cluster whose operation waits meanwhile, if it has a permit to give back.
    cluster: Option<Cluster>,
}

impl BlockingContext {
    /// Creates a context that ends when `cancelled` is cancelled. Must be called within a Tokio runtime.
    pub(crate) fn new(cancelled: CancellationToken) -> Self {
        Self {
            runtime: Handle::current(),
            cancelled,
            cluster: None,
        }
    }

    /// Lets futures count as waits of an operation on this cluster.
    pub(crate) fn waiting_on(self, cluster: &Cluster) -> Self {
        Self {
            cluster: Some(cluster.clone()),
            ..self
        }
    }

    /// Blocks until the future completes, and returns its output.
    ///
    /// # Errors
    /// Fails when the render is cancelled before that.
    pub(crate) fn block_on<T>(&self, future: impl Future<Output = T>) -> Result<T, CallbackError> {
        let wait = self.cancelled.run_until_cancelled(future);
        let output = match &self.cluster {
            Some(cluster) => self.runtime.block_on(cluster.waiting(wait)),
            None => self.runtime.block_on(wait),
        };
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

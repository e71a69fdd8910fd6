//! Waiting for the network, from the thread of a render.

use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

/// Waits from a thread that may block, for as long as somebody waits for the render.
#[derive(Debug, Clone)]
pub(crate) struct Waiting {
    runtime: Handle,
    cancelled: CancellationToken,
}

impl Waiting {
    /// Waits until it is `cancelled`. To be made within a runtime.
    pub(crate) fn until(cancelled: CancellationToken) -> Self {
        Self {
            runtime: Handle::current(),
            cancelled,
        }
    }

    /// What comes of some work; an error says that nobody waits for it any more.
    pub(crate) fn on<T>(&self, work: impl Future<Output = T>) -> Result<T, String> {
        let ended = self.runtime.block_on(self.cancelled.run_until_cancelled(work));
        ended.ok_or_else(|| "cancelled".to_owned())
    }

    /// The runtime that does the work.
    pub(crate) fn runtime(&self) -> &Handle {
        &self.runtime
    }

    /// What is cancelled once nobody waits any more.
    pub(crate) fn cancelled(&self) -> &CancellationToken {
        &self.cancelled
    }
}

//! The receiving end of a queue of events.

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// A queue that, once `end` is cancelled, returns the rest of its items and then `None`.
pub(super) struct Inbox<T> {
    pub(super) receiver: mpsc::Receiver<T>,
    pub(super) end: CancellationToken,
}

impl<T> Inbox<T> {
    pub(super) async fn next(&mut self) -> Option<T> {
        match self.end.run_until_cancelled(self.receiver.recv()).await {
            Some(item) => item,
            None => self.receiver.try_recv().ok(),
        }
    }
}

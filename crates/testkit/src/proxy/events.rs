//! The events of a watch, of which some are swallowed or held back.

use std::sync::{Arc, atomic::Ordering};

use bytes::Bytes;
use futures::{Stream, StreamExt as _};

use super::{ApiRequest, Inner};

/// Passes on the events of a watch: none while they are swallowed, and later while reads are frozen.
pub(super) fn heard(
    inner: &Arc<Inner>,
    request: &ApiRequest,
    events: impl Stream<Item = reqwest::Result<Bytes>> + Send + 'static,
) -> impl Stream<Item = reqwest::Result<Bytes>> + Send + 'static {
    let (request, frozen) = (request.clone(), inner.freeze.subscribe());
    let events = events.then(move |chunk| {
        let (request, mut frozen) = (request.clone(), frozen.clone());
        async move {
            let thawed =
                frozen.wait_for(|freeze| !freeze.as_ref().is_some_and(|freeze| freeze.holds(&request)));
            // An error means that the proxy ends.
            drop(thawed.await);
            chunk
        }
    });
    let mut listener = Listener {
        inner: Arc::clone(inner),
        begins: true,
        swallowing: false,
    };
    events.map(move |chunk| chunk.map(|chunk| listener.hear(&chunk)))
}

/// One watch, which hears only some of its events. They come as lines.
struct Listener {
    inner: Arc<Inner>,
    /// True if the next byte begins an event.
    begins: bool,
    swallowing: bool,
}

impl Listener {
    fn hear(&mut self, chunk: &[u8]) -> Bytes {
        let mut heard = Vec::with_capacity(chunk.len());
        for part in chunk.split_inclusive(|byte| *byte == b'\n') {
            if self.begins {
                self.swallowing = self.inner.deaf.load(Ordering::SeqCst);
                self.inner
                    .swallowed
                    .fetch_add(usize::from(self.swallowing), Ordering::SeqCst);
            }
            self.begins = part.ends_with(b"\n");
            if !self.swallowing {
                heard.extend_from_slice(part);
            }
        }
        heard.into()
    }
}

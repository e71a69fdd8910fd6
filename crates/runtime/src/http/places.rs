//! The places of a port's connections. Those that have no request under way give theirs up to others.

use std::{
    collections::{BTreeMap, HashMap},
    net::IpAddr,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
};

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

/// The connections that wait for the headers of a request, in the order in which they began to wait.
#[derive(Debug, Default)]
struct Waiting {
    next: u64,
    connections: BTreeMap<u64, (IpAddr, CancellationToken)>,
}

#[derive(Debug, Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    /// Notified when a connection begins to wait.
    begun: Notify,
    /// Number of connections of each address.
    of_addresses: Mutex<HashMap<IpAddr, usize>>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of a connection that waits from now on.
    fn wait(&self, address: IpAddr, end: &CancellationToken) -> u64 {
        let mut waiting = self.lock();
        let number = waiting.next;
        waiting.next = number.wrapping_add(1);
        waiting.connections.insert(number, (address, end.clone()));
        drop(waiting);
        self.begun.notify_one();
        number
    }

    /// Ends the connection that has waited longest; returns false if none waits.
    fn end_oldest(&self) -> bool {
        let oldest = self.lock().connections.pop_first();
        oldest.is_some_and(|(_, (_, end))| {
            end.cancel();
            true
        })
    }

    /// Ends the connection of an address that has waited longest; returns false if none waits.
    fn end_oldest_of(&self, address: IpAddr) -> bool {
        let mut waiting = self.lock();
        let oldest = waiting.connections.iter().find(|(_, (of, _))| *of == address);
        let oldest = oldest.map(|(number, _)| *number);
        let ended = oldest.and_then(|number| waiting.connections.remove(&number));
        ended.is_some_and(|(_, end)| {
            end.cancel();
            true
        })
    }

    fn of_addresses(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.of_addresses.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A bounded number of places.
#[derive(Debug)]
pub(super) struct Places {
    free: Arc<Semaphore>,
    of_address: usize,
    shared: Arc<Shared>,
}

/// A connection that is counted for its address, until it is dropped.
#[derive(Debug)]
pub(super) struct Admitted {
    address: IpAddr,
    shared: Arc<Shared>,
}

impl Drop for Admitted {
    fn drop(&mut self) {
        let mut counts = self.shared.of_addresses();
        if let Some(count) = counts.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.address);
            }
        }
    }
}

impl Places {
    /// Makes so many places, of which the connections of one address may take `of_address`.
    pub(super) fn new(most: usize, of_address: usize) -> Self {
        Self {
            free: Arc::new(Semaphore::new(most.max(1))),
            of_address: of_address.max(1),
            shared: Arc::default(),
        }
    }

    /// Counts a connection for its address. If there are as many as may be, the one that has waited longest for the headers of a request
    /// is ended; `None` if all have requests.
    pub(super) fn admit(&self, address: IpAddr) -> Option<Admitted> {
        let mut counts = self.shared.of_addresses();
        let count = counts.entry(address).or_default();
        if *count >= self.of_address && !self.shared.end_oldest_of(address) {
            return None;
        }
        *count += 1;
        drop(counts);
        Some(Admitted {
            address,
            shared: Arc::clone(&self.shared),
        })
    }

    /// Waits for a place. If all are taken, the connection that has waited longest for the headers of a request is ended; if all have
    /// requests, this waits until one ends.
    pub(super) async fn take(&self, admitted: Admitted) -> Place {
        let free = loop {
            if let Ok(free) = Arc::clone(&self.free).try_acquire_owned() {
                break Some(free);
            }
            let freed = Arc::clone(&self.free).acquire_owned();
            if self.shared.end_oldest() {
                break freed.await.ok();
            }
            tokio::select! {
                freed = freed => break freed.ok(),
                () = self.shared.begun.notified() => {}
            }
        };
        let end = CancellationToken::new();
        let place = PlaceInner {
            number: Mutex::new(Some(self.shared.wait(admitted.address, &end))),
            shared: Arc::clone(&self.shared),
            end,
            admitted,
            _free: free,
        };
        Place(Arc::new(place))
    }
}

#[derive(Debug)]
struct PlaceInner {
    /// The number in [`Waiting`]; none while there is a request.
    number: Mutex<Option<u64>>,
    shared: Arc<Shared>,
    end: CancellationToken,
    admitted: Admitted,
    _free: Option<OwnedSemaphorePermit>,
}

impl PlaceInner {
    fn number(&self) -> MutexGuard<'_, Option<u64>> {
        self.number.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for PlaceInner {
    fn drop(&mut self) {
        if let Some(number) = self.number().take() {
            self.shared.lock().connections.remove(&number);
        }
    }
}

/// The place of a connection, which is free again when this and all its requests are dropped.
#[derive(Debug, Clone)]
pub(super) struct Place(Arc<PlaceInner>);

impl Place {
    /// Resolves when the connection has to end, because others need its place.
    pub(super) async fn ended(&self) {
        self.0.end.cancelled().await;
    }

    /// Notes that the headers of a request are there. The connection waits again when the result is dropped.
    pub(super) fn begin(&self) -> Begun {
        if let Some(number) = self.0.number().take() {
            self.0.shared.lock().connections.remove(&number);
        }
        Begun(self.clone())
    }
}

/// A request under way.
#[derive(Debug)]
pub(super) struct Begun(Place);

impl Begun {
    /// Lets the request last until the body of its response is sent or dropped.
    pub(super) fn until_the_end_of(self, body: Body) -> Body {
        Body::new(Answering { body, _request: self })
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        let place = &self.0.0;
        let number = place.shared.wait(place.admitted.address, &place.end);
        *place.number() = Some(number);
    }
}

/// The body of a response, with its request.
struct Answering {
    body: Body,
    _request: Begun,
}

impl HttpBody for Answering {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

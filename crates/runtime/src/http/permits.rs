//! Permits for the connections of a port. Connections without a running request are ended for others.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap},
    net::IpAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use parking_lot::Mutex;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

/// The connections that wait for the headers of a request, the longest wait first.
#[derive(Debug, Default)]
struct Waiting {
    next: u64,
    connections: BTreeMap<u64, (IpAddr, CancellationToken)>,
}

impl Waiting {
    /// Returns the address that would have the most waiting connections with one more of `address`; of equal ones the one with the longest
    /// wait. `None` if no connection waits.
    fn most_with(&self, address: IpAddr) -> Option<IpAddr> {
        let mut counts: HashMap<IpAddr, (usize, Reverse<u64>)> = HashMap::new();
        for (number, (of, _)) in &self.connections {
            let new = usize::from(*of == address);
            let (count, _) = counts.entry(*of).or_insert((new, Reverse(*number)));
            *count += 1;
        }
        let most = counts.into_iter().max_by_key(|(_, count)| *count);
        most.map(|(of, _)| of)
    }

    fn end_oldest_of(&mut self, address: IpAddr) -> bool {
        let oldest = self.connections.iter().find(|(_, (of, _))| *of == address);
        let oldest = oldest.map(|(number, _)| *number);
        let ended = oldest.and_then(|number| self.connections.remove(&number));
        ended.is_some_and(|(_, end)| {
            end.cancel();
            true
        })
    }
}

#[derive(Debug, Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    waits: Notify,
    of_addresses: Mutex<HashMap<IpAddr, usize>>,
}

impl Shared {
    fn wait(&self, address: IpAddr, end: &CancellationToken) -> u64 {
        let mut waiting = self.waiting.lock();
        let number = waiting.next;
        waiting.next = number.wrapping_add(1);
        waiting.connections.insert(number, (address, end.clone()));
        drop(waiting);
        self.waits.notify_one();
        number
    }

    /// Ends a waiting connection for one of `address`: the oldest of the address with the most, the new one included.
    fn end_one_for(&self, address: IpAddr) -> bool {
        let mut waiting = self.waiting.lock();
        let most = waiting.most_with(address);
        most.is_some_and(|most| waiting.end_oldest_of(most))
    }

    fn end_oldest_of(&self, address: IpAddr) -> bool {
        self.waiting.lock().end_oldest_of(address)
    }
}

#[derive(Debug)]
pub(super) struct ConnectionPermits {
    free: Arc<Semaphore>,
    of_address: usize,
    shared: Arc<Shared>,
}

#[derive(Debug)]
pub(super) struct Admitted {
    address: IpAddr,
    shared: Arc<Shared>,
}

impl Drop for Admitted {
    fn drop(&mut self) {
        let mut counts = self.shared.of_addresses.lock();
        if let Some(count) = counts.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.address);
            }
        }
    }
}

impl ConnectionPermits {
    /// Creates `most` permits, of which one address may have `of_address`.
    pub(super) fn new(most: usize, of_address: usize) -> Self {
        Self {
            free: Arc::new(Semaphore::new(most.max(1))),
            of_address: of_address.max(1),
            shared: Arc::default(),
        }
    }

    /// Counts a connection for its address. If it has its maximum, the one that has waited longest for the headers of a request is ended;
    /// `None` if all have requests.
    pub(super) fn admit(&self, address: IpAddr) -> Option<Admitted> {
        let mut counts = self.shared.of_addresses.lock();
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

    /// Waits for a permit. If there is none, a connection that waits for the headers of a request is ended, the oldest of the address with the
    /// most of them; if all have requests, this waits until one ends.
    pub(super) async fn take(&self, admitted: Admitted) -> ConnectionPermit {
        let free = loop {
            if let Ok(free) = Arc::clone(&self.free).try_acquire_owned() {
                break Some(free);
            }
            let freed = Arc::clone(&self.free).acquire_owned();
            if self.shared.end_one_for(admitted.address) {
                break freed.await.ok();
            }
            tokio::select! {
                freed = freed => break freed.ok(),
                () = self.shared.waits.notified() => {}
            }
        };
        let end = CancellationToken::new();
        let permit = PermitInner {
            number: Mutex::new(Some(self.shared.wait(admitted.address, &end))),
            shared: Arc::clone(&self.shared),
            end,
            admitted,
            _free: free,
        };
        ConnectionPermit(Arc::new(permit))
    }
}

#[derive(Debug)]
struct PermitInner {
    number: Mutex<Option<u64>>,
    shared: Arc<Shared>,
    end: CancellationToken,
    admitted: Admitted,
    _free: Option<OwnedSemaphorePermit>,
}

impl Drop for PermitInner {
    fn drop(&mut self) {
        if let Some(number) = self.number.lock().take() {
            self.shared.waiting.lock().connections.remove(&number);
        }
    }
}

/// The permit of a connection, which is free again when this and all its requests are dropped.
#[derive(Debug, Clone)]
pub(super) struct ConnectionPermit(Arc<PermitInner>);

impl ConnectionPermit {
    pub(super) fn address(&self) -> IpAddr {
        self.0.admitted.address
    }

    pub(super) async fn ended(&self) {
        self.0.end.cancelled().await;
    }

    /// Notes that the headers of a request are there. The connection waits again when the result is dropped.
    pub(super) fn start_request(&self) -> RunningRequest {
        if let Some(number) = self.0.number.lock().take() {
            self.0.shared.waiting.lock().connections.remove(&number);
        }
        RunningRequest(self.clone())
    }
}

#[derive(Debug)]
pub(super) struct RunningRequest(ConnectionPermit);

impl RunningRequest {
    /// Lets the request last until the body of its response is sent or dropped.
    pub(super) fn until_the_end_of(self, body: Body) -> Body {
        Body::new(Answering { body, _request: self })
    }
}

impl Drop for RunningRequest {
    fn drop(&mut self) {
        let permit = &self.0.0;
        let number = permit.shared.wait(permit.admitted.address, &permit.end);
        *permit.number.lock() = Some(number);
    }
}

struct Answering {
    body: Body,
    _request: RunningRequest,
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

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    fn address(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    fn connect(permits: &ConnectionPermits, address: IpAddr) -> Option<ConnectionPermit> {
        permits.take(permits.admit(address)?).now_or_never()
    }

    fn is_ended(permit: &ConnectionPermit) -> bool {
        permit.0.end.is_cancelled()
    }

    /// Connects from `address` as [`ConnectionPermits::take`] does when no permit is free, until the permit of an ended one is.
    fn displace(permits: &ConnectionPermits, address: IpAddr, held: &mut Vec<ConnectionPermit>) {
        let admitted = permits.admit(address).unwrap();
        let mut taking = std::pin::pin!(permits.take(admitted));
        assert!(taking.as_mut().now_or_never().is_none());
        held.retain(|permit| !is_ended(permit));
        held.push(taking.now_or_never().unwrap());
    }

    #[test]
    fn connections_without_headers_displace_none_of_other_addresses() {
        let permits = ConnectionPermits::new(4, usize::MAX);
        let victims: Vec<_> = (1..4)
            .map(|last| connect(&permits, address(last)).unwrap())
            .collect();
        let mut greedy = vec![connect(&permits, address(9)).unwrap()];
        for _ in 0..10 {
            displace(&permits, address(9), &mut greedy);
            assert_eq!(greedy.len(), 1);
        }
        assert!(!victims.iter().any(is_ended));
    }

    #[test]
    fn new_address_gets_the_oldest_connection_of_the_address_with_the_most() {
        let permits = ConnectionPermits::new(4, usize::MAX);
        let victim = connect(&permits, address(1)).unwrap();
        let mut greedy: Vec<_> = (0..3).map(|_| connect(&permits, address(9)).unwrap()).collect();
        // A connection with a request doesn't wait.
        let request = greedy[0].start_request();
        let oldest = greedy[1].0.number.lock().unwrap();
        displace(&permits, address(2), &mut greedy);
        assert!(!is_ended(&victim));
        let numbers: Vec<_> = greedy
            .iter()
            .filter_map(|permit| *permit.0.number.lock())
            .collect();
        assert!(!numbers.contains(&oldest), "{numbers:?} {oldest}");
        drop(request);
    }

    #[test]
    fn address_with_the_longest_wait_loses_a_connection_if_all_have_as_many() {
        let permits = ConnectionPermits::new(2, usize::MAX);
        let mut held: Vec<_> = (1..3)
            .map(|last| connect(&permits, address(last)).unwrap())
            .collect();
        displace(&permits, address(3), &mut held);
        let left: Vec<_> = held.iter().map(|permit| permit.0.admitted.address).collect();
        assert_eq!(left, [address(2), address(3)]);
    }
}

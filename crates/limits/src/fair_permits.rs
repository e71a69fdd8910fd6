//! Permits that keys, such as namespaces, share fairly.

use std::{
    collections::{HashMap, VecDeque},
    fmt,
    sync::Arc,
};

use parking_lot::Mutex;
use tokio::sync::oneshot;

/// A number of permits. A free one goes to the key with the fewest, and among equals to the one that was served longest ago. Clones are
/// the same.
#[derive(Clone)]
pub struct FairPermits(Arc<Mutex<State>>);

struct State {
    free: usize,
    taken: HashMap<String, usize>,
    requests: HashMap<String, VecDeque<oneshot::Sender<FairPermit>>>,
    /// Keys with requests, the one that was served longest ago first.
    turns: VecDeque<String>,
}

/// A permit, until it is dropped.
pub struct FairPermit {
    permits: FairPermits,
    key: String,
}

impl fmt::Debug for FairPermits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FairPermits")
            .field("free", &self.free())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for FairPermit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FairPermit")
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

impl Drop for FairPermit {
    fn drop(&mut self) {
        let mut state = self.permits.0.lock();
        state.free += 1;
        if let Some(taken) = state.taken.get_mut(&self.key) {
            *taken -= 1;
            if *taken == 0 {
                state.taken.remove(&self.key);
            }
        }
        let granted = state.grant(&self.permits);
        drop(state);
        send(granted);
    }
}

type Granted = Vec<(oneshot::Sender<FairPermit>, FairPermit)>;

fn send(granted: Granted) {
    for (request, permit) in granted {
        drop(request.send(permit));
    }
}

impl State {
    fn grant(&mut self, permits: &FairPermits) -> Granted {
        let mut granted = Vec::new();
        while self.free > 0
            && let Some((request, key)) = self.next()
        {
            self.free -= 1;
            *self.taken.entry(key.clone()).or_default() += 1;
            let permits = permits.clone();
            granted.push((request, FairPermit { permits, key }));
        }
        granted
    }

    fn next(&mut self) -> Option<(oneshot::Sender<FairPermit>, String)> {
        loop {
            let taken = |key: &String| self.taken.get(key).copied().unwrap_or_default();
            let position = (0..self.turns.len()).min_by_key(|at| self.turns.get(*at).map(taken))?;
            let key = self.turns.remove(position)?;
            let requests = self.requests.get_mut(&key)?;
            // Cancelled requests do not cost their key its turn.
            let request = std::iter::from_fn(|| requests.pop_front()).find(|request| !request.is_closed());
            if requests.is_empty() {
                self.requests.remove(&key);
            } else {
                self.turns.push_back(key.clone());
            }
            if let Some(request) = request {
                return Some((request, key));
            }
        }
    }
}

impl FairPermit {
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    #[must_use]
    pub const fn permits(&self) -> &FairPermits {
        &self.permits
    }
}

impl FairPermits {
    #[must_use]
    pub fn new(permits: usize) -> Self {
        Self(Arc::new(Mutex::new(State {
            free: permits,
            taken: HashMap::new(),
            requests: HashMap::new(),
            turns: VecDeque::new(),
        })))
    }

    /// Returns the number of permits that nobody has.
    #[must_use]
    pub fn free(&self) -> usize {
        self.0.lock().free
    }

    /// Returns true if a key with fewer permits than `key` waits for one.
    #[must_use]
    pub fn is_wanted(&self, key: &str) -> bool {
        let state = self.0.lock();
        let taken = |key: &String| state.taken.get(key).copied().unwrap_or_default();
        let own = state.taken.get(key).copied().unwrap_or_default();
        let mut requests = state.requests.iter();
        requests.any(|(other, requests)| {
            taken(other) < own && requests.iter().any(|request| !request.is_closed())
        })
    }

    /// Waits for a permit. A request whose future is dropped takes none.
    pub async fn acquire(&self, key: &str) -> FairPermit {
        loop {
            let (request, permit) = oneshot::channel();
            let granted = {
                let mut state = self.0.lock();
                let requests = state.requests.entry(key.to_owned()).or_default();
                requests.push_back(request);
                if requests.len() == 1 {
                    state.turns.push_back(key.to_owned());
                }
                state.grant(self)
            };
            send(granted);
            // A request is only dropped with its receiver.
            if let Ok(permit) = permit.await {
                return permit;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    fn take(permits: &FairPermits, key: &str) -> Option<FairPermit> {
        permits.acquire(key).now_or_never()
    }

    #[test]
    fn permit_goes_to_the_key_that_holds_the_fewest() {
        let permits = FairPermits::new(2);
        let (first, second) = (take(&permits, "a").unwrap(), take(&permits, "a").unwrap());
        let mut greedy: Vec<_> = (0..3).map(|_| Box::pin(permits.acquire("a"))).collect();
        for request in &mut greedy {
            assert!(request.now_or_never().is_none());
        }
        let mut other = Box::pin(permits.acquire("b"));
        assert!((&mut other).now_or_never().is_none());
        drop(first);
        let other = (&mut other).now_or_never().expect("the other key holds none");
        drop(second);
        assert!(greedy.iter_mut().any(|request| request.now_or_never().is_some()));
        drop((other, greedy));
        let state = permits.0.lock();
        assert_eq!(
            (
                state.free,
                state.taken.len(),
                state.requests.len(),
                state.turns.len()
            ),
            (2, 0, 0, 0)
        );
    }

    #[test]
    fn keys_with_equally_many_permits_take_turns() {
        let permits = FairPermits::new(1);
        let mut taken = take(&permits, "x");
        let mut requests = Vec::new();
        for key in ["a", "a", "a", "b", "b", "c"] {
            let mut request = Box::pin(permits.acquire(key));
            assert!((&mut request).now_or_never().is_none());
            requests.push(Some(request));
        }
        let mut order = Vec::new();
        while requests.iter().any(Option::is_some) {
            drop(taken.take());
            for request in &mut requests {
                if let Some(permit) = request.as_mut().and_then(|request| request.now_or_never()) {
                    order.push(permit.key().to_owned());
                    taken = Some(permit);
                    *request = None;
                }
            }
        }
        assert_eq!(order, ["a", "b", "c", "a", "b", "a"]);
    }

    #[test]
    fn cancelled_requests_take_no_permit() {
        let permits = FairPermits::new(1);
        let held = take(&permits, "a");
        let mut waiting = Box::pin(permits.acquire("b"));
        assert!((&mut waiting).now_or_never().is_none());
        drop(waiting);
        drop(held);
        assert_eq!(permits.free(), 1);
    }

    #[test]
    fn cancelled_request_does_not_cost_its_key_the_turn() {
        let permits = FairPermits::new(1);
        let held = take(&permits, "x");
        let mut requests: Vec<_> = ["a", "a", "b"].map(|key| Box::pin(permits.acquire(key))).into();
        for request in &mut requests {
            assert!(request.now_or_never().is_none());
        }
        drop(requests.remove(0));
        drop(held);
        let granted = requests.iter_mut().find_map(|request| request.now_or_never());
        assert_eq!(granted.as_ref().map(FairPermit::key), Some("a"));
        drop((granted, requests));
        assert_eq!(permits.free(), 1);
    }

    #[test]
    fn permit_that_nobody_receives_any_more_goes_to_the_next_request() {
        let permits = FairPermits::new(1);
        let held = take(&permits, "x");
        let (mut first, mut second) = (Box::pin(permits.acquire("a")), Box::pin(permits.acquire("b")));
        assert!((&mut first).now_or_never().is_none() && (&mut second).now_or_never().is_none());
        drop(held);
        // The first has its permit now, and ends without having looked.
        drop(first);
        let second = second.now_or_never();
        assert_eq!(second.as_ref().map(FairPermit::key), Some("b"));
        drop(second);
        assert_eq!(permits.free(), 1);
    }

    #[test]
    fn permits_are_wanted_by_keys_with_fewer() {
        let permits = FairPermits::new(2);
        let held = (take(&permits, "a").unwrap(), take(&permits, "b").unwrap());
        assert!(!permits.is_wanted("a"));
        let mut own = Box::pin(permits.acquire("a"));
        let mut equal = Box::pin(permits.acquire("b"));
        assert!((&mut own).now_or_never().is_none() && (&mut equal).now_or_never().is_none());
        assert!(!permits.is_wanted("a"), "b has as many");
        let mut other = Box::pin(permits.acquire("c"));
        assert!((&mut other).now_or_never().is_none());
        assert!(permits.is_wanted("a") && permits.is_wanted("b") && !permits.is_wanted("c"));
        drop(other);
        assert!(!permits.is_wanted("a"), "the request is gone");
        drop((own, equal, held));
    }

    #[test]
    fn request_for_one_of_no_permits_waits() {
        let permits = FairPermits::new(0);
        assert!(take(&permits, "a").is_none());
        assert_eq!(permits.free(), 0);
    }
}

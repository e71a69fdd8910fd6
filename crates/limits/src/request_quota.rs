//! A quota of requests and of their bytes, which keys, such as namespaces, share fairly. Nobody waits for it.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    sync::Arc,
};

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::{ByteBudget, ByteBudgetError, Share};

/// The requests that may run at the same time, and the budget that their bytes are taken from. If there are none left, the key with the most
/// loses a request to a key that has fewer: its [`RequestSlot::revoked`] is cancelled. Clones are the same.
#[derive(Clone)]
pub struct RequestQuota(Arc<Mutex<State>>);

struct State {
    requests_limit: usize,
    budget: ByteBudget,
    next: u64,
    /// The oldest first.
    requests: BTreeMap<u64, Request>,
    keys: HashMap<String, Usage>,
}

struct Request {
    key: String,
    share: Share,
    revoked: CancellationToken,
}

#[derive(Debug, Clone, Copy, Default)]
struct Usage {
    requests: usize,
    bytes: u64,
}

/// A request of the quota, until it is dropped or revoked.
pub struct RequestSlot {
    quota: RequestQuota,
    number: u64,
    revoked: CancellationToken,
}

impl fmt::Debug for RequestQuota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.0.lock();
        f.debug_struct("RequestQuota")
            .field("requests", &state.requests.len())
            .field("bytes", &state.bytes())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for RequestSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestSlot")
            .field("number", &self.number)
            .finish_non_exhaustive()
    }
}

impl State {
    fn bytes(&self) -> u64 {
        self.keys.values().map(|usage| usage.bytes).sum()
    }

    fn usage(&self, key: &str) -> Usage {
        self.keys.get(key).copied().unwrap_or_default()
    }

    fn remove(&mut self, number: u64) -> Option<Request> {
        let request = self.requests.remove(&number)?;
        if let Some(usage) = self.keys.get_mut(&request.key) {
            usage.requests -= 1;
            usage.bytes -= request.share.bytes();
            if usage.requests == 0 {
                self.keys.remove(&request.key);
            }
        }
        Some(request)
    }

    fn revoke(&mut self, number: u64) {
        if let Some(request) = self.remove(number) {
            request.revoked.cancel();
        }
    }

    /// Revokes the oldest request of the key with the most, if it has more than `requests`.
    fn revoke_request(&mut self, requests: usize) -> bool {
        let most = self.keys.values().map(|usage| usage.requests).max();
        let Some(most) = most.filter(|most| *most > requests) else {
            return false;
        };
        let greedy = |request: &Request| self.usage(&request.key).requests == most;
        let oldest = self.requests.iter().find(|(_, request)| greedy(request));
        let Some(number) = oldest.map(|(number, _)| *number) else {
            return false;
        };
        self.revoke(number);
        true
    }

    /// Revokes the largest request of the key with the most bytes, if it has more than `bytes`.
    fn revoke_bytes(&mut self, bytes: u64) -> bool {
        let most = self.keys.values().map(|usage| usage.bytes).max();
        let Some(most) = most.filter(|most| *most > bytes) else {
            return false;
        };
        let greedy = |request: &Request| self.usage(&request.key).bytes == most;
        let of_greedy = self.requests.iter().filter(|(_, request)| greedy(request));
        let Some((&number, _)) = of_greedy.max_by_key(|(_, request)| request.share.bytes()) else {
            return false;
        };
        self.revoke(number);
        true
    }
}

impl RequestQuota {
    #[must_use]
    pub fn new(requests: usize, budget: ByteBudget) -> Self {
        Self(Arc::new(Mutex::new(State {
            requests_limit: requests,
            budget,
            next: 0,
            requests: BTreeMap::new(),
            keys: HashMap::new(),
        })))
    }

    /// Starts a request; `None` if as many run as may, and no other key would have more than this one.
    #[must_use]
    pub fn start(&self, key: &str) -> Option<RequestSlot> {
        let mut state = self.0.lock();
        let own = state.usage(key).requests;
        if state.requests.len() >= state.requests_limit && !state.revoke_request(own + 1) {
            return None;
        }
        let number = state.next;
        state.next += 1;
        let revoked = CancellationToken::new();
        state.keys.entry(key.to_owned()).or_default().requests += 1;
        let request = Request {
            key: key.to_owned(),
            share: state.budget.tenant(key).share(),
            revoked: revoked.clone(),
        };
        state.requests.insert(number, request);
        Some(RequestSlot {
            quota: self.clone(),
            number,
            revoked,
        })
    }

    /// Returns the number of running requests, and their bytes.
    #[must_use]
    pub fn in_use(&self) -> (usize, u64) {
        let state = self.0.lock();
        (state.requests.len(), state.bytes())
    }
}

impl RequestSlot {
    /// Takes more bytes; false if there are too few, and no other key would have more than this one, or the request is revoked.
    #[must_use]
    pub fn try_grow(&mut self, bytes: u64) -> bool {
        let mut state = self.quota.0.lock();
        let Some(key) = state
            .requests
            .get(&self.number)
            .map(|request| request.key.clone())
        else {
            return false;
        };
        let wanted = state.usage(&key).bytes.saturating_add(bytes);
        loop {
            let Some(request) = state.requests.get_mut(&self.number) else {
                return false;
            };
            match request.share.try_grow(bytes) {
                Ok(()) => break,
                Err(ByteBudgetError::InUse) => {}
                Err(_) => return false,
            }
            if !state.revoke_bytes(wanted) {
                return false;
            }
        }
        state.keys.entry(key).or_default().bytes += bytes;
        true
    }

    /// Returns the token that is cancelled when the request must end because another key has fewer.
    #[must_use]
    pub const fn revoked(&self) -> &CancellationToken {
        &self.revoked
    }
}

impl Drop for RequestSlot {
    fn drop(&mut self) {
        self.quota.0.lock().remove(self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: u64 = 1024;

    fn budget(kib: u64) -> ByteBudget {
        ByteBudget::new(kib * KIB)
    }

    #[test]
    fn key_without_requests_gets_one_of_the_greediest() {
        let quota = RequestQuota::new(8, budget(128));
        let greedy: Vec<_> = (0..8).map(|_| quota.start("greedy").unwrap()).collect();
        assert!(quota.start("greedy").is_none(), "it has all of them");
        let other = quota.start("other").unwrap();
        let revoked: Vec<_> = greedy.iter().map(|slot| slot.revoked().is_cancelled()).collect();
        assert_eq!(revoked.iter().filter(|revoked| **revoked).count(), 1);
        assert!(revoked[0], "the oldest");
        let more: Vec<_> = (0..3).map(|_| quota.start("other").unwrap()).collect();
        assert!(quota.start("other").is_none(), "both have four");
        assert!(!other.revoked().is_cancelled() && more.iter().all(|slot| !slot.revoked().is_cancelled()));
        drop((greedy, other, more));
        assert_eq!(quota.in_use(), (0, 0));
        assert!(quota.0.lock().keys.is_empty());
    }

    #[test]
    fn bytes_are_taken_from_the_key_that_has_the_most() {
        let quota = RequestQuota::new(8, budget(100));
        let mut greedy: Vec<_> = (0..3).map(|_| quota.start("greedy").unwrap()).collect();
        for slot in &mut greedy {
            assert!(slot.try_grow(24 * KIB));
        }
        assert!(!greedy[0].try_grow(20 * KIB), "it takes none from itself");
        let mut other = quota.start("other").unwrap();
        assert!(other.try_grow(25 * KIB));
        assert_eq!(
            greedy.iter().filter(|slot| slot.revoked().is_cancelled()).count(),
            1
        );
        assert!(!other.try_grow(40 * KIB), "the other key would have less");
        assert!(!other.try_grow(101 * KIB));
        assert_eq!(quota.in_use(), (3, 73 * KIB));
        let revoked = greedy.iter_mut().find(|slot| slot.revoked().is_cancelled());
        assert!(!revoked.unwrap().try_grow(1));
        drop((greedy, other));
        assert_eq!(quota.in_use(), (0, 0));
    }

    #[test]
    fn equal_keys_take_nothing_from_each_other() {
        let quota = RequestQuota::new(2, budget(13));
        let (mut one, mut two) = (quota.start("a").unwrap(), quota.start("b").unwrap());
        assert!(one.try_grow(5 * KIB) && two.try_grow(5 * KIB));
        assert!(quota.start("c").is_none());
        assert!(!one.try_grow(2 * KIB) && !two.try_grow(2 * KIB));
        assert!(!one.revoked().is_cancelled() && !two.revoked().is_cancelled());
    }
}

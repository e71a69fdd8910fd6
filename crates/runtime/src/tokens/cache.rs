//! The cache of verdicts on tokens. Pure; bounded in number and time.

use std::{
    collections::{HashMap, VecDeque},
    time::{Duration, Instant},
};

use super::Verdict;

/// SHA-256 of a token: tokens themselves are not stored.
pub(super) type Key = [u8; 32];

const ACCEPTED_LIFETIME: Duration = Duration::from_secs(60);
const REFUSED_LIFETIME: Duration = Duration::from_secs(10);
/// Time for which a token that was accepted may be reviewed again without drawing on the budget for unknown tokens.
const KNOWN: Duration = Duration::from_secs(2 * 60 * 60);
const ACCEPTED: usize = 256;
const REFUSED: usize = 1024;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Known {
    Verdict(Verdict),
    Accepted,
    Nothing,
}

#[derive(Debug)]
pub(super) struct Cache {
    accepted: Remembered,
    refused: Remembered,
}

impl Cache {
    pub(super) fn new() -> Self {
        Self {
            accepted: Remembered::new(ACCEPTED),
            refused: Remembered::new(REFUSED),
        }
    }

    pub(super) fn lookup(&self, key: &Key, now: Instant) -> Known {
        for (remembered, lifetime) in [
            (&self.accepted, ACCEPTED_LIFETIME),
            (&self.refused, REFUSED_LIFETIME),
        ] {
            if let Some((verdict, age)) = remembered.get(key, now)
                && age < lifetime
            {
                return Known::Verdict(verdict.clone());
            }
        }
        if self.accepted.get(key, now).is_some_and(|(_, age)| age < KNOWN) {
            return Known::Accepted;
        }
        Known::Nothing
    }

    pub(super) fn remember(&mut self, key: Key, verdict: Verdict, now: Instant) {
        if matches!(verdict, Verdict::Accepted(_)) {
            self.refused.forget(&key);
            self.accepted.insert(key, verdict, now);
        } else {
            self.accepted.forget(&key);
            self.refused.insert(key, verdict, now);
        }
    }
}

#[derive(Debug)]
struct Remembered {
    capacity: usize,
    verdicts: HashMap<Key, (Verdict, Instant)>,
    order: VecDeque<Key>,
}

impl Remembered {
    fn new(capacity: usize) -> Self {
        Self {
            capacity,
            verdicts: HashMap::new(),
            order: VecDeque::new(),
        }
    }

    fn get(&self, key: &Key, now: Instant) -> Option<(&Verdict, Duration)> {
        let (verdict, since) = self.verdicts.get(key)?;
        Some((verdict, now.saturating_duration_since(*since)))
    }

    fn insert(&mut self, key: Key, verdict: Verdict, now: Instant) {
        self.forget(&key);
        while self.order.len() >= self.capacity {
            if let Some(oldest) = self.order.pop_front() {
                self.verdicts.remove(&oldest);
            }
        }
        self.verdicts.insert(key, (verdict, now));
        self.order.push_back(key);
    }

    fn forget(&mut self, key: &Key) {
        if self.verdicts.remove(key).is_some() {
            self.order.retain(|each| each != key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: usize) -> Key {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&number.to_le_bytes());
        key
    }

    fn accepted() -> Verdict {
        Verdict::Accepted("system:serviceaccount:a:b".into())
    }

    #[test]
    fn verdicts_hold_for_their_time() {
        let now = Instant::now();
        let mut cache = Cache::new();
        assert_eq!(cache.lookup(&key(1), now), Known::Nothing);
        cache.remember(key(1), accepted(), now);
        cache.remember(key(2), Verdict::Invalid, now);
        assert_eq!(
            cache.lookup(&key(1), now + ACCEPTED_LIFETIME / 2),
            Known::Verdict(accepted())
        );
        assert_eq!(
            cache.lookup(&key(2), now + REFUSED_LIFETIME / 2),
            Known::Verdict(Verdict::Invalid)
        );
        assert_eq!(cache.lookup(&key(1), now + ACCEPTED_LIFETIME), Known::Accepted);
        assert_eq!(cache.lookup(&key(1), now + KNOWN), Known::Nothing);
        assert_eq!(cache.lookup(&key(2), now + REFUSED_LIFETIME), Known::Nothing);
        cache.remember(key(1), Verdict::Invalid, now);
        assert_eq!(
            cache.lookup(&key(1), now),
            Known::Verdict(Verdict::Invalid),
            "a token that was revoked is not accepted any more"
        );
    }

    #[test]
    fn refused_tokens_are_bounded_and_displace_no_accepted_ones() {
        let now = Instant::now();
        let mut cache = Cache::new();
        cache.remember(key(0), accepted(), now);
        for number in 1..10_000 {
            cache.remember(key(number), Verdict::Invalid, now);
        }
        assert_eq!(
            (cache.refused.order.len(), cache.refused.verdicts.len()),
            (REFUSED, REFUSED)
        );
        assert_eq!(cache.lookup(&key(0), now), Known::Verdict(accepted()));
        assert_eq!(
            cache.lookup(&key(0), now + ACCEPTED_LIFETIME),
            Known::Accepted,
            "a known token needs no budget"
        );
    }
}

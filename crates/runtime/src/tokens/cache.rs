//! The cache of verdicts on tokens, and the budget for reviewing unknown ones. Pure; bounded in number and time.

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
/// Reviews of unknown tokens per second, and how many may come at once.
const RATE: f64 = 5.0;
const BURST: f64 = 20.0;

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
    budget: f64,
    filled: Instant,
}

impl Cache {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            accepted: Remembered::new(ACCEPTED),
            refused: Remembered::new(REFUSED),
            budget: BURST,
            filled: now,
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

    /// Pays for the review of an unknown token; returns false if too many were reviewed lately.
    pub(super) fn pay(&mut self, now: Instant) -> bool {
        let earned = now.saturating_duration_since(self.filled).as_secs_f64() * RATE;
        self.budget = (self.budget + earned).min(BURST);
        self.filled = now;
        if self.budget < 1.0 {
            return false;
        }
        self.budget -= 1.0;
        true
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
        let mut cache = Cache::new(now);
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
    fn a_flood_of_unknown_tokens_is_bounded_and_leaves_known_ones_alone() {
        let now = Instant::now();
        let mut cache = Cache::new(now);
        cache.remember(key(0), accepted(), now);
        let reviews = (1..10_000).filter(|_| cache.pay(now)).count();
        assert_eq!(reviews, 20);
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
        let later = now + Duration::from_secs(1);
        assert_eq!((0..10_000).filter(|_| cache.pay(later)).count(), 5);
    }
}

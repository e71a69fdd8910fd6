//! Budgets for the reviews of unknown tokens, one for each address of a client. Pure; bounded in number.

use std::{
    collections::HashMap,
    net::IpAddr,
    time::{Duration, Instant},
};

/// Maximum number of addresses with a budget of their own; beyond it, new ones share the budget of unknown addresses.
const ADDRESSES: usize = 1024;
const OF_ADDRESS: Rate = Rate {
    per_second: 5.0,
    at_once: 20.0,
};
/// The reviews of all addresses together, which protect the API server.
const OF_ALL: Rate = Rate {
    per_second: 50.0,
    at_once: 200.0,
};

#[derive(Debug, Clone, Copy)]
struct Rate {
    per_second: f64,
    at_once: f64,
}

#[derive(Debug, Clone, Copy)]
struct Budget {
    rate: Rate,
    left: f64,
    filled: Instant,
}

impl Budget {
    fn new(rate: Rate, now: Instant) -> Self {
        Self {
            rate,
            left: rate.at_once,
            filled: now,
        }
    }

    fn left(&self, now: Instant) -> f64 {
        let elapsed: Duration = now.saturating_duration_since(self.filled);
        (self.left + elapsed.as_secs_f64() * self.rate.per_second).min(self.rate.at_once)
    }

    fn is_full(&self, now: Instant) -> bool {
        self.left(now) >= self.rate.at_once
    }

    fn pay(&mut self, now: Instant) -> bool {
        self.left = self.left(now);
        self.filled = now;
        let pays = self.left >= 1.0;
        if pays {
            self.left -= 1.0;
        }
        pays
    }
}

#[derive(Debug)]
pub(super) struct ReviewBudgets {
    all: Budget,
    addresses: HashMap<Option<IpAddr>, Budget>,
}

impl ReviewBudgets {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            all: Budget::new(OF_ALL, now),
            addresses: HashMap::new(),
        }
    }

    /// Pays for the review of an unknown token from an address; returns false if too many of the address, or of all, were reviewed lately.
    pub(super) fn pay(&mut self, address: Option<IpAddr>, now: Instant) -> bool {
        let mut address = address;
        if self.addresses.len() >= ADDRESSES && !self.addresses.contains_key(&address) {
            // A full budget is the same as none.
            self.addresses.retain(|_, budget| !budget.is_full(now));
            if self.addresses.len() >= ADDRESSES {
                address = None;
            }
        }
        let own = self.addresses.entry(address);
        own.or_insert_with(|| Budget::new(OF_ADDRESS, now)).pay(now) && self.all.pay(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(number: u32) -> Option<IpAddr> {
        Some(IpAddr::from(number.to_be_bytes()))
    }

    fn paid(budgets: &mut ReviewBudgets, address: Option<IpAddr>, now: Instant) -> usize {
        (0..10_000).filter(|_| budgets.pay(address, now)).count()
    }

    #[test]
    fn flood_from_one_address_leaves_reviews_to_another() {
        let now = Instant::now();
        let mut budgets = ReviewBudgets::new(now);
        assert_eq!(paid(&mut budgets, address(1), now), 20);
        assert!(budgets.pay(address(2), now) && budgets.pay(None, now));
        let later = now + Duration::from_secs(1);
        assert_eq!(paid(&mut budgets, address(1), later), 5);
        assert_eq!(paid(&mut budgets, address(2), later), 20);
    }

    #[test]
    fn reviews_of_all_addresses_are_bounded() {
        let now = Instant::now();
        let mut budgets = ReviewBudgets::new(now);
        let of_all = |budgets: &mut ReviewBudgets, now| -> usize {
            (0..100).map(|number| paid(budgets, address(number), now)).sum()
        };
        assert_eq!(of_all(&mut budgets, now), 200);
        assert_eq!(of_all(&mut budgets, now + Duration::from_secs(1)), 50);
    }

    #[test]
    fn number_of_budgets_is_bounded_and_idle_ones_go_first() {
        let mut now = Instant::now();
        let mut budgets = ReviewBudgets::new(now);
        for number in 0..10_000 {
            budgets.pay(address(number), now);
        }
        assert!(budgets.addresses.len() <= ADDRESSES + 1);
        now += Duration::from_secs(60);
        assert!(budgets.pay(address(20_000), now));
        assert_eq!(budgets.addresses.len(), 1, "full budgets are the same as none");
    }
}

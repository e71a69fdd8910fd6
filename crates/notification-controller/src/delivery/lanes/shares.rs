//! The shares of providers and namespaces in the quota of waiting bytes. Pure.

use std::collections::HashMap;

use runtime::ObjectKey;

/// Part of the rest that a new event may fill, in eighths.
const NEW: u64 = 6;
/// Part of the rest that deliveries of accepted events may fill, in eighths.
const ACCEPTED: u64 = 7;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fill {
    /// An event that can be refused.
    New,
    /// A delivery of an accepted event.
    Accepted,
}

/// The waiting bytes, of all, of each namespace and of each provider.
#[derive(Debug)]
pub(super) struct Shares {
    bound: u64,
    all: u64,
    namespaces: HashMap<String, u64>,
    providers: HashMap<ObjectKey, u64>,
}

impl Shares {
    pub(super) fn new(bound: u64) -> Self {
        Self {
            bound,
            all: 0,
            namespaces: HashMap::new(),
            providers: HashMap::new(),
        }
    }

    /// Returns true if `bytes` more fit in the shares of a provider and of its namespace.
    pub(super) fn fits(&self, key: &ObjectKey, bytes: u64, fill: Fill) -> bool {
        let eighths = match fill {
            Fill::New => NEW,
            Fill::Accepted => ACCEPTED,
        };
        let of = |room: u64| room / 8 * eighths;
        let own = self.providers.get(key).copied().unwrap_or_default();
        let namespace = self.namespaces.get(&key.namespace).copied().unwrap_or_default();
        let room = of(self.bound.saturating_sub(self.all - namespace));
        namespace + bytes <= room && own + bytes <= of(room.saturating_sub(namespace - own))
    }

    /// Returns true if the waiting bytes are so few that one provider with all of them is within its share.
    pub(super) fn is_calm(&self) -> bool {
        self.all < self.bound / 4
    }

    pub(super) fn add(&mut self, key: &ObjectKey, bytes: u64) {
        self.all += bytes;
        *self.namespaces.entry(key.namespace.clone()).or_default() += bytes;
        *self.providers.entry(key.clone()).or_default() += bytes;
    }

    pub(super) fn remove(&mut self, key: &ObjectKey, bytes: u64) {
        self.all = self.all.saturating_sub(bytes);
        if let Some(namespace) = self.namespaces.get_mut(&key.namespace) {
            *namespace = namespace.saturating_sub(bytes);
            if *namespace == 0 {
                self.namespaces.remove(&key.namespace);
            }
        }
        if let Some(own) = self.providers.get_mut(key) {
            *own = own.saturating_sub(bytes);
            if *own == 0 {
                self.providers.remove(key);
            }
        }
    }
}

#[cfg(test)]
impl Shares {
    pub(super) fn is_empty(&self) -> bool {
        self.all == 0 && self.namespaces.is_empty() && self.providers.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUND: u64 = 1 << 20;

    fn fill(shares: &mut Shares, key: &ObjectKey, fill: Fill) -> u64 {
        let mut filled = 0;
        while shares.fits(key, 64, fill) {
            shares.add(key, 64);
            filled += 64;
        }
        filled
    }

    #[test]
    fn a_full_share_leaves_a_share_for_others() {
        let mut shares = Shares::new(BOUND);
        let key = |namespace: &str, name: &str| ObjectKey::new(namespace, name);
        let new = fill(&mut shares, &key("a", "one"), Fill::New);
        assert!(new > BOUND / 2 && new < BOUND * 5 / 8, "{new}");
        // Accepted events get a little more, up to a bound.
        let more = fill(&mut shares, &key("a", "one"), Fill::Accepted);
        assert!(more > BOUND / 8 && new + more < BOUND * 7 / 8, "{more}");
        // Another provider of the namespace has a share, and another namespace, however many Providers the first one has.
        assert!(fill(&mut shares, &key("a", "two"), Fill::Accepted) > BOUND / 16);
        for number in 0..50 {
            let name = number.to_string();
            fill(&mut shares, &key("a", &name), Fill::Accepted);
        }
        let other = fill(&mut shares, &key("b", "one"), Fill::New);
        assert!(other > BOUND / 16, "{other}");
        assert!(shares.all < BOUND);
        shares.remove(&key("b", "one"), other);
        assert!(!shares.namespaces.contains_key("b") && !shares.providers.contains_key(&key("b", "one")));
    }

    #[test]
    fn calm_means_a_share_for_each() {
        let mut shares = Shares::new(BOUND);
        let key = ObjectKey::new("a", "one");
        while shares.is_calm() {
            assert!(shares.fits(&key, 64, Fill::New));
            shares.add(&key, 64);
        }
    }
}

//! The places of unpacked artifacts in the cache, in the order of their use: the cost of a use does not grow with their number.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::sync::OnceCell;

use super::{
    unpack::ENTRY_BYTES,
    unpacked::{Unpacked, Usage},
};
use crate::Digest;

/// The bytes that an artifact counts for, beside its files: its open directory.
const ARTIFACT_BYTES: u64 = 64 << 10;

/// An artifact that is made once for all that ask for it.
type Cell = Arc<OnceCell<Arc<Unpacked>>>;

#[derive(Debug)]
struct Slot {
    cell: Cell,
    used: Instant,
    /// The key of its digest in [`Slots::by_use`].
    turn: u64,
    /// The bytes that it counts for; 0 until it is made.
    cost: u64,
}

impl Slot {
    /// Returns true if the artifact is in use outside the cache, or is being made.
    fn in_use(&self) -> bool {
        Arc::strong_count(&self.cell) > 1
            || self
                .cell
                .get()
                .is_some_and(|unpacked| Arc::strong_count(unpacked) > 1)
    }
}

/// Returns the bytes that an artifact counts for the limit: one of nothing but empty files takes space, too.
const fn cost(unpacked: &Unpacked) -> u64 {
    let entries = unpacked.entries().saturating_mul(ENTRY_BYTES);
    unpacked
        .bytes()
        .saturating_add(entries)
        .saturating_add(ARTIFACT_BYTES)
}

/// The artifacts of a cache.
#[derive(Debug, Default)]
pub(super) struct Slots {
    by_digest: HashMap<Digest, Slot>,
    /// The digests, the one that was not used for the longest time first.
    by_use: BTreeMap<u64, Digest>,
    /// The turn of the last use.
    turn: u64,
    /// Sum of the costs of all slots.
    cost: u64,
}

impl Slots {
    /// Returns the cell of an artifact, which is empty if it has to be made. [`Slots::settle`] must follow.
    pub(super) fn take(&mut self, digest: &Digest) -> Cell {
        let slot = self.by_digest.entry(digest.clone()).or_insert_with(|| Slot {
            cell: Arc::default(),
            used: Instant::now(),
            turn: 0,
            cost: 0,
        });
        let cell = Arc::clone(&slot.cell);
        self.renew(digest);
        cell
    }

    /// Notes what an artifact that was just made counts for, and lets go of one that could not be made.
    pub(super) fn settle(&mut self, digest: &Digest) {
        let Some(slot) = self.by_digest.get_mut(digest) else {
            return;
        };
        match slot.cell.get() {
            Some(unpacked) if slot.cost == 0 => {
                slot.cost = cost(unpacked);
                self.cost = self.cost.saturating_add(slot.cost);
            }
            None if !slot.in_use() => self.remove(digest),
            _ => {}
        }
    }

    /// Lets go of what was not used for longer than `age`, and of what was not used for the longest time until all count for at most
    /// `bytes`. What is in use stays, and counts as used now.
    pub(super) fn evict(&mut self, bytes: u64, age: Duration) {
        let last = self.turn;
        while let Some((turn, digest)) = self.by_use.first_key_value()
            && *turn <= last
            && let Some(slot) = self.by_digest.get(digest)
            && (self.cost > bytes || slot.used.elapsed() > age)
        {
            let (digest, in_use) = (digest.clone(), slot.in_use());
            if in_use {
                self.renew(&digest);
            } else {
                self.remove(&digest);
            }
        }
    }

    pub(super) fn usage(&self) -> Usage {
        let made = self.by_digest.values().filter_map(|slot| slot.cell.get());
        Usage {
            artifacts: self.by_digest.len(),
            bytes: made.map(|unpacked| unpacked.bytes()).sum(),
        }
    }

    /// Makes an artifact the one that was used last.
    fn renew(&mut self, digest: &Digest) {
        if let Some(slot) = self.by_digest.get_mut(digest) {
            self.by_use.remove(&slot.turn);
            self.turn += 1;
            slot.turn = self.turn;
            slot.used = Instant::now();
            self.by_use.insert(slot.turn, digest.clone());
        }
    }

    fn remove(&mut self, digest: &Digest) {
        if let Some(slot) = self.by_digest.remove(digest) {
            self.by_use.remove(&slot.turn);
            self.cost = self.cost.saturating_sub(slot.cost);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Algorithm,
        fetch::{unpack::Counted, unpacked::Files},
    };

    const AGE: Duration = Duration::from_secs(3600);
    /// The bytes that an artifact of these tests counts for.
    const COST: u64 = ARTIFACT_BYTES + ENTRY_BYTES + 10;

    fn digest(name: &str) -> Digest {
        crate::digest::of(Algorithm::Sha256, name.as_bytes())
    }

    fn make(slots: &mut Slots, name: &str) -> Arc<Unpacked> {
        let digest = digest(name);
        let cell = slots.take(&digest);
        if !cell.initialized() {
            let dir = tempfile::tempdir().unwrap();
            let tree = tree::Disk::open(dir.path(), &tree::Limits::default()).unwrap();
            let counted = Counted {
                entries: 1,
                bytes: 10,
            };
            let dir = Some(dir);
            let unpacked = Unpacked::new(digest.clone(), Files::Disk { tree, dir }, counted);
            cell.set(Arc::new(unpacked)).unwrap();
        }
        let made = Arc::clone(cell.get().unwrap());
        drop(cell);
        slots.settle(&digest);
        made
    }

    fn kept(slots: &Slots) -> Vec<&str> {
        let all = ["a", "b", "c", "d"];
        all.into_iter()
            .filter(|name| slots.by_digest.contains_key(&digest(name)))
            .collect()
    }

    #[test]
    fn those_not_used_for_the_longest_time_go_first_and_used_ones_stay() {
        let mut slots = Slots::default();
        let held = make(&mut slots, "a");
        for name in ["b", "c", "d", "b"] {
            make(&mut slots, name);
        }
        slots.evict(4 * COST, AGE);
        assert_eq!(kept(&slots), ["a", "b", "c", "d"]);
        slots.evict(4 * COST - 1, AGE);
        assert_eq!(kept(&slots), ["a", "b", "d"]);
        slots.evict(0, AGE);
        assert_eq!(kept(&slots), ["a"]);
        drop(held);
        slots.evict(COST, AGE);
        assert_eq!(kept(&slots), ["a"], "it fits again");
        slots.evict(COST, Duration::ZERO);
        assert_eq!(kept(&slots), [""; 0]);
        assert_eq!((slots.cost, slots.by_use.len()), (0, 0));
    }

    #[test]
    fn what_fits_and_is_young_is_not_looked_at() {
        let mut slots = Slots::default();
        let _held = [make(&mut slots, "a"), make(&mut slots, "b")];
        let before: Vec<u64> = slots.by_use.keys().copied().collect();
        slots.evict(2 * COST, AGE);
        assert!(
            slots.by_use.keys().copied().eq(before),
            "artifacts that are in use were renewed"
        );
    }

    #[test]
    fn artifact_that_could_not_be_made_is_forgotten_with_its_last_user() {
        let mut slots = Slots::default();
        let first = slots.take(&digest("a"));
        let second = slots.take(&digest("a"));
        drop(first);
        slots.settle(&digest("a"));
        assert_eq!(kept(&slots), ["a"]);
        drop(second);
        slots.settle(&digest("a"));
        assert_eq!(kept(&slots), [""; 0]);
        assert!(slots.by_use.is_empty());
    }
}

//! Slots of unpacked artifacts, in the order of their use: the cost of a use does not grow with their number.

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

/// Bytes that an artifact counts for, beside its files: its open directory.
const ARTIFACT_BYTES: u64 = 64 << 10;

/// An artifact that is made once for all callers.
type Cell = Arc<OnceCell<Arc<Unpacked>>>;

#[derive(Debug)]
struct Slot {
    cell: Cell,
    used: Instant,
    /// Key of its digest in [`Slots::by_use`].
    last_use: u64,
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

/// Returns the bytes that an artifact counts for: empty files take space, too.
const fn cost(unpacked: &Unpacked) -> u64 {
    let entries = unpacked.entries().saturating_mul(ENTRY_BYTES);
    unpacked
        .bytes()
        .saturating_add(entries)
        .saturating_add(ARTIFACT_BYTES)
}

#[derive(Debug, Default)]
pub(super) struct Slots {
    by_digest: HashMap<Digest, Slot>,
    /// Digests, the least recently used first.
    by_use: BTreeMap<u64, Digest>,
    last_use: u64,
    cost: u64,
}

impl Slots {
    /// Returns the cell of an artifact, which is empty if it must be made. [`Slots::record`] must follow.
    pub(super) fn take(&mut self, digest: &Digest) -> Cell {
        let slot = self.by_digest.entry(digest.clone()).or_insert_with(|| Slot {
            cell: Arc::default(),
            used: Instant::now(),
            last_use: 0,
            cost: 0,
        });
        let cell = Arc::clone(&slot.cell);
        self.renew(digest);
        cell
    }

    /// Records the cost of a new artifact, and removes one that could not be made.
    pub(super) fn record(&mut self, digest: &Digest) {
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

    /// Evicts artifacts that were not used for longer than `age`, and the least recently used ones until all count for at most
    /// `bytes`. Artifacts in use stay, and count as used now.
    pub(super) fn evict(&mut self, bytes: u64, age: Duration) {
        let last = self.last_use;
        while let Some((last_use, digest)) = self.by_use.first_key_value()
            && *last_use <= last
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

    fn renew(&mut self, digest: &Digest) {
        if let Some(slot) = self.by_digest.get_mut(digest) {
            self.by_use.remove(&slot.last_use);
            self.last_use += 1;
            slot.last_use = self.last_use;
            slot.used = Instant::now();
            self.by_use.insert(slot.last_use, digest.clone());
        }
    }

    fn remove(&mut self, digest: &Digest) {
        if let Some(slot) = self.by_digest.remove(digest) {
            self.by_use.remove(&slot.last_use);
            self.cost = self.cost.saturating_sub(slot.cost);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Algorithm,
        fetch::{disk_space::DiskQuota, unpack::Counted, unpacked::Files},
    };

    const AGE: Duration = Duration::from_secs(3600);
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
                ..Counted::default()
            };
            let dir = Some((dir, DiskQuota::new(0).artifact("")));
            let unpacked = Unpacked::new(digest.clone(), Files::Disk { tree, dir }, counted);
            cell.set(Arc::new(unpacked)).unwrap();
        }
        let made = Arc::clone(cell.get().unwrap());
        drop(cell);
        slots.record(&digest);
        made
    }

    fn names(slots: &Slots) -> Vec<&str> {
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
        assert_eq!(names(&slots), ["a", "b", "c", "d"]);
        slots.evict(4 * COST - 1, AGE);
        assert_eq!(names(&slots), ["a", "b", "d"]);
        slots.evict(0, AGE);
        assert_eq!(names(&slots), ["a"]);
        drop(held);
        slots.evict(COST, AGE);
        assert_eq!(names(&slots), ["a"], "it fits again");
        slots.evict(COST, Duration::ZERO);
        assert_eq!(names(&slots), [""; 0]);
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
        slots.record(&digest("a"));
        assert_eq!(names(&slots), ["a"]);
        drop(second);
        slots.record(&digest("a"));
        assert_eq!(names(&slots), [""; 0]);
        assert!(slots.by_use.is_empty());
    }
}

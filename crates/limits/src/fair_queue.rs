//! A bounded queue that keys, such as namespaces, share fairly. Pure.

use std::{
    cmp::Reverse,
    collections::{HashMap, VecDeque},
    time::Instant,
};

/// A queue of items with a key and a cost. Keys take turns, and the items of a key are in order. A key can be paused. If all items together
/// cost more than the capacity, items of the key whose items cost the most are to be evicted.
#[derive(Debug)]
pub struct FairQueue<T> {
    capacity: u64,
    cost: u64,
    len: usize,
    added: u64,
    lanes: HashMap<String, Lane<T>>,
    /// The keys with items, the next one first.
    turns: VecDeque<String>,
}

#[derive(Debug)]
struct Lane<T> {
    entries: VecDeque<Entry<T>>,
    cost: u64,
    paused: Option<Instant>,
}

#[derive(Debug)]
struct Entry<T> {
    number: u64,
    cost: u64,
    item: T,
}

/// The answer of [`FairQueue::next`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextItem<T> {
    Item(T),
    /// All keys with items are paused, one of them until this time.
    Paused(Instant),
    Empty,
}

impl<T> Lane<T> {
    fn is_paused(&self, now: Instant) -> bool {
        self.paused.is_some_and(|until| until > now)
    }
}

impl<T> FairQueue<T> {
    #[must_use]
    pub fn new(capacity: u64) -> Self {
        Self {
            capacity,
            cost: 0,
            len: 0,
            added: 0,
            lanes: HashMap::new(),
            turns: VecDeque::new(),
        }
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[must_use]
    pub fn has(&self, key: &str) -> bool {
        self.lanes.contains_key(key)
    }

    /// Adds the last item of a key. The queue may be over its capacity then: see [`FairQueue::overfull`] and [`FairQueue::evict`].
    pub fn push(&mut self, key: &str, item: T, cost: u64) {
        if !self.lanes.contains_key(key) {
            self.turns.push_back(key.to_owned());
        }
        let lane = self.lanes.entry(key.to_owned()).or_insert_with(|| Lane {
            entries: VecDeque::new(),
            cost: 0,
            paused: None,
        });
        self.added += 1;
        lane.entries.push_back(Entry {
            number: self.added,
            cost,
            item,
        });
        lane.cost = lane.cost.saturating_add(cost);
        self.cost = self.cost.saturating_add(cost);
        self.len += 1;
    }

    /// Returns the key whose items cost the most if the queue is over its capacity; of equal keys the one with the older first item.
    #[must_use]
    pub fn overfull(&self) -> Option<String> {
        if self.cost <= self.capacity {
            return None;
        }
        let first = |lane: &Lane<T>| lane.entries.front().map(|entry| entry.number);
        let most = self
            .lanes
            .iter()
            .max_by_key(|(_, lane)| (lane.cost, Reverse(first(lane))));
        most.map(|(key, _)| key.clone())
    }

    /// Removes the first item of the key whose items cost the most, if the queue is over its capacity.
    pub fn evict(&mut self) -> Option<T> {
        let key = self.overfull()?;
        self.remove(&key, |_| true)
    }

    /// Returns the first item of the key whose turn it is.
    #[must_use]
    pub fn next(&self, now: Instant) -> NextItem<&T> {
        let mut paused: Option<Instant> = None;
        for lane in self.turns.iter().filter_map(|key| self.lanes.get(key)) {
            match lane.entries.front() {
                Some(entry) if !lane.is_paused(now) => return NextItem::Item(&entry.item),
                _ => paused = [paused, lane.paused].into_iter().flatten().min(),
            }
        }
        paused.map_or(NextItem::Empty, NextItem::Paused)
    }

    /// Removes the first item of the key whose turn it is, and ends the turn. `None` if there is none, or all keys with items are paused.
    pub fn pop(&mut self, now: Instant) -> Option<T> {
        let lanes = &self.lanes;
        let is_ready = |key: &&String| lanes.get(*key).is_some_and(|lane| !lane.is_paused(now));
        let key = self.turns.iter().find(is_ready).cloned()?;
        self.end_turn(&key);
        self.remove(&key, |_| true)
    }

    /// Lets all other keys have a turn before this one.
    pub fn end_turn(&mut self, key: &str) {
        let position = self.turns.iter().position(|each| each == key);
        if let Some(key) = position.and_then(|position| self.turns.remove(position)) {
            self.turns.push_back(key);
        }
    }

    /// Gives a key no turn until this time, as long as it has items.
    pub fn pause(&mut self, key: &str, until: Instant) {
        if let Some(lane) = self.lanes.get_mut(key) {
            lane.paused = Some(until);
        }
    }

    /// Removes the first item of a key that is wanted.
    pub fn remove(&mut self, key: &str, is_wanted: impl Fn(&T) -> bool) -> Option<T> {
        let lane = self.lanes.get_mut(key)?;
        let position = lane.entries.iter().position(|entry| is_wanted(&entry.item))?;
        let entry = lane.entries.remove(position)?;
        lane.cost = lane.cost.saturating_sub(entry.cost);
        self.cost = self.cost.saturating_sub(entry.cost);
        self.len = self.len.saturating_sub(1);
        if lane.entries.is_empty() {
            self.lanes.remove(key);
            self.turns.retain(|each| each != key);
        }
        Some(entry.item)
    }

    /// Moves some items of a key behind its others. Both stay in their order.
    pub fn move_back(&mut self, key: &str, is_moved: impl Fn(&T) -> bool) {
        if let Some(lane) = self.lanes.get_mut(key) {
            let entries = std::mem::take(&mut lane.entries);
            let (moved, others): (VecDeque<_>, VecDeque<_>) =
                entries.into_iter().partition(|entry| is_moved(&entry.item));
            lane.entries = others;
            lane.entries.extend(moved);
        }
    }

    /// Returns the items of a key in order.
    pub fn items(&self, key: &str) -> impl Iterator<Item = &T> {
        let lane = self.lanes.get(key).into_iter();
        lane.flat_map(|lane| &lane.entries).map(|entry| &entry.item)
    }

    /// Returns the first item of a key that is wanted.
    pub fn find_mut(&mut self, key: &str, is_wanted: impl Fn(&T) -> bool) -> Option<&mut T> {
        let lane = self.lanes.get_mut(key)?;
        let mut items = lane.entries.iter_mut().map(|entry| &mut entry.item);
        items.find(|item| is_wanted(item))
    }

    /// Returns the keys with items, the one whose turn it is first.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.turns.iter().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn queue(capacity: u64, items: &[(&str, u32)]) -> FairQueue<u32> {
        let mut queue = FairQueue::new(capacity);
        for (key, item) in items {
            queue.push(key, *item, 1);
        }
        queue
    }

    fn rest(mut queue: FairQueue<u32>, now: Instant) -> Vec<u32> {
        std::iter::from_fn(|| queue.pop(now)).collect()
    }

    #[test]
    fn keys_take_turns_and_their_items_stay_in_order() {
        let now = Instant::now();
        let mut queue = queue(
            100,
            &[("a", 1), ("a", 2), ("a", 3), ("b", 10), ("c", 20), ("b", 11)],
        );
        assert_eq!(queue.pop(now), Some(1));
        // A key without items comes back behind those that wait.
        queue.push("d", 30, 1);
        assert_eq!(rest(queue, now), [10, 20, 2, 30, 11, 3]);
    }

    #[test]
    fn next_item_is_the_same_until_its_turn_ends_or_it_is_removed() {
        let now = Instant::now();
        let mut queue = queue(100, &[("a", 1), ("b", 10), ("a", 2)]);
        assert_eq!(queue.next(now), NextItem::Item(&1));
        assert_eq!(queue.next(now), NextItem::Item(&1));
        assert_eq!(queue.remove("a", |item| *item == 1), Some(1));
        assert_eq!(queue.next(now), NextItem::Item(&2), "the turn goes on");
        queue.end_turn("a");
        assert_eq!(queue.next(now), NextItem::Item(&10));
        queue.end_turn("nobody");
        assert_eq!(rest(queue, now), [10, 2]);
    }

    #[test]
    fn paused_key_delays_itself_alone() {
        let now = Instant::now();
        let later = now + Duration::from_secs(8);
        let mut queue = queue(100, &[("a", 1), ("b", 10), ("a", 2)]);
        queue.pause("a", later);
        queue.pause("nobody", later);
        assert_eq!(queue.next(now), NextItem::Item(&10));
        assert_eq!(queue.pop(now), Some(10));
        assert_eq!(queue.pop(now), None);
        assert_eq!(queue.next(now), NextItem::Paused(later));
        queue.push("b", 11, 1);
        queue.pause("b", later - Duration::from_secs(1));
        assert_eq!(
            queue.next(now),
            NextItem::Paused(later - Duration::from_secs(1)),
            "the first end of a pause"
        );
        assert_eq!(queue.next(later), NextItem::Item(&1));
        assert_eq!(rest(queue, later), [1, 11, 2]);
    }

    #[test]
    fn full_queue_evicts_the_oldest_item_of_the_key_that_costs_the_most() {
        let mut queue = queue(
            4,
            &[("victim", 1), ("greedy", 10), ("greedy", 11), ("greedy", 12)],
        );
        assert_eq!((queue.evict(), queue.overfull()), (None, None));
        queue.push("greedy", 13, 1);
        assert_eq!(queue.evict(), Some(10));
        queue.push("new", 20, 1);
        assert_eq!(queue.evict(), Some(11), "the key with the fewest loses none");
        assert_eq!(queue.evict(), None);
        assert_eq!(queue.len(), 4);
        assert_eq!(rest(queue, Instant::now()), [1, 12, 20, 13]);
    }

    #[test]
    fn eviction_counts_costs_and_not_items() {
        let mut queue = queue(100, &[]);
        for item in 0..10 {
            queue.push("small", item, 4);
        }
        queue.push("large", 100, 50);
        queue.push("large", 101, 20);
        assert_eq!(queue.overfull().as_deref(), Some("large"));
        assert_eq!(queue.evict(), Some(100));
        assert_eq!(queue.evict(), None);
        queue.push("huge", 200, 1000);
        assert_eq!(
            queue.evict(),
            Some(200),
            "an item beyond the capacity displaces none"
        );
        assert_eq!((queue.evict(), queue.len()), (None, 11));
    }

    #[test]
    fn equal_keys_lose_the_oldest_item_first() {
        let mut queue = queue(2, &[("b", 1), ("a", 2), ("c", 3)]);
        assert_eq!(queue.evict(), Some(1));
        assert!(!queue.has("b") && queue.has("a") && queue.has("c"));
    }

    #[test]
    fn moved_items_go_behind_the_others_of_their_key() {
        let mut queue = queue(100, &[("a", 1), ("a", 2), ("a", 3), ("a", 4), ("b", 1)]);
        queue.move_back("a", |item| item % 2 == 1);
        queue.move_back("nobody", |_| true);
        assert_eq!(queue.items("a").copied().collect::<Vec<_>>(), [2, 4, 1, 3]);
        assert_eq!(queue.items("nobody").count(), 0);
        assert_eq!(queue.keys().collect::<Vec<_>>(), ["a", "b"]);
        if let Some(item) = queue.find_mut("a", |item| *item == 4) {
            *item = 40;
        }
        assert_eq!(queue.remove("a", |item| *item == 40), Some(40));
        assert_eq!(queue.remove("a", |item| *item == 40), None);
    }

    #[test]
    fn nothing_is_left_of_a_key_without_items() {
        let now = Instant::now();
        let mut queue = queue(100, &[("a", 1)]);
        queue.pause("a", now + Duration::from_secs(8));
        assert_eq!(queue.remove("a", |_| true), Some(1));
        assert!(queue.is_empty() && queue.lanes.is_empty() && queue.turns.is_empty());
        assert_eq!((queue.cost, queue.next(now)), (0, NextItem::Empty));
        queue.push("a", 2, 1);
        assert_eq!(queue.next(now), NextItem::Item(&2), "a pause ends with the items");
    }
}

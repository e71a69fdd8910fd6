//! The lanes of providers: a few deliveries at the same time, and a queue of the others.
//!
//! A waiting delivery is a position in the journal, apart from the first few. The quota of bytes in the journal is shared: a provider gets a part of
//! the rest that the others leave, and so does a namespace, so that others always have a quota. A lane whose provider fails sets the delivery
//! aside and tries one at a time, with growing backoff, until one succeeds.

mod shares;
#[cfg(test)]
mod tests;

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use futures::future::BoxFuture;
use parking_lot::Mutex;
use runtime::ObjectKey;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::task::TaskTracker;

use shares::{Fill, Shares};

/// Maximum number of deliveries to one provider at the same time.
pub(super) const WIDTH: usize = 4;
/// Maximum number of waiting deliveries of one provider without a journal.
const LENGTH: usize = 256;
/// Maximum number of waiting deliveries of a provider whose events stay in memory.
const IN_MEMORY: usize = 32;
/// Maximum bytes of all events that stay in memory while they wait in a lane.
const IN_MEMORY_BYTES: u64 = 8 * 1024 * 1024;
/// Maximum size of an event that stays in memory while it waits, in bytes.
const IN_MEMORY_EVENT: u64 = 64 * 1024;
/// Memory of a waiting delivery, in bytes.
const ENTRY: u64 = 128;
/// Number of failures of a delivery after others to the same provider succeeded.
const STRIKES: u8 = 3;
/// Maximum pause, whatever the provider asks for.
const LONGEST_PAUSE: Duration = Duration::from_secs(600);
/// Backoff after the first failure; it doubles with each further one.
const FIRST_BACKOFF: Duration = Duration::from_secs(1);
const LONGEST_BACKOFF: Duration = Duration::from_secs(30);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Admission {
    Accepted,
    Full,
}

#[derive(Debug)]
pub(super) enum Ended<T> {
    Sent,
    /// It failed for good.
    Over,
    /// The provider can't be used now.
    Outage(T),
}

pub(super) type Run<T> = Arc<dyn Fn(T, LanePermit) -> BoxFuture<'static, Ended<T>> + Send + Sync>;

#[derive(Debug, Default)]
struct Pause(Mutex<Option<Instant>>);

impl Pause {
    fn end(&self) -> Option<Instant> {
        let paused = self.0.lock();
        paused.filter(|end| *end > Instant::now())
    }

    async fn wait(&self) {
        while let Some(end) = self.end() {
            sleep_until(end).await;
        }
    }
}

/// Allows one attempt of an item of a lane.
#[derive(Debug)]
pub(super) struct LanePermit {
    pause: Arc<Pause>,
    is_last: bool,
}

impl LanePermit {
    /// Pauses the whole lane, at most for [`LONGEST_PAUSE`].
    pub(super) fn pause(&self, time: Duration) {
        let end = Instant::now() + time.min(LONGEST_PAUSE);
        let mut paused = self.pause.0.lock();
        *paused = (*paused).max(Some(end));
    }

    pub(super) fn is_paused(&self) -> bool {
        self.pause.end().is_some()
    }

    /// Waits for the end of the pause, if there is one.
    pub(super) async fn wait(&self) {
        self.pause.wait().await;
    }

    /// Returns true if this is the last attempt of the delivery: it failed too often while others succeeded.
    pub(super) fn is_last(&self) -> bool {
        self.is_last
    }
}

#[derive(Debug)]
struct Waiting<T> {
    item: T,
    /// Position in the order of the lane.
    number: u64,
    cost: u64,
    /// Bytes of the event if it is in memory.
    in_memory: Option<u64>,
    strikes: u8,
}

struct Lane<T> {
    waiting: VecDeque<Waiting<T>>,
    /// Items that failed since the last success.
    aside: Vec<Waiting<T>>,
    running: usize,
    in_memory: usize,
    failures: u32,
    pause: Arc<Pause>,
    run: Run<T>,
}

struct Table<T> {
    lanes: HashMap<ObjectKey, Lane<T>>,
    shares: Shares,
    memory_bytes: u64,
    numbers: u64,
}

pub(super) struct Lanes<T> {
    table: Arc<Mutex<Table<T>>>,
    tasks: TaskTracker,
}

impl<T> Clone for Lanes<T> {
    fn clone(&self) -> Self {
        Self {
            table: Arc::clone(&self.table),
            tasks: self.tasks.clone(),
        }
    }
}

/// A worker of a lane; dropped in a panic, it leaves the lane.
struct Worker<T> {
    lanes: Lanes<T>,
    key: ObjectKey,
    cost: u64,
}

impl<T> Drop for Worker<T> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let mut table = self.lanes.table.lock();
            table.shares.remove(&self.key, self.cost);
            table.leave(&self.key);
        }
    }
}

pub(super) struct New {
    pub(super) size: u64,
    /// The event can be read back.
    pub(super) is_readable: bool,
}

impl<T: Send + 'static> Lanes<T> {
    pub(super) fn new(bytes: u64) -> Self {
        Self {
            table: Arc::new(Mutex::new(Table {
                lanes: HashMap::new(),
                shares: Shares::new(bytes),
                memory_bytes: 0,
                numbers: 0,
            })),
            tasks: TaskTracker::new(),
        }
    }

    /// Returns true if the quota of a lane admits an event that is not accepted yet. Accepted events get a little more.
    pub(super) fn admits(&self, key: &ObjectKey, size: u64) -> bool {
        self.table.lock().shares.fits(key, size + ENTRY, Fill::New)
    }

    /// Returns true if all lanes together wait for so little that every lane has a quota.
    pub(super) fn is_calm(&self) -> bool {
        self.table.lock().shares.is_calm()
    }

    /// Adds an item to the lane of `key`, if its quota admits it. `make` gets true if the item may have its event in memory. `run` makes the worker
    /// function of a new lane.
    pub(super) fn enter(
        &self,
        key: &ObjectKey,
        new: &New,
        make: impl FnOnce(bool) -> Option<T>,
        run: impl FnOnce() -> Run<T>,
    ) -> Admission {
        let mut table = self.table.lock();
        let cost = new.size + ENTRY;
        let waits = table.lanes.get(key).map_or(0, |lane| lane.waiting.len());
        if waits >= LENGTH && !new.is_readable || !table.shares.fits(key, cost, Fill::Accepted) {
            return Admission::Full;
        }
        let in_memory_before = table.lanes.get(key).map_or(0, |lane| lane.in_memory);
        let fits_in_memory = new.size <= IN_MEMORY_EVENT && table.memory_bytes + new.size <= IN_MEMORY_BYTES;
        let in_memory = !new.is_readable || in_memory_before < IN_MEMORY && fits_in_memory;
        let Some(item) = make(in_memory) else {
            return Admission::Full;
        };
        table.numbers += 1;
        let waiting = Waiting {
            item,
            number: table.numbers,
            cost,
            in_memory: in_memory.then_some(new.size),
            strikes: 0,
        };
        table.shares.add(key, cost);
        table.memory_bytes += waiting.in_memory.unwrap_or_default();
        let lane = table.lanes.entry(key.clone()).or_insert_with(|| Lane::new(run()));
        lane.in_memory += usize::from(in_memory);
        lane.waiting.push_back(waiting);
        self.staff(key, lane);
        Admission::Accepted
    }

    /// Waits until every lane is empty, or waits for a provider that can't be used.
    pub(super) async fn drain(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Starts the workers that a lane needs: only one while its provider fails.
    fn staff(&self, key: &ObjectKey, lane: &mut Lane<T>) {
        let most = if lane.failures > 0 { 1 } else { WIDTH };
        // Running workers take the next items only after their own.
        let mut idle = lane.waiting.len();
        while lane.running < most && idle > 0 {
            lane.running += 1;
            idle -= 1;
            let worker = Worker {
                lanes: self.clone(),
                key: key.clone(),
                cost: 0,
            };
            self.tasks.spawn(worker.run());
        }
    }
}

impl<T: Send + 'static> Worker<T> {
    async fn run(mut self) {
        loop {
            let pause = {
                let table = self.lanes.table.lock();
                table.lanes.get(&self.key).map(|lane| Arc::clone(&lane.pause))
            };
            if let Some(pause) = &pause {
                pause.wait().await;
            }
            let Some((waiting, permit, run)) = self.lanes.table.lock().next(&self.key) else {
                return;
            };
            self.cost = waiting.cost;
            let Waiting {
                item,
                number,
                cost,
                strikes,
                ..
            } = waiting;
            match run(item, permit).await {
                Ended::Sent => self.succeed(),
                Ended::Over => self.lanes.table.lock().shares.remove(&self.key, cost),
                Ended::Outage(item) => {
                    let waiting = Waiting {
                        item,
                        number,
                        cost,
                        in_memory: None,
                        strikes,
                    };
                    let backoff = self.lanes.table.lock().put_aside(&self.key, waiting);
                    if self.lanes.tasks.is_closed() {
                        return self.lanes.table.lock().leave(&self.key);
                    }
                    sleep(backoff).await;
                }
            }
            self.cost = 0;
        }
    }

    /// Records that the provider can be used: items that were set aside are next.
    fn succeed(&self) {
        let mut table = self.lanes.table.lock();
        table.shares.remove(&self.key, self.cost);
        let Some(lane) = table.lanes.get_mut(&self.key) else {
            return;
        };
        lane.failures = 0;
        lane.take_back(1);
        self.lanes.staff(&self.key, lane);
    }
}

impl<T> Table<T> {
    /// Returns the next item of a lane for a worker; without an item, the worker has left the lane.
    fn next(&mut self, key: &ObjectKey) -> Option<(Waiting<T>, LanePermit, Run<T>)> {
        let next = self.lanes.get_mut(key).and_then(Lane::next);
        match &next {
            Some((waiting, ..)) => {
                self.memory_bytes = self
                    .memory_bytes
                    .saturating_sub(waiting.in_memory.unwrap_or_default());
            }
            None => self.leave(key),
        }
        next
    }

    fn leave(&mut self, key: &ObjectKey) {
        let Some(lane) = self.lanes.get_mut(key) else {
            return;
        };
        lane.running = lane.running.saturating_sub(1);
        if lane.running == 0 && lane.waiting.is_empty() && lane.aside.is_empty() {
            self.lanes.remove(key);
        }
    }

    /// Sets an item aside until its provider can be used, and returns the backoff until the next attempt.
    fn put_aside(&mut self, key: &ObjectKey, waiting: Waiting<T>) -> Duration {
        let Some(lane) = self.lanes.get_mut(key) else {
            return FIRST_BACKOFF;
        };
        lane.aside.push(waiting);
        lane.failures = lane.failures.saturating_add(1);
        let doubled = FIRST_BACKOFF.saturating_mul(1 << (lane.failures - 1).min(5));
        doubled.min(LONGEST_BACKOFF)
    }
}

impl<T> Lane<T> {
    fn new(run: Run<T>) -> Self {
        Self {
            waiting: VecDeque::new(),
            aside: Vec::new(),
            running: 0,
            in_memory: 0,
            failures: 0,
            pause: Arc::default(),
            run,
        }
    }

    fn next(&mut self) -> Option<(Waiting<T>, LanePermit, Run<T>)> {
        if self.failures > 0 && self.running > 1 {
            return None;
        }
        if self.waiting.is_empty() {
            self.take_back(0);
        }
        let waiting = self.waiting.pop_front()?;
        self.in_memory -= usize::from(waiting.in_memory.is_some());
        let permit = LanePermit {
            pause: Arc::clone(&self.pause),
            is_last: waiting.strikes >= STRIKES,
        };
        Some((waiting, permit, Arc::clone(&self.run)))
    }

    /// Puts the items that were set aside before all others, in order.
    fn take_back(&mut self, strikes: u8) {
        self.aside.sort_unstable_by_key(|waiting| waiting.number);
        for mut waiting in self.aside.drain(..).rev() {
            waiting.strikes = waiting.strikes.saturating_add(strikes);
            self.waiting.push_front(waiting);
        }
    }
}

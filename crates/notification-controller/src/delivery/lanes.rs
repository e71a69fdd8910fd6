//! The lanes of providers: a few deliveries at the same time, and those that wait, in order.
//!
//! What waits is a position in the journal, apart from the first few. The bytes that it keeps there are shared: a provider gets a part of
//! what the others leave, and so does a namespace, so that there is always room for others. A lane whose provider fails puts the delivery
//! aside and tries one at a time, ever more rarely, until one succeeds.

mod shares;
#[cfg(test)]
mod tests;

use std::{
    collections::{HashMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::future::BoxFuture;
use runtime::ObjectKey;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::task::TaskTracker;

use shares::{Fill, Shares};

/// Deliveries to one provider at the same time.
pub(super) const WIDTH: usize = 4;
/// Deliveries that may wait for one provider without a journal.
const LENGTH: usize = 256;
/// Waiting deliveries of a provider whose events stay in memory.
const HELD: usize = 32;
/// Bytes of all events that stay in memory while they wait in a lane.
const HELD_BYTES: u64 = 8 * 1024 * 1024;
/// The largest event that stays in memory while it waits, in bytes.
const HELD_EVENT: u64 = 64 * 1024;
/// Memory of a waiting delivery, in bytes.
const ENTRY: u64 = 128;
/// Times that a delivery may fail again after others to the same provider succeeded.
const STRIKES: u8 = 3;
/// The longest pause that a provider gets, whatever it asks for.
const LONGEST_PAUSE: Duration = Duration::from_secs(600);
/// Pause after the first failure; it doubles with each further one.
const FIRST_BACKOFF: Duration = Duration::from_secs(1);
const LONGEST_BACKOFF: Duration = Duration::from_secs(30);

/// Result of entering a lane: the work was accepted, or there is no room for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Admission {
    Accepted,
    Full,
}

/// The end of a delivery.
#[derive(Debug)]
pub(super) enum Ended<T> {
    /// The provider took it.
    Sent,
    /// It is over without that.
    Over,
    /// The provider can't be used now.
    Outage(T),
}

/// Works on an item of a lane.
pub(super) type Run<T> = Arc<dyn Fn(T, Turn) -> BoxFuture<'static, Ended<T>> + Send + Sync>;

/// The end of a pause that a provider asked for.
#[derive(Debug, Default)]
struct Pause(Mutex<Option<Instant>>);

impl Pause {
    fn end(&self) -> Option<Instant> {
        let paused = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        paused.filter(|end| *end > Instant::now())
    }

    async fn wait(&self) {
        while let Some(end) = self.end() {
            sleep_until(end).await;
        }
    }
}

/// A place in a lane, whose turn has come.
#[derive(Debug)]
pub(super) struct Turn {
    pause: Arc<Pause>,
    is_last: bool,
}

impl Turn {
    /// Keeps all of the lane waiting, at most [`LONGEST_PAUSE`].
    pub(super) fn pause(&self, time: Duration) {
        let end = Instant::now() + time.min(LONGEST_PAUSE);
        let mut paused = self.pause.0.lock().unwrap_or_else(PoisonError::into_inner);
        *paused = (*paused).max(Some(end));
    }

    /// Returns true during a pause.
    pub(super) fn is_paused(&self) -> bool {
        self.pause.end().is_some()
    }

    /// Waits for the end of the pause, if there is one.
    pub(super) async fn wait(&self) {
        self.pause.wait().await;
    }

    /// Returns true if this turn is the last one of the delivery: it failed too often while others succeeded.
    pub(super) fn is_last(&self) -> bool {
        self.is_last
    }
}

#[derive(Debug)]
struct Waiting<T> {
    item: T,
    /// Position in the order of the lane.
    number: u64,
    /// Bytes in the shares.
    cost: u64,
    /// Bytes of the event if it is in memory.
    held: Option<u64>,
    strikes: u8,
}

struct Lane<T> {
    waiting: VecDeque<Waiting<T>>,
    /// Items that failed since the last success.
    aside: Vec<Waiting<T>>,
    running: usize,
    /// Number of waiting items whose event is in memory.
    held: usize,
    /// Failures since the last success.
    failures: u32,
    pause: Arc<Pause>,
    run: Run<T>,
}

struct Table<T> {
    lanes: HashMap<ObjectKey, Lane<T>>,
    shares: Shares,
    held_bytes: u64,
    numbers: u64,
}

/// All lanes; cheap to clone.
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

impl<T> Lanes<T> {
    fn lock(&self) -> MutexGuard<'_, Table<T>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A worker of a lane; dropped in a panic, it leaves the lane.
struct Worker<T> {
    lanes: Lanes<T>,
    key: ObjectKey,
    /// Bytes of the item that is under way.
    cost: u64,
}

impl<T> Drop for Worker<T> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let mut table = self.lanes.lock();
            table.shares.remove(&self.key, self.cost);
            table.leave(&self.key);
        }
    }
}

/// A new item of a lane.
pub(super) struct New {
    /// Bytes of its event.
    pub(super) size: u64,
    /// The event can be read back when its turn comes.
    pub(super) is_kept: bool,
}

impl<T: Send + 'static> Lanes<T> {
    /// Makes lanes that share so many bytes.
    pub(super) fn new(bytes: u64) -> Self {
        Self {
            table: Arc::new(Mutex::new(Table {
                lanes: HashMap::new(),
                shares: Shares::new(bytes),
                held_bytes: 0,
                numbers: 0,
            })),
            tasks: TaskTracker::new(),
        }
    }

    /// Returns true if a lane has room for an event that is not accepted yet. What is accepted gets a little more.
    pub(super) fn has_room(&self, key: &ObjectKey, size: u64) -> bool {
        self.lock().shares.fits(key, size + ENTRY, Fill::New)
    }

    /// Returns true if the lanes together have so little that each has room.
    pub(super) fn is_calm(&self) -> bool {
        self.lock().shares.is_calm()
    }

    /// Puts an item in the lane of `key`, if that has room. `make` gets true if the item may hold its event in memory. `run` makes the work of
    /// a new lane.
    pub(super) fn enter(
        &self,
        key: &ObjectKey,
        new: &New,
        make: impl FnOnce(bool) -> Option<T>,
        run: impl FnOnce() -> Run<T>,
    ) -> Admission {
        let mut table = self.lock();
        let cost = new.size + ENTRY;
        let waits = table.lanes.get(key).map_or(0, |lane| lane.waiting.len());
        if waits >= LENGTH && !new.is_kept || !table.shares.fits(key, cost, Fill::Accepted) {
            return Admission::Full;
        }
        let held_before = table.lanes.get(key).map_or(0, |lane| lane.held);
        let may_hold = new.size <= HELD_EVENT && table.held_bytes + new.size <= HELD_BYTES;
        let held = !new.is_kept || held_before < HELD && may_hold;
        let Some(item) = make(held) else {
            return Admission::Full;
        };
        table.numbers += 1;
        let waiting = Waiting {
            item,
            number: table.numbers,
            cost,
            held: held.then_some(new.size),
            strikes: 0,
        };
        table.shares.add(key, cost);
        table.held_bytes += waiting.held.unwrap_or_default();
        let lane = table.lanes.entry(key.clone()).or_insert_with(|| Lane::new(run()));
        lane.held += usize::from(held);
        lane.waiting.push_back(waiting);
        self.staff(key, lane);
        Admission::Accepted
    }

    /// Waits until every lane is empty, or waits for a provider that can't be used.
    pub(super) async fn drain(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Begins as many workers as a lane needs: one while its provider fails.
    fn staff(&self, key: &ObjectKey, lane: &mut Lane<T>) {
        let most = if lane.failures > 0 { 1 } else { WIDTH };
        // Those that run take the next ones only when they are done.
        let mut idle = lane.waiting.len();
        while lane.running < most && idle > 0 {
            lane.running += 1;
            idle -= 1;
            let worker = Worker {
                lanes: self.clone(),
                key: key.clone(),
                cost: 0,
            };
            self.tasks.spawn(worker.work());
        }
    }
}

impl<T: Send + 'static> Worker<T> {
    async fn work(mut self) {
        loop {
            let pause = {
                let table = self.lanes.lock();
                table.lanes.get(&self.key).map(|lane| Arc::clone(&lane.pause))
            };
            if let Some(pause) = &pause {
                pause.wait().await;
            }
            let Some((waiting, turn, run)) = self.lanes.lock().next(&self.key) else {
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
            match run(item, turn).await {
                Ended::Sent => self.succeed(),
                Ended::Over => self.lanes.lock().shares.remove(&self.key, cost),
                Ended::Outage(item) => {
                    let waiting = Waiting {
                        item,
                        number,
                        cost,
                        held: None,
                        strikes,
                    };
                    let backoff = self.lanes.lock().put_aside(&self.key, waiting);
                    if self.lanes.tasks.is_closed() {
                        return self.lanes.lock().leave(&self.key);
                    }
                    sleep(backoff).await;
                }
            }
            self.cost = 0;
        }
    }

    /// Takes in that the provider can be used: what was put aside is next.
    fn succeed(&self) {
        let mut table = self.lanes.lock();
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
    /// Returns the next item of a lane for a worker, which has left the lane if there is none.
    fn next(&mut self, key: &ObjectKey) -> Option<(Waiting<T>, Turn, Run<T>)> {
        let next = self.lanes.get_mut(key).and_then(Lane::next);
        match &next {
            Some((waiting, ..)) => {
                self.held_bytes = self.held_bytes.saturating_sub(waiting.held.unwrap_or_default());
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

    /// Keeps an item until its provider can be used, and returns the time until the next attempt.
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
            held: 0,
            failures: 0,
            pause: Arc::default(),
            run,
        }
    }

    fn next(&mut self) -> Option<(Waiting<T>, Turn, Run<T>)> {
        if self.failures > 0 && self.running > 1 {
            return None;
        }
        if self.waiting.is_empty() {
            self.take_back(0);
        }
        let waiting = self.waiting.pop_front()?;
        self.held -= usize::from(waiting.held.is_some());
        let turn = Turn {
            pause: Arc::clone(&self.pause),
            is_last: waiting.strikes >= STRIKES,
        };
        Some((waiting, turn, Arc::clone(&self.run)))
    }

    /// Puts what was put aside before all that waits, in order.
    fn take_back(&mut self, strikes: u8) {
        self.aside.sort_unstable_by_key(|waiting| waiting.number);
        for mut waiting in self.aside.drain(..).rev() {
            waiting.strikes = waiting.strikes.saturating_add(strikes);
            self.waiting.push_front(waiting);
        }
    }
}

//! Permits to work, shared fairly between namespaces.
//!
//! A pass has a permit only while it works, not while it waits for readiness, for hooks or for a slow server, so that objects that wait for
//! long never stop others. A free permit goes to the namespace with the fewest, and among equals to the one that was served longest ago.

use std::{
    collections::HashMap,
    fmt,
    future::Future,
    sync::Arc,
    time::{Duration, Instant},
};

use limits::{FairPermit, FairPermits};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

/// Waiting passes of a process for each permit.
const WAITING_PER_PERMIT: usize = 16;
/// Minimum and maximum number of waiting passes of a kind: each has its rendered or fetched objects in memory.
const MIN_WAITING: usize = 32;
const MAX_WAITING: usize = 256;
/// Longest wait for which no other pass is evicted.
const SHORT_WAIT: Duration = Duration::from_secs(10);

/// The permits of a kind's passes, and the passes that wait without one.
#[derive(Clone)]
pub(crate) struct Slots {
    permits: FairPermits,
    waiting: Arc<Mutex<WaitingPasses>>,
}

struct WaitingPasses {
    passes: HashMap<String, Vec<Waiting>>,
    /// Maximum number of passes that wait for long; a quarter of it in one namespace.
    most_waits: usize,
    short_wait: Duration,
    sequence: u64,
}

struct Waiting {
    number: u64,
    since: Instant,
    evict: CancellationToken,
}

/// The permit of a pass that starts.
pub(crate) struct Permit {
    slots: Slots,
    permit: FairPermit,
}

impl WaitingPasses {
    fn add(&mut self, namespace: &str, evict: &CancellationToken, now: Instant) -> u64 {
        self.sequence += 1;
        let number = self.sequence;
        let own = self.passes.entry(namespace.to_owned()).or_default();
        own.push(Waiting {
            number,
            since: now,
            evict: evict.clone(),
        });
        // The evicted pass removes its own entry when it ends.
        if let Some(newest) = self.crowded(namespace, now) {
            newest.evict.cancel();
        }
        number
    }

    /// Returns the pass to evict because too many wait: the newest of the namespace, or of the one with the most. Only passes that wait for
    /// long count, or all if there are twice as many.
    fn crowded(&self, namespace: &str, now: Instant) -> Option<&Waiting> {
        let lives = |one: &&Waiting| !one.evict.is_cancelled();
        let is_long = |one: &&Waiting| now.saturating_duration_since(one.since) >= self.short_wait;
        let is_too_many = |lists: &mut dyn Iterator<Item = &Vec<Waiting>>, most: usize| {
            let (mut all, mut long) = (0, 0);
            for one in lists.flatten().filter(lives) {
                all += 1;
                long += usize::from(is_long(&one));
            }
            long > most || all > 2 * most
        };
        let most_of_one = most_of_namespace(self.most_waits);
        let own = self.passes.get(namespace)?;
        let list = if is_too_many(&mut std::iter::once(own), most_of_one) {
            own
        } else if is_too_many(&mut self.passes.values(), self.most_waits) {
            self.passes.values().max_by_key(|list| list.len())?
        } else {
            return None;
        };
        let newest = || list.iter().rev().filter(lives);
        newest().find(is_long).or_else(|| newest().next())
    }

    fn remove(&mut self, namespace: &str, number: u64) {
        let Some(list) = self.passes.get_mut(namespace) else {
            return;
        };
        list.retain(|one| one.number != number);
        if list.is_empty() {
            self.passes.remove(namespace);
        }
    }
}

fn most_of_namespace(most: usize) -> usize {
    (most / 4).max(1)
}

impl Slots {
    /// Returns the number of passes of a namespace that may wait for a short time before one of them is evicted.
    pub(crate) fn most_short_waits(&self) -> usize {
        2 * most_of_namespace(self.waiting.lock().most_waits)
    }

    pub(crate) fn new(permits: usize) -> Self {
        Self {
            permits: FairPermits::new(permits),
            waiting: Arc::new(Mutex::new(WaitingPasses {
                passes: HashMap::new(),
                most_waits: (permits * WAITING_PER_PERMIT).clamp(MIN_WAITING, MAX_WAITING),
                short_wait: SHORT_WAIT,
                sequence: 0,
            })),
        }
    }

    pub(crate) async fn acquire(&self, namespace: &str) -> Permit {
        Permit {
            slots: self.clone(),
            permit: self.permits.acquire(namespace).await,
        }
    }
}

/// The permit of one pass, which the pass gives back while it only waits.
#[derive(Clone)]
pub struct WorkSlot(Arc<Inner>);

struct Inner {
    slots: Slots,
    namespace: String,
    state: Mutex<SlotState>,
    acquiring: tokio::sync::Mutex<()>,
    evicted: CancellationToken,
}

#[derive(Default)]
struct SlotState {
    permit: Option<FairPermit>,
    waiting: Option<u64>,
    closed: bool,
}

impl fmt::Debug for WorkSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkSlot")
            .field("namespace", &self.0.namespace)
            .finish_non_exhaustive()
    }
}

impl WorkSlot {
    pub(crate) fn new(permit: Permit) -> Self {
        Self(Arc::new(Inner {
            slots: permit.slots,
            namespace: permit.permit.key().to_owned(),
            state: Mutex::new(SlotState {
                permit: Some(permit.permit),
                waiting: None,
                closed: false,
            }),
            acquiring: tokio::sync::Mutex::default(),
            evicted: CancellationToken::new(),
        }))
    }

    /// Creates a slot that shares its permit with nothing, for work that is not part of a pass.
    #[must_use]
    pub fn alone() -> Self {
        let inner = Inner {
            slots: Slots::new(1),
            namespace: String::new(),
            state: Mutex::default(),
            acquiring: tokio::sync::Mutex::default(),
            evicted: CancellationToken::new(),
        };
        Self(Arc::new(inner))
    }

    /// Returns the token that is cancelled when the pass must end because too many wait.
    pub(crate) fn evicted(&self) -> &CancellationToken {
        &self.0.evicted
    }

    /// Gives the permit back for good, at the end of the pass: cancelled work may keep clones.
    pub(crate) fn close(&self) {
        let mut state = self.0.state.lock();
        state.closed = true;
        let (permit, waiting) = (state.permit.take(), state.waiting.take());
        drop(state);
        if let Some(number) = waiting {
            self.0.slots.waiting.lock().remove(&self.0.namespace, number);
        }
        drop(permit);
    }

    /// Gives the permit back. The pass only waits until [`WorkSlot::resume`].
    pub fn pause(&self) {
        let permit = {
            let mut state = self.0.state.lock();
            let Some(permit) = state.permit.take() else {
                return;
            };
            let mut waiting = self.0.slots.waiting.lock();
            let number = waiting.add(&self.0.namespace, &self.0.evicted, Instant::now());
            state.waiting = Some(number);
            permit
        };
        drop(permit);
    }

    /// Waits for a permit, unless the pass has one or has ended.
    pub async fn resume(&self) {
        let _one_at_a_time = self.0.acquiring.lock().await;
        let has_permit = |state: &SlotState| state.permit.is_some() || state.closed;
        if has_permit(&self.0.state.lock()) {
            return;
        }
        let permit = self.0.slots.permits.acquire(&self.0.namespace).await;
        let mut state = self.0.state.lock();
        if state.closed {
            drop(state);
            drop(permit);
            return;
        }
        state.permit = Some(permit);
        if let Some(number) = state.waiting.take() {
            self.0.slots.waiting.lock().remove(&self.0.namespace, number);
        }
    }

    /// Waits for something without a permit. Does not nest, and is not for several waits at the same time.
    pub async fn waiting<T>(&self, wait: impl Future<Output = T>) -> T {
        self.pause();
        let waited = wait.await;
        self.resume().await;
        waited
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    fn take(slots: &Slots, namespace: &str) -> Option<Permit> {
        slots.acquire(namespace).now_or_never()
    }

    fn counting_short_waits() -> Slots {
        let slots = Slots::new(1);
        slots.waiting.lock().short_wait = Duration::ZERO;
        slots
    }

    #[test]
    fn waiting_pass_has_no_permit_and_is_bounded_by_namespace() {
        let slots = counting_short_waits();
        let most = MIN_WAITING / 4;
        let pass = |namespace| {
            let slot = WorkSlot::new(take(&slots, namespace).expect("nobody works"));
            slot.pause();
            slot
        };
        let waiting: Vec<_> = (0..most).map(|_| pass("a")).collect();
        assert!(waiting.iter().all(|slot| !slot.evicted().is_cancelled()));
        let late = pass("a");
        assert!(late.evicted().is_cancelled(), "it is one too many");
        let other = pass("b");
        assert!(!other.evicted().is_cancelled(), "of another namespace");
        other.resume().now_or_never().expect("nobody works");
        for slot in waiting.iter().chain([&late, &other]) {
            slot.close();
        }
        late.resume().now_or_never().expect("its pass has ended");
        assert_eq!((slots.permits.free(), slots.waiting.lock().passes.len()), (1, 0));
    }

    #[test]
    fn newest_waiting_pass_of_the_largest_namespace_ends_when_there_are_too_many() {
        let slots = counting_short_waits();
        let mut waiting = Vec::new();
        for namespace in ["a", "b", "c", "d", "e"] {
            for _ in 0..MIN_WAITING / 4 - usize::from(namespace != "a") {
                let slot = WorkSlot::new(take(&slots, namespace).expect("nobody works"));
                slot.pause();
                waiting.push((namespace, slot));
                if waiting.len() == MIN_WAITING + 1 {
                    let ended = waiting.iter().filter(|(_, slot)| slot.evicted().is_cancelled());
                    let ended: Vec<&str> = ended.map(|(namespace, _)| *namespace).collect();
                    assert_eq!(ended, ["a"]);
                }
            }
        }
        assert!(waiting.len() > MIN_WAITING);
    }

    #[test]
    fn short_waits_end_no_holder_until_twice_as_many_wait() {
        let slots = Slots::new(1);
        let most = slots.most_short_waits();
        let waiting: Vec<_> = (0..=most)
            .map(|_| {
                let slot = WorkSlot::new(take(&slots, "a").expect("nobody works"));
                slot.pause();
                slot
            })
            .collect();
        let ended: Vec<usize> = (0..waiting.len())
            .filter(|at| waiting[*at].evicted().is_cancelled())
            .collect();
        assert_eq!((most, ended), (MIN_WAITING / 2, vec![most]));
    }
}

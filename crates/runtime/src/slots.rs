//! Permits to work, shared fairly between namespaces.
//!
//! A pass has a permit only while it works, not while it waits for readiness, for hooks or for a slow server, so that objects that wait for
//! long never stop others. A free permit goes to the namespace with the fewest, and among equals to the one that was served longest ago.
//!
//! Work that may take long has permits of its own kind, and lends the permit of its pass ([`WorkSlot::lending`]): to a namespace with fewer
//! permits after 2 s, and to anybody after 10 s.

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
/// Times for which a pass holds its permit during work that lends it: if a namespace with fewer permits waits, and if none does.
const LENT_IF_WANTED: Duration = Duration::from_secs(2);
const LENT: Duration = Duration::from_secs(10);
/// Pause between two checks for namespaces that wait.
const LENDING_PAUSE: Duration = Duration::from_millis(250);

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

/// Returns true if work that lends the permit of its pass has held it for long enough. Pure.
fn is_lent(held: Duration, is_wanted: bool) -> bool {
    held >= if is_wanted { LENT_IF_WANTED } else { LENT }
}

struct TimedPermit {
    _permit: FairPermit,
    since: tokio::time::Instant,
}

impl TimedPermit {
    fn new(permit: FairPermit) -> Self {
        Self {
            _permit: permit,
            since: tokio::time::Instant::now(),
        }
    }
}

#[derive(Default)]
struct SlotState {
    permit: Option<TimedPermit>,
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
                permit: Some(TimedPermit::new(permit.permit)),
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
        state.permit = Some(TimedPermit::new(permit));
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

    /// Runs work that has permits of its own, or may take long: the permit is given back once a namespace with fewer permits waits and it
    /// was held for 2 s, or after 10 s. Does not nest, neither in itself nor with [`WorkSlot::waiting`].
    pub async fn lending<T>(&self, work: impl Future<Output = T>) -> T {
        let mut work = std::pin::pin!(work);
        tokio::select! {
            biased;
            done = &mut work => return done,
            () = self.overdue() => {}
        }
        self.waiting(work).await
    }

    /// Waits until the permit is to be lent. Cancel safe.
    pub async fn overdue(&self) {
        loop {
            tokio::time::sleep(LENDING_PAUSE).await;
            let held = self.permit_age();
            if held.is_some_and(|held| is_lent(held, self.is_wanted())) {
                return;
            }
        }
    }

    /// Returns true if the pass has held its permit for at least `held`, and a namespace with fewer permits waits for one.
    #[must_use]
    pub fn is_wanted_after(&self, held: Duration) -> bool {
        self.permit_age().is_some_and(|time| time >= held) && self.is_wanted()
    }

    fn permit_age(&self) -> Option<Duration> {
        let state = self.0.state.lock();
        state.permit.as_ref().map(|held| held.since.elapsed())
    }

    fn is_wanted(&self) -> bool {
        self.0.slots.permits.is_wanted(&self.0.namespace)
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
    fn permit_is_lent_soon_only_to_a_namespace_with_fewer() {
        for (held, is_wanted, expected) in [
            (1, true, false),
            (2, true, true),
            (9, false, false),
            (10, false, true),
        ] {
            let found = is_lent(Duration::from_secs(held), is_wanted);
            assert_eq!(found, expected, "{held} s, {is_wanted}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn endless_work_of_a_namespace_delays_the_first_pass_of_another_by_seconds() {
        let slots = Slots::new(4);
        let passes: Vec<_> = (0..4)
            .map(|_| WorkSlot::new(take(&slots, "bad").expect("a permit")))
            .collect();
        let endless = passes
            .iter()
            .map(|slot| slot.lending(std::future::pending::<()>()));
        let start = tokio::time::Instant::now();
        tokio::select! {
            _ = futures::future::join_all(endless) => panic!("the work has no end"),
            _ = slots.acquire("good") => {}
        }
        assert!(
            start.elapsed() <= LENT_IF_WANTED + LENDING_PAUSE,
            "{:?}",
            start.elapsed()
        );
    }

    #[tokio::test(start_paused = true)]
    async fn work_that_ends_soon_lends_no_permit() {
        let slots = Slots::new(1);
        let slot = WorkSlot::new(take(&slots, "a").expect("a permit"));
        let mut other = Box::pin(slots.acquire("b"));
        assert!((&mut other).now_or_never().is_none());
        slot.lending(tokio::time::sleep(LENT_IF_WANTED / 2)).await;
        assert!((&mut other).now_or_never().is_none());
        assert!(slot.is_wanted_after(Duration::ZERO) && !slot.is_wanted_after(LENT));
        let (_, other) = tokio::join!(slot.lending(tokio::time::sleep(LENT)), async {
            let start = tokio::time::Instant::now();
            drop(other.await);
            start.elapsed()
        });
        assert!(other < LENT_IF_WANTED, "{other:?}");
        assert!(slot.permit_age().is_some() && !slot.is_wanted_after(Duration::ZERO));
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

//! One lane a provider: a few deliveries at the same time, a bounded number that wait, in order.

use std::{
    collections::HashMap,
    future::Future,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use runtime::ObjectKey;
use tokio::{
    sync::Semaphore,
    time::{Instant, sleep_until},
};
use tokio_util::task::TaskTracker;

/// Deliveries to one provider at the same time.
const WIDTH: usize = 4;
/// Deliveries that one provider may have under way or waiting.
const LENGTH: usize = 256;
/// The longest pause that a provider gets, whatever it asks for.
const LONGEST_PAUSE: Duration = Duration::from_secs(600);

/// Result of entering a lane: the work was accepted, or the lane is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Admission {
    Accepted,
    Full,
}

#[derive(Debug)]
struct Lane {
    slots: Semaphore,
    length: AtomicUsize,
    /// The end of a pause that the provider asked for.
    paused: Mutex<Option<Instant>>,
}

/// A place in a lane, whose turn has come.
#[derive(Debug)]
pub(super) struct Turn(Arc<Lane>);

impl Turn {
    /// Keeps all of the lane waiting, at most [`LONGEST_PAUSE`].
    pub(super) fn pause(&self, time: Duration) {
        let end = Instant::now() + time.min(LONGEST_PAUSE);
        let mut paused = self.0.paused.lock().unwrap_or_else(PoisonError::into_inner);
        *paused = (*paused).max(Some(end));
    }

    /// Returns true during a pause.
    pub(super) fn is_paused(&self) -> bool {
        self.end().is_some()
    }

    /// Waits for the end of the pause, if there is one.
    pub(super) async fn wait(&self) {
        while let Some(end) = self.end() {
            sleep_until(end).await;
        }
    }

    fn end(&self) -> Option<Instant> {
        let paused = self.0.paused.lock().unwrap_or_else(PoisonError::into_inner);
        paused.filter(|end| *end > Instant::now())
    }
}

/// All lanes.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    lanes: Mutex<HashMap<ObjectKey, Arc<Lane>>>,
    tasks: TaskTracker,
}

/// Leaves the lane when the work ends, also by a panic.
struct Leave(Arc<Lane>);

impl Drop for Leave {
    fn drop(&mut self) {
        self.0.length.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Lanes {
    /// Runs `work` in the lane of `key`, if that has a place.
    pub(super) fn enter<F>(&self, key: &ObjectKey, work: impl FnOnce(Turn) -> F + Send + 'static) -> Admission
    where
        F: Future<Output = ()> + Send,
    {
        let leave = {
            let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
            // Who holds a lane has counted himself in under this lock.
            lanes.retain(|_, lane| lane.length.load(Ordering::Acquire) > 0);
            let lane = lanes.entry(key.clone()).or_insert_with(|| {
                Arc::new(Lane {
                    slots: Semaphore::new(WIDTH),
                    length: AtomicUsize::new(0),
                    paused: Mutex::default(),
                })
            });
            if lane.length.load(Ordering::Acquire) >= LENGTH {
                return Admission::Full;
            }
            lane.length.fetch_add(1, Ordering::AcqRel);
            Leave(Arc::clone(lane))
        };
        self.tasks.spawn(async move {
            if let Ok(_slot) = leave.0.slots.acquire().await {
                work(Turn(Arc::clone(&leave.0))).await;
            }
            drop(leave);
        });
        Admission::Accepted
    }

    /// Waits until every lane is empty.
    pub(super) async fn drain(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::Notify;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn pause_holds_one_lane_alone_and_is_bounded() {
        let lanes = Lanes::default();
        let (slow, fast) = (ObjectKey::new("ns", "slow"), ObjectKey::new("ns", "fast"));
        let begin = Instant::now();
        let (done, mut finished) = tokio::sync::mpsc::unbounded_channel();
        for asked in [Duration::MAX, Duration::from_secs(1)] {
            lanes.enter(&slow, async move |turn| turn.pause(asked));
        }
        for (name, lane) in [("slow", &slow), ("fast", &fast)] {
            let done = done.clone();
            lanes.enter(lane, async move |turn| {
                turn.wait().await;
                done.send((name, begin.elapsed().as_secs())).unwrap();
            });
        }
        lanes.drain().await;
        assert_eq!(finished.recv().await, Some(("fast", 0)));
        assert_eq!(finished.recv().await, Some(("slow", LONGEST_PAUSE.as_secs())));
    }

    #[tokio::test]
    async fn a_full_lane_refuses_and_leaves_others_alone() {
        let lanes = Lanes::default();
        let (slow, fast) = (ObjectKey::new("ns", "slow"), ObjectKey::new("ns", "fast"));
        let gate = Arc::new(Notify::new());
        let (done, mut finished) = tokio::sync::mpsc::unbounded_channel();
        for number in 0..LENGTH {
            let (gate, done) = (Arc::clone(&gate), done.clone());
            let work = async move |_| {
                if number < WIDTH {
                    gate.notified().await;
                }
                done.send(number).unwrap();
            };
            assert_eq!(lanes.enter(&slow, work), Admission::Accepted);
        }
        assert_eq!(lanes.enter(&slow, async |_| {}), Admission::Full);
        let other = done.clone();
        assert_eq!(
            lanes.enter(&fast, async move |_| other.send(usize::MAX).unwrap()),
            Admission::Accepted
        );
        assert_eq!(finished.recv().await, Some(usize::MAX));
        for _ in 0..WIDTH {
            gate.notify_one();
        }
        lanes.drain().await;
        assert_eq!(finished.len(), LENGTH);
        assert_eq!(lanes.enter(&slow, async |_| {}), Admission::Accepted);
        assert_eq!(lanes.lanes.lock().unwrap().len(), 1);
    }
}

//! Notices a worker of the runtime that doesn't come back from a task, for the liveness probe.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use tokio::runtime::{Handle, RuntimeMetrics};

const PERIOD: Duration = Duration::from_secs(1);
/// Samples without progress after which a worker counts as blocked: 10 s. They are counted, not timed: a process that is stopped, a machine
/// that sleeps and a clock that jumps take none.
const SAMPLES: u32 = 10;

/// The state of the workers, as the watchdog saw it last. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Liveness(Arc<AtomicBool>);

impl Liveness {
    pub(crate) fn is_blocked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn set(&self, blocked: bool) {
        if self.0.swap(blocked, Ordering::Relaxed) != blocked {
            match blocked {
                true => tracing::error!(
                    "a worker thread has been blocked for 10 s: the liveness probe fails until it goes on"
                ),
                false => tracing::info!("the blocked worker thread goes on"),
            }
        }
    }
}

/// The counters of a worker. Each changes when the worker parks, and the second one after every 61 tasks as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Progress {
    /// Odd while the worker is parked.
    parks: u64,
    busy: Duration,
}

impl Progress {
    fn of(metrics: &RuntimeMetrics, worker: usize) -> Self {
        Self {
            parks: metrics.worker_park_unpark_count(worker),
            busy: metrics.worker_total_busy_duration(worker),
        }
    }

    fn is_parked(self) -> bool {
        self.parks % 2 == 1
    }
}

#[derive(Debug)]
struct Worker {
    last: Progress,
    /// Number of samples since the last progress.
    samples: u32,
}

impl Worker {
    /// Takes a sample. Returns true if the worker is blocked.
    fn sample(&mut self, now: Progress) -> bool {
        let goes_on = now.is_parked() || now != self.last;
        self.last = now;
        self.samples = if goes_on {
            0
        } else {
            self.samples.saturating_add(1)
        };
        self.samples >= SAMPLES
    }
}

struct Watchdog {
    runtime: Handle,
    workers: Vec<Worker>,
}

impl Watchdog {
    fn of(runtime: &Handle) -> Self {
        let metrics = runtime.metrics();
        let worker = |number| Worker {
            last: Progress::of(&metrics, number),
            samples: 0,
        };
        Self {
            runtime: runtime.clone(),
            workers: (0..metrics.num_workers()).map(worker).collect(),
        }
    }

    /// Takes a sample of all workers. Returns true if one of them is blocked.
    fn sample(&mut self) -> bool {
        let metrics = self.runtime.metrics();
        let mut is_blocked = false;
        for (number, worker) in self.workers.iter_mut().enumerate() {
            is_blocked |= worker.sample(Progress::of(&metrics, number));
        }
        is_blocked
    }

    /// Wakes another worker while one makes no progress: the stopped one may have polled sockets and timers for all before, and nobody has
    /// taken that over then.
    fn wake_another(&self) {
        if self.workers.iter().any(|worker| worker.samples > 0) {
            drop(self.runtime.spawn(async {}));
        }
    }
}

/// Watches the workers of a runtime from a thread of its own, while anybody has the returned state.
pub(crate) fn watch(runtime: &Handle) -> io::Result<Liveness> {
    let liveness = Liveness::default();
    let watched = Arc::downgrade(&liveness.0);
    let mut watchdog = Watchdog::of(runtime);
    thread::Builder::new()
        .name("watchdog".to_owned())
        .spawn(move || {
            while let Some(state) = watched.upgrade() {
                Liveness(state).set(watchdog.sample());
                watchdog.wake_another();
                thread::sleep(PERIOD);
            }
        })?;
    Ok(liveness)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn progress(parks: u64, busy: u64) -> Progress {
        Progress {
            parks,
            busy: Duration::from_secs(busy),
        }
    }

    #[test]
    fn worker_without_progress_is_blocked_after_ten_samples() {
        let mut worker = Worker {
            last: progress(2, 1),
            samples: 0,
        };
        let mut blocked = |parks, busy, times| {
            (0..times)
                .map(|_| worker.sample(progress(parks, busy)))
                .collect::<Vec<_>>()
        };
        assert_eq!(blocked(2, 1, 10), [[false; 9].as_slice(), &[true]].concat());
        // It ran 61 tasks.
        assert_eq!(blocked(2, 2, 1), [false]);
        assert_eq!(blocked(2, 2, 9), [false; 9]);
        // It is parked for as long as it likes.
        assert_eq!(blocked(3, 2, 100), [false; 100]);
        assert_eq!(blocked(4, 2, 11), [[false; 10].as_slice(), &[true]].concat());
    }

    #[test]
    fn task_that_blocks_one_of_two_workers_is_noticed_until_it_goes_on() {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .build()
            .unwrap();
        let mut watchdog = Watchdog::of(runtime.handle());
        let (started, starts) = mpsc::channel();
        let (go_on, goes_on) = mpsc::channel::<()>();
        let task = runtime.spawn(async move {
            started.send(()).unwrap();
            goes_on.recv().unwrap();
        });
        starts.recv().unwrap();
        // The other worker works.
        runtime.block_on(runtime.spawn(async {})).unwrap();
        let blocked: Vec<_> = (0..=SAMPLES).map(|_| watchdog.sample()).collect();
        assert_eq!(blocked.last(), Some(&true));
        go_on.send(()).unwrap();
        runtime.block_on(task).unwrap();
        while watchdog.sample() {
            runtime.block_on(runtime.spawn(async {})).unwrap();
        }
    }
}

//! Watches a search: reports cases that do not end, aborts those that take all memory, and keeps panics out of the output.

use std::{
    cell::{Cell, RefCell},
    io::Write as _,
    panic,
    sync::{Arc, Once, mpsc},
    time::{Duration, Instant},
};

use parking_lot::Mutex;

use super::memory;

const CHECK: Duration = Duration::from_millis(100);

thread_local! {
    static CATCHING: Cell<bool> = const { Cell::new(false) };
    static CAUGHT: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs `work`, and returns the message of its last panic on this thread instead of printing it.
pub(super) fn quietly<T>(work: impl FnOnce() -> T) -> (Option<String>, T) {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if CATCHING.get() {
                CAUGHT.set(Some(info.to_string()));
            } else {
                usual(info);
            }
        }));
    });
    CAUGHT.set(None);
    CATCHING.set(true);
    let result = work();
    CATCHING.set(false);
    (CAUGHT.take(), result)
}

type Running = Arc<Mutex<Option<(u64, Instant)>>>;

/// Prints the seed of a case that takes longer than `slow` or too much memory.
pub(super) struct Watch {
    running: Running,
    slow: Duration,
    _ends_with_this: mpsc::Sender<()>,
}

impl Watch {
    pub(super) fn start(name: &str, slow: Duration) -> Self {
        let (running, name) = (Running::default(), name.to_owned());
        let (ends, ended) = mpsc::channel::<()>();
        let watched = Arc::clone(&running);
        std::thread::spawn(move || {
            let mut reported = None;
            while ended.recv_timeout(CHECK) == Err(mpsc::RecvTimeoutError::Timeout) {
                let case = *watched.lock();
                if let Some((seed, since)) = case
                    && since.elapsed() > slow
                    && reported != Some(seed)
                {
                    reported = Some(seed);
                    let _ = writeln!(
                        std::io::stderr(),
                        "fuzz {name}: WEIR_FUZZ_SEED={seed} runs for more than {slow:?}"
                    );
                }
                if let Some((seed, _)) = case
                    && memory::resident().is_some_and(|bytes| bytes > memory::ABORT)
                {
                    let _ = writeln!(
                        std::io::stderr(),
                        "fuzz {name}: WEIR_FUZZ_SEED={seed} runs while the process has more than {} MiB of memory: aborting",
                        memory::ABORT >> 20
                    );
                    std::process::abort();
                }
            }
        });
        Self {
            running,
            slow,
            _ends_with_this: ends,
        }
    }

    pub(super) fn begin(&self, seed: u64) {
        *self.running.lock() = Some((seed, Instant::now()));
    }

    /// Returns an error message if the case took too long.
    pub(super) fn end(&self) -> Option<String> {
        let case = self.running.lock().take();
        let took = case
            .map(|(_, since)| since.elapsed())
            .filter(|took| *took > self.slow);
        took.map(|took| format!("it took {took:?}"))
    }
}

//! Threads for work that blocks ([ADR 37](../../../docs/adr/0037-threads-for-blocking-work.md)).
//!
//! There are as many as there is work: one that waits for a server for long keeps none of the others waiting. Most work is short, and
//! starting a thread takes as long as it, so a thread waits for more work for a while. The one that has waited shortest gets it: after a
//! burst, those that are not needed end.

use std::{
    io,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
        mpsc::{self, SyncSender},
    },
    thread,
    time::Duration,
};

/// Time after which a thread without work ends.
const PATIENCE: Duration = Duration::from_secs(1);

/// Size of the stack of a thread, in bytes; only what is used of it takes memory.
const STACK: usize = 2 << 20;

type Job = Box<dyn FnOnce() + Send>;

/// A thread without work.
struct Waiting {
    number: u64,
    jobs: SyncSender<Job>,
}

/// The threads without work; the last one waits shortest.
static WAITING: Mutex<Vec<Waiting>> = Mutex::new(Vec::new());

/// Runs a job on a thread of its own. A job that panics ends its thread, and nothing else.
///
/// # Errors
/// Fails if no thread waits and none can be started.
pub(crate) fn run(job: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let job: Job = Box::new(job);
    let waiting = waiting().pop();
    match waiting {
        // It takes one job at a time, so the channel is empty, and it has not ended, because only it takes itself off the list.
        Some(waiting) => waiting.jobs.send(job).map_err(|_| io::Error::other("it ended")),
        None => thread::Builder::new()
            .name("source".to_owned())
            .stack_size(STACK)
            .spawn(move || work(job))
            .map(drop),
    }
}

/// Runs jobs until none has come for a while.
fn work(mut job: Job) {
    static STARTED: AtomicU64 = AtomicU64::new(0);
    let number = STARTED.fetch_add(1, Ordering::Relaxed);
    let (sender, jobs) = mpsc::sync_channel(1);
    loop {
        job();
        waiting().push(Waiting {
            number,
            jobs: sender.clone(),
        });
        let next = jobs.recv_timeout(PATIENCE);
        let next = match next {
            Err(_) if give_up(number) => return,
            // It was chosen at the last moment.
            Err(_) => jobs.recv(),
            Ok(next) => Ok(next),
        };
        match next {
            Ok(next) => job = next,
            Err(_) => return,
        }
    }
}

/// Takes a thread off the list. Returns false if it isn't there any more, because it gets a job.
fn give_up(number: u64) -> bool {
    let mut waiting = waiting();
    let at = waiting.iter().position(|waiting| waiting.number == number);
    at.map(|at| waiting.remove(at)).is_some()
}

fn waiting() -> MutexGuard<'static, Vec<Waiting>> {
    WAITING.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::{
        collections::HashSet,
        sync::{Arc, Barrier},
        thread::ThreadId,
    };

    use super::*;

    /// Runs a job, and returns the thread that ran it.
    fn thread_of(job: impl FnOnce() + Send + 'static) -> mpsc::Receiver<ThreadId> {
        let (send, receive) = mpsc::channel();
        run(move || {
            job();
            let _ = send.send(thread::current().id());
        })
        .unwrap();
        receive
    }

    #[test]
    fn jobs_that_wait_for_each_other_have_threads_of_their_own() {
        let all = Arc::new(Barrier::new(100));
        let threads: Vec<_> = (0..100)
            .map(|_| {
                let all = Arc::clone(&all);
                thread_of(move || {
                    all.wait();
                })
            })
            .collect();
        let threads: HashSet<_> = threads.iter().map(|thread| thread.recv().unwrap()).collect();
        assert_eq!(threads.len(), 100);
    }

    #[test]
    fn jobs_one_after_another_need_few_threads() {
        let threads: HashSet<_> = (0..200).map(|_| thread_of(|| ()).recv().unwrap()).collect();
        assert!(threads.len() < 100, "{}", threads.len());
    }

    #[test]
    fn job_that_panics_ends_no_other() {
        for _ in 0..20 {
            assert!(thread_of(|| panic!("a job")).recv().is_err());
            assert!(thread_of(|| ()).recv().is_ok());
        }
    }

    #[tokio::test]
    async fn threads_without_work_end() {
        thread_of(|| ()).recv().unwrap();
        testkit::eventually("all threads to end", Duration::from_secs(60), || async {
            let left = waiting().len();
            anyhow::ensure!(left == 0, "{left} are left");
            Ok(())
        })
        .await
        .unwrap();
    }
}

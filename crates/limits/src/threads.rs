//! Threads for work that blocks ([ADR 37](../../../docs/adr/0037-threads-for-blocking-work.md)).
//!
//! There are as many as there is work: a job that waits for a server for long keeps no other one waiting. Most jobs are short, and starting
//! a thread takes as long as one, so a thread waits for more jobs for a while. The thread that has waited shortest gets the next: after a
//! burst, surplus threads end.

use std::{
    io,
    sync::{
        atomic::{AtomicU64, Ordering},
        mpsc::{self, SyncSender},
    },
    thread,
    time::Duration,
};

use parking_lot::Mutex;

const IDLE: Duration = Duration::from_secs(1);

/// Size of the stack of a thread, in bytes; only its used part takes memory.
const STACK: usize = 2 << 20;

type Job = Box<dyn FnOnce() + Send>;

struct Waiting {
    number: u64,
    jobs: SyncSender<Job>,
}

/// The threads without work; the last one waits shortest.
static WAITING: Mutex<Vec<Waiting>> = Mutex::new(Vec::new());

/// Runs a job on its own thread. A job that panics ends its thread, and nothing else. Fails if no thread waits and none can be started.
pub(crate) fn run(job: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let job: Job = Box::new(job);
    let waiting = WAITING.lock().pop();
    match waiting {
        // It takes one job at a time, so the channel is empty, and it has not ended, because only it takes itself off the list.
        Some(waiting) => waiting.jobs.send(job).map_err(|_| io::Error::other("it ended")),
        None => thread::Builder::new()
            .name("blocking".to_owned())
            .stack_size(STACK)
            .spawn(move || work(job))
            .map(drop),
    }
}

fn work(mut job: Job) {
    static STARTED: AtomicU64 = AtomicU64::new(0);
    let number = STARTED.fetch_add(1, Ordering::Relaxed);
    let (sender, jobs) = mpsc::sync_channel(1);
    loop {
        job();
        WAITING.lock().push(Waiting {
            number,
            jobs: sender.clone(),
        });
        let next = jobs.recv_timeout(IDLE);
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
    let mut waiting = WAITING.lock();
    let at = waiting.iter().position(|waiting| waiting.number == number);
    at.map(|at| waiting.remove(at)).is_some()
}

#[cfg(test)]
mod tests {
    use std::{
        collections::HashSet,
        sync::{Arc, Barrier},
        thread::ThreadId,
    };

    use super::*;

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
            let left = WAITING.lock().len();
            anyhow::ensure!(left == 0, "{left} are left");
            Ok(())
        })
        .await
        .unwrap();
    }
}

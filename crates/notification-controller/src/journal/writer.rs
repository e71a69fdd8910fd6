//! The thread that writes the journal. Commands share transactions, since most of a transaction's work does not depend on its size.

use std::{
    io,
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::{Duration, Instant},
};

use prometheus::IntGauge;
use tokio::sync::oneshot;

use super::{storage::Storage, tables::Ended};

/// Maximum number of commands of a transaction.
const BATCH: usize = 256;
/// Minimum time between two looks at the commands, so that they come together in a busy time.
const GATHERING: Duration = Duration::from_millis(2);
/// Maximum delay of ends, which are written with the next events. After a crash in that time, deliveries are repeated.
const END_DELAY: Duration = Duration::from_millis(100);
/// Pause between attempts to open the database after a failure.
const PAUSE: Duration = Duration::from_secs(1);

pub(super) enum Command {
    Add(u64, Vec<u8>, oneshot::Sender<bool>),
    Ended(Ended),
    Flush(oneshot::Sender<()>),
}

/// The commands of the next transaction.
#[derive(Default)]
struct Batch {
    adds: Vec<(u64, Vec<u8>)>,
    answers: Vec<oneshot::Sender<bool>>,
    ended: Vec<Ended>,
    /// Time of the first end.
    ended_at: Option<Instant>,
    flushed: Vec<oneshot::Sender<()>>,
}

impl Batch {
    fn push(&mut self, command: Command, now: Instant) {
        match command {
            Command::Add(id, payload, answer) => {
                self.adds.push((id, payload));
                self.answers.push(answer);
            }
            Command::Ended(ended) => {
                self.ended_at.get_or_insert(now);
                self.ended.push(ended);
            }
            Command::Flush(answer) => self.flushed.push(answer),
        }
    }

    fn is_full(&self) -> bool {
        self.adds.len() + self.ended.len() >= BATCH
    }

    /// Returns the time at which the transaction begins; `None` without commands.
    fn due(&self, now: Instant) -> Option<Instant> {
        if self.adds.is_empty() && self.flushed.is_empty() && !self.is_full() {
            return self.ended_at.map(|at| at + END_DELAY);
        }
        Some(now)
    }

    fn write(self, storage: &mut Storage, pending: &IntGauge) {
        let written = storage.write(&self.adds, &self.ended);
        pending.set(storage.events());
        for answer in self.answers {
            let _ = answer.send(matches!(written, Ok(true)));
        }
        for answer in self.flushed {
            let _ = answer.send(());
        }
        log_failure(written.map(drop));
    }
}

/// Writes until all senders of commands are gone.
pub(super) fn run(mut storage: Storage, received: &mpsc::Receiver<Command>, pending: &IntGauge) {
    let (mut batch, mut looked) = (Batch::default(), None::<Instant>);
    pending.set(storage.events());
    loop {
        let now = Instant::now();
        let due = batch.due(now);
        let wait = match due {
            Some(due) => due.saturating_duration_since(now),
            None if storage.is_open() => Duration::MAX,
            None => PAUSE,
        };
        let next = match wait.is_zero() {
            true => Err(RecvTimeoutError::Timeout),
            false => received.recv_timeout(wait),
        };
        match next {
            Ok(command) => {
                let now = Instant::now();
                batch.push(command, now);
                if let Some(looked) = looked {
                    thread::sleep((looked + GATHERING).saturating_duration_since(now));
                }
                gather(&mut batch, received);
                looked = Some(Instant::now());
            }
            Err(RecvTimeoutError::Timeout) if due.is_none() => {
                log_failure(storage.reopen());
                pending.set(storage.events());
            }
            Err(RecvTimeoutError::Timeout) => std::mem::take(&mut batch).write(&mut storage, pending),
            Err(RecvTimeoutError::Disconnected) => {
                if due.is_some() {
                    batch.write(&mut storage, pending);
                }
                return;
            }
        }
    }
}

/// Takes the commands that have arrived.
fn gather(batch: &mut Batch, received: &mpsc::Receiver<Command>) {
    let now = Instant::now();
    while !batch.is_full()
        && let Ok(command) = received.try_recv()
    {
        batch.push(command, now);
    }
}

fn log_failure(written: io::Result<()>) {
    if let Err(error) = written {
        tracing::error!(%error, "the journal of events cannot be written");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(batch: &mut Batch, id: u64, now: Instant) {
        batch.push(Command::Add(id, Vec::new(), oneshot::channel().0), now);
    }

    #[test]
    fn events_are_written_at_once() {
        let now = Instant::now();
        let mut batch = Batch::default();
        assert_eq!(batch.due(now), None);
        add(&mut batch, 1, now);
        assert_eq!(batch.due(now), Some(now));
    }

    #[test]
    fn ends_are_written_with_the_next_events_or_a_moment_later() {
        let now = Instant::now();
        let mut batch = Batch::default();
        batch.push(Command::Ended(Ended::Event(1)), now);
        batch.push(Command::Ended(Ended::Event(2)), now + END_DELAY / 2);
        assert_eq!(batch.due(now), Some(now + END_DELAY));
        let mut full = Batch::default();
        for id in 0..BATCH as u64 {
            full.push(Command::Ended(Ended::Event(id)), now);
        }
        assert_eq!(full.due(now), Some(now));
        batch.push(Command::Flush(oneshot::channel().0), now);
        assert_eq!(batch.due(now), Some(now));
    }

    #[test]
    fn commands_that_wait_share_a_transaction_up_to_its_limit() {
        let (commands, received) = mpsc::channel();
        for id in 0..=BATCH as u64 {
            commands.send(Command::Ended(Ended::Event(id))).unwrap();
        }
        let mut batch = Batch::default();
        gather(&mut batch, &received);
        assert_eq!(batch.ended.len(), BATCH);
        assert_eq!(received.try_iter().count(), 1);
    }
}

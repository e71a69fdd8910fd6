//! The journal of accepted events: what was answered with 202 survives the end of the process.
//!
//! ```text
//! event -> append, sync -> 202 -> deliveries -> all ended -> append "done"
//! ```
//! A directory has segments that are only appended to. One thread writes them, many records per sync. A segment goes when all its events
//! are done; the live events of one that stays for too long move to the newest. After a restart, what is not done is delivered again,
//! so that an event can arrive twice, but is not lost.

mod record;
mod segments;

use std::{
    io,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
        mpsc,
    },
};

use api::Event;
use prometheus::IntGauge;
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use segments::Segments;

/// Records that are written with one sync.
const BATCH: usize = 256;

/// An event in the journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// Time of its acceptance, in seconds of Unix time.
    pub(crate) at: i64,
    /// Key of the suppression of duplicates, in hexadecimal digits.
    pub(crate) key: String,
    pub(crate) event: Event,
}

/// Error of a record that could not be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the journal of events cannot be written")]
pub(crate) struct NotWritten;

/// Events that an earlier process left, the oldest first; without an entry if it cannot be read.
pub(crate) type Left = Vec<(Ticket, Option<Entry>)>;

enum Command {
    Add(u64, Vec<u8>, oneshot::Sender<bool>),
    Done(u64),
    Flush(oneshot::Sender<()>),
}

/// The journal, or nothing if there is none.
#[derive(Debug)]
pub(crate) struct Journal {
    commands: Option<mpsc::Sender<Command>>,
    next: AtomicU64,
}

/// An event that is kept until all its holders have released it. Dropping is not releasing: what a shutdown interrupts stays.
#[derive(Debug)]
pub(crate) struct Ticket {
    id: u64,
    journal: Arc<Journal>,
    holders: AtomicUsize,
}

impl Ticket {
    /// Adds a holder. A new ticket has one.
    pub(crate) fn hold(&self) {
        self.holders.fetch_add(1, Ordering::AcqRel);
    }

    /// Removes a holder; the last one ends the event.
    pub(crate) fn release(&self) {
        if self.holders.fetch_sub(1, Ordering::AcqRel) == 1
            && let Some(commands) = &self.journal.commands
        {
            // The writer ends after all senders.
            let _ = commands.send(Command::Done(self.id));
        }
    }
}

impl Journal {
    /// Opens the journal in a directory, and returns the events that are not done, the oldest first; `pending` is kept at their number.
    /// Without a directory, there is no journal, and nothing survives.
    ///
    /// # Errors
    /// If the directory cannot be used, or another process uses it.
    pub(crate) fn open(path: Option<&Path>, pending: IntGauge) -> io::Result<(Arc<Self>, Left)> {
        let Some(path) = path else {
            let journal = Self {
                commands: None,
                next: AtomicU64::new(1),
            };
            return Ok((Arc::new(journal), Vec::new()));
        };
        let (segments, live) = Segments::open(path)?;
        let next = segments.next_id();
        let (commands, received) = mpsc::channel();
        std::thread::Builder::new()
            .name("journal".to_owned())
            .spawn(move || write(segments, &received, &pending))?;
        let journal = Arc::new(Self {
            commands: Some(commands),
            next: AtomicU64::new(next),
        });
        let left = live.into_iter().map(|(id, payload)| {
            let entry = serde_json::from_slice(&payload).ok();
            (journal.ticket(id), entry)
        });
        let left = left.collect();
        Ok((journal, left))
    }

    fn ticket(self: &Arc<Self>, id: u64) -> Ticket {
        Ticket {
            id,
            journal: Arc::clone(self),
            holders: AtomicUsize::new(1),
        }
    }

    /// Adds an event; with the ticket, it is on the disk.
    ///
    /// # Errors
    /// If it could not be written.
    pub(crate) async fn add(self: &Arc<Self>, entry: &Entry) -> Result<Ticket, NotWritten> {
        let id = self.next.fetch_add(1, Ordering::AcqRel);
        if let Some(commands) = &self.commands {
            let payload = serde_json::to_vec(entry).map_err(|_| NotWritten)?;
            let (written, answer) = oneshot::channel();
            commands
                .send(Command::Add(id, payload, written))
                .map_err(|_| NotWritten)?;
            if answer.await != Ok(true) {
                return Err(NotWritten);
            }
        }
        Ok(self.ticket(id))
    }

    /// Waits until all that was said before is written.
    pub(crate) async fn flush(&self) {
        if let Some(commands) = &self.commands {
            let (written, answer) = oneshot::channel();
            if commands.send(Command::Flush(written)).is_ok() {
                let _ = answer.await;
            }
        }
    }
}

/// Writes what is received until all senders are gone.
fn write(mut segments: Segments, received: &mpsc::Receiver<Command>, pending: &IntGauge) {
    let count = |segments: &Segments| pending.set(i64::try_from(segments.live()).unwrap_or(i64::MAX));
    count(&segments);
    while let Ok(first) = received.recv() {
        let batch = std::iter::once(first).chain(received.try_iter().take(BATCH - 1));
        let (mut adds, mut done, mut answers, mut flushed) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for command in batch {
            match command {
                Command::Add(id, payload, answer) => {
                    adds.push((id, payload));
                    answers.push(answer);
                }
                Command::Done(id) => done.push(id),
                Command::Flush(answer) => flushed.push(answer),
            }
        }
        let written = segments.write(&adds, &done);
        count(&segments);
        if let Err(error) = &written {
            tracing::error!(%error, "the journal of events cannot be written");
        }
        for answer in answers {
            let _ = answer.send(written.is_ok());
        }
        for answer in flushed {
            let _ = answer.send(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pending() -> IntGauge {
        IntGauge::new("pending", "-").unwrap()
    }

    fn entry(message: &str) -> Entry {
        let event = Event {
            message: message.to_owned(),
            ..Event::default()
        };
        Entry {
            at: 5,
            key: "ab".to_owned(),
            event,
        }
    }

    fn messages(left: &[(Ticket, Option<Entry>)]) -> Vec<&str> {
        left.iter()
            .map(|(_, entry)| entry.as_ref().unwrap().event.message.as_str())
            .collect()
    }

    #[tokio::test]
    async fn journal_returns_what_was_not_released() {
        let dir = tempfile::tempdir().unwrap();
        let (journal, left) = Journal::open(Some(dir.path()), pending()).unwrap();
        assert!(left.is_empty());
        let first = journal.add(&entry("first")).await.unwrap();
        let second = journal.add(&entry("second")).await.unwrap();
        let third = journal.add(&entry("third")).await.unwrap();
        first.hold();
        first.release();
        second.release();
        drop((first, third));
        journal.flush().await;
        drop((journal, second));
        // The lock goes with the writer.
        let open = || Journal::open(Some(dir.path()), pending());
        let (_journal, left) =
            testkit::eventually("the lock", std::time::Duration::from_secs(10), || async {
                Ok(open()?)
            })
            .await
            .unwrap();
        assert_eq!(messages(&left), ["first", "third"]);
        assert!(open().is_err(), "one process at a time");
    }

    #[tokio::test]
    async fn nothing_is_kept_without_a_directory() {
        let (journal, left) = Journal::open(None, pending()).unwrap();
        assert!(left.is_empty());
        journal.add(&entry("x")).await.unwrap().release();
        journal.flush().await;
    }
}

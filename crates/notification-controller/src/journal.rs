//! The journal of accepted events: an event that was answered with 202 survives the end of the process, and needs no memory while it waits.
//!
//! ```text
//! event -> insert, commit -> 202 -> deliveries, some after they were read back -> all ended -> remove
//! ```
//! A directory has a database. One thread writes it, many events and ends per transaction; another one reads it. After a restart, events that are not
//! done are delivered again, apart from deliveries that have ended: an event can arrive twice, but is not lost. After a failure, the database is opened
//! again; until then, events are refused, and readers wait.

mod file;
mod readings;
mod shared;
mod storage;
mod tables;
mod ticket;
mod writer;

use std::{
    io,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc,
    },
};

use api::Event;
use prometheus::IntGauge;
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use readings::Readings;
use storage::Storage;
use tables::Ended;
pub(crate) use ticket::{Ticket, is_old};
use writer::Command;

/// Maximum bytes of the events that are not done; further events are refused.
pub(crate) const FULL: u64 = 48 * 1024 * 1024;
/// Age at which an event is given up, in seconds.
pub(crate) const MAX_AGE: i64 = 3600;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// Time of its acceptance, in seconds of Unix time.
    pub(crate) at: i64,
    /// Deduplication key, in hexadecimal digits.
    pub(crate) key: String,
    pub(crate) event: Event,
}

/// The part of an [`Entry`] that stays in memory.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Summary {
    pub(crate) at: i64,
    pub(crate) key: String,
}

/// Error of a record that could not be written, or of a full journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the journal of events cannot be written, or is full")]
pub(crate) struct NotWritten;

/// Events of an earlier process, the oldest first; an unreadable one has no summary.
pub(crate) type Left = Vec<(Ticket, Option<Summary>)>;

#[derive(Debug)]
struct Files {
    commands: mpsc::Sender<Command>,
    readings: Readings,
}

/// The journal; without files if it is disabled.
#[derive(Debug)]
pub(crate) struct Journal {
    files: Option<Files>,
    next: AtomicU64,
    bytes: Arc<AtomicU64>,
}

impl Journal {
    /// Opens the journal in a directory, and returns the events that are not done, the oldest first; their number is in `pending`.
    /// Without a directory, the journal is disabled, and nothing survives.
    /// Fails when the directory cannot be used, or another process uses it.
    pub(crate) fn open(path: Option<&Path>, pending: IntGauge) -> io::Result<(Arc<Self>, Left)> {
        let Some(path) = path else {
            let journal = Self {
                files: None,
                next: AtomicU64::new(1),
                bytes: Arc::default(),
            };
            return Ok((Arc::new(journal), Vec::new()));
        };
        let summarize = |payload: &[u8]| serde_json::from_slice::<Summary>(payload).ok();
        let (storage, live) = Storage::open(path, summarize)?;
        let next = live.last().map_or(1, |last| last.id.saturating_add(1));
        let bytes = storage.reserved();
        let readings = Readings::start(storage.reader())?;
        let (commands, received) = mpsc::channel();
        std::thread::Builder::new()
            .name("journal".to_owned())
            .spawn(move || writer::run(storage, &received, &pending))?;
        let journal = Arc::new(Self {
            files: Some(Files { commands, readings }),
            next: AtomicU64::new(next),
            bytes,
        });
        let left = live.into_iter().map(|live| {
            let (at, key) = live.summary.as_ref().map_or((0, ""), |read| (read.at, &read.key));
            let ticket = Ticket::new(&journal, live.id, at, key, live.length, live.deliveries);
            (ticket, live.summary)
        });
        let left = left.collect();
        Ok((journal, left))
    }

    /// Adds an event, which is on the disk when this returns its ticket.
    /// Fails when it could not be written, or the journal is full.
    pub(crate) async fn add(self: &Arc<Self>, entry: &Entry) -> Result<Ticket, NotWritten> {
        let id = self.next.fetch_add(1, Ordering::AcqRel);
        let mut length = 0;
        if let Some(Files { commands, .. }) = &self.files {
            let payload = serde_json::to_vec(entry).map_err(|_| NotWritten)?;
            length = payload.len() as u64;
            let reservation = Reservation::of(&self.bytes, length).ok_or(NotWritten)?;
            let (written, answer) = oneshot::channel();
            commands
                .send(Command::Add(id, payload, written))
                .map_err(|_| NotWritten)?;
            if answer.await != Ok(true) {
                return Err(NotWritten);
            }
            reservation.commit();
        }
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        Ok(Ticket::new(self, id, entry.at, &entry.key, length, Vec::new()))
    }

    /// Waits until all earlier commands are written.
    pub(crate) async fn flush(&self) {
        if let Some(Files { commands, .. }) = &self.files {
            let (written, answer) = oneshot::channel();
            if commands.send(Command::Flush(written)).is_ok() {
                let _ = answer.await;
            }
        }
    }

    fn end(&self, ended: Ended) {
        if let Some(Files { commands, .. }) = &self.files {
            // The writer ends after all senders.
            let _ = commands.send(Command::Ended(ended));
        }
    }
}

struct Reservation<'a>(&'a AtomicU64, u64);

impl<'a> Reservation<'a> {
    fn of(bytes: &'a AtomicU64, length: u64) -> Option<Self> {
        let before = bytes.fetch_add(length, Ordering::AcqRel);
        let room = Self(bytes, length);
        (before + length <= FULL).then_some(room)
    }

    /// Leaves the reservation to the event, until it is done.
    fn commit(mut self) {
        self.1 = 0;
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(self.1, Ordering::AcqRel);
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

    async fn messages(left: &[(Ticket, Option<Summary>)]) -> Vec<String> {
        let mut messages = Vec::new();
        for (ticket, summary) in left {
            assert_eq!(summary.as_ref().map(|summary| summary.at), Some(5));
            messages.push(ticket.read().await.unwrap().message);
        }
        messages
    }

    #[tokio::test]
    async fn journal_returns_what_was_not_released() {
        let dir = tempfile::tempdir().unwrap();
        let (journal, left) = Journal::open(Some(dir.path()), pending()).unwrap();
        assert!(left.is_empty());
        let first = journal.add(&entry("first")).await.unwrap();
        let second = journal.add(&entry("second")).await.unwrap();
        let third = journal.add(&entry("third")).await.unwrap();
        assert_eq!(second.read().await.unwrap().message, "second");
        third.hold();
        third.release_delivery(7);
        first.hold();
        first.release();
        second.release();
        drop((first, third));
        journal.flush().await;
        drop((journal, second));
        // The writer owns the lock.
        let open = || Journal::open(Some(dir.path()), pending());
        let (_journal, left) =
            testkit::eventually("the lock", std::time::Duration::from_secs(10), || async {
                Ok(open()?)
            })
            .await
            .unwrap();
        assert_eq!(messages(&left).await, ["first", "third"]);
        assert!(open().is_err(), "one process at a time");
        let ended: Vec<bool> = left.iter().map(|(ticket, _)| ticket.has_ended(7)).collect();
        assert_eq!(ended, [false, true]);
    }

    #[tokio::test]
    async fn full_journal_refuses_until_an_event_is_done() {
        let dir = tempfile::tempdir().unwrap();
        let (journal, _) = Journal::open(Some(dir.path()), pending()).unwrap();
        let large = entry(&"x".repeat(3 * 1024 * 1024));
        let mut tickets = Vec::new();
        while let Ok(ticket) = journal.add(&large).await {
            tickets.push(ticket);
        }
        assert_eq!(tickets.len(), 15);
        assert!(journal.add(&large).await.is_err());
        journal.add(&entry("small")).await.unwrap().release();
        tickets[3].release();
        journal.flush().await;
        journal.add(&large).await.unwrap();
        assert!(tickets[3].read().await.is_none());
        assert_eq!(tickets[4].read().await.unwrap(), large.event);
    }

    #[tokio::test]
    async fn events_are_lost_without_a_directory() {
        let (journal, left) = Journal::open(None, pending()).unwrap();
        assert!(left.is_empty());
        journal.add(&entry("x")).await.unwrap().release();
        journal.flush().await;
    }
}

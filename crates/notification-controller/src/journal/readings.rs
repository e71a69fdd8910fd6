//! Reads events back from the journal, on one thread: many threads would each keep memory for their reads.

use std::{io, sync::mpsc};

use tokio::sync::oneshot;

use super::storage::Reader;

/// ID of an event, and the receiver of its payload.
type Reading = (u64, oneshot::Sender<Option<Vec<u8>>>);

/// The thread that reads; it ends with the last handle.
#[derive(Debug)]
pub(super) struct Readings(mpsc::Sender<Reading>);

impl Readings {
    /// Fails when the system refuses another thread.
    pub(super) fn start(reader: Reader) -> io::Result<Self> {
        let (readings, received) = mpsc::channel();
        std::thread::Builder::new()
            .name("journal-reader".to_owned())
            .spawn(move || run(&reader, &received))?;
        Ok(Self(readings))
    }

    pub(super) async fn read(&self, id: u64) -> Option<Vec<u8>> {
        let (read, answer) = oneshot::channel();
        self.0.send((id, read)).ok()?;
        answer.await.ok()?
    }
}

/// Reads requested events until all handles are gone; those that wait are read together.
fn run(reader: &Reader, received: &mpsc::Receiver<Reading>) {
    while let Ok(first) = received.recv() {
        let waiting = std::iter::once(first)
            .chain(received.try_iter())
            .filter(|(_, answer)| !answer.is_closed());
        reader.read(waiting, |answer, payload| {
            let _ = answer.send(payload);
        });
    }
}

//! The content of a file as the body of an answer.
//!
//! While a chunk is sent, the next one is read, so that a single download doesn't wait for both in turn. Buffers are reused. A
//! limited number of bodies have large chunks, which cost less, so that the memory of all connections is bounded.

use std::{
    fs::File,
    io::{self, Read as _},
    sync::Arc,
};

use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use http_body_util::{BodyExt as _, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::Frame;
use parking_lot::Mutex;
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    task::{self, JoinHandle},
};

pub type Body = UnsyncBoxBody<Bytes, io::Error>;

const SMALL: usize = 64 << 10;
const LARGE: usize = 256 << 10;
/// Maximum number of bodies with large chunks at the same time. Each has at most three chunks.
const LARGE_BODIES: usize = 16;

static LARGE_SLOTS: Semaphore = Semaphore::const_new(LARGE_BODIES);

/// Returns a body of the next `len` bytes of a file. Blocks while the first chunk is read.
pub(super) fn of(file: File, len: u64) -> io::Result<Body> {
    let is_long = len > SMALL as u64;
    let slot = LARGE_SLOTS.try_acquire().ok().filter(|_| is_long);
    let mut reading = Reading {
        file,
        left: len,
        chunk: if slot.is_some() { LARGE } else { SMALL },
        free: Free::default(),
        _slot: slot,
    };
    let first = reading.next()?;
    if reading.left == 0 {
        return Ok(Full::from(first).map_err(|never| match never {}).boxed_unsync());
    }
    let rest = stream::try_unfold(Some(reading.ahead()), |ahead| async {
        let Some(ahead) = ahead else {
            return Ok(None);
        };
        let (reading, bytes) = ahead.await.map_err(io::Error::other)??;
        let next = (reading.left > 0).then(|| reading.ahead());
        Ok(Some((bytes, next)))
    });
    let chunks = stream::iter([Ok(first)]).chain(rest).map_ok(Frame::data);
    Ok(StreamBody::new(chunks).boxed_unsync())
}

/// Unused buffers of a body.
type Free = Arc<Mutex<Vec<Vec<u8>>>>;

/// A chunk that is read on another thread.
type Ahead = JoinHandle<io::Result<(Reading, Bytes)>>;

struct Reading {
    file: File,
    left: u64,
    chunk: usize,
    free: Free,
    _slot: Option<SemaphorePermit<'static>>,
}

impl Reading {
    fn next(&mut self) -> io::Result<Bytes> {
        let len = usize::try_from(self.left).map_or(self.chunk, |left| left.min(self.chunk));
        let free = self.free.lock().pop();
        let mut data = free.unwrap_or_default();
        data.resize(len, 0);
        self.file.read_exact(&mut data)?;
        self.left -= len as u64;
        let free = Arc::clone(&self.free);
        Ok(Bytes::from_owner(Lent { data, free }))
    }

    fn ahead(mut self) -> Ahead {
        task::spawn_blocking(move || {
            let bytes = self.next()?;
            Ok((self, bytes))
        })
    }
}

/// A chunk whose buffer returns to its body.
struct Lent {
    data: Vec<u8>,
    free: Free,
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.data
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let data = std::mem::take(&mut self.data);
        let mut free = self.free.lock();
        free.push(data);
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Seek as _, Write as _};

    use super::*;

    /// Returns a file of `len` bytes, all different from their neighbours, and its content.
    fn file(len: usize) -> (File, Vec<u8>) {
        let content: Vec<u8> = (0..len).map(|at| (at % 251) as u8).collect();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&content).unwrap();
        file.rewind().unwrap();
        (file, content)
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn bodies_of_any_length_have_the_bytes_of_the_file() {
        for len in [0, 1, SMALL, SMALL + 1, LARGE, LARGE + 1, 3 * LARGE - 1, 5 * LARGE] {
            let (file, content) = file(len);
            let read = of(file, len as u64).unwrap().collect().await.unwrap().to_bytes();
            assert!(read == content, "{len} bytes");
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn bodies_beyond_those_with_large_chunks_have_small_ones() {
        let len = 2 * LARGE;
        let mut bodies: Vec<Body> = (0..=LARGE_BODIES)
            .map(|_| of(file(len).0, len as u64).unwrap())
            .collect();
        let mut chunks = Vec::new();
        for body in &mut bodies {
            chunks.push(body.frame().await.unwrap().unwrap().into_data().unwrap().len());
        }
        assert!(chunks.contains(&LARGE) && chunks.contains(&SMALL), "{chunks:?}");
        for body in bodies {
            body.collect().await.unwrap();
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn file_that_became_shorter_ends_its_body_with_an_error() {
        let (short, _) = file(LARGE + 1);
        let body = of(short, 3 * LARGE as u64).unwrap();
        assert_eq!(
            body.collect().await.unwrap_err().kind(),
            io::ErrorKind::UnexpectedEof
        );
        assert!(of(file(1).0, 2).is_err());
    }
}

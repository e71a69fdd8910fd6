//! The pace at which a client reads an answer. A client that reads nothing would take a connection for its whole lifetime.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Instant, Sleep, sleep_until},
};

/// Slowest pace of a client. The system buffers up to a megabyte for it, so the pace of a single moment says nothing.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    pub bytes: u64,
    /// Length of a stretch: the time that the server waits for the client. Its own work doesn't count.
    pub time: Duration,
}

impl Pace {
    pub const DEFAULT: Self = Self {
        bytes: 64 << 10,
        time: Duration::from_secs(60),
    };
}

/// A stream whose writes fail when the other side reads less than the slowest pace. Bytes pass through unchanged.
pub(super) struct Paced<S> {
    stream: S,
    slowest: Pace,
    taken: u64,
    left: Duration,
    /// Start of the current wait for the other side.
    since: Option<Instant>,
    /// Ends with the stretch, during a wait. Made by the first one.
    timer: Option<Pin<Box<Sleep>>>,
}

impl<S> Paced<S> {
    pub(super) const fn new(stream: S, slowest: Pace) -> Self {
        Self {
            stream,
            slowest,
            taken: 0,
            left: slowest.time,
            since: None,
            timer: None,
        }
    }

    fn note(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        match written {
            Poll::Ready(Ok(bytes)) => {
                self.end_wait(bytes as u64);
                written
            }
            Poll::Ready(Err(_)) => written,
            Poll::Pending => {
                ready!(self.wait(context));
                let Pace { bytes, time } = self.slowest;
                let why = format!("the client took less than {bytes} bytes in {time:?}");
                Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, why)))
            }
        }
    }

    fn wait(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.since.is_none() {
            let now = Instant::now();
            self.since = Some(now);
            let end = now + self.left;
            match &mut self.timer {
                Some(timer) => timer.as_mut().reset(end),
                None => self.timer = Some(Box::pin(sleep_until(end))),
            }
        }
        let timer = self.timer.as_mut();
        timer.map_or(Poll::Pending, |timer| timer.as_mut().poll(context))
    }

    /// Counts bytes that were read, after a wait or without one. Starts a new stretch if they are enough for one.
    fn end_wait(&mut self, bytes: u64) {
        let waited = self.since.take().map(|since| since.elapsed());
        self.left = self.left.saturating_sub(waited.unwrap_or_default());
        self.taken = self.taken.saturating_add(bytes);
        if self.taken >= self.slowest.bytes {
            (self.taken, self.left) = (0, self.slowest.time);
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Paced<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.note(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.note(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Paced<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex},
        task::JoinHandle,
    };

    use super::*;

    const BUFFER: usize = 1000;
    const SLOWEST: Pace = Pace {
        bytes: 2000,
        time: Duration::from_secs(60),
    };

    /// Sends `bytes` bytes in writes of a kilobyte, with a pause of `work` before each.
    fn send(bytes: usize, work: Duration) -> (DuplexStream, JoinHandle<io::Result<()>>) {
        let (client, server) = duplex(BUFFER);
        let mut server = Paced::new(server, SLOWEST);
        let sent = tokio::spawn(async move {
            for _ in 0..bytes / 1000 {
                tokio::time::advance(work).await;
                server.write_all(&[7; 1000]).await?;
            }
            Ok(())
        });
        (client, sent)
    }

    /// Reads `step` bytes once in `pause` until the end, and returns their number.
    async fn read(mut client: DuplexStream, step: usize, pause: Duration) -> usize {
        let mut ticks = tokio::time::interval(pause);
        let (mut buffer, mut all) = (vec![0; step], 0);
        loop {
            ticks.tick().await;
            match client.read(&mut buffer).await.unwrap() {
                0 => return all,
                len => all += len,
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn client_that_takes_nothing_or_next_to_nothing_is_given_up() {
        let (client, sent) = send(10_000, Duration::ZERO);
        let start = Instant::now();
        let ended = tokio::time::timeout(Duration::from_secs(3600), sent).await;
        let ended = ended.expect("it waits for the client for an hour");
        assert_eq!(ended.unwrap().unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert!(start.elapsed() < Duration::from_secs(61), "{:?}", start.elapsed());
        drop(client);

        // A byte a second never makes a stretch.
        let (client, sent) = send(10_000, Duration::ZERO);
        let got = read(client, 1, Duration::from_secs(1)).await;
        assert!(sent.await.unwrap().is_err());
        assert!(got < 4000, "{got}");
    }

    #[tokio::test(start_paused = true)]
    async fn slow_client_that_keeps_the_pace_gets_everything() {
        let (client, sent) = send(100_000, Duration::ZERO);
        let start = Instant::now();
        assert_eq!(read(client, 1000, Duration::from_secs(25)).await, 100_000);
        sent.await.unwrap().unwrap();
        assert!(
            start.elapsed() > Duration::from_secs(20 * 60),
            "{:?}",
            start.elapsed()
        );
    }

    #[tokio::test(start_paused = true)]
    async fn client_is_not_blamed_for_a_slow_server() {
        // The client waits for the server for ten minutes, and then the server for the client for a moment.
        let (client, sent) = send(10_000, Duration::from_secs(600));
        assert_eq!(read(client, 500, Duration::from_secs(1)).await, 10_000);
        sent.await.unwrap().unwrap();
    }
}

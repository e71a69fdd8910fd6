//! A client that reads a file over and over: HTTP/1.1 by hand, so that it takes as little as possible of the processors.

use std::{net::SocketAddr, time::Instant};

use anyhow::{Context as _, Result, ensure};
use futures::future::try_join_all;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

const BUFFER: usize = 256 << 10;
/// Maximum bytes of the head of an answer.
const HEAD: usize = 16 << 10;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Served {
    pub(super) answers: u64,
    /// Bytes of all answers, of those that did not end, too.
    pub(super) bytes: u64,
}

/// Reads a file with several connections, each over and over, until a time.
pub(super) async fn run(
    address: SocketAddr,
    path: &str,
    connections: usize,
    until: Instant,
) -> Result<Served> {
    let readers = (0..connections).map(|_| {
        let path = path.to_owned();
        tokio::spawn(async move { Reader::connect(address, &path).await?.read_until(until).await })
    });
    let mut sum = Served::default();
    for served in try_join_all(readers).await? {
        let served = served?;
        sum.answers += served.answers;
        sum.bytes += served.bytes;
    }
    Ok(sum)
}

pub(super) async fn once(address: SocketAddr, path: &str) -> Result<()> {
    let mut reader = Reader::connect(address, path).await?;
    let (mut left, _) = reader.ask().await?;
    while left > 0 {
        left = left.saturating_sub(reader.more().await?);
    }
    Ok(())
}

struct Reader {
    stream: TcpStream,
    request: String,
    buffer: Vec<u8>,
}

impl Reader {
    async fn connect(address: SocketAddr, path: &str) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            request: format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n"),
            buffer: vec![0; BUFFER],
        })
    }

    async fn read_until(mut self, until: Instant) -> Result<Served> {
        let mut served = Served::default();
        while Instant::now() < until {
            let (mut left, read) = self.ask().await?;
            served.bytes += read;
            while left > 0 {
                if Instant::now() >= until {
                    return Ok(served);
                }
                let read = self.more().await?;
                left = left.saturating_sub(read);
                served.bytes += read;
            }
            served.answers += 1;
        }
        Ok(served)
    }

    /// Asks for the file, reads the head of the answer, and returns the bytes of the file that are left to read, and those that came.
    async fn ask(&mut self) -> Result<(u64, u64)> {
        self.stream.write_all(self.request.as_bytes()).await?;
        let mut filled = 0;
        loop {
            let free = self.buffer.get_mut(filled..HEAD).unwrap_or_default();
            let read = self.stream.read(free).await?;
            ensure!(
                read > 0,
                "the connection was closed, or the head of the answer is too long"
            );
            filled += read;
            let bytes = self.buffer.get(..filled).unwrap_or_default();
            if let Some((head, of_file)) = split(bytes) {
                let read = of_file as u64;
                return Ok((length(head)?.saturating_sub(read), read));
            }
        }
    }

    async fn more(&mut self) -> Result<u64> {
        let read = self.stream.read(&mut self.buffer).await?;
        ensure!(read > 0, "the connection was closed");
        Ok(read as u64)
    }
}

/// Splits the bytes read so far into the head of the answer and the number of bytes behind it, once the head is whole.
fn split(bytes: &[u8]) -> Option<(&[u8], usize)> {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
    Some((bytes.get(..end)?, bytes.len() - end - 4))
}

/// Returns the length of the file that the head of an answer announces.
fn length(head: &[u8]) -> Result<u64> {
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    ensure!(head.starts_with("http/1.1 200 "), "not the file, but {head}");
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    Ok(length.context("an answer without a length")?.trim().parse()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn head_of_an_answer_has_the_length_of_the_file() {
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab";
        let (head, of_file) = split(answer).unwrap();
        assert_eq!((length(head).unwrap(), of_file), (5, 2));
        assert!(split(b"HTTP/1.1 200 OK\r\n").is_none());
        assert!(length(b"HTTP/1.1 404 Not Found\r\nContent-Length: 5").is_err());
    }
}

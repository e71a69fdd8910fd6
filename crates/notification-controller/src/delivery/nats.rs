//! Publishes to a NATS server: one connection per message, in the text protocol of its clients.

use std::{io, time::Duration};

use net::{AddressPolicy, ConnectError, Unresolved};
use serde::Deserialize;
use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use url::Url;

use super::{
    attempt::Attempt,
    clients::{Clients, nats_host, nats_port},
    settings::Connection,
};
use crate::{error::Error, providers::nats::publish::Publish};

const CONNECT: Duration = Duration::from_secs(10);
/// Maximum length of a line of a server, in bytes: `INFO` lists all addresses.
const LINE: usize = 64 << 10;
const LINES: usize = 64;
const BROKEN: Error = Error::Unreachable("the connection broke off");

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Info {
    nonce: Option<String>,
    tls_required: bool,
    headers: bool,
    max_payload: Option<u64>,
}

trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// Publishes to the first server that answers.
pub(super) async fn attempt(clients: &Clients, connection: &Connection, publish: &Publish) -> Attempt {
    let mut last = Attempt::Final(Error::NoAddress);
    for server in &publish.servers {
        last = match to(clients.addresses(), connection, server.expose(), publish).await {
            Ok(()) => return Attempt::Taken,
            Err(Failed::Again(error)) => Attempt::Again(error, None),
            Err(Failed::Final(error)) => Attempt::Final(error),
        };
    }
    last
}

#[derive(Debug)]
enum Failed {
    Again(Error),
    Final(Error),
}

impl From<io::Error> for Failed {
    fn from(_: io::Error) -> Self {
        Self::Again(BROKEN)
    }
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self::Final(error)
    }
}

async fn to(
    policy: &AddressPolicy,
    connection: &Connection,
    server: &Url,
    publish: &Publish,
) -> Result<(), Failed> {
    let host = nats_host(server)?;
    let connected = net::connect(policy, &host, nats_port(server), CONNECT).await;
    let stream = connected.map_err(|error| match error {
        ConnectError::Unresolved(Unresolved::Refused(why)) => Failed::Final(Error::RefusedAddress(why)),
        ConnectError::Unresolved(_) => Failed::Final(Error::Unresolved),
        ConnectError::Failed(_) | ConnectError::Proxy(_) => {
            Failed::Again(Error::Unreachable("the connection failed"))
        }
        ConnectError::Timeout => Failed::Again(Error::Unreachable("it took too long")),
    })?;
    let mut reader = BufReader::new(stream);
    let info = info(&mut reader).await?;
    let sealed = info.tls_required || server.scheme() == "tls" || !connection.tls.is_default();
    if !sealed {
        return publish_over(&mut BufReader::new(reader.into_inner()), &info, server, publish).await;
    }
    if !reader.buffer().is_empty() {
        return Err(Failed::Final(Error::Protocol(
            "it sent something before the encryption",
        )));
    }
    let tls = connection.tls.settings();
    let shaken = tls.connect(&host, reader.into_inner()).await;
    let shaken = shaken.map_err(|_| Error::Certificates("a certificate cannot be used"))?;
    let stream = shaken.map_err(|_| Failed::Again(Error::Unreachable("the connection failed")))?;
    publish_over(&mut BufReader::new(stream), &info, server, publish).await
}

/// Logs in, publishes, and waits until the server has read everything.
async fn publish_over(
    stream: &mut BufReader<impl Stream>,
    info: &Info,
    server: &Url,
    publish: &Publish,
) -> Result<(), Failed> {
    let message = publish.message(info.headers);
    if info.max_payload.is_some_and(|most| most < message.len() as u64) {
        return Err(Failed::Final(Error::Event("it is larger than the server takes")));
    }
    let login = publish.connect(info.nonce.as_deref(), Some(server))?;
    for bytes in [login.expose().as_slice(), &message] {
        stream.write_all(bytes).await?;
        stream.write_all(b"PING\r\n").await?;
        stream.flush().await?;
        pong(stream).await?;
    }
    Ok(())
}

async fn info(reader: &mut (impl AsyncBufRead + Unpin)) -> Result<Info, Failed> {
    let line = line(reader).await?;
    let info = line.strip_prefix("INFO ").map(serde_json::from_str);
    match info {
        Some(Ok(info)) => Ok(info),
        _ => Err(Failed::Final(Error::Protocol("it is no NATS server"))),
    }
}

/// Waits for the answer to a ping: everything before it was accepted.
async fn pong(stream: &mut BufReader<impl Stream>) -> Result<(), Failed> {
    for _ in 0..LINES {
        let line = line(stream).await?;
        let word = line.split_ascii_whitespace().next().unwrap_or_default();
        match word.to_ascii_uppercase().as_str() {
            "PONG" => return Ok(()),
            "PING" => {
                stream.write_all(b"PONG\r\n").await?;
                stream.flush().await?;
            }
            "-ERR" => return Err(refused(&line)),
            "+OK" | "INFO" => {}
            _ => break,
        }
    }
    Err(Failed::Final(Error::Answer))
}

/// Returns an error in our own words: the words of the server may repeat credentials.
fn refused(line: &str) -> Failed {
    let line = line.to_ascii_lowercase();
    if line.contains("permissions violation") {
        return Failed::Final(Error::Protocol("the user may not publish to the subject"));
    }
    if line.contains("authorization") || line.contains("authentication") {
        return Failed::Final(Error::Protocol("the server refuses the credentials"));
    }
    if line.contains("maximum payload") {
        return Failed::Final(Error::Event("it is larger than the server takes"));
    }
    Failed::Again(Error::Protocol("the server answers with an error"))
}

/// Reads a line of at most [`LINE`] bytes, without its end.
async fn line(reader: &mut (impl AsyncBufRead + Unpin)) -> Result<String, Failed> {
    let mut line = Vec::new();
    loop {
        let part = reader.fill_buf().await?;
        if part.is_empty() {
            return Err(Failed::Again(BROKEN));
        }
        let end = part.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(part.len(), |end| end + 1);
        line.extend(part.iter().take(taken));
        reader.consume(taken);
        if line.len() > LINE {
            return Err(Failed::Final(Error::Answer));
        }
        if end.is_some() {
            return Ok(String::from_utf8_lossy(&line).trim_end().to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn answers_of_a_server_are_bounded_and_not_repeated() {
        let long = vec![b'x'; LINE + 1];
        assert!(matches!(
            line(&mut long.as_slice()).await,
            Err(Failed::Final(Error::Answer))
        ));
        assert!(matches!(line(&mut &b"PON"[..]).await, Err(Failed::Again(_))));
        for text in ["", "HTTP/1.1 400 Bad Request\r\n", "INFO s3cret\r\n"] {
            let error = format!("{:?}", info(&mut text.as_bytes()).await.unwrap_err());
            assert!(!error.contains("s3cret"), "{error}");
        }
        for (line, is_final) in [
            ("-ERR 'Authorization Violation'", true),
            ("-ERR 'Permissions Violation for Publish to \"s3cret\"'", true),
            ("-ERR 'Stale Connection'", false),
            ("-ERR s3cret", false),
        ] {
            let failed = refused(line);
            assert!(!format!("{failed:?}").contains("s3cret"));
            assert_eq!(matches!(failed, Failed::Final(_)), is_final, "{line}");
        }
    }
}

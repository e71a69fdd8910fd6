//! Connections to ports of Pods through the API server and the node, as of `kubectl port-forward`.
//!
//! One port is one WebSocket connection with the protocol `v4.channel.k8s.io`: each message begins with its channel, 0 for data
//! and 1 for an error, and the first message of each channel repeats the number of the port.

mod websocket;

use std::{
    io,
    pin::Pin,
    sync::{Arc, OnceLock},
    task::{Context, Poll, ready},
};

use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Limited};
use hyper_util::rt::TokioIo;
use kube::client::Body;
use objects::ObjectRef;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, DuplexStream, ReadBuf},
    sync::mpsc,
};
use tokio_util::task::AbortOnDropHandle;
use websocket::{Message, Reader};

use crate::{ApiError, Cluster, Error, connection::send::Call, path};

const PROTOCOL: &str = "v4.channel.k8s.io";
const AHEAD: usize = 64 << 10;
const ERROR_BYTES: usize = 64 << 10;
const PINGS: usize = 4;

#[derive(Debug)]
pub struct Forward {
    io: DuplexStream,
    /// Reason of the end, if there is one to report.
    failure: Arc<OnceLock<String>>,
    _task: AbortOnDropHandle<()>,
}

impl Cluster {
    /// Connects to a port of a Pod. If the node can't connect to it, reads of the connection fail.
    pub async fn forward(&self, pod: &ObjectRef, port: u16) -> Result<Forward, Error> {
        let what = format!("forward port {port} of {pod}");
        let kind = self.kind("", "v1", "Pod").await?;
        let call = Call {
            accept: "*/*",
            ..Call::get(format!("{}/portforward?ports={port}", path::object(&kind, pod)?))
        };
        let unreachable = |reason: &dyn std::fmt::Display| Error::Unreachable {
            what: what.clone(),
            reason: api::redact(&reason.to_string()),
        };
        let key = websocket::key().map_err(|error| unreachable(&error))?;
        let mut request = self.request(&what, &call)?;
        add_headers(&mut request, &key).map_err(|error| unreachable(&error))?;
        let answer = self.answer(&what, request).await?;
        if answer.status() != StatusCode::SWITCHING_PROTOCOLS {
            return Err(refused(answer).await);
        }
        check(answer.headers(), &key).map_err(|reason| unreachable(&reason))?;
        let upgraded = hyper::upgrade::on(answer).await;
        let upgraded = upgraded.map_err(|error| unreachable(&error))?;
        Ok(Forward::over(TokioIo::new(upgraded), port))
    }
}

fn add_headers(request: &mut Request<Body>, key: &str) -> Result<(), header::InvalidHeaderValue> {
    let headers = request.headers_mut();
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(header::SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
    headers.insert(header::SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(PROTOCOL));
    headers.insert(header::SEC_WEBSOCKET_KEY, HeaderValue::from_str(key)?);
    Ok(())
}

fn check(headers: &HeaderMap, key: &str) -> Result<(), &'static str> {
    let is = |name, expected: &str| {
        let value = headers
            .get(name)
            .and_then(|value: &HeaderValue| value.to_str().ok());
        value.is_some_and(|value| value.trim() == expected)
    };
    if !is(header::SEC_WEBSOCKET_ACCEPT, &websocket::accept(key)) {
        return Err("the answer is that to another handshake");
    }
    if !is(header::SEC_WEBSOCKET_PROTOCOL, PROTOCOL) {
        return Err("the server doesn't know the protocol v4.channel.k8s.io");
    }
    Ok(())
}

async fn refused(answer: Response<Body>) -> Error {
    let status = answer.status().as_u16();
    let body = Limited::new(answer.into_body(), ERROR_BYTES).collect().await;
    let body = body.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    Error::Api(ApiError::parse(status, &body))
}

impl Forward {
    fn over(io: impl AsyncRead + AsyncWrite + Send + 'static, port: u16) -> Self {
        let (near, far) = tokio::io::duplex(AHEAD);
        let failure = Arc::new(OnceLock::new());
        let reported = Arc::clone(&failure);
        let task = tokio::spawn(async move {
            if let Err(error) = pump(io, far, port).await {
                // There is one task only.
                let _ = reported.set(api::redact(&error.to_string()));
            }
        });
        Self {
            io: near,
            failure,
            _task: AbortOnDropHandle::new(task),
        }
    }
}

/// Copies in both directions until one side ends.
async fn pump(io: impl AsyncRead + AsyncWrite, far: DuplexStream, port: u16) -> io::Result<()> {
    let (from_server, to_server) = tokio::io::split(io);
    let (from_user, to_user) = tokio::io::split(far);
    let (pings, answered) = mpsc::channel(PINGS);
    tokio::select! {
        ended = receive(Box::pin(from_server), to_user, pings, port) => ended,
        ended = send(from_user, Box::pin(to_server), answered) => ended,
    }
}

/// Copies data from the Pod.
///
/// # Errors
/// The connection breaks, or the node reports that the port can't be used.
async fn receive(
    io: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    pings: mpsc::Sender<Vec<u8>>,
    port: u16,
) -> io::Result<()> {
    let mut reader = Reader::new(io);
    let mut started = [false; 2];
    loop {
        let data = match reader.next().await? {
            Message::Data(data) => data,
            Message::Ping(content) => {
                // Without a reader the connection ends.
                let _ = pings.send(content).await;
                continue;
            }
            Message::Close => return Ok(()),
        };
        let Some((&channel, data)) = data.split_first() else {
            continue;
        };
        let started = started.get_mut(usize::from(channel));
        let started = started.ok_or_else(|| websocket::invalid("data of an unknown channel"))?;
        match (channel, std::mem::replace(started, true)) {
            (_, false) if data == port.to_le_bytes() => {}
            (_, false) => return Err(websocket::invalid("the number of another port")),
            (0, true) => to.write_all(data).await?,
            (_, true) => return Err(io::Error::other(String::from_utf8_lossy(data).trim().to_owned())),
        }
    }
}

async fn send(
    mut from: impl AsyncRead + Unpin,
    mut io: impl AsyncWrite + Unpin,
    mut pings: mpsc::Receiver<Vec<u8>>,
) -> io::Result<()> {
    let mut buffer = vec![0; AHEAD];
    loop {
        let frame = tokio::select! {
            read = from.read(&mut buffer) => match read? {
                0 => {
                    io.write_all(&websocket::close()?).await?;
                    return io.flush().await;
                }
                read => websocket::data(0, buffer.get(..read).unwrap_or_default())?,
            },
            Some(content) = pings.recv() => websocket::pong(&content)?,
        };
        io.write_all(&frame).await?;
        io.flush().await?;
    }
}

impl AsyncRead for Forward {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.io).poll_read(cx, buf))?;
        match self.failure.get() {
            Some(reason) if buf.filled().len() == before => {
                Poll::Ready(Err(io::Error::other(reason.clone())))
            }
            _ => Poll::Ready(Ok(())),
        }
    }
}

impl AsyncWrite for Forward {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn connected() -> (Forward, DuplexStream) {
        let (near, mut far) = tokio::io::duplex(AHEAD);
        far.write_all(&[0x82, 3, 0, 5, 0, 0x82, 3, 1, 5, 0])
            .await
            .unwrap();
        (Forward::over(near, 5), far)
    }

    #[tokio::test]
    async fn data_is_copied_and_pings_are_answered() {
        let (mut forward, mut far) = connected().await;
        far.write_all(&[0x89, 1, b'p', 0x82, 3, 0, b'h', b'i'])
            .await
            .unwrap();
        let mut read = [0; 2];
        forward.read_exact(&mut read).await.unwrap();
        assert_eq!(&read, b"hi");
        let mut pong = [0; 7];
        far.read_exact(&mut pong).await.unwrap();
        assert_eq!((pong[0], pong[1], pong[2] ^ pong[6]), (0x8a, 0x81, b'p'));
        forward.write_all(b"x").await.unwrap();
        let mut sent = [0; 8];
        far.read_exact(&mut sent).await.unwrap();
        assert_eq!((sent[1], sent[2] ^ sent[6], sent[3] ^ sent[7]), (0x82, 0, b'x'));
    }

    #[tokio::test]
    async fn error_of_the_node_is_that_of_the_next_read() {
        for (bytes, expected) in [
            (&[0x82, 4, 1, b'b', b'a', b'd'][..], "bad"),
            (&[0x82, 2, 7, b'x'], "the server sent data of an unknown channel"),
        ] {
            let (mut forward, mut far) = connected().await;
            far.write_all(bytes).await.unwrap();
            let error = forward.read(&mut [0; 1]).await.unwrap_err();
            assert_eq!(error.to_string(), expected);
        }
        let (mut forward, mut far) = connected().await;
        far.write_all(&[0x88, 0]).await.unwrap();
        assert_eq!(forward.read(&mut [0; 1]).await.unwrap(), 0, "an orderly end");
    }
}

//! Connections to ports of Pods through the API server and the node, as of `kubectl port-forward`.
//!
//! One port is one WebSocket connection with the protocol `v4.channel.k8s.io`: each message begins with its channel, 0 for data
//! and 1 for an error, and the first message of each channel repeats the number of the port.

mod handshake;

use std::{
    io,
    pin::Pin,
    sync::{Arc, OnceLock},
    task::{Context, Poll, ready},
};

use bytes::{BufMut as _, BytesMut};
use futures::{Sink, SinkExt as _, Stream, StreamExt as _, TryStreamExt as _};
use http::{Response, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use hyper_util::rt::TokioIo;
use kube::client::Body;
use objects::ObjectRef;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, DuplexStream, ReadBuf};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        self, Message,
        protocol::{Role, WebSocketConfig},
    },
};
use tokio_util::task::AbortOnDropHandle;

use crate::{ApiError, Cluster, Error, connection::send::Call, path};

const AHEAD: usize = 64 << 10;
/// Maximum size of a message, in bytes. The API server and nodes send 32 KiB at most.
const MESSAGE_BYTES: usize = 4 << 20;
const ERROR_BYTES: usize = 64 << 10;

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
        let key = handshake::key().map_err(|error| unreachable(&error))?;
        let mut request = self.request(&what, &call)?;
        handshake::add_headers(request.headers_mut(), &key).map_err(|error| unreachable(&error))?;
        let answer = self.answer(&what, request).await?;
        if answer.status() != StatusCode::SWITCHING_PROTOCOLS {
            return Err(refused(answer).await);
        }
        handshake::check(answer.headers(), &key).map_err(|reason| unreachable(&reason))?;
        let upgraded = hyper::upgrade::on(answer).await;
        let upgraded = upgraded.map_err(|error| unreachable(&error))?;
        Ok(Forward::over(TokioIo::new(upgraded), port))
    }
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
async fn pump(
    io: impl AsyncRead + AsyncWrite + Send + 'static,
    far: DuplexStream,
    port: u16,
) -> io::Result<()> {
    let config = WebSocketConfig::default()
        .max_message_size(Some(MESSAGE_BYTES))
        .max_frame_size(Some(MESSAGE_BYTES));
    let socket = WebSocketStream::from_raw_socket(Box::pin(io), Role::Client, Some(config)).await;
    let (to_server, from_server) = socket.split();
    let (from_user, to_user) = tokio::io::split(far);
    tokio::select! {
        ended = receive(from_server, to_user, port) => ended,
        ended = send(from_user, to_server) => ended,
    }
}

/// Copies data from the Pod.
///
/// # Errors
/// The connection breaks, or the node reports that the port can't be used.
async fn receive(
    mut messages: impl Stream<Item = Result<Message, tungstenite::Error>> + Unpin,
    mut to: impl AsyncWrite + Unpin,
    port: u16,
) -> io::Result<()> {
    let mut started = [false; 2];
    loop {
        let message = messages.try_next().await.map_err(broken)?;
        let data = match message {
            Some(Message::Binary(data)) => data,
            Some(Message::Text(text)) => text.into(),
            Some(Message::Ping(_) | Message::Pong(_) | Message::Frame(_)) => continue,
            Some(Message::Close(_)) | None => return Ok(()),
        };
        let Some((&channel, data)) = data.split_first() else {
            continue;
        };
        let started = started.get_mut(usize::from(channel));
        let started = started.ok_or_else(|| invalid("data of an unknown channel"))?;
        match (channel, std::mem::replace(started, true)) {
            (_, false) if data == port.to_le_bytes() => {}
            (_, false) => return Err(invalid("the number of another port")),
            (0, true) => to.write_all(data).await?,
            (_, true) => return Err(io::Error::other(String::from_utf8_lossy(data).trim().to_owned())),
        }
    }
}

async fn send(
    mut from: impl AsyncRead + Unpin,
    mut to: impl Sink<Message, Error = tungstenite::Error> + Unpin,
) -> io::Result<()> {
    let mut buffer = BytesMut::with_capacity(AHEAD);
    loop {
        buffer.clear();
        buffer.put_u8(0);
        if from.read_buf(&mut buffer).await? == 0 {
            return to.close().await.map_err(broken);
        }
        let data = buffer.split().freeze();
        to.send(Message::Binary(data)).await.map_err(broken)?;
        buffer.reserve(AHEAD);
    }
}

fn broken(error: tungstenite::Error) -> io::Error {
    match error {
        tungstenite::Error::Io(error) => error,
        error => io::Error::other(error),
    }
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the server sent {what}"))
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
    async fn parts_are_joined() {
        let (mut forward, mut far) = connected().await;
        let parts = [
            &[0x02, 2, 0, b'a'][..],
            &[0x89, 1, b'p'],
            &[0x00, 1, b'b'],
            &[0x8a, 0],
            &[0x80, 1, b'c'],
            &[0x82, 126, 0, 2, 0, b'd'],
        ];
        far.write_all(&parts.concat()).await.unwrap();
        let mut read = [0; 4];
        forward.read_exact(&mut read).await.unwrap();
        assert_eq!(&read, b"abcd");
    }

    #[tokio::test]
    async fn invalid_and_too_large_messages_end_the_connection() {
        let large = [&[0x82, 127][..], &(1_u64 << 40).to_be_bytes()].concat();
        let over = [&[0x02, 126, 0xff, 0xff][..], &[0; 0xffff]].concat();
        let ping = [&[0x89, 126, 0, 126][..], &[0; 126]].concat();
        let many = [&over[..], &[&[0x00][..], &over[1..]].concat().repeat(64)].concat();
        for bytes in [
            &large[..],
            &many,
            &[0x80, 1, b'c'],
            &[0x02, 0, 0x82, 0],
            &[0x82, 0x81, 0, 0, 0, 0, 1],
            &[0xc2, 0],
            &[0x83, 0],
            &ping,
        ] {
            let (mut forward, mut far) = connected().await;
            // The reader may end before it has everything.
            let _ = far.write_all(bytes).await;
            let error = forward.read(&mut [0; 1]).await.unwrap_err();
            assert!(!error.to_string().is_empty());
        }
        let (mut forward, far) = connected().await;
        drop(far);
        let error = forward.read(&mut [0; 1]).await.unwrap_err();
        assert!(error.to_string().contains("without closing handshake"), "{error}");
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

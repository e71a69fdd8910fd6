//! Messages of gRPC within streams of HTTP/2.

use std::future::poll_fn;

use bytes::{Buf, BufMut as _, Bytes, BytesMut};
use h2::{RecvStream, SendStream};
use http::{HeaderMap, HeaderValue};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use prost::Message;

use crate::Error;

/// Size of a message's header: a flag and a length.
const HEADER: usize = 5;
const ESCAPED: &AsciiSet = &CONTROLS.add(b'%');
const STATUS_BYTES: usize = 1024;

pub(crate) struct Reader {
    body: RecvStream,
    buffer: BytesMut,
}

impl Reader {
    pub(crate) fn new(body: RecvStream) -> Self {
        Self {
            body,
            buffer: BytesMut::new(),
        }
    }

    /// Reads a message of at most `limit` bytes; `None` at the end of the stream. Cancel safe: read bytes stay in the buffer.
    pub(crate) async fn message(&mut self, limit: usize) -> Result<Option<Bytes>, Error> {
        loop {
            if let Some(message) = self.buffered(limit)? {
                return Ok(Some(message));
            }
            let Some(data) = self.body.data().await else {
                return match self.buffer.is_empty() {
                    true => Ok(None),
                    false => Err(Error::Protocol("a message is cut off")),
                };
            };
            let data = data?;
            self.buffer.extend_from_slice(&data);
            self.body.flow_control().release_capacity(data.len())?;
        }
    }

    fn buffered(&mut self, limit: usize) -> Result<Option<Bytes>, Error> {
        let Some((&[flag, a, b, c, d], rest)) = self.buffer.split_first_chunk::<HEADER>() else {
            return Ok(None);
        };
        if flag != 0 {
            return Err(Error::Protocol("compressed messages are not supported"));
        }
        let bytes = u32::from_be_bytes([a, b, c, d]) as usize;
        if bytes > limit {
            return Err(Error::TooLarge { bytes, limit });
        }
        if rest.len() < bytes {
            return Ok(None);
        }
        self.buffer.advance(HEADER);
        Ok(Some(self.buffer.split_to(bytes).freeze()))
    }

    /// Reads the status after the last message. Fails unless it is a success.
    pub(crate) async fn status(&mut self) -> Result<(), Error> {
        match self.body.trailers().await? {
            Some(trailers) => check_status(&trailers),
            None => Ok(()),
        }
    }
}

pub(crate) fn check_status(headers: &HeaderMap) -> Result<(), Error> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    match text("grpc-status") {
        None | Some("0") => Ok(()),
        Some(_) => {
            let message = text("grpc-message").unwrap_or("the other side failed");
            let message: String = message.chars().take(STATUS_BYTES).collect();
            let message = percent_encoding::percent_decode_str(&message).decode_utf8_lossy();
            Err(Error::Refused(
                message.chars().filter(|one| !one.is_control()).collect(),
            ))
        }
    }
}

pub(crate) fn trailers(ended: &Result<(), Error>) -> HeaderMap {
    let mut trailers = HeaderMap::new();
    let status = if ended.is_ok() { "0" } else { "2" };
    trailers.insert("grpc-status", HeaderValue::from_static(status));
    if let Err(error) = ended {
        let message = utf8_percent_encode(&error.to_string(), ESCAPED).to_string();
        if let Ok(message) = HeaderValue::from_str(&message) {
            trailers.insert("grpc-message", message);
        }
    }
    trailers
}

/// Sends a message as the flow-control window allows.
pub(crate) async fn send(stream: &mut SendStream<Bytes>, message: &impl Message) -> Result<(), Error> {
    let mut rest = framed(message)?;
    while !rest.is_empty() {
        stream.reserve_capacity(rest.len());
        let capacity = poll_fn(|context| stream.poll_capacity(context)).await;
        let capacity = capacity.ok_or(Error::Ended)??;
        stream.send_data(rest.split_to(capacity.min(rest.len())), false)?;
    }
    Ok(())
}

fn framed(message: &impl Message) -> Result<Bytes, Error> {
    let length = message.encoded_len();
    let prefix = u32::try_from(length).map_err(|_| Error::Protocol("a message is too large"))?;
    let mut framed = BytesMut::with_capacity(HEADER + length);
    framed.put_u8(0);
    framed.put_u32(prefix);
    message.encode_raw(&mut framed);
    Ok(framed.freeze())
}

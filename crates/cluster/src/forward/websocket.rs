//! The messages of WebSocket connections (RFC 6455), as far as a client of the API server needs them.

use std::io;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use sha1::{Digest as _, Sha1};
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// Maximum size of a message, in bytes. The API server and nodes send 32 KiB at most.
const MESSAGE_BYTES: usize = 4 << 20;
const CONTROL_BYTES: usize = 125;
/// Fixed by the RFC.
const SALT: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

const CONTINUATION: u8 = 0;
const TEXT: u8 = 1;
const BINARY: u8 = 2;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Message {
    Data(Vec<u8>),
    /// A ping, whose content is to be sent back.
    Ping(Vec<u8>),
    Close,
}

pub(super) fn key() -> io::Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    Ok(STANDARD.encode(bytes))
}

pub(super) fn accept(key: &str) -> String {
    STANDARD.encode(Sha1::digest(format!("{key}{SALT}")))
}

pub(super) fn data(channel: u8, bytes: &[u8]) -> io::Result<Vec<u8>> {
    frame(BINARY, &[&[channel], bytes].concat())
}

pub(super) fn pong(content: &[u8]) -> io::Result<Vec<u8>> {
    frame(PONG, content)
}

pub(super) fn close() -> io::Result<Vec<u8>> {
    frame(CLOSE, &[])
}

fn frame(opcode: u8, content: &[u8]) -> io::Result<Vec<u8>> {
    let mut mask = [0; 4];
    getrandom::fill(&mut mask)?;
    Ok(masked(opcode, content, mask))
}

fn masked(opcode: u8, content: &[u8], mask: [u8; 4]) -> Vec<u8> {
    const MASKED: u8 = 0x80;
    let mut bytes = vec![0x80 | opcode];
    match (u8::try_from(content.len()), u16::try_from(content.len())) {
        (Ok(size @ ..126), _) => bytes.push(MASKED | size),
        (_, Ok(size)) => {
            bytes.push(MASKED | 126);
            bytes.extend(size.to_be_bytes());
        }
        _ => {
            bytes.push(MASKED | 127);
            bytes.extend((content.len() as u64).to_be_bytes());
        }
    }
    bytes.extend(mask);
    let masked = content.iter().zip(mask.iter().cycle());
    bytes.extend(masked.map(|(byte, mask)| byte ^ mask));
    bytes
}

/// Reads messages of a server, joining their fragments.
pub(super) struct Reader<R> {
    io: R,
    partial: Option<Vec<u8>>,
}

impl<R: AsyncRead + Unpin> Reader<R> {
    pub(super) fn new(io: R) -> Self {
        Self { io, partial: None }
    }

    /// Reads the next message. The end of the connection without a close message is an error, and so is a message of more than
    /// 4 MiB.
    pub(super) async fn next(&mut self) -> io::Result<Message> {
        loop {
            let (is_last, opcode, content) = self.frame().await?;
            match opcode {
                CLOSE => return Ok(Message::Close),
                PING => return Ok(Message::Ping(content)),
                PONG => {}
                TEXT | BINARY if self.partial.is_none() => self.partial = Some(content),
                CONTINUATION => match &mut self.partial {
                    Some(partial) => partial.extend(content),
                    None => return Err(invalid("a part without a beginning")),
                },
                _ => return Err(invalid("an unexpected frame")),
            }
            if is_last
                && opcode < CLOSE
                && let Some(whole) = self.partial.take()
            {
                return Ok(Message::Data(whole));
            }
        }
    }

    async fn frame(&mut self) -> io::Result<(bool, u8, Vec<u8>)> {
        let mut head = [0; 2];
        self.io.read_exact(&mut head).await?;
        let [first, second] = head;
        if first & 0x70 != 0 || second & 0x80 != 0 {
            return Err(invalid("a frame with an extension or a mask"));
        }
        let (is_last, opcode) = (first & 0x80 != 0, first & 0x0f);
        let size = match second {
            126 => u64::from(self.io.read_u16().await?),
            127 => self.io.read_u64().await?,
            size => u64::from(size),
        };
        let length = self.partial.as_ref().map_or(0, Vec::len);
        let most = match opcode < CLOSE {
            true => MESSAGE_BYTES.saturating_sub(length),
            false => CONTROL_BYTES,
        };
        let size = usize::try_from(size)
            .ok()
            .filter(|size| *size <= most)
            .ok_or_else(|| invalid("a message that is too large"))?;
        let mut content = vec![0; size];
        self.io.read_exact(&mut content).await?;
        Ok((is_last, opcode, content))
    }
}

pub(super) fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the server sent {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(bytes: &[u8]) -> io::Result<Vec<Message>> {
        let mut reader = Reader::new(bytes);
        let mut messages = Vec::new();
        loop {
            match reader.next().await {
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(messages),
                message => messages.push(message?),
            }
        }
    }

    #[test]
    fn handshake_and_masks_are_those_of_the_rfc() {
        assert_eq!(accept("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        let hello = masked(TEXT, b"Hello", [0x37, 0xfa, 0x21, 0x3d]);
        assert_eq!(
            hello,
            [0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58]
        );
        for (size, head) in [
            (125, &[0xfd][..]),
            (126, &[0xfe, 0, 126]),
            (0xffff, &[0xfe, 0xff, 0xff]),
            (0x1_0000, &[0xff, 0, 0, 0, 0, 0, 1, 0, 0]),
        ] {
            let sent = masked(BINARY, &vec![7; size], [0; 4]);
            assert_eq!(sent.get(1..=head.len()), Some(head), "{size}");
            assert_eq!(sent.len(), 1 + head.len() + 4 + size);
        }
    }

    #[tokio::test]
    async fn parts_are_joined_and_pings_between_them_are_told() {
        let bytes = [
            &[0x02, 2, b'a', b'b'][..],
            &[0x89, 1, b'p'],
            &[0x00, 1, b'c'],
            &[0x8a, 0],
            &[0x80, 1, b'd'],
            &[0x82, 126, 0, 1, b'e'],
            &[0x88, 0],
        ];
        let messages = read(&bytes.concat()).await.unwrap();
        let expected = [
            Message::Ping(b"p".to_vec()),
            Message::Data(b"abcd".to_vec()),
            Message::Data(b"e".to_vec()),
            Message::Close,
        ];
        assert_eq!(messages, expected);
    }

    #[tokio::test]
    async fn invalid_and_too_large_messages_are_refused() {
        let large = [&[0x82, 127][..], &(1_u64 << 40).to_be_bytes()].concat();
        for bytes in [
            &large[..],
            &[0x80, 1, b'c'],
            &[0x02, 0, 0x82, 0],
            &[0x82, 0x81, 0, 0, 0, 0, 1],
            &[0xc2, 0],
            &[0x83, 0],
            &[0x89, 126, 0, 126],
        ] {
            let error = read(bytes).await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{bytes:?}");
        }
    }
}

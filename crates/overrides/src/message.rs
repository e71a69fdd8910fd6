//! Messages in the wire format of protocol buffers. All their fields are strings, bytes, or messages. Pure.

use bytes::{Buf, BufMut, Bytes, BytesMut};

use crate::Error;

const WITH_LENGTH: u64 = 2;

/// Proofs of identity; each message has one part.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Auth {
    pub(crate) public_key: Bytes,
    pub(crate) challenge: Bytes,
    /// Signature that proves that the sender has the key.
    pub(crate) proof: Bytes,
    pub(crate) error: Option<String>,
    /// Hash of the public key, in hexadecimal.
    pub(crate) key_hash: Option<String>,
    pub(crate) controller_secret: Bytes,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) auth: Option<Auth>,
    pub(crate) repo_key: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Response {
    pub(crate) auth: Option<Auth>,
    pub(crate) answer: Option<Answer>,
}

/// A command line's answer for a repository. Without error and files, the repository is not replaced.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    pub error: Option<String>,
    pub artifact: Option<Bytes>,
}

impl Auth {
    fn encode(&self) -> Bytes {
        let mut out = BytesMut::new();
        put_filled(&mut out, 1, &self.public_key);
        put_filled(&mut out, 2, &self.challenge);
        put_filled(&mut out, 3, &self.proof);
        if let Some(error) = &self.error {
            put(&mut out, 4, error.as_bytes());
        }
        if let Some(hash) = &self.key_hash {
            put(&mut out, 5, hash.as_bytes());
        }
        put_filled(&mut out, 6, &self.controller_secret);
        out.freeze()
    }

    fn decode(message: Bytes) -> Result<Self, Error> {
        let mut auth = Self::default();
        fields(message, |number, value| {
            match number {
                1 => auth.public_key = value,
                2 => auth.challenge = value,
                3 => auth.proof = value,
                4 => auth.error = Some(text(&value)?),
                5 => auth.key_hash = Some(text(&value)?),
                6 => auth.controller_secret = value,
                _ => {}
            }
            Ok(())
        })?;
        Ok(auth)
    }
}

impl Request {
    pub(crate) fn encode(&self) -> Bytes {
        let mut out = BytesMut::new();
        if let Some(auth) = &self.auth {
            put(&mut out, 1, &auth.encode());
        }
        if let Some(key) = &self.repo_key {
            let mut request = BytesMut::new();
            put_filled(&mut request, 1, key.as_bytes());
            put(&mut out, 2, &request);
        }
        out.freeze()
    }

    pub(crate) fn decode(message: Bytes) -> Result<Self, Error> {
        let mut request = Self::default();
        fields(message, |number, value| {
            match number {
                1 => request.auth = Some(Auth::decode(value)?),
                2 => {
                    let mut key = String::new();
                    fields(value, |number, value| {
                        if number == 1 {
                            key = text(&value)?;
                        }
                        Ok(())
                    })?;
                    request.repo_key = Some(key);
                }
                _ => {}
            }
            Ok(())
        })?;
        Ok(request)
    }
}

impl Response {
    pub(crate) fn encode(&self) -> Bytes {
        let mut out = BytesMut::new();
        if let Some(auth) = &self.auth {
            put(&mut out, 1, &auth.encode());
        }
        if let Some(answer) = &self.answer {
            put(&mut out, 2, &answer.encode());
        }
        out.freeze()
    }

    pub(crate) fn decode(message: Bytes) -> Result<Self, Error> {
        let mut response = Self::default();
        fields(message, |number, value| {
            match number {
                1 => response.auth = Some(Auth::decode(value)?),
                2 => response.answer = Some(Answer::decode(value)?),
                _ => {}
            }
            Ok(())
        })?;
        Ok(response)
    }
}

impl Answer {
    pub(crate) fn encode(&self) -> Bytes {
        let mut out = BytesMut::new();
        if let Some(error) = &self.error {
            put(&mut out, 1, error.as_bytes());
        }
        if let Some(artifact) = &self.artifact {
            put(&mut out, 2, artifact);
        }
        out.freeze()
    }

    pub(crate) fn decode(message: Bytes) -> Result<Self, Error> {
        let mut answer = Self::default();
        fields(message, |number, value| {
            match number {
                1 => answer.error = Some(text(&value)?),
                2 => answer.artifact = Some(value),
                _ => {}
            }
            Ok(())
        })?;
        Ok(answer)
    }
}

/// Calls `take` with number and content of each field that has a length, and skips the others.
fn fields(mut message: Bytes, mut take: impl FnMut(u64, Bytes) -> Result<(), Error>) -> Result<(), Error> {
    while !message.is_empty() {
        let tag = varint(&mut message)?;
        let skipped = match tag & 7 {
            WITH_LENGTH => {
                let length = varint(&mut message)?;
                let length = usize::try_from(length)
                    .ok()
                    .filter(|length| *length <= message.len());
                let length = length.ok_or(Error::Protocol("a message is cut off"))?;
                take(tag >> 3, message.split_to(length))?;
                continue;
            }
            0 => {
                varint(&mut message)?;
                continue;
            }
            1 => 8,
            5 => 4,
            _ => return Err(Error::Protocol("a message has a field of an unknown type")),
        };
        if message.len() < skipped {
            return Err(Error::Protocol("a message is cut off"));
        }
        message.advance(skipped);
    }
    Ok(())
}

fn varint(message: &mut Bytes) -> Result<u64, Error> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        if message.is_empty() {
            return Err(Error::Protocol("a message is cut off"));
        }
        let byte = message.get_u8();
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(Error::Protocol("a message has a number that is too large"))
}

fn text(value: &Bytes) -> Result<String, Error> {
    let text = std::str::from_utf8(value).map_err(|_| Error::Protocol("a text is not UTF-8"))?;
    Ok(text.to_owned())
}

fn put_filled(out: &mut BytesMut, number: u8, content: &[u8]) {
    if !content.is_empty() {
        put(out, number, content);
    }
}

fn put(out: &mut BytesMut, number: u8, content: &[u8]) {
    out.reserve(content.len() + 11);
    out.put_u8(number << 3 | 2);
    let mut length = content.len();
    while length > 0x7f {
        out.put_u8(u8::try_from(length & 0x7f).unwrap_or_default() | 0x80);
        length >>= 7;
    }
    out.put_u8(u8::try_from(length).unwrap_or_default());
    out.put_slice(content);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_have_the_numbers_of_the_original() {
        let auth = Auth {
            public_key: Bytes::from_static(b"k"),
            error: Some(String::new()),
            key_hash: Some("h".to_owned()),
            ..Auth::default()
        };
        let request = Request {
            auth: Some(auth),
            repo_key: Some("git://h/p".to_owned()),
        };
        let wire = b"\x0a\x08\x0a\x01k\x22\x00\x2a\x01h\x12\x0b\x0a\x09git://h/p";
        assert_eq!(request.encode(), wire.as_slice());
        assert_eq!(Request::decode(request.encode()).unwrap(), request);
        let answer = Answer {
            error: Some("e".to_owned()),
            artifact: Some(Bytes::from(vec![7; 300])),
        };
        let response = Response {
            auth: None,
            answer: Some(answer),
        };
        let wire = response.encode();
        assert_eq!(&wire[..9], b"\x12\xb2\x02\x0a\x01e\x12\xac\x02");
        assert_eq!(Response::decode(wire).unwrap(), response);
    }

    #[test]
    fn unknown_fields_are_skipped() {
        let wire = b"\x18\x96\x01\x25abcd\x29abcdefgh\x0a\x02no\x32\x01x";
        let answer = Answer::decode(Bytes::from_static(wire)).unwrap();
        assert_eq!(answer.error.as_deref(), Some("no"));
    }

    #[test]
    fn hostile_messages_fail() {
        let messages: [&[u8]; 7] = [
            b"\x0a",
            b"\x0a\x05abc",
            b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01abc",
            b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
            b"\x0b",
            b"\x0a\x01\xff",
            b"\x29abc",
        ];
        for message in messages {
            assert!(
                Answer::decode(Bytes::copy_from_slice(message)).is_err(),
                "{message:?}"
            );
        }
    }
}

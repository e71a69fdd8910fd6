//! The messages of the protocol: protocol buffers, with the fields of kluctl.

use bytes::Bytes;

/// Proofs of identity; each message has one part.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct Auth {
    #[prost(bytes = "bytes", tag = "1")]
    pub(crate) public_key: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    pub(crate) challenge: Bytes,
    /// Signature that proves that the sender has the key.
    #[prost(bytes = "bytes", tag = "3")]
    pub(crate) proof: Bytes,
    #[prost(string, optional, tag = "4")]
    pub(crate) error: Option<String>,
    /// Hash of the public key, in hexadecimal.
    #[prost(string, optional, tag = "5")]
    pub(crate) key_hash: Option<String>,
    #[prost(bytes = "bytes", tag = "6")]
    pub(crate) controller_secret: Bytes,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct Request {
    #[prost(message, optional, tag = "1")]
    pub(crate) auth: Option<Auth>,
    #[prost(message, optional, tag = "2")]
    pub(crate) repository: Option<Repository>,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct Repository {
    #[prost(string, tag = "1")]
    pub(crate) key: String,
}

#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct Response {
    #[prost(message, optional, tag = "1")]
    pub(crate) auth: Option<Auth>,
    #[prost(message, optional, tag = "2")]
    pub(crate) answer: Option<Answer>,
}

/// A command line's answer for a repository. Without error and files, the repository is not replaced.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Answer {
    #[prost(string, optional, tag = "1")]
    pub error: Option<String>,
    #[prost(bytes = "bytes", optional, tag = "2")]
    pub artifact: Option<Bytes>,
}

#[cfg(test)]
mod tests {
    use prost::Message as _;

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
            repository: Some(Repository {
                key: "git://h/p".to_owned(),
            }),
        };
        let wire = b"\x0a\x08\x0a\x01k\x22\x00\x2a\x01h\x12\x0b\x0a\x09git://h/p";
        assert_eq!(request.encode_to_vec(), wire);
        assert_eq!(Request::decode(wire.as_slice()).unwrap(), request);
        let answer = Answer {
            error: Some("e".to_owned()),
            artifact: Some(Bytes::from(vec![7; 300])),
        };
        let response = Response {
            auth: None,
            answer: Some(answer),
        };
        let wire = Bytes::from(response.encode_to_vec());
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
            assert!(Answer::decode(message).is_err(), "{message:?}");
        }
    }
}

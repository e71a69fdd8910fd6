//! Errors of the protocol.

/// A failure of a connection, or of what came over it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The connection broke.
    #[error("the connection broke: {0}")]
    Connection(#[from] h2::Error),
    /// There is no connection, or TLS failed.
    #[error("cannot connect: {0}")]
    Io(#[from] std::io::Error),
    /// A certificate or key cannot be used.
    #[error("invalid {0}")]
    Material(&'static str),
    /// No certificate could be made.
    #[error("cannot make a certificate: {0}")]
    Certificate(String),
    /// A message is larger than the limit.
    #[error("a message of {bytes} bytes is larger than the limit of {limit}")]
    TooLarge {
        /// Size of the message.
        bytes: usize,
        /// Maximum size.
        limit: usize,
    },
    /// A message is malformed, or not the one that comes next.
    #[error("{0}")]
    Protocol(&'static str),
    /// The other side refused or failed.
    #[error("{0}")]
    Refused(String),
    /// The URL of an override is malformed.
    #[error("invalid source override url: expected grpc+source-override://HOST:PORT/ID")]
    Url,
    /// The other side took too long.
    #[error("no answer within {0:?}")]
    Timeout(std::time::Duration),
    /// The other side ended the stream.
    #[error("the other side ended the connection")]
    Ended,
}

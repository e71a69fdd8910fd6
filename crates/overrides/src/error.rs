//! Errors of the protocol.

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the connection broke: {0}")]
    Connection(#[from] h2::Error),
    #[error("cannot connect: {0}")]
    Io(#[from] std::io::Error),
    #[error("invalid {0}")]
    Material(&'static str),
    #[error("cannot make a certificate: {0}")]
    Certificate(String),
    #[error("a message of {bytes} bytes is larger than the limit of {limit}")]
    TooLarge { bytes: usize, limit: usize },
    #[error("invalid message: {0}")]
    Message(#[from] prost::DecodeError),
    #[error("{0}")]
    Protocol(&'static str),
    #[error("{0}")]
    Refused(String),
    #[error("invalid source override url: expected grpc+source-override://HOST:PORT/ID")]
    Url,
    #[error("no answer within {0:?}")]
    Timeout(std::time::Duration),
    #[error("the other side ended the connection")]
    Ended,
}

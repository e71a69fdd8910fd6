//! Errors of deliveries. No variant can carry an address, credentials or a response.

use net::{InvalidProxy, Refusal};

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("spec.type: {0} is not supported yet")]
    UnsupportedType(String),
    #[error("spec.commitStatusExpr: {0}")]
    Expression(String),
    #[error("no address: set spec.address, or the key address in the Secret of spec.secretRef")]
    NoAddress,
    /// The address exceeds the maximum length; the value is its length.
    #[error("the address is longer than {0} bytes")]
    LongAddress(usize),
    #[error("the address is not an http or https URL with a host")]
    BadAddress,
    #[error("the address is refused: {0} (--allow-addresses makes exceptions)")]
    RefusedAddress(Refusal),
    #[error("Secret '{0}' not found in the namespace of the provider")]
    NoSecret(String),
    /// A name in the spec is not one of an object. It is in no request.
    #[error(
        "{field}: {name:?} is not a valid name: use the name of an object, at most 253 letters, digits, '-' and '.'"
    )]
    BadName { field: &'static str, name: String },
    #[error("cannot read Secret '{0}': {1}")]
    UnreadableSecret(String, String),
    #[error("Secret '{secret}', key {key}: {why}")]
    BadSecret {
        secret: String,
        key: &'static str,
        why: &'static str,
    },
    /// The proxy of the field or Secret `from` is invalid.
    #[error("{from}: {why}")]
    BadProxy { from: String, why: InvalidProxy },
    #[error("the proxy is refused: {0} (--allow-addresses makes exceptions)")]
    RefusedProxy(Refusal),
    #[error("no key to sign with: set the key token in the Secret of spec.secretRef")]
    NoToken,
    #[error("{0}")]
    Identity(String),
    /// The token has characters that are invalid in a header.
    #[error("the key token in the Secret of spec.secretRef has characters that no header may have")]
    BadToken,
    /// A setting that the type of the provider needs is missing or invalid.
    #[error("{0}")]
    Config(&'static str),
    /// The event lacks a part that the type of the provider needs.
    #[error("the event cannot be sent: {0}")]
    Event(&'static str),
    /// The response of the provider violates its interface.
    #[error("answered with something else than its interface says")]
    Answer,
    #[error("{0}")]
    Protocol(&'static str),
    /// There is no thread, or the work on it ended early.
    #[error("the controller has no thread for it now")]
    Busy,
    #[error("the event cannot be encoded")]
    Encoding,
    #[error("the host of the address cannot be resolved")]
    Unresolved,
    #[error("the Secret of spec.certSecretRef: {0}")]
    Certificates(&'static str),
    #[error("no answer within {0} s")]
    TimedOut(u64),
    #[error("cannot connect: {0}")]
    Unreachable(&'static str),
    #[error("answered with status {0}")]
    Status(u16),
    /// The provider answered with a redirect, which is never followed.
    #[error("answered with a redirect (status {0}), which is not followed: use the final address")]
    Redirect(u16),
    #[error("dropped: too many notifications wait for this Provider")]
    QueueFull,
    #[error("given up: the event is older than an hour")]
    TooOld,
    /// Slack accepted the request and refused the message.
    #[error("answered that it did not take the message")]
    NotTaken,
}

impl Error {
    /// Returns true if the provider can't be used now, whatever is sent: the same notification may succeed later.
    #[must_use]
    pub(crate) fn is_outage(&self) -> bool {
        match self {
            Self::TimedOut(_) | Self::Unreachable(_) | Self::UnreadableSecret(..) | Self::Busy => true,
            Self::Status(status) => matches!(status, 429 | 500 | 502..=599),
            _ => false,
        }
    }
}

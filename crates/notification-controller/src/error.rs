//! Errors of deliveries. No variant can carry an address, credentials or an answer.

use net::{InvalidProxy, Refusal};

/// The reason why a notification was not delivered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The provider's type has no implementation here.
    #[error("spec.type: {0} is not supported yet")]
    UnsupportedType(String),
    /// The expression for the name of a commit status can't be used.
    #[error("spec.commitStatusExpr: {0}")]
    Expression(String),
    /// Neither the spec nor the Secret has an address.
    #[error("no address: set spec.address, or the key address in the Secret of spec.secretRef")]
    NoAddress,
    /// The address is longer than any that is accepted.
    #[error("the address is longer than {0} bytes")]
    LongAddress(usize),
    /// The address is no URL that can be posted to.
    #[error("the address is not an http or https URL with a host")]
    BadAddress,
    /// The address points where notifications must not go.
    #[error("the address is refused: {0} (--allow-addresses makes exceptions)")]
    RefusedAddress(Refusal),
    /// The Secret is missing.
    #[error("Secret '{0}' not found in the namespace of the provider")]
    NoSecret(String),
    /// The Secret could not be read.
    #[error("cannot read Secret '{0}': {1}")]
    UnreadableSecret(String, String),
    /// A key of the Secret is unusable.
    #[error("Secret '{secret}', key {key}: {why}")]
    BadSecret {
        /// Name of the Secret.
        secret: String,
        /// The key in the Secret.
        key: &'static str,
        /// The reason why it is invalid.
        why: &'static str,
    },
    /// The proxy is no proxy that can be used.
    #[error("{from}: {why}")]
    BadProxy {
        /// The field or Secret that names the proxy.
        from: String,
        /// The reason why it is invalid.
        why: InvalidProxy,
    },
    /// The address of the proxy points where notifications must not go.
    #[error("the proxy is refused: {0} (--allow-addresses makes exceptions)")]
    RefusedProxy(Refusal),
    /// The key for the signature is missing.
    #[error("no key to sign with: set the key token in the Secret of spec.secretRef")]
    NoToken,
    /// The identity of a cloud gets no token.
    #[error("{0}")]
    Identity(String),
    /// The token cannot be sent.
    #[error("the key token in the Secret of spec.secretRef has characters that no header may have")]
    BadToken,
    /// Something that the type of the provider needs is missing or invalid.
    #[error("{0}")]
    Config(&'static str),
    /// The type of the provider needs something that the event does not have.
    #[error("the event cannot be sent: {0}")]
    Event(&'static str),
    /// The answer of the provider is not what its interface says.
    #[error("answered with something else than its interface says")]
    Answer,
    /// The server does not go on in its protocol.
    #[error("{0}")]
    Protocol(&'static str),
    /// The event cannot be encoded.
    #[error("the event cannot be encoded")]
    Encoding,
    /// The host has no address.
    #[error("the host of the address cannot be resolved")]
    Unresolved,
    /// No client can be made of the certificates.
    #[error("the Secret of spec.certSecretRef: {0}")]
    Certificates(&'static str),
    /// The provider did not answer in time.
    #[error("no answer within {0} s")]
    TimedOut(u64),
    /// The connection to the provider failed.
    #[error("cannot connect: {0}")]
    Unreachable(&'static str),
    /// The provider answered with a failure.
    #[error("answered with status {0}")]
    Status(u16),
    /// The provider pointed elsewhere.
    #[error("answered with a redirect (status {0}), which is not followed: use the final address")]
    Redirect(u16),
    /// The notifications that wait for the provider take all the room that it gets.
    #[error("dropped: too many notifications wait for this Provider")]
    NoRoom,
    /// The event was accepted too long ago.
    #[error("given up: the event is older than an hour")]
    TooOld,
    /// Slack took the request and refused the message.
    #[error("answered that it did not take the message")]
    NotTaken,
}

impl Error {
    /// Returns true if the provider can't be used now, whatever is sent: the same notification may succeed later.
    #[must_use]
    pub(crate) fn is_outage(&self) -> bool {
        match self {
            Self::TimedOut(_) | Self::Unreachable(_) | Self::UnreadableSecret(..) => true,
            Self::Status(status) => matches!(status, 429 | 500 | 502..=599),
            _ => false,
        }
    }
}

//! Reasons for which a signature does not count.

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Rejected {
    #[error("the signature is malformed, or of another artifact")]
    Other,
    #[error("none of the keys made the signature")]
    Signature,
    #[error("the signature has no certificate or no entry of a log: it was made by a key")]
    Unproven,
    #[error("the certificate of the signature cannot be read")]
    Certificate,
    #[error(
        "the certificate of the signature is of no authority of the trusted root, or was not valid when the signature was made"
    )]
    Chain,
    #[error("no log of certificates of the trusted root has the certificate of the signature")]
    Unlogged,
    #[error("no log of the trusted root has the signature")]
    Log,
    #[error("the signature has no time: its log promises none, and it has no timestamp of an authority")]
    Timeless,
    #[error("a timestamp of the signature is of no authority of the trusted root, or of another signature")]
    Timestamp,
    #[error("the entry of the log is of another signature")]
    Entry,
    #[error("checking all signatures with all keys takes too long: use fewer keys, or remove signatures")]
    TooMuch,
    #[error("the identity of the signer is none of those that are trusted")]
    Identity,
}

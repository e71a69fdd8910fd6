//! Errors of Git operations.

use std::{fmt, time::Duration};

use net::Need;

/// An error of a Git operation. Messages name the repository without credentials. The program explains how to give a server the
/// credentials it requires ([`Error::need`]).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("url '{url}' cannot be used: {why}")]
    InvalidUrl { url: String, why: String },
    #[error("the CA bundle for '{url}' holds no usable PEM certificate: {why}")]
    InvalidCa { url: String, why: String },
    #[error(
        "tls: failed to find any PEM data in key input: the client certificate for '{url}' needs a certificate and its private key, both as PEM"
    )]
    InvalidIdentity { url: String },
    #[error("ssh: handshake failed with '{url}': {why}")]
    HostKey {
        url: String,
        /// Names the host, and the algorithm and fingerprint of its key.
        why: String,
        need: Option<Need>,
    },
    #[error("{0}")]
    InvalidReference(String),
    #[error("semver parse error: improper constraint: {0}")]
    InvalidRange(String),
    #[error("authentication failed for '{url}': {why}")]
    AuthenticationFailed {
        url: String,
        why: String,
        need: Option<Need>,
    },
    #[error("repository not found at '{url}': check the URL; a private repository also needs credentials")]
    NotFound { url: String },
    #[error("{what} not found in '{url}'{hint}")]
    RefNotFound {
        /// Missing ref or commit, as in `branch 'main'`.
        what: String,
        url: String,
        hint: String,
    },
    /// The commit is not on the branch. The message begins as the original's message.
    #[error(
        "unable to resolve commit object for '{commit}': object not found: it is not on the branch '{branch}' of '{url}'"
    )]
    NotOnBranch {
        commit: String,
        branch: String,
        url: String,
    },
    #[error("no match found for semver: {0}")]
    NoMatch(String),
    #[error("git repository is empty")]
    EmptyRepository { url: String },
    #[error("'{url}' did not finish within the timeout of {after:?}")]
    Timeout { url: String, after: Duration },
    #[error("talking to '{url}' was cancelled")]
    Cancelled { url: String },
    #[error(
        "talking to '{url}' was stopped, because other work needed the memory or the temporary files that it held for long; it will be tried again"
    )]
    Revoked { url: String },
    #[error("tls: no trusted connection to '{url}': {why}: {}", net::tls_problem(.why))]
    Tls { url: String, why: String },
    #[error("network: '{url}': {why}")]
    Network { url: String, why: String },
    #[error("'{url}' answered with HTTP status {status}: {why}")]
    Status {
        url: String,
        status: u16,
        /// Cause and remedy, for users.
        why: String,
    },
    #[error("'{url}' redirects to '{to}', which is not followed: {why}")]
    Redirect { url: String, to: String, why: String },
    #[error("'{url}' does not answer as a Git server: {why}")]
    Protocol { url: String, why: String },
    #[error("the limit of {limit} {what} was reached{of}")]
    Limit {
        what: &'static str,
        limit: u64,
        /// Location, with a leading space; may be empty.
        of: String,
    },
    #[error("{what} of '{url}': {why}")]
    Memory {
        url: String,
        what: &'static str,
        why: limits::ByteBudgetError,
    },
    #[error("the pack of '{url}': {}", space(why))]
    Space {
        url: String,
        /// Its bytes of memory are bytes of temporary files here.
        why: limits::ByteBudgetError,
    },
    /// A name in the repository that no artifact may contain.
    #[error("the repository holds the path {path:?}, which is refused: {why}")]
    RefusedPath { path: String, why: &'static str },
    #[error("object {id}: {why}")]
    Object { id: String, why: String },
    #[error(
        "the ref does not lead to a commit: '{name}' of '{url}' is a {kind}; move it to a commit, or name another one"
    )]
    NotACommit {
        /// Name of the reference, or the given hash.
        name: String,
        url: String,
        /// Kind of the object, as in `blob`.
        kind: &'static str,
    },
    #[error("the push to '{reference}' of '{url}' was rejected: {why}")]
    Rejected {
        reference: String,
        url: String,
        why: String,
    },
    #[error("submodules: {0}")]
    Submodules(String),
    #[error("temporary directory: {0}")]
    Disk(String),
}

fn space(why: &limits::ByteBudgetError) -> String {
    match why {
        limits::ByteBudgetError::TooMuch { limit } => {
            format!(
                "it needs more than {limit} bytes of temporary files: twice its size, beside those of other submodules"
            )
        }
        limits::ByteBudgetError::Busy(time) => {
            format!("other work held the space for temporary files for {time:?}; it will be tried again")
        }
        limits::ByteBudgetError::InUse => {
            "other work holds the space for temporary files; it will be tried again".to_owned()
        }
        limits::ByteBudgetError::Revoked => {
            "other work needed the temporary files that it held for long; it will be tried again".to_owned()
        }
    }
}

impl Error {
    /// Returns true if the call failed by its timeout, its cancellation or revocation, or its tenant's memory and disk: another call may
    /// succeed at the same time.
    #[must_use]
    pub fn is_of_call(&self) -> bool {
        matches!(
            self,
            Self::Timeout { .. }
                | Self::Cancelled { .. }
                | Self::Revoked { .. }
                | Self::Memory { .. }
                | Self::Space { .. }
                | Self::Disk(_)
        )
    }

    /// Returns the credentials that the server requires, if the user can provide them.
    #[must_use]
    pub fn need(&self) -> Option<Need> {
        match self {
            Self::AuthenticationFailed { need, .. } | Self::HostKey { need, .. } => *need,
            Self::InvalidCa { .. } => Some(Need::ValidCaBundle),
            Self::InvalidIdentity { .. } => Some(Need::ValidClientCertificate),
            Self::Tls { why, .. } => Need::of_tls(why),
            Self::Timeout { .. } => Some(Need::LongerTimeout),
            Self::Status { status: 429, .. } => Some(Need::FewerRequests),
            _ => None,
        }
    }
}

pub(crate) fn chain(error: &gix::Error) -> String {
    let mut parts: Vec<String> = Vec::new();
    for source in error.iter_errors() {
        let text = first_line(source);
        if !text.is_empty() && !parts.iter().any(|part| part.contains(&text)) {
            parts.push(text);
        }
    }
    let mut text = parts.join(": ");
    if let Some((cut, _)) = text.char_indices().nth(500) {
        text.truncate(cut);
    }
    api::redact(&text)
}

fn first_line(error: impl fmt::Display) -> String {
    let text = error.to_string();
    text.lines().next().unwrap_or_default().trim().to_owned()
}

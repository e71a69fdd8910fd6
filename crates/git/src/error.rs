//! Errors of Git operations.

use std::{fmt, time::Duration};

use net::Need;

/// Error of a Git operation. Messages name the repository without any credentials. How to give a server what it demands is left to
/// the program ([`Error::need`]).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The URL cannot be used.
    #[error("url '{url}' cannot be used: {why}")]
    InvalidUrl {
        /// The URL without credentials.
        url: String,
        /// Reason why it is invalid.
        why: String,
    },
    /// The given CA certificates cannot be used.
    #[error("the CA bundle for '{url}' holds no usable PEM certificate: {why}")]
    InvalidCa {
        /// The repository.
        url: String,
        /// Reason why they are invalid.
        why: String,
    },
    /// The given client certificate cannot be used.
    #[error(
        "tls: failed to find any PEM data in key input: the client certificate for '{url}' needs a certificate and its private key, both as PEM"
    )]
    InvalidIdentity {
        /// The repository.
        url: String,
    },
    /// The host key of an SSH server is not trusted.
    #[error("ssh: handshake failed with '{url}': {why}")]
    HostKey {
        /// The repository.
        url: String,
        /// Cause, for users. It names the host, and the algorithm and fingerprint of its key.
        why: String,
        /// The demand, if it can be met.
        need: Option<Need>,
    },
    /// The reference cannot be used.
    #[error("{0}")]
    InvalidReference(String),
    /// The semver range cannot be read.
    #[error("semver parse error: improper constraint: {0}")]
    InvalidRange(String),
    /// Credentials are missing or were refused.
    #[error("authentication failed for '{url}': {why}")]
    AuthenticationFailed {
        /// The repository.
        url: String,
        /// Cause, for users.
        why: String,
        /// The demand of the server, if it can be met.
        need: Option<Need>,
    },
    /// There is no such repository.
    #[error("repository not found at '{url}': check the URL; a private repository also needs credentials")]
    NotFound {
        /// The repository.
        url: String,
    },
    /// The repository has no such ref or commit.
    #[error("{what} not found in '{url}'{hint}")]
    RefNotFound {
        /// The missing ref or commit, as in `branch 'main'`.
        what: String,
        /// The repository.
        url: String,
        /// Hint for the user; may be empty.
        hint: String,
    },
    /// The commit is not on the branch that is named with it. The message begins with that of the original.
    #[error(
        "unable to resolve commit object for '{commit}': object not found: it is not on the branch '{branch}' of '{url}'"
    )]
    NotOnBranch {
        /// Hash of the commit.
        commit: String,
        /// The branch.
        branch: String,
        /// The repository.
        url: String,
    },
    /// No tag is in the wanted semver range.
    #[error("no match found for semver: {0}")]
    NoMatch(String),
    /// The repository has no commit at all.
    #[error("git repository is empty")]
    EmptyRepository {
        /// The repository.
        url: String,
    },
    /// The time was over.
    #[error("'{url}' did not finish within the timeout of {after:?}")]
    Timeout {
        /// The repository.
        url: String,
        /// The time given.
        after: Duration,
    },
    /// The caller gave up.
    #[error("talking to '{url}' was cancelled")]
    Cancelled {
        /// The repository.
        url: String,
    },
    /// The server's certificate is not trusted, or TLS failed otherwise.
    #[error("tls: no trusted connection to '{url}': {why}: {}", net::tls_problem(.why))]
    Tls {
        /// The repository.
        url: String,
        /// Error message of TLS.
        why: String,
    },
    /// The server could not be reached, or the connection broke.
    #[error("network: '{url}': {why}")]
    Network {
        /// The repository.
        url: String,
        /// Error message of the network.
        why: String,
    },
    /// The server answered with an unexpected status.
    #[error("'{url}' answered with HTTP status {status}: {why}")]
    Status {
        /// The repository.
        url: String,
        /// The status code.
        status: u16,
        /// Cause and remedy, for users.
        why: String,
    },
    /// A redirect that is not followed.
    #[error("'{url}' redirects to '{to}', which is not followed: {why}")]
    Redirect {
        /// The repository.
        url: String,
        /// The target without credentials.
        to: String,
        /// Reason for the refusal.
        why: String,
    },
    /// The answer is not Git's.
    #[error("'{url}' does not answer as a Git server: {why}")]
    Protocol {
        /// The repository.
        url: String,
        /// Reason why it is invalid.
        why: String,
    },
    /// A limit was reached.
    #[error("the limit of {limit} {what} was reached{of}")]
    Limit {
        /// Unit that is counted.
        what: &'static str,
        /// The limit.
        limit: u64,
        /// Location, with a leading space; may be empty.
        of: String,
    },
    /// The process has no memory for it now, or ever.
    #[error("{what} of '{url}': {why}")]
    Memory {
        /// The repository.
        url: String,
        /// Description of what needs the memory.
        what: &'static str,
        /// The cause.
        why: tree::ByteBudgetError,
    },
    /// There is no space for its temporary files now, or ever.
    #[error("the pack of '{url}': {}", space(why))]
    Space {
        /// The repository.
        url: String,
        /// The cause, where the bytes of memory are those of temporary files.
        why: tree::ByteBudgetError,
    },
    /// A name in the repository that no artifact may hold.
    #[error("the repository holds the path {path:?}, which is refused: {why}")]
    RefusedPath {
        /// The path, made printable.
        path: String,
        /// Reason for the refusal.
        why: &'static str,
    },
    /// An object is missing or damaged.
    #[error("object {id}: {why}")]
    Object {
        /// Its hash.
        id: String,
        /// Description of the problem.
        why: String,
    },
    /// The submodules of the commit can't be fetched.
    #[error("submodules: {0}")]
    Submodules(String),
    /// The temporary directory cannot be used.
    #[error("temporary directory: {0}")]
    Disk(String),
}

fn space(why: &tree::ByteBudgetError) -> String {
    match why {
        tree::ByteBudgetError::TooMuch { limit } => {
            format!(
                "it needs more than {limit} bytes of temporary files: twice its size, beside those of other submodules"
            )
        }
        tree::ByteBudgetError::Busy(time) => {
            format!("other work held the space for temporary files for {time:?}; it will be tried again")
        }
        tree::ByteBudgetError::InUse => {
            "other work holds the space for temporary files; it will be tried again".to_owned()
        }
    }
}

impl Error {
    /// Returns true if the failure is that of the call, of its timeout, its cancellation or the memory and disk of its tenant: another
    /// call may succeed at the same time.
    #[must_use]
    pub fn is_of_call(&self) -> bool {
        matches!(
            self,
            Self::Timeout { .. }
                | Self::Cancelled { .. }
                | Self::Memory { .. }
                | Self::Space { .. }
                | Self::Disk(_)
        )
    }

    /// Returns what the server demands, if the user can give it.
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

/// Joins the messages of an error from gix, outermost first, without repeating any, in at most 500 characters.
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

//! Errors of locating, downloading and unpacking charts.

use std::io;

use net::Need;

/// An error of getting a chart. Messages name addresses without any credentials. How to give a server what it
/// demands is left to the program ([`Error::need`]).
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An address cannot be used.
    #[error("'{url}' cannot be used: {why}")]
    InvalidUrl {
        /// The address without credentials.
        url: String,
        /// The reason it is invalid.
        why: String,
    },
    /// Credentials or certificates cannot be used.
    #[error("{what} cannot be used: {why}")]
    InvalidAccess {
        /// The setting that cannot be used, as in `the credentials`.
        what: &'static str,
        /// The reason it cannot be used.
        why: String,
    },
    /// A range of versions cannot be read.
    #[error("{range:?} is no range of versions: {why}")]
    InvalidRange {
        /// The range.
        range: String,
        /// The message of the version parser.
        why: String,
    },
    /// A redirect that is not followed.
    #[error("'{url}' redirects, which is not followed: {why}")]
    Redirect {
        /// The requested address, without credentials.
        url: String,
        /// The reason the redirect is not followed.
        why: String,
    },
    /// Credentials are missing or were refused.
    #[error("authentication failed for '{url}': {why}")]
    Unauthorized {
        /// The requested address, without credentials.
        url: String,
        /// The reason.
        why: &'static str,
        /// The demand of the server, if it can be met.
        need: Option<Need>,
    },
    /// There is nothing of that name.
    #[error("'{url}' was not found: check the address; private ones also need credentials")]
    NotFound {
        /// The requested address, without credentials.
        url: String,
    },
    /// The server answered with an unexpected status.
    #[error("'{url}' answered with HTTP status {status}")]
    Status {
        /// The requested address, without credentials.
        url: String,
        /// The status code.
        status: u16,
    },
    /// The server's certificate is not trusted, or TLS failed otherwise.
    #[error("tls: no trusted connection to '{url}': {why}: {}", net::tls_problem(.why))]
    Tls {
        /// The requested address, without credentials.
        url: String,
        /// The message of the TLS library.
        why: String,
    },
    /// The server could not be reached, or the connection broke.
    #[error("network: '{url}': {why}")]
    Network {
        /// The requested address, without credentials.
        url: String,
        /// A description of the network failure.
        why: String,
    },
    /// A limit was reached.
    #[error("'{url}' is larger than the limit of {limit} {what}")]
    TooLarge {
        /// The address of the data, without credentials.
        url: String,
        /// The counted unit, as in `bytes` or `tags`.
        what: &'static str,
        /// The limit.
        limit: u64,
    },
    /// The answer is not what it has to be.
    #[error("'{url}' does not answer as it has to: {why}")]
    Malformed {
        /// The requested address, without credentials.
        url: String,
        /// The reason the answer is invalid.
        why: String,
    },
    /// The index has no such chart.
    #[error("chart \"{chart}\" not found in {url} repository")]
    NoChart {
        /// The chart.
        chart: String,
        /// The repository.
        url: String,
    },
    /// The chart has no version that fits.
    #[error("chart \"{chart}\" version \"{range}\" not found in {url} repository")]
    NoVersion {
        /// The chart.
        chart: String,
        /// The range.
        range: String,
        /// The repository.
        url: String,
    },
    /// The received data has another digest than expected.
    #[error("'{url}' has digest {found}, but {wanted} is expected")]
    DigestMismatch {
        /// The requested address, without credentials.
        url: String,
        /// The digest that was promised.
        wanted: String,
        /// The digest of what came.
        found: String,
    },
    /// The archive is no chart.
    #[error("'{url}' is no chart: {source}")]
    Chart {
        /// The address of the archive, without credentials.
        url: String,
        /// The error of unpacking the archive.
        source: helm::Error,
    },
    /// A file or directory cannot be used.
    #[error("failed to {what} '{path}': {source}")]
    Disk {
        /// The attempted operation, as in `write`.
        what: &'static str,
        /// The path.
        path: String,
        /// The error of the operating system.
        source: io::Error,
    },
}

impl Error {
    /// Returns what the server demands, if the user can give it.
    #[must_use]
    pub fn need(&self) -> Option<Need> {
        match self {
            Self::Unauthorized { need, .. } => *need,
            Self::Tls { why, .. } => Need::of_tls(why),
            Self::Status { status: 429, .. } => Some(Need::FewerRequests),
            _ => None,
        }
    }

    /// The error of a request to `url`, which is shown without credentials.
    pub(crate) fn of_request(url: &str, error: net::Error) -> Self {
        let url = url.to_owned();
        match error {
            net::Error::Refused(why) => Self::InvalidUrl {
                url,
                why: why.to_string(),
            },
            net::Error::TooLarge { limit } => Self::TooLarge {
                url,
                what: "bytes",
                limit,
            },
            error => match error.tls_cause() {
                Some(why) => Self::Tls { url, why },
                None if error.is_timeout() => Self::Network {
                    url,
                    why: "no answer in time".to_owned(),
                },
                None => Self::Network {
                    url,
                    why: error.to_string(),
                },
            },
        }
    }

    pub(crate) fn malformed(url: impl Into<String>, why: impl Into<String>) -> Self {
        Self::Malformed {
            url: url.into(),
            why: why.into(),
        }
    }

    pub(crate) fn disk(what: &'static str, path: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Disk { what, path, source }
    }
}

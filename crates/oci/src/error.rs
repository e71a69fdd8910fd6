//! Errors of locating, downloading and unpacking charts.

use std::io;

use net::Need;

/// An error of getting a chart. Messages name addresses without credentials. The program explains how to give a server the
/// credentials it requires ([`Error::need`]).
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("'{url}' cannot be used: {why}")]
    InvalidUrl { url: String, why: String },
    #[error("{what} cannot be used: {why}")]
    InvalidAccess { what: &'static str, why: String },
    #[error("{range:?} is no range of versions: {why}")]
    InvalidRange { range: String, why: String },
    #[error("'{url}' redirects, which is not followed: {why}")]
    Redirect { url: String, why: String },
    #[error("authentication failed for '{url}': {why}")]
    Unauthorized {
        url: String,
        why: &'static str,
        need: Option<Need>,
    },
    #[error("'{url}' was not found: check the address; private ones also need credentials")]
    NotFound { url: String },
    #[error("'{url}' answered with HTTP status {status}")]
    Status { url: String, status: u16 },
    #[error("tls: no trusted connection to '{url}': {why}: {}", net::tls_problem(.why))]
    Tls { url: String, why: String },
    #[error("network: '{url}': {why}")]
    Network { url: String, why: String },
    #[error("'{url}' is larger than the limit of {limit} {what}")]
    TooLarge {
        url: String,
        what: &'static str,
        limit: u64,
    },
    #[error("'{url}' does not answer as it has to: {why}")]
    Malformed { url: String, why: String },
    #[error("chart \"{chart}\" not found in {url} repository")]
    NoChart { chart: String, url: String },
    #[error("chart \"{chart}\" version \"{range}\" not found in {url} repository")]
    NoVersion {
        chart: String,
        range: String,
        url: String,
    },
    #[error("'{url}' has digest {found}, but {wanted} is expected")]
    DigestMismatch {
        url: String,
        wanted: String,
        found: String,
    },
    #[error("'{url}' is no chart: {source}")]
    Chart { url: String, source: helm::Error },
    #[error("failed to {what} '{path}': {source}")]
    Disk {
        what: &'static str,
        path: String,
        source: io::Error,
    },
}

impl Error {
    /// Returns the credentials that the server requires, if the user can provide them.
    #[must_use]
    pub fn need(&self) -> Option<Need> {
        match self {
            Self::Unauthorized { need, .. } => *need,
            Self::Tls { why, .. } => Need::of_tls(why),
            Self::Status { status: 429, .. } => Some(Need::FewerRequests),
            _ => None,
        }
    }

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
                    why: match error.is_connect() {
                        true => "no connection in time".to_owned(),
                        false => "no answer in time".to_owned(),
                    },
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

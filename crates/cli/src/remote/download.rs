//! Downloads files by their URLs.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use net::{Resolver, is_refused};
use reqwest::{
    Client, ClientBuilder, Url,
    redirect::{Attempt, Policy},
};

/// Connect and read timeout; the default timeout of kustomize for remote repositories.
const READ_TIMEOUT: Duration = Duration::from_secs(27);

/// Timeout for a whole file.
const TIMEOUT: Duration = Duration::from_secs(5 * 60);

/// Maximum size of a downloaded file, in bytes.
const MAX_BYTES: u64 = 64 << 20;

/// Maximum number of redirects.
const MAX_REDIRECTS: usize = 10;

const LINK_LOCAL: &str = "link-local addresses are not allowed";

/// Failure to download a file.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum DownloadError {
    /// The URL can't be parsed.
    #[error("{0}")]
    InvalidUrl(String),
    /// The URL leads to a link-local address.
    #[error("{}", LINK_LOCAL)]
    LinkLocal,
    /// The request failed. The message doesn't contain the URL.
    #[error("{0}")]
    Request(String),
    /// The server responded with an error status.
    #[error("HTTP Error: status code {code} ({reason})")]
    Status { code: u16, reason: &'static str },
    /// The file is too large.
    #[error("the file is larger than the limit of {0} bytes")]
    TooLarge(u64),
}

/// Downloads files.
pub(super) struct FileDownloader {
    client: Client,
}

impl FileDownloader {
    /// Creates a client. It doesn't connect yet.
    pub(super) fn new() -> Result<Self, DownloadError> {
        // Without CA certificates on the system, plain http still works.
        let client = builder()
            .build()
            .or_else(|_| builder().tls_certs_only([]).build())
            .map_err(|error| request_error(&error))?;
        Ok(Self { client })
    }

    /// Downloads a file of at most `limit` bytes.
    pub(super) async fn get(&self, url: &str, limit: u64) -> Result<Bytes, DownloadError> {
        let url = Url::parse(url).map_err(|error| DownloadError::InvalidUrl(error.to_string()))?;
        if is_refused(&url) {
            return Err(DownloadError::LinkLocal);
        }
        let sent = self.client.get(url).send().await;
        let mut response = sent.map_err(|error| request_error(&error))?;
        let status = response.status();
        if !status.is_success() {
            return Err(DownloadError::Status {
                code: status.as_u16(),
                reason: status.canonical_reason().unwrap_or_default(),
            });
        }
        let limit = limit.min(MAX_BYTES);
        let mut content = BytesMut::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| request_error(&error))? {
            content.extend_from_slice(&chunk);
            if content.len() as u64 > limit {
                return Err(DownloadError::TooLarge(limit));
            }
        }
        Ok(content.freeze())
    }
}

fn builder() -> ClientBuilder {
    Client::builder()
        .user_agent(concat!("weir/", env!("CARGO_PKG_VERSION")))
        .redirect(Policy::custom(follow))
        .connect_timeout(READ_TIMEOUT)
        .read_timeout(READ_TIMEOUT)
        .timeout(TIMEOUT)
        .dns_resolver(Resolver)
}

fn follow(attempt: Attempt<'_>) -> reqwest::redirect::Action {
    if attempt.previous().len() > MAX_REDIRECTS {
        attempt.error("too many redirects")
    } else if is_refused(attempt.url()) {
        attempt.error(LINK_LOCAL)
    } else {
        attempt.follow()
    }
}

/// Returns the innermost cause of an error, without the URL.
fn request_error(error: &reqwest::Error) -> DownloadError {
    if error.is_timeout() {
        return DownloadError::Request("timeout".to_owned());
    }
    DownloadError::Request(net::innermost(error))
}

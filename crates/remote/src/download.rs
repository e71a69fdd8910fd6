//! Downloads files by their URLs.

use std::time::Duration;

use bytes::Bytes;
use net::{AddressPolicy, Client, ClientOptions, Redirects, Refusal, Timeouts, read_body};
use reqwest::{Method, Request, Url};

/// Connect and read timeout; the default timeout of kustomize for remote repositories.
const READ_TIMEOUT: Duration = Duration::from_secs(27);

const TIMEOUT: Duration = Duration::from_secs(5 * 60);

const MAX_BYTES: u64 = 64 << 20;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DownloadError {
    #[error("{0}")]
    InvalidUrl(String),
    /// The address policy refuses the URL, for example because it is a link-local address.
    #[error("{0}")]
    Refused(Refusal),
    /// The request failed. The message doesn't contain the URL.
    #[error("{0}")]
    Request(String),
    #[error("HTTP Error: status code {code} ({reason})")]
    Status { code: u16, reason: &'static str },
    #[error("the file is larger than the limit of {0} bytes")]
    TooLarge(u64),
}

pub(crate) struct FileDownloader {
    client: Client,
}

impl FileDownloader {
    pub(crate) fn new(addresses: AddressPolicy) -> Result<Self, DownloadError> {
        let options = ClientOptions {
            timeouts: Timeouts {
                connect: READ_TIMEOUT,
                read: Some(READ_TIMEOUT),
                total: Some(TIMEOUT),
            },
            // As kustomize does.
            redirects: Redirects::Follow { to_http: true },
            ..ClientOptions::new(addresses)
        };
        let client = options.build()?;
        Ok(Self { client })
    }

    pub(crate) async fn get(&self, url: &str, limit: u64) -> Result<Bytes, DownloadError> {
        let url = Url::parse(url).map_err(|error| DownloadError::InvalidUrl(error.to_string()))?;
        let mut response = self.client.send(Request::new(Method::GET, url)).await?;
        let status = response.status();
        if !status.is_success() {
            return Err(DownloadError::Status {
                code: status.as_u16(),
                reason: status.canonical_reason().unwrap_or_default(),
            });
        }
        let limit = limit.min(MAX_BYTES);
        Ok(read_body(&mut response, limit).await?.into())
    }
}

impl From<net::Error> for DownloadError {
    fn from(error: net::Error) -> Self {
        match error {
            net::Error::Refused(why) => Self::Refused(why),
            net::Error::TooLarge { limit } => Self::TooLarge(limit),
            error if error.is_timeout() => Self::Request("timeout".to_owned()),
            error => Self::Request(error.to_string()),
        }
    }
}

//! Requests for files of a source's storage.

use std::{fmt, sync::Arc, time::Duration};

use api::SafeUrl;
use net::{AddressPolicy, ClientOptions, Timeouts, TokenFile};
use reqwest::{Method, Request, Response, header::AUTHORIZATION};
use url::Url;

use crate::Error;

const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// A token, and the servers that get it.
#[derive(Clone)]
pub struct StorageToken {
    pub file: TokenFile,
    /// Returns true for URLs of the server that the token is for. Others never see it.
    pub is_for: Arc<dyn Fn(&Url) -> bool + Send + Sync>,
}

impl fmt::Debug for StorageToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StorageToken")
            .field("file", &self.file)
            .finish_non_exhaustive()
    }
}

#[derive(Debug)]
pub(super) struct StorageClient {
    client: net::Client,
    /// Host that replaces the one in URLs, for processes outside of the cluster.
    host: Option<String>,
    /// Host for URLs of a source-watcher, instead of `host`.
    watcher_host: Option<String>,
    token: Option<StorageToken>,
}

/// Returns true for the URL of an artifact that a source-watcher serves, by the name of its Service.
#[must_use]
pub fn is_of_watcher(url: &Url) -> bool {
    url.host_str()
        .is_some_and(|host| host.starts_with("source-watcher"))
}

impl StorageClient {
    pub(super) fn new(host: Option<String>, addresses: AddressPolicy) -> Result<Self, Error> {
        let options = ClientOptions {
            timeouts: Timeouts {
                connect: Duration::from_secs(10),
                read: Some(READ_TIMEOUT),
                total: None,
            },
            ..ClientOptions::new(addresses)
        };
        let client = options.build().map_err(|error| Error::Download {
            url: "any".to_owned(),
            why: error.to_string(),
        });
        Ok(Self {
            client: client?,
            host: host.filter(|host| !host.is_empty()),
            watcher_host: None,
            token: None,
        })
    }

    pub(super) fn set_watcher_host(&mut self, host: Option<String>) {
        self.watcher_host = host.filter(|host| !host.is_empty());
    }

    pub(super) fn set_token(&mut self, token: Option<StorageToken>) {
        self.token = token;
    }

    /// Returns the token for a URL, if its server gets one.
    fn token(&self, url: &SafeUrl) -> Option<&StorageToken> {
        let token = self.token.as_ref();
        token.filter(|token| (token.is_for)(url.expose()))
    }

    pub(super) fn has_token(&self, url: &SafeUrl) -> bool {
        self.token(url).is_some()
    }

    pub(super) async fn request(&self, url: &SafeUrl) -> Result<Request, Error> {
        let mut request = Request::new(Method::GET, url.expose().clone());
        if let Some(token) = self.token(url) {
            let value = token
                .file
                .authorization()
                .await
                .map_err(|error| Error::Download {
                    url: url.to_string(),
                    why: error.to_string(),
                })?;
            request.headers_mut().insert(AUTHORIZATION, value);
        }
        Ok(request)
    }

    pub(super) async fn send(&self, request: Request) -> Result<Response, net::Error> {
        self.client.send(request).await
    }

    pub(super) fn url(&self, url: &str) -> Result<SafeUrl, Error> {
        let invalid = |why: String| Error::Download {
            url: api::redact(url),
            why,
        };
        let mut parsed = SafeUrl::parse(url)
            .map_err(|error| invalid(error.to_string()))?
            .into_inner();
        if !matches!(parsed.scheme(), "http" | "https") {
            return Err(invalid("it is no http URL".to_owned()));
        }
        let watcher = self.watcher_host.as_ref().filter(|_| is_of_watcher(&parsed));
        if let Some(host) = watcher.or(self.host.as_ref()) {
            let failed = |()| invalid(format!("{host:?} cannot replace its host"));
            let (name, port) = match host.rsplit_once(':') {
                Some((name, port)) if !port.ends_with(']') => {
                    (name, Some(port.parse::<u16>().map_err(|_| failed(()))?))
                }
                _ => (host.as_str(), None),
            };
            parsed
                .set_host(Some(name))
                .map_err(|error| invalid(error.to_string()))?;
            parsed.set_port(port).map_err(failed)?;
        }
        Ok(SafeUrl::from(parsed))
    }
}

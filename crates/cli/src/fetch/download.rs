//! Files by their URLs.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use net::{Resolver, is_refused};
use reqwest::{
    Client, ClientBuilder, Url,
    redirect::{Attempt, Policy},
};

/// How long a server may be silent: as long as for repositories whose address doesn't say.
const SILENCE: Duration = Duration::from_secs(27);

/// How long a whole file may take.
const TIMEOUT: Duration = Duration::from_secs(5 * 60);

/// Bytes of a file: what is read from a disk may be larger.
const MAX_BYTES: u64 = 64 << 20;

/// How many redirects are followed.
const MAX_REDIRECTS: usize = 10;

const LINK_LOCAL: &str = "link-local addresses are not allowed";

/// Downloads files.
pub(super) struct Downloads {
    client: Client,
}

impl Downloads {
    /// A client that has connected to nobody.
    pub(super) fn new() -> Result<Self, String> {
        // A system without any CA certificates can still use plain http.
        let client = builder()
            .build()
            .or_else(|_| builder().tls_certs_only([]).build())
            .map_err(|error| words(&error))?;
        Ok(Self { client })
    }

    /// The content of the file at a URL.
    pub(super) async fn get(&self, url: &str, limit: u64) -> Result<Bytes, String> {
        let url = Url::parse(url).map_err(|error| error.to_string())?;
        if is_refused(&url) {
            return Err(LINK_LOCAL.to_owned());
        }
        let sent = self.client.get(url).send().await;
        let mut response = sent.map_err(|error| words(&error))?;
        let status = response.status();
        if !status.is_success() {
            let text = status.canonical_reason().unwrap_or_default();
            return Err(format!("HTTP Error: status code {} ({text})", status.as_u16()));
        }
        let limit = limit.min(MAX_BYTES);
        let mut content = BytesMut::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| words(&error))? {
            content.extend_from_slice(&chunk);
            if content.len() as u64 > limit {
                return Err(format!("the file is larger than the limit of {limit} bytes"));
            }
        }
        Ok(content.freeze())
    }
}

fn builder() -> ClientBuilder {
    Client::builder()
        .user_agent(concat!("weir/", env!("CARGO_PKG_VERSION")))
        .redirect(Policy::custom(follow))
        .connect_timeout(SILENCE)
        .read_timeout(SILENCE)
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

/// What went wrong, innermost cause, without the URL.
fn words(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "no answer in time".to_owned();
    }
    net::innermost(error)
}

//! A request of Git, before it is sent.

use reqwest::{
    Method,
    header::{AUTHORIZATION, HeaderMap},
};
use url::Url;

use crate::Remote;

#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) post: bool,
    pub(crate) url: String,
    pub(crate) base_len: usize,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Request {
    pub(crate) fn tail(&self) -> &str {
        self.url.get(self.base_len..).unwrap_or_default()
    }

    /// Returns the request to a URL, with the repository's credentials if they may be sent there.
    pub(crate) fn to(&self, url: &Url, remote: &Remote) -> reqwest::Request {
        let method = if self.post { Method::POST } else { Method::GET };
        let mut sent = reqwest::Request::new(method, url.clone());
        *sent.headers_mut() = self.headers.clone();
        if let Some(value) = remote.authorization_for(url) {
            sent.headers_mut().insert(AUTHORIZATION, value);
        }
        if self.post {
            *sent.body_mut() = Some(self.body.clone().into());
        }
        sent
    }
}

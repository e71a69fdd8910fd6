//! The storage services and token services of clouds, as far as reading buckets needs them. They check each request.

mod azure;
mod gcs;
mod large;
mod sts;

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use anyhow::Result;
use axum::{
    Router,
    body::to_bytes,
    extract::{Request, State},
    http::{StatusCode, header},
    response::{IntoResponse as _, Response},
};
use parking_lot::Mutex;

use crate::{http::Server, tls::Authority};

pub use azure::{ACCOUNT, ACCOUNT_KEY, BLOBS, CLIENT_ID, CLIENT_SECRET, SAS, TENANT};
pub use gcs::GOOGLE;
pub use large::LargeBucket;
pub use sts::{LDAP_PASSWORD, LDAP_USER};

/// Objects on a page of a listing, however many a client wants.
const PAGE: usize = 2;

#[derive(Debug, Clone)]
struct Stored {
    content: Vec<u8>,
    generation: u64,
}

#[derive(Debug, Default)]
struct Inner {
    buckets: Mutex<BTreeMap<String, BTreeMap<String, Stored>>>,
    generation: Mutex<u64>,
    requests: Mutex<Vec<String>>,
    /// Tokens of other token services that may read.
    trusted: Mutex<Vec<String>>,
}

impl Inner {
    /// Returns true if a request has this token, or one that is trusted.
    fn knows(&self, asked: &Asked, own: &str) -> bool {
        let token = asked.header(header::AUTHORIZATION).strip_prefix("Bearer ");
        token.is_some_and(|token| token == own || self.trusted.lock().iter().any(|known| known == token))
    }
}

/// Google Cloud Storage, Azure Blob Storage and their token services, and the token service of an S3-compatible server, on one port.
#[derive(Debug)]
pub struct CloudStorage {
    inner: Arc<Inner>,
    server: Server,
}

struct Asked {
    method: String,
    /// Path, decoded.
    path: String,
    /// Path as it was sent.
    raw_path: String,
    query: HashMap<String, String>,
    headers: axum::http::HeaderMap,
    form: HashMap<String, String>,
}

impl Asked {
    fn header(&self, name: impl header::AsHeaderName) -> &str {
        let value = self.headers.get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default()
    }

    fn query(&self, name: &str) -> &str {
        self.query.get(name).map_or("", String::as_str)
    }

    fn form(&self, name: &str) -> &str {
        self.form.get(name).map_or("", String::as_str)
    }
}

impl CloudStorage {
    pub fn start() -> Result<Self> {
        Self::start_with(None)
    }

    /// Starts the services by TLS with the certificate of an authority, which may be for [`GOOGLE`] and [`BLOBS`].
    pub fn start_tls(authority: Authority) -> Result<Self> {
        Self::start_with(Some(authority))
    }

    fn start_with(authority: Option<Authority>) -> Result<Self> {
        let inner = Arc::<Inner>::default();
        let router = Router::new().fallback(answer).with_state(Arc::clone(&inner));
        let server = Server::start(router, authority)?;
        Ok(Self { inner, server })
    }

    #[must_use]
    pub fn ca_pem(&self) -> &str {
        self.server.ca_pem().unwrap_or_default()
    }

    /// Lets a token of another token service read all buckets.
    pub fn trust(&self, token: &str) {
        self.inner.trusted.lock().push(token.to_owned());
    }

    #[must_use]
    pub fn host(&self) -> String {
        self.server.host()
    }

    /// Returns the URL of Azure's storage account.
    #[must_use]
    pub fn azure(&self) -> String {
        format!("{}/{ACCOUNT}", self.server.origin())
    }

    /// Returns the URL of Azure's token service.
    #[must_use]
    pub fn authority(&self) -> String {
        format!("{}/entra", self.server.origin())
    }

    /// Returns the URL of the token service of an S3-compatible server.
    #[must_use]
    pub fn sts(&self) -> String {
        format!("{}/sts", self.server.origin())
    }

    /// Returns the key of a service account of Google Cloud, as JSON.
    #[must_use]
    pub fn service_account(&self) -> String {
        gcs::service_account(&self.server.origin())
    }

    /// Creates a bucket with these objects, or adds them to it.
    pub fn put(&self, bucket: &str, objects: &[(&str, &str)]) {
        let mut generation = self.inner.generation.lock();
        let mut buckets = self.inner.buckets.lock();
        let found = buckets.entry(bucket.to_owned()).or_default();
        for (key, content) in objects {
            *generation += 1;
            let stored = Stored {
                content: content.as_bytes().to_vec(),
                generation: *generation,
            };
            found.insert((*key).to_owned(), stored);
        }
    }

    /// Returns method and path of the requests so far.
    #[must_use]
    pub fn requests(&self) -> Vec<String> {
        self.inner.requests.lock().clone()
    }
}

async fn answer(State(inner): State<Arc<Inner>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, 1 << 20).await.unwrap_or_default();
    let raw_path = parts.uri.path().to_owned();
    // The account is the first part of the path, or of the host.
    let account = match parts.headers.get(header::HOST) {
        Some(host) if host == BLOBS => format!("/{ACCOUNT}"),
        _ => String::new(),
    };
    let asked = Asked {
        method: parts.method.to_string(),
        path: format!("{account}{}", decoded(&raw_path)),
        query: pairs(parts.uri.query().unwrap_or_default()),
        headers: parts.headers,
        form: pairs(&String::from_utf8_lossy(&body)),
        raw_path,
    };
    inner
        .requests
        .lock()
        .push(format!("{} {}", asked.method, asked.path));
    match asked.path.as_str() {
        "/sts" => sts::answer(&asked),
        "/token" => gcs::token(&asked),
        path if path.starts_with("/entra/") => azure::token(&asked),
        path if path.starts_with("/storage/v1/b/") => gcs::answer(&inner, &asked),
        path if path.starts_with(&format!("/{ACCOUNT}/")) => azure::answer(&inner, &asked),
        _ => (StatusCode::NOT_FOUND, "no such service").into_response(),
    }
}

/// Returns a page of the objects with a prefix, and the token of the next page.
fn page(
    objects: &BTreeMap<String, Stored>,
    prefix: &str,
    token: &str,
) -> (Vec<(String, Stored)>, Option<String>) {
    let mut found = objects
        .iter()
        .filter(|(key, _)| key.starts_with(prefix) && key.as_str() >= token)
        .map(|(key, stored)| (key.clone(), stored.clone()));
    let page: Vec<_> = found.by_ref().take(PAGE).collect();
    (page, found.next().map(|(key, _)| key))
}

/// The fields of a form or a query, decoded.
pub(crate) type Pairs = HashMap<String, String>;

pub(crate) fn pairs(text: &str) -> Pairs {
    let pairs = text.split('&').filter_map(|pair| pair.split_once('='));
    pairs
        .map(|(name, value)| (decoded(name), decoded(&value.replace('+', " "))))
        .collect()
}

/// Decodes `%XX`; invalid sequences stay as they are.
fn decoded(text: &str) -> String {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('%') {
        out.extend(before.as_bytes());
        let digits = behind
            .get(..2)
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match digits {
            Some(byte) => {
                out.push(byte);
                rest = behind.get(2..).unwrap_or_default();
            }
            None => {
                out.push(b'%');
                rest = behind;
            }
        }
    }
    out.extend(rest.as_bytes());
    String::from_utf8_lossy(&out).into_owned()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('"', "&quot;")
}

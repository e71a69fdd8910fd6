//! A web server with pages that tests choose, including faulty ones.

use std::{collections::BTreeMap, io, sync::Arc};

use anyhow::Result;
use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    response::{IntoResponse as _, Response},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use futures::{StreamExt as _, stream};
use http::{StatusCode, header};
use parking_lot::Mutex;

use crate::{http::Server, tls::Authority};

#[derive(Debug, Clone)]
pub enum Page {
    Content(Bytes),
    /// Bytes with a tag; they are not sent to those who know the tag.
    Tagged(Bytes, String),
    /// Bytes with `Content-Encoding: gzip`, already packed.
    Packed(Bytes),
    Redirect(String),
    /// Bytes, after which the connection breaks.
    Cut(Bytes),
    /// Bytes, after which the server is silent.
    Stalled(Bytes),
    /// The same bytes, repeated without end.
    Endless(Bytes),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    pub path: String,
    pub authorization: Option<String>,
}

#[derive(Debug, Default)]
struct Inner {
    pages: Mutex<BTreeMap<String, Page>>,
    login: Mutex<Option<String>>,
    asked: Mutex<Vec<Asked>>,
}

#[derive(Debug)]
pub struct WebServer {
    inner: Arc<Inner>,
    server: Server,
}

impl WebServer {
    pub fn start() -> Result<Self> {
        Self::start_with(None)
    }

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
    pub fn url(&self, path: &str) -> String {
        format!("{}/{}", self.server.origin(), path.trim_start_matches('/'))
    }

    /// Returns the CA certificate in PEM format; empty without TLS.
    #[must_use]
    pub fn ca_pem(&self) -> &str {
        self.server.ca_pem().unwrap_or_default()
    }

    pub fn page(&self, path: &str, page: Page) {
        self.inner.pages.lock().insert(path.to_owned(), page);
    }

    /// Requires basic authentication from now on.
    pub fn login(&self, user: &str, password: &str) {
        let expected = format!("Basic {}", STANDARD.encode(format!("{user}:{password}")));
        *self.inner.login.lock() = Some(expected);
    }

    #[must_use]
    pub fn asked(&self) -> Vec<Asked> {
        self.inner.asked.lock().clone()
    }
}

async fn answer(State(inner): State<Arc<Inner>>, request: Request) -> Response {
    let authorization = request.headers().get(header::AUTHORIZATION);
    let authorization = authorization
        .and_then(|value| value.to_str().ok())
        .map(str::to_owned);
    let path = request.uri().path_and_query().map(ToString::to_string);
    inner.asked.lock().push(Asked {
        path: path.unwrap_or_default(),
        authorization: authorization.clone(),
    });
    let login = inner.login.lock().clone();
    if login.is_some() && login != authorization {
        return (
            StatusCode::UNAUTHORIZED,
            [(header::WWW_AUTHENTICATE, "Basic realm=\"test\"")],
        )
            .into_response();
    }
    let page = inner.pages.lock().get(request.uri().path()).cloned();
    match page {
        None => StatusCode::NOT_FOUND.into_response(),
        Some(Page::Content(bytes)) => bytes.into_response(),
        Some(Page::Tagged(bytes, tag)) => {
            let known = request.headers().get(header::IF_NONE_MATCH);
            match known.is_some_and(|known| known.as_bytes() == tag.as_bytes()) {
                true => StatusCode::NOT_MODIFIED.into_response(),
                false => ([(header::ETAG, tag)], bytes).into_response(),
            }
        }
        Some(Page::Packed(bytes)) => ([(header::CONTENT_ENCODING, "gzip")], bytes).into_response(),
        Some(Page::Redirect(to)) => (StatusCode::FOUND, [(header::LOCATION, to)]).into_response(),
        Some(Page::Cut(bytes)) => {
            let rest = stream::once(async { Err(io::Error::other("cut")) });
            Response::new(Body::from_stream(stream::once(async { Ok(bytes) }).chain(rest)))
        }
        Some(Page::Stalled(bytes)) => {
            let rest = stream::pending::<Result<Bytes, io::Error>>();
            Response::new(Body::from_stream(stream::once(async { Ok(bytes) }).chain(rest)))
        }
        Some(Page::Endless(bytes)) => {
            let again = stream::repeat(bytes).map(Ok::<_, io::Error>);
            Response::new(Body::from_stream(again))
        }
    }
}

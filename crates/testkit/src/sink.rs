//! A server that records requests, for webhooks and chat messages.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use anyhow::{Context as _, Result, bail};
use axum::{
    Router,
    extract::{Request, State},
    response::{IntoResponse as _, Response},
};
use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::{http::Server, tls::Authority};

const MAX_BODY: usize = 16 * 1024 * 1024;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// This status, with this text as its body.
    Status(u16, String),
    /// This status, with a `Retry-After` header of this number of seconds.
    Busy(u16, u32),
    Slow(Duration, u16),
    Hang,
    Redirect(String),
}

impl Answer {
    #[must_use]
    pub fn ok() -> Self {
        Self::Status(200, String::new())
    }
}

#[derive(Debug, Clone)]
pub struct Received {
    pub method: String,
    /// Path and query of the request.
    pub path: String,
    pub headers: HeaderMap,
    pub body: Bytes,
    pub at: SystemTime,
    pub answer: Answer,
}

impl Received {
    /// Returns the body as JSON, or null if it is not JSON.
    #[must_use]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// Returns a header as a string, empty if it is absent.
    #[must_use]
    pub fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    }
}

/// Requests that wait for their response.
#[derive(Debug, Default)]
struct Waiting {
    now: usize,
    most: usize,
    /// Number of changes of the response: requests before a change aren't counted any more.
    changes: usize,
}

/// A request that waits for its response, until this is dropped.
struct InProgress {
    inner: Arc<Inner>,
    changes: usize,
}

impl InProgress {
    fn new(inner: &Arc<Inner>) -> Self {
        let mut waiting = inner.waiting.lock();
        waiting.now += 1;
        waiting.most = waiting.most.max(waiting.now);
        Self {
            inner: Arc::clone(inner),
            changes: waiting.changes,
        }
    }
}

impl Drop for InProgress {
    fn drop(&mut self) {
        let mut waiting = self.inner.waiting.lock();
        if waiting.changes == self.changes {
            waiting.now -= 1;
        }
    }
}

#[derive(Debug)]
struct Inner {
    answer: Mutex<Answer>,
    waiting: Mutex<Waiting>,
    received: watch::Sender<Vec<Received>>,
}

#[derive(Debug)]
pub struct WebhookSink {
    inner: Arc<Inner>,
    server: Server,
}

impl WebhookSink {
    /// Starts a sink that answers 200 to everything.
    pub fn start() -> Result<Self> {
        Self::start_with(None)
    }

    /// Starts a sink that speaks HTTPS, with a certificate of [`WebhookSink::ca_pem`].
    pub fn start_tls() -> Result<Self> {
        Self::start_tls_for(&["127.0.0.1", "localhost"])
    }

    /// Starts a sink that speaks HTTPS under these names, which a proxy may lead to [`WebhookSink::address`].
    pub fn start_tls_for(names: &[&str]) -> Result<Self> {
        Self::start_with(Some(Authority::new(names)?))
    }

    /// Starts a sink that speaks HTTPS with clients that show a certificate of another authority alone.
    pub fn start_tls_asking_for(clients: &Authority) -> Result<Self> {
        let authority = Authority::new(&["127.0.0.1", "localhost"])?;
        Self::start_with(Some(authority.asking_for(clients)))
    }

    #[must_use]
    pub fn address(&self) -> String {
        let origin = self.server.origin();
        let (_, address) = origin.split_once("://").unwrap_or_default();
        address.to_owned()
    }

    fn start_with(authority: Option<Authority>) -> Result<Self> {
        let inner = Inner {
            answer: Mutex::new(Answer::ok()),
            waiting: Mutex::default(),
            received: watch::channel(Vec::new()).0,
        };
        let inner = Arc::new(inner);
        let router = Router::new().fallback(take).with_state(Arc::clone(&inner));
        Ok(Self {
            inner,
            server: Server::start(router, authority)?,
        })
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

    /// Sets the response to later requests. Requests that hang go on hanging.
    pub fn answer(&self, answer: Answer) {
        let mut current = self.inner.answer.lock();
        *current = answer;
        let mut waiting = self.inner.waiting.lock();
        *waiting = Waiting {
            changes: waiting.changes + 1,
            ..Waiting::default()
        };
    }

    /// Returns the largest number of requests that waited for their response at the same time, among those since the last
    /// [`WebhookSink::answer`].
    #[must_use]
    pub fn most_at_once(&self) -> usize {
        self.inner.waiting.lock().most
    }

    #[must_use]
    pub fn received(&self) -> Vec<Received> {
        self.inner.received.borrow().clone()
    }

    pub fn clear(&self) {
        self.inner.received.send_modify(Vec::clear);
    }

    /// Waits for a request for which the predicate holds, among those so far and those to come.
    pub async fn wait_for(
        &self,
        what: &str,
        at_most: Duration,
        mut predicate: impl FnMut(&Received) -> bool,
    ) -> Result<Received> {
        let mut changes = self.inner.received.subscribe();
        let mut find = |seen: &Vec<Received>| seen.iter().find(|request| predicate(request)).cloned();
        let wait = async {
            loop {
                if let Some(found) = find(&changes.borrow_and_update()) {
                    return Ok(found);
                }
                changes.changed().await.context("the sink has stopped")?;
            }
        };
        match tokio::time::timeout(at_most, wait).await {
            Ok(found) => found,
            Err(_) => bail!(
                "waited {} s in vain for {what}; received:\n{}",
                at_most.as_secs_f32(),
                self.summary()
            ),
        }
    }

    fn summary(&self) -> String {
        let lines = self.received().into_iter().map(|request| {
            format!(
                "{} {} {}",
                request.method,
                request.path,
                String::from_utf8_lossy(&request.body)
            )
        });
        let lines: Vec<String> = lines.collect();
        if lines.is_empty() {
            "(nothing)".to_owned()
        } else {
            lines.join("\n")
        }
    }
}

async fn take(State(inner): State<Arc<Inner>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let Ok(body) = axum::body::to_bytes(body, MAX_BODY).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    let path = head
        .uri
        .path_and_query()
        .map(ToString::to_string)
        .unwrap_or_default();
    let (answer, _in_progress) = {
        let answer = inner.answer.lock();
        (answer.clone(), InProgress::new(&inner))
    };
    let received = Received {
        method: head.method.to_string(),
        path,
        headers: head.headers,
        body,
        at: SystemTime::now(),
        answer: answer.clone(),
    };
    inner.received.send_modify(|all| all.push(received));
    let status = |code| StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    match answer {
        Answer::Status(code, text) => (status(code), text).into_response(),
        Answer::Busy(code, seconds) => {
            (status(code), [(http::header::RETRY_AFTER, seconds.to_string())]).into_response()
        }
        Answer::Slow(delay, code) => {
            tokio::time::sleep(delay).await;
            status(code).into_response()
        }
        Answer::Hang => std::future::pending().await,
        Answer::Redirect(to) => {
            (StatusCode::TEMPORARY_REDIRECT, [(http::header::LOCATION, to)]).into_response()
        }
    }
}

//! A proxy between a controller and the API server that delays, refuses or cuts requests.

mod events;
mod frozen;

use std::{
    collections::VecDeque,
    io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};
use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    response::{IntoResponse as _, Response},
};
use base64::Engine as _;
use bytes::Bytes;
use futures::stream;
use http::{HeaderMap, StatusCode, header};
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::watch;

use crate::{
    ControlPlane,
    controlplane::Etcd,
    http::{Server, client_without_limit},
    statuses,
    tls::Authority,
};
use frozen::Freeze;

const MAX_BODY: usize = 64 * 1024 * 1024;

#[derive(Debug, Clone)]
pub struct ApiRequest {
    pub method: String,
    /// The path without the query.
    pub path: String,
    /// The query, without the question mark.
    pub query: String,
    pub body: Bytes,
}

impl ApiRequest {
    #[must_use]
    pub fn is_write(&self) -> bool {
        self.method != "GET" && self.method != "HEAD" && !self.path.contains("/selfsubject")
    }

    #[must_use]
    pub fn is_watch(&self) -> bool {
        self.has("watch", "true") || self.has("watch", "1")
    }

    /// Returns true for requests for a further page of a list.
    #[must_use]
    pub fn is_next_page(&self) -> bool {
        self.query.split('&').any(|part| part.starts_with("continue="))
    }

    /// Returns true for requests that only try a change.
    #[must_use]
    pub fn is_dry_run(&self) -> bool {
        self.has("dryRun", "All")
    }

    fn has(&self, name: &str, value: &str) -> bool {
        self.query
            .split('&')
            .any(|part| part.split_once('=') == Some((name, value)))
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It reaches the API server, and the answer the controller.
    Pass,
    /// The same, but only after some time.
    Delay(Duration),
    /// It doesn't reach the API server, and is answered with this status and, where given, `Retry-After` in seconds.
    Status(u16, Option<u32>),
    /// It doesn't reach the API server, and is never answered.
    Hang,
    /// It doesn't reach the API server, and the connection is cut.
    Cut,
    /// It reaches the API server, but the connection is cut before the answer.
    CutAnswer,
    /// It reaches the API server after etcd forgot all older revisions, also those that a list in progress needs.
    Compacted,
}

type Rule = Arc<dyn Fn(&ApiRequest) -> Outcome + Send + Sync>;

struct Inner {
    upstream: String,
    client: reqwest::Client,
    rule: Mutex<Rule>,
    deaf: AtomicBool,
    swallowed: AtomicUsize,
    freeze: watch::Sender<Option<Arc<Freeze>>>,
    etcd: Etcd,
    /// Token for reading the objects of frozen answers.
    admin: String,
    requests: Mutex<Vec<ApiRequest>>,
    answers: Mutex<Vec<(ApiRequest, u16)>>,
}

pub struct FaultProxy {
    inner: Arc<Inner>,
    server: Server,
    dir: PathBuf,
    upstream_ca: String,
}

impl std::fmt::Debug for FaultProxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FaultProxy")
            .field("server", &self.server)
            .field("upstream", &self.inner.upstream)
            .finish()
    }
}

impl FaultProxy {
    /// Starts a proxy that lets everything pass.
    pub fn start(plane: &ControlPlane) -> Result<Self> {
        let upstream_ca = plane.ca_pem()?;
        let inner = Arc::new(Inner {
            upstream: plane.server().to_owned(),
            client: client_without_limit(&upstream_ca)?,
            rule: Mutex::new(Arc::new(|_| Outcome::Pass)),
            deaf: AtomicBool::new(false),
            swallowed: AtomicUsize::new(0),
            freeze: watch::channel(None).0,
            etcd: plane.etcd()?,
            admin: token_of(plane.kubeconfig())?,
            requests: Mutex::default(),
            answers: Mutex::default(),
        });
        let router = Router::new().fallback(relay).with_state(Arc::clone(&inner));
        let server = Server::start(router, Some(Authority::new(&["127.0.0.1", "localhost"])?))?;
        statuses::register_proxy(&server.origin(), plane.server());
        Ok(Self {
            inner,
            server,
            dir: plane.dir().join("kubeconfig"),
            upstream_ca,
        })
    }

    /// A kubeconfig for the same user as the given one, by way of this proxy.
    pub fn kubeconfig(&self, of: &Path) -> Result<PathBuf> {
        let encode = |pem: &str| base64::engine::general_purpose::STANDARD.encode(pem);
        let text = std::fs::read_to_string(of).with_context(|| format!("can't read {}", of.display()))?;
        ensure!(
            text.contains(&self.inner.upstream),
            "{} isn't of the proxied control plane",
            of.display()
        );
        let ca = self.server.ca_pem().unwrap_or_default();
        let text = text
            .replace(&self.inner.upstream, &self.server.origin())
            .replace(&encode(&self.upstream_ca), &encode(ca));
        let name = of.file_name().unwrap_or_default().to_string_lossy();
        let path = self.dir.join(format!(
            "{name}-by-{}",
            self.server.origin().rsplit(':').next().unwrap_or_default()
        ));
        crate::process::write_private(&path, text)?;
        Ok(path)
    }

    /// Decides the outcome of every request from now on.
    pub fn rule(&self, rule: impl Fn(&ApiRequest) -> Outcome + Send + Sync + 'static) {
        *self.inner.rule.lock() = Arc::new(rule);
    }

    /// Gives the next requests that `selects` these outcomes, one each; all other requests pass. The n-th request fails
    /// after n - 1 that pass.
    pub fn outcomes(
        &self,
        selects: impl Fn(&ApiRequest) -> bool + Send + Sync + 'static,
        outcomes: impl IntoIterator<Item = Outcome>,
    ) {
        let coming = Mutex::new(outcomes.into_iter().collect::<VecDeque<_>>());
        self.rule(move |request| {
            let outcome = selects(request).then(|| coming.lock().pop_front()).flatten();
            outcome.unwrap_or(Outcome::Pass)
        });
    }

    /// Answers the reads that `selects` as of a revision ([`ControlPlane::revision`]), and holds back the events of such watches.
    /// Writes pass, and their answers are new. An older state comes from the API server itself, as from one that lags behind the others.
    pub fn freeze(&self, revision: u64, selects: impl Fn(&ApiRequest) -> bool + Send + Sync + 'static) {
        let freeze = Freeze {
            revision,
            selects: Box::new(selects),
        };
        self.inner.freeze.send_replace(Some(Arc::new(freeze)));
    }

    /// Answers reads as of now again, and delivers the events that were held back.
    pub fn thaw(&self) {
        self.inner.freeze.send_replace(None);
    }

    /// Lets everything pass again, events of watches too, and reads are as of now.
    pub fn heal(&self) {
        self.rule(|_| Outcome::Pass);
        self.swallow_events(false);
        self.thaw();
    }

    /// Swallows the events of all watches, those that are open already included, until told otherwise.
    pub fn swallow_events(&self, swallow: bool) {
        self.inner.deaf.store(swallow, Ordering::SeqCst);
    }

    #[must_use]
    pub fn swallowed(&self) -> usize {
        self.inner.swallowed.load(Ordering::SeqCst)
    }

    /// All requests so far, whatever became of them.
    #[must_use]
    pub fn requests(&self) -> Vec<ApiRequest> {
        self.inner.requests.lock().clone()
    }

    /// The requests that reached the API server and were answered so far, with the status of the answer.
    #[must_use]
    pub fn answers(&self) -> Vec<(ApiRequest, u16)> {
        self.inner.answers.lock().clone()
    }
}

fn token_of(kubeconfig: &Path) -> Result<String> {
    let text = std::fs::read_to_string(kubeconfig)
        .with_context(|| format!("can't read {}", kubeconfig.display()))?;
    let token = text.lines().find_map(|line| line.trim().strip_prefix("token: "));
    token.map(str::to_owned).context("a kubeconfig without a token")
}

async fn relay(State(inner): State<Arc<Inner>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let Ok(body) = axum::body::to_bytes(body, MAX_BODY).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    let request = ApiRequest {
        method: head.method.to_string(),
        path: head.uri.path().to_owned(),
        query: head.uri.query().unwrap_or_default().to_owned(),
        body,
    };
    let rule = Arc::clone(&inner.rule.lock());
    let outcome = rule(&request);
    inner.requests.lock().push(request.clone());
    match outcome {
        Outcome::Status(code, retry_after) => return refuse(code, retry_after),
        Outcome::Hang => return std::future::pending().await,
        Outcome::Cut => return cut(),
        Outcome::Delay(time) => tokio::time::sleep(time).await,
        Outcome::Compacted => {
            if let Err(error) = inner.etcd.compact().await {
                return failed(&error);
            }
        }
        Outcome::Pass | Outcome::CutAnswer => {}
    }
    let freeze = inner.freeze.borrow().clone();
    let answered = match freeze.filter(|freeze| freeze.covers(&request)) {
        Some(freeze) => frozen::answer(&inner, &freeze, &request, head.headers).await,
        None => forward(&inner, &request, head.headers).await,
    };
    let answer = match answered {
        Ok(answer) => answer,
        Err(error) => return failed(&error),
    };
    inner.answers.lock().push((request, answer.status().as_u16()));
    if outcome == Outcome::CutAnswer {
        cut()
    } else {
        answer
    }
}

fn failed(error: &anyhow::Error) -> Response {
    (StatusCode::BAD_GATEWAY, format!("{error:#}")).into_response()
}

/// Asks the API server as the controller did, its identity included.
async fn forward(inner: &Arc<Inner>, request: &ApiRequest, mut headers: HeaderMap) -> Result<Response> {
    for hop in [
        header::HOST,
        header::CONNECTION,
        header::CONTENT_LENGTH,
        header::TRANSFER_ENCODING,
    ] {
        headers.remove(hop);
    }
    let separator = if request.query.is_empty() { "" } else { "?" };
    let url = format!("{}{}{separator}{}", inner.upstream, request.path, request.query);
    let method = http::Method::from_bytes(request.method.as_bytes())?;
    let asked = inner
        .client
        .request(method, url)
        .headers(headers)
        .body(request.body.clone());
    let answer = asked.send().await.context("the API server doesn't answer")?;
    let (status, mut headers) = (answer.status(), answer.headers().clone());
    headers.remove(header::TRANSFER_ENCODING);
    headers.remove(header::CONNECTION);
    let body = answer.bytes_stream();
    let body = match request.is_watch() {
        true => Body::from_stream(events::heard(inner, request, body)),
        false => Body::from_stream(body),
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    Ok(response)
}

fn refuse(code: u16, retry_after: Option<u32>) -> Response {
    let status = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let reason = status.canonical_reason().unwrap_or_default().replace(' ', "");
    let body = json!({
        "apiVersion": "v1", "kind": "Status", "status": "Failure",
        "code": code, "reason": reason, "message": "refused by the fault proxy",
    });
    let mut response = (
        status,
        [(header::CONTENT_TYPE, "application/json")],
        body.to_string(),
    )
        .into_response();
    if let Some(seconds) = retry_after {
        response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    response
}

fn cut() -> Response {
    Response::new(Body::from_stream(stream::once(async {
        Err::<Bytes, _>(io::Error::other("cut"))
    })))
}

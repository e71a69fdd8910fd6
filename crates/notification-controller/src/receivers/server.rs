//! The webhook server: finds the Receiver of a path, reads the request within bounds, verifies its sender and annotates objects.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use api::{condition_type, conditions, notification::Receiver};
use axum::{
    Router,
    extract::{Request as HttpRequest, State},
    response::{IntoResponse as _, Response},
};
use cel::Value;
use http::{HeaderMap, StatusCode};
use kube::{Client, ResourceExt as _};
use runtime::{
    Context,
    admin::Readiness,
    http::{Limits, Pace, serve},
    secret::{self, SecretData},
};
use tokio::{net::TcpListener, sync::Semaphore, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use super::{
    compute::compute,
    filters::Filters,
    index::{Index, SYNC},
    keys::Keys,
    path::PREFIX,
    refused::Refused,
    targets::Targets,
    types::{self, Checks, Request, Verified},
};
use crate::{
    body,
    metrics::HttpMetrics,
    server::{busy, closing},
};

/// Maximum size of a body, in bytes.
const MAX_BODY: usize = 3 * 1024 * 1024;
/// Maximum bytes of the bodies of all requests.
const MAX_BYTES: usize = 16 * 1024 * 1024;
const BODY_TIME: Duration = Duration::from_secs(20);
/// The timeout for handling a request whose body was received.
const HANDLING: Duration = Duration::from_secs(60);
const LIMITS: Limits = Limits {
    connections: 128,
    connections_of_address: usize::MAX,
    header_bytes: 256 * 1024,
    header_time: Duration::from_secs(10),
    slowest: Pace::DEFAULT,
    lifetime: Duration::from_secs(5 * 60),
    grace: Duration::from_secs(1),
};

/// The webhook server. Every replica has one: a request for a reconciliation needs no leader.
pub(crate) struct Server {
    index: Index,
    client: Client,
    targets: Targets,
    keys: Arc<Keys>,
    google_keys: String,
    metrics: HttpMetrics,
    readiness: Readiness,
    bytes: Arc<Semaphore>,
}

impl Server {
    /// `client` may write without the lease; `google_keys` is the URL of Google's keys.
    pub(crate) fn new(
        ctx: &Context,
        client: Client,
        index: Index,
        keys: Keys,
        google_keys: &str,
        metrics: HttpMetrics,
    ) -> Self {
        ctx.readiness().expect(SYNC);
        Self {
            index,
            targets: Targets::new(client.clone(), ctx.flags().no_cross_namespace_refs),
            client,
            keys: Arc::new(keys),
            google_keys: google_keys.to_owned(),
            metrics,
            readiness: ctx.readiness().clone(),
            bytes: Arc::new(Semaphore::new(MAX_BYTES)),
        }
    }

    pub(crate) fn start(self, listener: TcpListener, shutdown: CancellationToken) -> JoinHandle<()> {
        let router = Router::new().fallback(measured).with_state(Arc::new(self));
        tokio::spawn(serve(listener, router, LIMITS, shutdown))
    }

    async fn answer(self: &Arc<Self>, request: HttpRequest) -> Result<(), Response> {
        let target = request
            .uri()
            .path_and_query()
            .map_or("", |target| target.as_str());
        // A query makes it another path.
        if !target.starts_with(PREFIX) {
            return Err(StatusCode::NOT_FOUND.into_response());
        }
        if self.readiness.pending().iter().any(|pending| pending == SYNC) {
            return Err(busy("not ready yet"));
        }
        let Some(receiver) = self.index.find(target) else {
            return Err(closing(StatusCode::NOT_FOUND));
        };
        if receiver.spec.suspend || !is_ready(&receiver) {
            return Err(closing(StatusCode::SERVICE_UNAVAILABLE));
        }
        let (head, content) = request.into_parts();
        let read = body::read(content, MAX_BODY, &self.bytes);
        let (bytes, share) = match tokio::time::timeout(BODY_TIME, read).await {
            Ok(Ok(read)) => read,
            Ok(Err(body::Refused::TooLarge)) => return Err(closing(StatusCode::PAYLOAD_TOO_LARGE)),
            Ok(Err(body::Refused::Overloaded)) => return Err(busy("too many requests at the same time")),
            Ok(Err(body::Refused::Broken)) => return Err(closing(StatusCode::BAD_REQUEST)),
            Err(_) => return Err(closing(StatusCode::REQUEST_TIMEOUT)),
        };
        let this = Arc::clone(self);
        // A task of its own: the sender may end the request at any moment.
        let handled = tokio::spawn(async move {
            let handling = this.handle(&receiver, &head.headers, bytes);
            let status = tokio::time::timeout(HANDLING, handling).await;
            drop(share);
            status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
        });
        match handled.await.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR) {
            StatusCode::OK => Ok(()),
            status => Err(status.into_response()),
        }
    }

    async fn handle(&self, receiver: &Receiver, headers: &HeaderMap, body: Vec<u8>) -> StatusCode {
        let (name, namespace) = (receiver.name_any(), receiver.namespace().unwrap_or_default());
        tracing::info!(receiver = name, namespace, "handling a request");
        let request = Request { headers, body: &body };
        let verified = match self.verify(receiver, &namespace, &request).await {
            Ok(verified) => verified,
            Err(why) => {
                tracing::error!(receiver = name, namespace, error = %why, "unable to validate payload");
                return StatusCode::BAD_REQUEST;
            }
        };
        let json = request.content_type() == "application/json";
        let filters = if Filters::wanted(&receiver.spec) {
            let payload = verified.payload.unwrap_or(body);
            let (spec, claims) = (
                receiver.spec.clone(),
                verified.claims.unwrap_or_else(Value::empty_map),
            );
            let filters = compute(move || {
                let request = match json {
                    true => Value::from_json(&serde_json::from_slice(&payload).ok()?),
                    false => Value::empty_map(),
                };
                Filters::new(&spec, request, claims)
            });
            match filters.await.flatten() {
                Some(filters) => Some(Arc::new(filters)),
                None => {
                    tracing::error!(
                        receiver = name,
                        namespace,
                        "the body is no JSON, or a filter does not compile"
                    );
                    return StatusCode::INTERNAL_SERVER_ERROR;
                }
            }
        } else {
            None
        };
        match self.targets.annotate(receiver, filters).await {
            true => StatusCode::OK,
            false => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    async fn verify(
        &self,
        receiver: &Receiver,
        namespace: &str,
        request: &Request<'_>,
    ) -> Result<Verified, Refused> {
        let spec = &receiver.spec;
        let kind = types::find(spec).ok_or_else(|| Refused::said("the type is unknown"))?;
        let secret = match &spec.secret_ref {
            Some(reference) if kind.needs_secret() => secret::read(&self.client, namespace, &reference.name)
                .await
                .map_err(|fault| Refused::new(fault.message))?,
            _ => SecretData::of("", &[]),
        };
        let checks = Checks {
            keys: &self.keys,
            google_keys: &self.google_keys,
            now: jiff::Timestamp::now().as_second(),
        };
        kind.verify(spec, request, &secret, &checks).await
    }
}

fn is_ready(receiver: &Receiver) -> bool {
    let status = receiver.status.as_ref();
    status.is_some_and(|status| conditions::is_true(&status.conditions, condition_type::READY))
}

async fn measured(State(server): State<Arc<Server>>, request: HttpRequest) -> Response {
    let metrics = server.metrics.clone();
    let (method, started) = (request.method().clone(), Instant::now());
    let _handled = metrics.request_started();
    let response = match server.answer(request).await {
        Ok(()) => StatusCode::OK.into_response(),
        Err(refused) => refused,
    };
    metrics.request_ended(&method, &response, started.elapsed());
    response
}

//! The webhook server: finds the Receiver of a path, reads the request within bounds, verifies its sender and annotates objects.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use api::{
    condition_type, conditions,
    notification::{Receiver, ReceiverSpec},
};
use axum::{
    Router,
    body::Body,
    extract::{Request as HttpRequest, State},
    response::{IntoResponse as _, Response},
};
use cel::{Allowance, Value};
use http::{HeaderValue, StatusCode, header};
use kube::{Client, ResourceExt as _};
use limits::{ByteBudget, RequestQuota, RequestSlot, compute};
use runtime::{
    Context,
    admin::Readiness,
    http::{Limits, Pace, serve},
    secret::{self, SecretData},
};
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use super::{
    filters::{FilterError, Filters, OF_REQUEST, RequestFilters},
    index::{Index, SYNC},
    keys::Keys,
    path::PREFIX,
    refused::Refused,
    targets::Targets,
    types::{self, Checks, Request, Verified},
};
use crate::{
    body, log_limit,
    metrics::HttpMetrics,
    server::{busy, closing},
};

/// Maximum size of a body, in bytes.
const MAX_BODY: usize = 3 * 1024 * 1024;
/// Bytes of bodies and of the values that are parsed from them, in a process without a ledger.
const BYTES: u64 = 128 << 20;
/// Maximum bytes of the values parsed from one body. Values of a webhook have 20 bytes or more of the body each, which makes 35 MiB at most.
const MAX_PARSED: u64 = 64 * 1024 * 1024;
/// Size of a parsed value, in bytes.
const PARSED_VALUE: u64 = 200;
/// Maximum number of requests whose body is awaited, or that are handled. Namespaces share them fairly, and further connections are for
/// namespaces without any.
const REQUESTS: usize = 192;
/// The timeout for handling a request whose body was received.
const HANDLING: Duration = Duration::from_secs(60);
const LIMITS: Limits = Limits {
    connections: 256,
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
    quota: RequestQuota,
}

/// The steps of handling a request after its body was received.
struct Received {
    receiver: Arc<Receiver>,
    name: String,
    namespace: String,
    request: Request,
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
        let memory = limits::process_memory().unwrap_or_else(|| ByteBudget::new(BYTES));
        Self {
            index,
            targets: Targets::new(client.clone(), ctx.flags().no_cross_namespace_refs),
            client,
            keys: Arc::new(keys),
            google_keys: google_keys.to_owned(),
            metrics,
            readiness: ctx.readiness().clone(),
            quota: RequestQuota::new(REQUESTS, memory),
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
        let (name, namespace) = (receiver.name_any(), receiver.namespace().unwrap_or_default());
        let Some(mut slot) = self.quota.start(&namespace) else {
            return Err(overloaded());
        };
        let (head, content) = request.into_parts();
        let body = self.body(content, &mut slot).await?;
        let received = Received {
            receiver,
            name,
            namespace,
            request: Request {
                headers: Arc::new(head.headers),
                body: Arc::new(body),
            },
        };
        let this = Arc::clone(self);
        // A task of its own: the sender may end the request at any moment.
        let handled = tokio::spawn(async move {
            let revoked = slot.revoked().clone();
            let handling = tokio::time::timeout(HANDLING, this.handle(received, slot));
            match revoked.run_until_cancelled(handling).await {
                Some(status) => status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
                None => StatusCode::SERVICE_UNAVAILABLE,
            }
        });
        match handled.await.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR) {
            StatusCode::OK => Ok(()),
            StatusCode::SERVICE_UNAVAILABLE => Err(overloaded()),
            status => Err(status.into_response()),
        }
    }

    /// Reads a body while its namespace has no more than its share.
    async fn body(&self, content: Body, slot: &mut RequestSlot) -> Result<Vec<u8>, Response> {
        let revoked = slot.revoked().clone();
        let read = revoked.run_until_cancelled(body::read(content, MAX_BODY, slot));
        match read.await.unwrap_or(Err(body::Refused::Overloaded)) {
            Ok(read) => Ok(read),
            Err(body::Refused::TooLarge) => Err(closing(StatusCode::PAYLOAD_TOO_LARGE)),
            Err(body::Refused::Overloaded) => Err(overloaded()),
            Err(body::Refused::Slow) => Err(closing(StatusCode::REQUEST_TIMEOUT)),
            Err(body::Refused::Broken) => Err(closing(StatusCode::BAD_REQUEST)),
        }
    }

    async fn handle(&self, received: Received, mut slot: RequestSlot) -> StatusCode {
        let Received {
            receiver,
            name,
            namespace,
            request,
        } = received;
        if is_parsed(&receiver.spec, &request) {
            match parsed_bytes(&request.body) {
                bytes if bytes > MAX_PARSED => return StatusCode::PAYLOAD_TOO_LARGE,
                bytes if !slot.try_grow(bytes) => return StatusCode::SERVICE_UNAVAILABLE,
                _ => {}
            }
        }
        let left_out = || log_limit::WEBHOOKS.admit(&namespace, &name, Instant::now());
        let verified = match self.verify(&receiver, &namespace, &request).await {
            Ok(verified) => verified,
            Err(why) => {
                if let Some(left_out) = left_out() {
                    tracing::error!(receiver = name, namespace, left_out, error = %why, "unable to validate payload");
                }
                return StatusCode::BAD_REQUEST;
            }
        };
        if let Some(left_out) = log_limit::ACCEPTED.admit(&namespace, &name, Instant::now()) {
            tracing::info!(receiver = name, namespace, left_out, "handling a request");
        }
        let filters = match Filters::wanted(&receiver.spec) {
            false => None,
            true => match filters(&receiver, &namespace, request, verified).await {
                Ok(filters) => Some(filters),
                Err(why) => {
                    if let Some(left_out) = left_out() {
                        tracing::error!(receiver = name, namespace, left_out, error = %why, "the filters cannot be used");
                    }
                    return StatusCode::INTERNAL_SERVER_ERROR;
                }
            },
        };
        match self.targets.annotate(&receiver, filters).await {
            true => StatusCode::OK,
            false => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    async fn verify(
        &self,
        receiver: &Receiver,
        namespace: &str,
        request: &Request,
    ) -> Result<Verified, Refused> {
        let spec = &receiver.spec;
        let kind = types::find(spec).ok_or_else(|| Refused::said("the type is unknown"))?;
        let secret = Arc::new(match &spec.secret_ref {
            Some(reference) if kind.needs_secret() => secret::read(&self.client, namespace, &reference.name)
                .await
                .map_err(|fault| Refused::new(fault.message))?,
            _ => SecretData::of("", &[]),
        });
        let checks = Checks {
            keys: &self.keys,
            google_keys: &self.google_keys,
            namespace,
            now: jiff::Timestamp::now().as_second(),
        };
        kind.verify(spec, request, &secret, &checks).await
    }
}

/// Answers that the namespace of a Receiver has as many requests or bytes as it may. The rest of the body is not read.
fn overloaded() -> Response {
    let mut response = busy("too many requests to the Receivers of the namespace at the same time");
    let close = HeaderValue::from_static("close");
    response.headers_mut().insert(header::CONNECTION, close);
    response
}

/// Compiles the filters of a Receiver for a request.
async fn filters(
    receiver: &Arc<Receiver>,
    namespace: &str,
    request: Request,
    verified: Verified,
) -> Result<RequestFilters, FilterError> {
    let receiver = Arc::clone(receiver);
    let made = compute(namespace, move |cancelled| {
        let mut allowance = Allowance::new(OF_REQUEST).with_cancellation(Arc::clone(cancelled));
        let claims = verified.claims.unwrap_or_else(Value::empty_map);
        let payload = verified.payload.as_ref().unwrap_or(&request.body);
        let value = match request.content_type() == "application/json" {
            true => Value::from_json(&serde_json::from_slice(payload).map_err(|_| FilterError::Body)?),
            false => Value::empty_map(),
        };
        let filters = Filters::new(&receiver.spec, value, claims, &mut allowance)?;
        Ok(RequestFilters { filters, allowance })
    });
    made.await.unwrap_or(Err(FilterError::Unfinished))
}

fn is_parsed(spec: &ReceiverSpec, request: &Request) -> bool {
    let is_json = request.content_type() == "application/json";
    types::find(spec).is_some_and(types::Type::parses) || Filters::wanted(spec) && is_json
}

/// Returns an upper bound of the memory of the values of a JSON document, in bytes.
fn parsed_bytes(json: &[u8]) -> u64 {
    let values = json
        .iter()
        .filter(|byte| matches!(byte, b',' | b'[' | b'{'))
        .count() as u64;
    let strings = 2 * json.len() as u64;
    strings.saturating_add(values.saturating_add(1).saturating_mul(PARSED_VALUE))
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn parsed_values_of_webhooks_fit_and_those_of_bombs_do_not() {
        let commit = json!({"id": "0123456789abcdef0123456789abcdef01234567", "message": "fix", "added": ["a", "b"], "distinct": true});
        let commits: Vec<_> = (0..MAX_BODY / 150).map(|_| &commit).collect();
        let push = json!({"ref": "refs/heads/main", "commits": commits}).to_string();
        assert!(push.len() > MAX_BODY / 2 && parsed_bytes(push.as_bytes()) < MAX_PARSED);
        let bomb = format!("[{}0]", "0,".repeat(MAX_BODY / 2 - 2));
        assert!(bomb.len() <= MAX_BODY && parsed_bytes(bomb.as_bytes()) > MAX_PARSED);
        let deep = "[".repeat(MAX_BODY);
        assert!(parsed_bytes(deep.as_bytes()) > MAX_PARSED);
    }
}

//! The event endpoint: accepts events of controllers, bounded in every dimension, and never waits for a delivery.

mod dedupe;

use std::{
    net::IpAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use api::Event;
use axum::{
    Router,
    extract::{Request, State},
    response::{IntoResponse, Response},
};
use futures::{Stream, StreamExt as _};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use limits::{ByteBudget, ByteBudgetError, Share, compute_sized};
use parking_lot::Mutex;
use runtime::{
    Context,
    admin::Readiness,
    http::{Limits, Pace, serve},
};
use tokio::{
    net::TcpListener,
    sync::{Semaphore, mpsc},
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;

use crate::{
    accepted::{Accepted, Deliveries},
    body::{self, SharedBytes},
    event,
    flags::Flags,
    journal::{Entry, Journal, Left, Ticket, is_old},
    metrics::Metrics,
    senders::{Refused, Senders},
    store::{self, Store},
};
use dedupe::{Dedupe, Occurrence};

/// Maximum size of a body, in bytes.
const MAX_BODY: usize = 3 * 1024 * 1024;
/// Maximum bytes of all bodies that are read.
const MAX_READ_BYTES: usize = 16 * 1024 * 1024;
/// Maximum bytes of all events that wait or are being delivered. The namespaces of their objects share them fairly.
const MAX_WAITING_BYTES: u64 = 16 * 1024 * 1024;
/// Size of an entry of an event's metadata besides its strings, in bytes.
const METADATA_ENTRY: usize = 100;
/// Maximum number of events that wait for matching. The namespaces of their objects share them fairly.
const QUEUE: usize = 1024;
/// Unit of the budget that counts these events.
const MATCHED_EVENT: u64 = 1024;
/// Maximum number of events in the deduplication.
const REMEMBERED: usize = 20_000;
const LIMITS: Limits = Limits {
    connections: 128,
    connections_of_address: usize::MAX,
    header_bytes: 256 * 1024,
    header_time: Duration::from_secs(10),
    slowest: Pace::DEFAULT,
    lifetime: Duration::from_secs(30 * 60),
    grace: Duration::from_secs(1),
};

pub(crate) struct Server {
    deliveries: Arc<dyn Deliveries>,
    readiness: Readiness,
    metrics: Metrics,
    senders: Option<Senders>,
    dedupe: Mutex<Dedupe>,
    comparison: event::Comparison,
    bytes: Arc<Semaphore>,
    waiting: ByteBudget,
    /// Counts events that wait for matching, as kilobytes.
    matching: ByteBudget,
    journal: Arc<Journal>,
}

struct Running {
    server: Server,
    queue: mpsc::Sender<Accepted>,
}

/// The shares of an event in the quotas of its namespace.
struct EventShares {
    memory: Share,
    matching: Share,
}

impl Server {
    /// Takes the shares of an event whose body has `size` bytes; `None` if its namespace has as much as it may.
    fn shares(&self, event: &Event, size: usize) -> Option<EventShares> {
        let namespace = event.involved_object.namespace.as_deref().unwrap_or_default();
        let bytes = size + event.metadata.len() * METADATA_ENTRY;
        let mut memory = self.waiting.tenant(namespace).share();
        memory.try_grow(bytes as u64).ok()?;
        let mut matching = self.matching.tenant(namespace).share();
        matching.try_grow(MATCHED_EVENT).ok()?;
        Some(EventShares { memory, matching })
    }

    pub(crate) fn new(
        ctx: &Context,
        flags: &Flags,
        metrics: Metrics,
        journal: Arc<Journal>,
        deliveries: Arc<dyn Deliveries>,
    ) -> Self {
        for what in store::SYNC {
            ctx.readiness().expect(what);
        }
        Self {
            deliveries,
            readiness: ctx.readiness().clone(),
            metrics,
            senders: Senders::new(ctx, flags),
            dedupe: Mutex::new(Dedupe::new(flags.rate_limit_interval, REMEMBERED)),
            comparison: flags.comparison(),
            bytes: Arc::new(Semaphore::new(MAX_READ_BYTES)),
            waiting: ByteBudget::new(MAX_WAITING_BYTES),
            matching: ByteBudget::new(QUEUE as u64 * MATCHED_EVENT),
            journal,
        }
    }

    /// Returns the events that an earlier process left in the journal, as soon as all Alerts and Providers are known. They count for
    /// the deduplication. Events that are too old are given up.
    pub(crate) fn left(&self, left: Left, store: Store) -> impl Stream<Item = Accepted> + Send + 'static {
        let now = jiff::Timestamp::now().as_second();
        let mut tickets = Vec::new();
        for (ticket, summary) in left {
            let Some(summary) = summary.filter(|summary| !is_old(summary.at, now)) else {
                give_up(&self.metrics, &ticket);
                continue;
            };
            let mut key = [0; 32];
            if hex::decode_to_slice(&summary.key, &mut key).is_ok() {
                self.dedupe.lock().see("", key, Instant::now());
            }
            self.metrics.event_replayed();
            tickets.push(ticket);
        }
        let (waiting, metrics) = (self.waiting.clone(), self.metrics.clone());
        let wait = async move {
            store.synced().await;
            futures::stream::iter(tickets)
        };
        futures::stream::once(wait)
            .flatten()
            .then(move |ticket| read_back(ticket, waiting.clone(), metrics.clone()))
            .filter_map(futures::future::ready)
    }

    /// Serves until `shutdown`; the events end after the last request.
    pub(crate) fn start(
        self,
        listener: TcpListener,
        shutdown: CancellationToken,
    ) -> (JoinHandle<()>, impl Stream<Item = Accepted> + Send + 'static) {
        let (queue, accepted) = mpsc::channel(QUEUE);
        let running = Arc::new(Running { server: self, queue });
        let router = Router::new().fallback(measured).with_state(running);
        let stream = futures::stream::unfold(accepted, |mut accepted| async move {
            accepted.recv().await.map(|event| (event, accepted))
        });
        (tokio::spawn(serve(listener, router, LIMITS, shutdown)), stream)
    }
}

/// Reads an event of an earlier process as soon as memory is free.
async fn read_back(ticket: Ticket, waiting: ByteBudget, metrics: Metrics) -> Option<Accepted> {
    let size = u64::from(ticket.length()).min(MAX_BODY as u64);
    // Its namespace is known when it is read.
    let mut share = waiting.tenant("").share();
    while let Err(error) = share.reserve(size).await {
        if matches!(error, ByteBudgetError::TooMuch { .. }) {
            break;
        }
    }
    let Some(event) = ticket.read().await else {
        give_up(&metrics, &ticket);
        return None;
    };
    Some(Accepted::new(event, ticket, share, None))
}

fn give_up(metrics: &Metrics, ticket: &Ticket) {
    metrics.event_dropped("age");
    tracing::error!("an event of the journal was given up: it is too old, or cannot be read");
    ticket.release();
}

async fn measured(State(running): State<Arc<Running>>, request: Request) -> Response {
    let metrics = running.server.metrics.http.clone();
    let (method, started) = (request.method().clone(), Instant::now());
    let _handled = metrics.request_started();
    let response = running.take(request).await.unwrap_or_else(|refused| refused);
    metrics.request_ended(&method, &response, started.elapsed());
    response
}

impl Running {
    /// Accepts any path and any method, as the original does.
    async fn take(self: &Arc<Self>, request: Request) -> Result<Response, Response> {
        let server = &self.server;
        if store::SYNC
            .iter()
            .any(|what| server.readiness.pending().iter().any(|pending| pending == what))
        {
            return Err(busy("not ready yet"));
        }
        let peer = runtime::http::peer(request.extensions());
        let sender = self.sender(request.headers(), peer).await?;
        let mut share = SharedBytes::new(&server.bytes);
        let bytes = match body::read(request.into_body(), MAX_BODY, &mut share).await {
            Ok(read) => read,
            Err(body::Refused::TooLarge) => return Err(closing(StatusCode::PAYLOAD_TOO_LARGE)),
            Err(body::Refused::Overloaded) => {
                server.metrics.event_dropped("memory");
                return Err(busy("too many events are waiting"));
            }
            Err(body::Refused::Broken) => return Err(closing(StatusCode::BAD_REQUEST)),
            Err(body::Refused::Slow) => return Err(closing(StatusCode::REQUEST_TIMEOUT)),
        };
        let size = bytes.len();
        let parse = move || serde_json::from_slice::<Event>(&bytes).ok();
        let parsed = compute_sized(sender.as_deref().unwrap_or_default(), size, parse).await;
        let Some(event) = parsed.flatten() else {
            return Err(StatusCode::BAD_REQUEST.into_response());
        };
        if let (Some(senders), Some(sender)) = (&server.senders, &sender) {
            senders.check(sender, &event).map_err(|why| {
                server.metrics.refused(why);
                unidentified(why)
            })?;
        }
        if !server.deliveries.admits(&event) {
            server.metrics.event_dropped("backlog");
            return Err(busy("too many notifications wait for the Providers of the event"));
        }
        let Some(waiting) = server.shares(&event, size) else {
            server.metrics.event_dropped("memory");
            return Err(busy("too many events of the namespace are waiting"));
        };
        drop(share);
        // Reserve a queue slot first: an event that is suppressed later must have had one.
        let Ok(slot) = self.queue.clone().try_reserve_owned() else {
            server.metrics.event_dropped("queue");
            return Err(busy("too many events are waiting"));
        };
        let namespace = event.involved_object.namespace.clone().unwrap_or_default();
        let (by, comparison) = (sender.clone(), server.comparison);
        let cleaned = compute_sized(&namespace, size, move || {
            let mut event = event;
            event::clean(&mut event);
            let key = event::sameness(&event, by.as_deref(), comparison);
            (event, key)
        });
        let Some((mut event, key)) = cleaned.await else {
            return Err(busy("there is no thread now"));
        };
        let occurrence = server.dedupe.lock().see(&namespace, key, Instant::now());
        let mut response = match occurrence {
            Occurrence::First(_) => StatusCode::ACCEPTED.into_response(),
            Occurrence::Repeated(_) => (StatusCode::TOO_MANY_REQUESTS, "Too Many Requests\n").into_response(),
            Occurrence::Unlimited => StatusCode::ACCEPTED.into_response(),
        };
        rate_headers(response.headers_mut(), occurrence);
        if matches!(occurrence, Occurrence::Repeated(_)) {
            if !server.deliveries.wants_repetition(&event) {
                tracing::debug!(object = ?event.involved_object.name, "Discarding event, rate limiting duplicate events");
                return Err(response);
            }
            event::mark_repeated(&mut event);
        }
        // A task of its own: the sender may end the request at any moment.
        let this = Arc::clone(self);
        let writing = tokio::spawn(async move { this.keep(event, key, waiting, slot).await });
        match writing.await {
            Ok(true) => Ok(response),
            _ => {
                server.metrics.event_dropped("journal");
                Err(busy("the event cannot be kept"))
            }
        }
    }

    /// Returns the user name of the sender of a request, if events need tokens.
    async fn sender(&self, headers: &HeaderMap, peer: Option<IpAddr>) -> Result<Option<Arc<str>>, Response> {
        let Some(senders) = &self.server.senders else {
            return Ok(None);
        };
        let identified = senders.identify(headers, peer).await.map_err(|why| {
            self.server.metrics.refused(why);
            unidentified(why)
        });
        identified.map(Some)
    }

    /// Writes an event to the journal and puts it into its queue slot.
    async fn keep(
        &self,
        event: Event,
        key: [u8; 32],
        share: EventShares,
        slot: mpsc::OwnedPermit<Accepted>,
    ) -> bool {
        let at = jiff::Timestamp::now().as_second();
        let entry = Entry {
            at,
            key: hex::encode(key),
            event,
        };
        match self.server.journal.add(&entry).await {
            Ok(ticket) => {
                slot.send(Accepted::new(
                    entry.event,
                    ticket,
                    share.memory,
                    Some(share.matching),
                ));
                true
            }
            Err(_) => {
                // Its sender tries again, which must not count as a repetition.
                let namespace = entry.event.involved_object.namespace.as_deref();
                let mut dedupe = self.server.dedupe.lock();
                dedupe.forget(namespace.unwrap_or_default(), &key);
                false
            }
        }
    }
}

pub(crate) fn busy(why: &'static str) -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, [(header::RETRY_AFTER, "1")], why).into_response()
}

/// Answers a post that is refused because of its sender: none of it counts.
fn unidentified(why: Refused) -> Response {
    let (status, text) = match why {
        Refused::NoToken => (StatusCode::UNAUTHORIZED, "events need the token of a sender\n"),
        Refused::InvalidToken => (
            StatusCode::UNAUTHORIZED,
            "the token is not valid here: see --event-token-audience\n",
        ),
        Refused::NotASender => (
            StatusCode::FORBIDDEN,
            "this identity may not send events: see --event-senders\n",
        ),
        Refused::NotItsOwn => (
            StatusCode::FORBIDDEN,
            "this identity may not report this object in the name of this controller: see --event-senders\n",
        ),
        Refused::NoReview => return busy("tokens cannot be reviewed now"),
    };
    let mut response = (status, [(header::CONNECTION, "close")], text).into_response();
    if status == StatusCode::UNAUTHORIZED {
        let scheme = HeaderValue::from_static("Bearer");
        response.headers_mut().insert(header::WWW_AUTHENTICATE, scheme);
    }
    response
}

/// Answers before the body was read whole: the rest of the connection is ignored.
pub(crate) fn closing(status: StatusCode) -> Response {
    (status, [(header::CONNECTION, "close")]).into_response()
}

fn rate_headers(headers: &mut HeaderMap, occurrence: Occurrence) {
    let (Occurrence::First(left) | Occurrence::Repeated(left)) = occurrence else {
        return;
    };
    headers.insert("x-ratelimit-limit", HeaderValue::from_static("1"));
    headers.insert("x-ratelimit-remaining", HeaderValue::from_static("0"));
    let reset = jiff::Timestamp::now().checked_add(left).ok();
    let date = reset.and_then(|at| {
        jiff::fmt::rfc2822::DateTimePrinter::new()
            .timestamp_to_rfc9110_string(&at)
            .ok()
    });
    if let Some(date) = date.and_then(|date| HeaderValue::from_str(&date).ok()) {
        if matches!(occurrence, Occurrence::Repeated(_)) {
            headers.insert(header::RETRY_AFTER, date.clone());
        }
        headers.insert("x-ratelimit-reset", date);
    }
}

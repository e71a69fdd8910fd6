//! Metrics of the event endpoint and of the deliveries.

use std::time::Duration;

use axum::{body::HttpBody as _, response::Response};
use http::Method;
use prometheus::{HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts};
use runtime::metrics::Registry;

use crate::senders::Refused;

const SERVICE: &str = "";

/// Metrics of the requests to a port. Paths never become labels.
#[derive(Debug, Clone)]
pub(crate) struct HttpMetrics {
    handler: &'static str,
    duration: HistogramVec,
    size: HistogramVec,
    inflight: IntGaugeVec,
}

impl HttpMetrics {
    /// Registers the metrics `gotk_<port>_http_*` with this value of the label `handler`.
    pub(crate) fn register(
        registry: &Registry,
        port: &str,
        handler: &'static str,
    ) -> Result<Self, prometheus::Error> {
        let labels = &["service", "handler", "method", "code"];
        let name = |what: &str| format!("gotk_{port}_http_{what}");
        let metrics = Self {
            handler,
            duration: HistogramVec::new(
                HistogramOpts::new(name("request_duration_seconds"), "How long requests took."),
                labels,
            )?,
            size: HistogramVec::new(
                HistogramOpts::new(name("response_size_bytes"), "How large responses were.")
                    .buckets(vec![100.0, 1e3, 1e4, 1e5, 1e6]),
                labels,
            )?,
            inflight: IntGaugeVec::new(
                Opts::new(name("requests_inflight"), "How many requests are being handled."),
                &["service", "handler"],
            )?,
        };
        registry.register(Box::new(metrics.duration.clone()))?;
        registry.register(Box::new(metrics.size.clone()))?;
        registry.register(Box::new(metrics.inflight.clone()))?;
        metrics.inflight.with_label_values(&[SERVICE, handler]).set(0);
        Ok(metrics)
    }

    /// Counts a request as being handled, for as long as the returned value lives.
    pub(crate) fn request_started(&self) -> InFlight {
        let inflight = self.inflight.with_label_values(&[SERVICE, self.handler]);
        inflight.inc();
        InFlight(inflight)
    }

    pub(crate) fn request_ended(&self, method: &Method, response: &Response, took: Duration) {
        let code = response.status().as_u16().to_string();
        let labels = [SERVICE, self.handler, method_label(method), &code];
        self.duration
            .with_label_values(&labels)
            .observe(took.as_secs_f64());
        let size = response.body().size_hint().exact().unwrap_or(0);
        self.size
            .with_label_values(&labels)
            .observe(f64::from(u32::try_from(size).unwrap_or(u32::MAX)));
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Metrics {
    pub(crate) http: HttpMetrics,
    notifications: IntCounterVec,
    dropped: IntCounterVec,
    refused: IntCounterVec,
    replayed: IntCounter,
    pub(crate) pending: IntGauge,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeliveryOutcome {
    Sent,
    Failed,
    /// The quota of the provider was full, or the event became too old.
    Dropped,
}

impl DeliveryOutcome {
    fn label(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::Failed => "failed",
            Self::Dropped => "dropped",
        }
    }
}

impl Metrics {
    pub(crate) fn register(registry: &Registry) -> Result<Self, prometheus::Error> {
        let metrics = Self {
            http: HttpMetrics::register(registry, "event", "/")?,
            notifications: IntCounterVec::new(
                Opts::new(
                    "weir_notifications_total",
                    "Number of notifications by type of provider and fate.",
                ),
                &["type", "result"],
            )?,
            dropped: IntCounterVec::new(
                Opts::new(
                    "weir_notification_events_dropped_total",
                    "Number of events that found no place.",
                ),
                &["reason"],
            )?,
            refused: IntCounterVec::new(
                Opts::new(
                    "weir_notification_posts_refused_total",
                    "Number of posts that were refused because of their sender.",
                ),
                &["reason"],
            )?,
            replayed: IntCounter::new(
                "weir_notification_events_replayed_total",
                "Number of events that an earlier process left in the journal.",
            )?,
            pending: IntGauge::new(
                "weir_notification_events_pending",
                "Number of accepted events in the journal that are not delivered yet.",
            )?,
        };
        registry.register(Box::new(metrics.replayed.clone()))?;
        registry.register(Box::new(metrics.pending.clone()))?;
        registry.register(Box::new(metrics.notifications.clone()))?;
        registry.register(Box::new(metrics.dropped.clone()))?;
        registry.register(Box::new(metrics.refused.clone()))?;
        for kind in crate::providers::ALL {
            for outcome in [
                DeliveryOutcome::Sent,
                DeliveryOutcome::Failed,
                DeliveryOutcome::Dropped,
            ] {
                metrics
                    .notifications
                    .with_label_values(&[kind.rules.name, outcome.label()])
                    .inc_by(0);
            }
        }
        for reason in ["queue", "memory", "backlog", "journal", "age"] {
            metrics.dropped.with_label_values(&[reason]).inc_by(0);
        }
        for refused in Refused::ALL {
            metrics.refused.with_label_values(&[refused.label()]).inc_by(0);
        }
        Ok(metrics)
    }

    pub(crate) fn refused(&self, why: Refused) {
        self.refused.with_label_values(&[why.label()]).inc();
    }

    pub(crate) fn notification(&self, kind: &str, outcome: DeliveryOutcome) {
        self.notifications
            .with_label_values(&[kind, outcome.label()])
            .inc();
    }

    pub(crate) fn event_replayed(&self) {
        self.replayed.inc();
    }

    /// Counts an event that was refused because of `reason`: the queue, or the memory for waiting events.
    pub(crate) fn event_dropped(&self, reason: &str) {
        self.dropped.with_label_values(&[reason]).inc();
    }
}

/// A request that is being handled. Its client may disconnect at any moment, which drops it.
#[derive(Debug)]
pub(crate) struct InFlight(IntGauge);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// Returns `other` for unknown methods, of which a client could invent any number.
fn method_label(method: &Method) -> &'static str {
    match *method {
        Method::POST => "POST",
        Method::GET => "GET",
        Method::PUT => "PUT",
        Method::HEAD => "HEAD",
        Method::DELETE => "DELETE",
        _ => "other",
    }
}

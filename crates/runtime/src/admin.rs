//! The ports for operators: `/metrics` for Prometheus, `/healthz` and `/readyz` for the kubelet.

mod scrape;

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
};

use axum::{Router, http::StatusCode, routing::get};

use tokio::sync::Semaphore;

use crate::metrics::Metrics;

/// Name of the condition that lasts until the others have been named.
const START: &str = "the start";

/// Conditions for the process to be ready.
#[derive(Debug, Clone, Default)]
pub struct Readiness(Arc<Mutex<BTreeSet<String>>>);

impl Readiness {
    /// Of a process that starts: it is not ready before [`Readiness::started`], however early it is asked.
    pub(crate) fn starting() -> Self {
        let readiness = Self::default();
        readiness.expect(START);
        readiness
    }

    /// Says that everything that is waited for has been said, or that this process is a standby with all that it needs.
    pub fn started(&self) {
        self.done(START);
    }

    /// Says that the process is not ready until `what` is done.
    pub fn expect(&self, what: &str) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(what.to_owned());
    }

    /// Says that `what` is done.
    pub fn done(&self, what: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(what);
    }

    /// Returns the conditions that are not yet met.
    #[must_use]
    pub fn pending(&self) -> Vec<String> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
            .cloned()
            .collect()
    }
}

/// The port for Prometheus.
pub(crate) fn metrics_router(metrics: Metrics) -> Router {
    let turns = Arc::new(Semaphore::new(scrape::SCRAPES));
    Router::new().route(
        "/metrics",
        get(move || scrape::scrape(metrics.clone(), Arc::clone(&turns), scrape::WHOLE)),
    )
}

/// The port for the kubelet.
pub(crate) fn health_router(readiness: Readiness) -> Router {
    Router::new().route("/healthz", get(|| async { "ok" })).route(
        "/readyz",
        get(move || async move {
            let pending = readiness.pending();
            if pending.is_empty() {
                (StatusCode::OK, "ok".to_owned())
            } else {
                (
                    StatusCode::SERVICE_UNAVAILABLE,
                    format!("waiting for {}", pending.join(", ")),
                )
            }
        }),
    )
}

#[cfg(test)]
mod tests {
    use tower::ServiceExt;

    use super::*;

    async fn status(router: Router, path: &str) -> StatusCode {
        let request = axum::http::Request::builder()
            .uri(path)
            .body(axum::body::Body::empty())
            .unwrap();
        router.oneshot(request).await.unwrap().status()
    }

    #[tokio::test]
    async fn readiness_follows_pending_work() {
        let readiness = Readiness::default();
        readiness.expect("GitRepository");
        assert_eq!(
            status(health_router(readiness.clone()), "/healthz").await,
            StatusCode::OK
        );
        assert_eq!(
            status(health_router(readiness.clone()), "/readyz").await,
            StatusCode::SERVICE_UNAVAILABLE
        );
        readiness.done("GitRepository");
        assert_eq!(status(health_router(readiness), "/readyz").await, StatusCode::OK);
    }

    #[test]
    fn probes_fail_before_the_start() {
        let readiness = Readiness::starting();
        assert_eq!(readiness.pending(), [START]);
        readiness.expect("GitRepository");
        readiness.started();
        assert_eq!(readiness.pending(), ["GitRepository"]);
    }

    #[tokio::test]
    async fn metrics_are_served_and_nothing_else() {
        let metrics = Metrics::new("c").unwrap();
        assert_eq!(
            status(metrics_router(metrics.clone()), "/metrics").await,
            StatusCode::OK
        );
        assert_eq!(
            status(metrics_router(metrics), "/debug/pprof").await,
            StatusCode::NOT_FOUND
        );
    }
}

//! The ports of operators: `/metrics` for Prometheus, `/healthz` and `/readyz` for the kubelet.

mod scrape;

use std::{collections::BTreeSet, sync::Arc};

use axum::{Router, http::StatusCode, routing::get};
use parking_lot::Mutex;

use tokio::sync::Semaphore;

use crate::{metrics::Metrics, watchdog::Liveness};

/// Condition that lasts until the others have been named.
const START: &str = "the start";

#[derive(Debug, Clone, Default)]
pub struct Readiness(Arc<Mutex<BTreeSet<String>>>);

impl Readiness {
    /// Conditions of a process that starts: it is not ready before [`Readiness::started`], however early it is asked.
    pub(crate) fn starting() -> Self {
        let readiness = Self::default();
        readiness.expect(START);
        readiness
    }

    /// Notes that all conditions have been named, or that this process is a standby with all that it needs.
    pub fn started(&self) {
        self.done(START);
    }

    /// Makes the process unready until `condition` is met.
    pub fn expect(&self, condition: &str) {
        self.0.lock().insert(condition.to_owned());
    }

    pub fn done(&self, condition: &str) {
        self.0.lock().remove(condition);
    }

    /// Returns the unmet conditions.
    #[must_use]
    pub fn pending(&self) -> Vec<String> {
        self.0.lock().iter().cloned().collect()
    }
}

pub(crate) fn metrics_router(metrics: Metrics) -> Router {
    let turns = Arc::new(Semaphore::new(scrape::SCRAPES));
    Router::new().route(
        "/metrics",
        get(move || scrape::scrape(metrics.clone(), Arc::clone(&turns), scrape::WHOLE)),
    )
}

pub(crate) fn health_router(readiness: Readiness, liveness: Liveness) -> Router {
    let healthz = get(move || async move {
        if liveness.is_blocked() {
            (StatusCode::SERVICE_UNAVAILABLE, "a worker thread is blocked")
        } else {
            (StatusCode::OK, "ok")
        }
    });
    Router::new().route("/healthz", healthz).route(
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
            status(health_router(readiness.clone(), Liveness::default()), "/healthz").await,
            StatusCode::OK
        );
        assert_eq!(
            status(health_router(readiness.clone(), Liveness::default()), "/readyz").await,
            StatusCode::SERVICE_UNAVAILABLE
        );
        readiness.done("GitRepository");
        assert_eq!(
            status(health_router(readiness, Liveness::default()), "/readyz").await,
            StatusCode::OK
        );
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

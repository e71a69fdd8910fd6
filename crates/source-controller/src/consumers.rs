//! The tokens of those who download artifacts, which the API server reviews ([ADR 40](../../../docs/adr/0040-artifacts-by-token.md)).

use std::{
    net::IpAddr,
    time::{Duration, Instant},
};

use artifact::server::Asked;
use parking_lot::Mutex;
use prometheus::{IntCounterVec, Opts};
use runtime::{
    metrics::{Registry, registered},
    tokens::{TokenRefusal, TokenReviews},
};

/// Time between two lines of the log about downloads for one reason.
const LOGGED: Duration = Duration::from_secs(10 * 60);

/// Downloads by the result of the check of their tokens.
#[derive(Debug, Clone)]
pub(crate) struct DownloadMetrics(IntCounterVec);

impl DownloadMetrics {
    pub(crate) fn register(registry: &Registry) -> Result<Self, prometheus::Error> {
        let options = Opts::new(
            "weir_artifact_downloads_total",
            "Downloads of artifacts by the result of the check of their tokens.",
        );
        registered(registry, IntCounterVec::new(options, &["token"])?).map(Self)
    }

    fn count(&self, result: &str) {
        self.0.with_label_values(&[result]).inc();
    }
}

/// The check of downloads: an audit, or one that refuses.
#[derive(Debug)]
pub(crate) struct ConsumerCheck {
    reviews: TokenReviews,
    enforced: bool,
    metrics: DownloadMetrics,
    log: Mutex<AuditLog>,
}

impl ConsumerCheck {
    pub(crate) fn new(reviews: TokenReviews, enforced: bool, metrics: DownloadMetrics) -> Self {
        Self {
            reviews,
            enforced,
            metrics,
            log: Mutex::default(),
        }
    }

    /// Fails if the download for the address `peer` must not be served. No token is logged.
    pub(crate) async fn admit(&self, asked: &Asked, peer: Option<IpAddr>) -> Result<(), TokenRefusal> {
        let refusal = match self.reviews.identify(asked.headers(), peer).await {
            Ok(_) => {
                self.metrics.count("accepted");
                return Ok(());
            }
            Err(refusal) => refusal,
        };
        let result = label(refusal);
        self.metrics.count(result);
        if self.enforced {
            return Err(refusal);
        }
        if let Some(downloads) = self.log.lock().count(refusal, Instant::now()) {
            tracing::warn!(
                downloads,
                token = result,
                path = asked.path(),
                "artifacts are served without the token of a consumer: --artifact-tokens=enforced would refuse this"
            );
        }
        Ok(())
    }
}

const fn label(refusal: TokenRefusal) -> &'static str {
    match refusal {
        TokenRefusal::NoToken => "none",
        TokenRefusal::InvalidToken => "invalid",
        TokenRefusal::Stranger => "stranger",
        TokenRefusal::NoReview => "not_reviewed",
    }
}

/// The downloads since the last line of the log, for each reason.
#[derive(Debug, Default)]
struct AuditLog([AuditCount; 4]);

#[derive(Debug, Default)]
struct AuditCount {
    downloads: u64,
    logged: Option<Instant>,
}

impl AuditLog {
    /// Counts a download. Returns the number to log, unless there was a line lately.
    fn count(&mut self, refusal: TokenRefusal, now: Instant) -> Option<u64> {
        let position = match refusal {
            TokenRefusal::NoToken => 0,
            TokenRefusal::InvalidToken => 1,
            TokenRefusal::Stranger => 2,
            TokenRefusal::NoReview => 3,
        };
        let entry = self.0.get_mut(position)?;
        entry.downloads += 1;
        let is_due = |logged: Instant| now.saturating_duration_since(logged) >= LOGGED;
        if !entry.logged.is_none_or(is_due) {
            return None;
        }
        entry.logged = Some(now);
        Some(std::mem::take(&mut entry.downloads))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_is_logged_at_a_bounded_rate_with_its_number() {
        let (mut log, start) = (AuditLog::default(), Instant::now());
        assert_eq!(log.count(TokenRefusal::NoToken, start), Some(1));
        for second in 0..599 {
            let now = start + Duration::from_secs(second);
            assert_eq!(log.count(TokenRefusal::NoToken, now), None);
        }
        assert_eq!(log.count(TokenRefusal::Stranger, start), Some(1));
        assert_eq!(log.count(TokenRefusal::NoToken, start + LOGGED), Some(600));
        assert_eq!(log.count(TokenRefusal::NoToken, start + LOGGED), None);
    }
}

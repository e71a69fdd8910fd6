//! What the parts of one controller process share.

use std::{sync::Arc, time::Duration};

use kube::{Client, Config};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::{
    admin::Readiness, backoff::Backoff, client, error::Error, events::Recorder, flags::CommonFlags,
    gate::WriteGate, lease::Leadership, metrics::Metrics,
};

/// What the parts of one controller process share; cheap to clone.
#[derive(Clone)]
pub struct Context {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) name: &'static str,
    pub(crate) instance: String,
    pub(crate) flags: CommonFlags,
    pub(crate) client: Client,
    pub(crate) config: Config,
    pub(crate) recorder: Recorder,
    pub(crate) metrics: Metrics,
    pub(crate) readiness: Readiness,
    pub(crate) gate: WriteGate,
    pub(crate) leadership: watch::Receiver<Leadership>,
    /// Nothing new is begun after this.
    pub(crate) shutdown: CancellationToken,
    /// What runs ends after this.
    pub(crate) abort: CancellationToken,
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context")
            .field("name", &self.inner.name)
            .finish_non_exhaustive()
    }
}

impl Context {
    /// Name of the controller.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.inner.name
    }

    /// Name of this process, as in events.
    #[must_use]
    pub fn instance(&self) -> &str {
        &self.inner.instance
    }

    /// The flags that every controller has.
    #[must_use]
    pub fn flags(&self) -> &CommonFlags {
        &self.inner.flags
    }

    /// The client with the controller's own rights; its writes end with the lease.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.inner.client
    }

    /// The configuration of that client, to derive others from (impersonation).
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.inner.config
    }

    /// Makes a client of another configuration with the same frame: writes end with the lease, requests are counted.
    ///
    /// # Errors
    /// When certificates or credentials are unusable.
    pub fn client_for(&self, config: Config) -> Result<Client, Error> {
        client::build(config, self.inner.gate.clone(), self.inner.metrics.clone())
    }

    /// Records events.
    #[must_use]
    pub fn recorder(&self) -> &Recorder {
        &self.inner.recorder
    }

    /// The metrics, whose registry takes families of one controller too.
    #[must_use]
    pub fn metrics(&self) -> &Metrics {
        &self.inner.metrics
    }

    /// What must happen before the process is ready.
    #[must_use]
    pub fn readiness(&self) -> &Readiness {
        &self.inner.readiness
    }

    /// Whether this process may write.
    #[must_use]
    pub fn gate(&self) -> &WriteGate {
        &self.inner.gate
    }

    /// Ends when nothing new should be begun.
    #[must_use]
    pub fn shutdown(&self) -> &CancellationToken {
        &self.inner.shutdown
    }

    /// Waits until this process leads; at once where no leader is elected.
    ///
    /// # Errors
    /// When the process is to end before that.
    pub async fn leader(&self) -> Result<(), Error> {
        let mut leadership = self.inner.leadership.clone();
        if *leadership.borrow() == Leadership::Standby {
            self.readiness().started();
        }
        let leads = leadership.wait_for(|state| *state != Leadership::Standby);
        match self.inner.shutdown.run_until_cancelled(leads).await {
            Some(Ok(state)) if *state == Leadership::Leader => Ok(()),
            _ => Err(Error::Ended),
        }
    }

    pub(crate) fn backoff(&self) -> Backoff {
        Backoff {
            min: self.inner.flags.min_retry_delay,
            max: self.inner.flags.max_retry_delay,
        }
    }

    pub(crate) fn spread(&self, interval: Duration) -> Duration {
        crate::backoff::spread(
            interval,
            self.inner.flags.interval_jitter_percentage,
            fastrand::f64(),
        )
    }
}

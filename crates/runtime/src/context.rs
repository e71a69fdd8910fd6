//! The state that the parts of one controller process share.

use std::{sync::Arc, time::Duration};

use kube::{Client, Config};
use net::AddressPolicy;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::{
    admin::Readiness,
    backoff::Backoff,
    client::{self, BearerTokens},
    crash_marks::CrashMarks,
    error::Error,
    events::Recorder,
    flags::{CommonFlags, PrivateAddresses},
    gate::WriteGate,
    lease::Leadership,
    metrics::Metrics,
};

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
    pub(crate) addresses: AddressPolicy,
    pub(crate) recorder: Recorder,
    pub(crate) metrics: Metrics,
    pub(crate) readiness: Readiness,
    pub(crate) gate: WriteGate,
    pub(crate) crash_marks: CrashMarks,
    pub(crate) leadership: watch::Receiver<Leadership>,
    /// No new work starts once this is cancelled.
    pub(crate) shutdown: CancellationToken,
    /// Running work ends once this is cancelled.
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
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.inner.name
    }

    #[must_use]
    pub fn instance(&self) -> &str {
        &self.inner.instance
    }

    #[must_use]
    pub fn flags(&self) -> &CommonFlags {
        &self.inner.flags
    }

    #[must_use]
    pub fn client(&self) -> &Client {
        &self.inner.client
    }

    /// Returns the configuration of [`Context::client`], for clients that impersonate.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.inner.config
    }

    /// Returns the policy of addresses for servers that users name: Git, registries, providers.
    #[must_use]
    pub fn addresses(&self) -> &AddressPolicy {
        &self.inner.addresses
    }

    /// Returns the policy of addresses for `http` variables: private networks are refused unless `--private-addresses=all`.
    #[must_use]
    pub fn vars_addresses(&self) -> AddressPolicy {
        match self.inner.flags.private_addresses {
            PrivateAddresses::All => self.inner.addresses.clone(),
            _ => self.inner.addresses.clone().refusing_private(),
        }
    }

    /// Makes a client of a user's configuration whose writes end with the lease, and whose requests are counted. The policy of addresses
    /// holds; the own API server is allowed, because the credentials are the user's.
    pub fn client_for(&self, config: &Config) -> Result<Client, Error> {
        self.client_with(config, None)
    }

    /// Makes a client as [`Self::client_for`] does, whose requests have one of these tokens.
    pub fn client_with(
        &self,
        config: &Config,
        tokens: Option<Arc<dyn BearerTokens>>,
    ) -> Result<Client, Error> {
        let addresses = self.inner.addresses.clone().allowing_api_server();
        let shared = (self.inner.gate.clone(), self.inner.metrics.clone());
        client::build_restricted(config, &addresses, tokens, shared)
    }

    #[must_use]
    pub fn recorder(&self) -> &Recorder {
        &self.inner.recorder
    }

    #[must_use]
    pub fn metrics(&self) -> &Metrics {
        &self.inner.metrics
    }

    #[must_use]
    pub fn readiness(&self) -> &Readiness {
        &self.inner.readiness
    }

    #[must_use]
    pub fn gate(&self) -> &WriteGate {
        &self.inner.gate
    }

    /// Returns the token that is cancelled when a shutdown starts: no new work may start then.
    #[must_use]
    pub fn shutdown(&self) -> &CancellationToken {
        &self.inner.shutdown
    }

    /// Waits until this process leads; returns immediately without leader election. A waiting process is ready. Fails when a shutdown
    /// starts before.
    pub async fn leader(&self) -> Result<(), Error> {
        if *self.inner.leadership.borrow() == Leadership::Standby {
            self.readiness().started();
        }
        self.wait_to_lead().await
    }

    /// Waits until this process leads, as [`Context::leader`] does; but a waiting process is not ready before [`Readiness::started`].
    pub async fn wait_to_lead(&self) -> Result<(), Error> {
        let mut leadership = self.inner.leadership.clone();
        let leads = leadership.wait_for(|state| *state != Leadership::Standby);
        match self.inner.shutdown.run_until_cancelled(leads).await {
            Some(Ok(state)) if *state == Leadership::Leader => Ok(()),
            _ => Err(Error::Ended),
        }
    }

    pub(crate) fn crash_marks(&self) -> &CrashMarks {
        &self.inner.crash_marks
    }

    pub(crate) fn retry_delay(&self, failures: u32) -> Duration {
        let backoff = Backoff {
            min: self.inner.flags.min_retry_delay,
            max: self.inner.flags.max_retry_delay,
        };
        backoff.delay(failures, fastrand::f64())
    }

    pub(crate) fn with_jitter(&self, interval: Duration) -> Duration {
        let percent = self.inner.flags.interval_jitter_percentage;
        crate::backoff::with_jitter(interval, percent, fastrand::f64())
    }
}

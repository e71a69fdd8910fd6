//! One cluster under one identity.

mod requests;
pub(crate) mod send;

use std::{fmt, future::Future, sync::Arc, time::Duration};

use kube::Client;
use limits::{ByteBudget, Tenant, TenantPermits};
use tokio::time;
use tokio_util::sync::CancellationToken;

use crate::{Error, activity::Activity, admission::KnownRules, snapshot::Discovery, watch::Watches};

const MEMORY: u64 = 512 << 20;

#[derive(Debug, Clone)]
pub struct Settings {
    /// Maximum number of quick requests of a tenant in flight; default 16. Slow ones of all tenants have as many beside.
    pub concurrency: usize,
    /// Timeout of one attempt; default 30 s.
    pub request_timeout: Duration,
    /// Maximum number of attempts at one request, which ends earlier after two timeouts; default 5.
    pub attempts: u32,
    /// Maximum size of the body of an answer, in bytes; default 32 MiB.
    pub answer_bytes: usize,
    /// Time for which an operation holds its permit from request to request though somebody with fewer waits; default 30 s, and 0 for a
    /// server that is not trusted to answer soon.
    pub held: Duration,
    pub server: String,
    /// Memory for answers, of the tenant with the name of the server; default 512 MiB for this connection.
    pub memory: ByteBudget,
    /// Time for which an identity's rules of webhooks and policies are reused; default 0: they are read each time.
    pub admission_age: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            concurrency: 16,
            request_timeout: Duration::from_secs(30),
            attempts: 5,
            answer_bytes: 32 << 20,
            held: Duration::from_secs(30),
            server: String::new(),
            memory: ByteBudget::new(MEMORY),
            admission_age: Duration::ZERO,
        }
    }
}

struct Shared {
    client: Client,
    settings: Settings,
    permits: TenantPermits,
    discovery: Discovery,
    admission: KnownRules,
    watches: Watches,
}

/// A cluster under an identity. Clones, also with another identity or cancellation, share connections and discovery.
#[derive(Clone)]
pub struct Cluster {
    shared: Arc<Shared>,
    impersonate: Option<Arc<str>>,
    cancel: CancellationToken,
    interrupt: CancellationToken,
    /// The user of requests and watches: the server, for requests of the process itself.
    tenant: Arc<str>,
    memory: Tenant,
    pub(crate) activity: Option<Activity>,
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster")
            .field("impersonate", &self.impersonate)
            .finish_non_exhaustive()
    }
}

impl Cluster {
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self::with_settings(client, Settings::default())
    }

    #[must_use]
    pub fn with_settings(client: Client, settings: Settings) -> Self {
        let permits = TenantPermits::new(requests::limits(settings.concurrency));
        let tenant = Arc::from(settings.server.as_str());
        let memory = settings.memory.tenant(&settings.server);
        Self {
            shared: Arc::new(Shared {
                client,
                settings,
                permits,
                discovery: Discovery::default(),
                admission: KnownRules::default(),
                watches: Watches::default(),
            }),
            impersonate: None,
            cancel: CancellationToken::new(),
            interrupt: CancellationToken::new(),
            tenant,
            memory,
            activity: None,
        }
    }

    #[must_use]
    pub fn impersonate(&self, user: &str) -> Self {
        Self {
            impersonate: Some(Arc::from(user)),
            ..self.clone()
        }
    }

    /// Returns the cluster for requests of a tenant, such as a namespace, which share their number, watches and the memory of answers with
    /// other tenants.
    #[must_use]
    pub fn of_tenant(&self, tenant: &str) -> Self {
        Self {
            tenant: Arc::from(tenant),
            memory: self.shared.settings.memory.tenant(tenant),
            ..self.clone()
        }
    }

    /// Returns the cluster with requests and waits that end when `cancel` is cancelled.
    #[must_use]
    pub fn until(&self, cancel: CancellationToken) -> Self {
        Self {
            cancel,
            ..self.clone()
        }
    }

    /// Returns the cluster with waits that end when `interrupt` is cancelled. Requests go on, so that started changes are
    /// completed.
    #[must_use]
    pub fn waits_until(&self, interrupt: CancellationToken) -> Self {
        Self {
            interrupt,
            ..self.clone()
        }
    }

    /// Returns true if waits end, because something newer is to be done.
    #[must_use]
    pub fn is_interrupted(&self) -> bool {
        self.interrupt.is_cancelled()
    }

    #[must_use]
    pub fn cancellation(&self) -> &CancellationToken {
        &self.cancel
    }

    #[must_use]
    pub const fn tenant(&self) -> &Arc<str> {
        &self.tenant
    }

    #[must_use]
    pub fn impersonated(&self) -> Option<&str> {
        self.impersonate.as_deref()
    }

    pub(crate) fn discovery(&self) -> &Discovery {
        &self.shared.discovery
    }

    pub(crate) fn watches(&self) -> &Watches {
        &self.shared.watches
    }

    pub(crate) fn answer_bytes(&self) -> usize {
        self.shared.settings.answer_bytes
    }

    pub(crate) fn known_rules(&self) -> &KnownRules {
        &self.shared.admission
    }

    pub(crate) fn admission_age(&self) -> Duration {
        self.shared.settings.admission_age
    }

    pub async fn pause(&self, duration: Duration) -> Result<(), Error> {
        self.waiting(self.unless_cancelled(time::sleep(duration))).await
    }

    /// Sleeps within a wait. Fails when the operation is cancelled or its waits are interrupted.
    pub async fn pause_wait(&self, duration: Duration) -> Result<(), Error> {
        let paused = self.interrupt.run_until_cancelled(self.pause(duration)).await;
        paused.unwrap_or(Err(Error::Cancelled))
    }

    async fn unless_cancelled<T>(&self, work: impl Future<Output = T>) -> Result<T, Error> {
        self.cancel
            .run_until_cancelled(work)
            .await
            .ok_or(Error::Cancelled)
    }
}

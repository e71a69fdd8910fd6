//! The HTTP clients: one per set of certificates and proxy, shared by all sessions of the process.

#[cfg(test)]
mod fuzz;

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use net::{AddressPolicy, Client, ClientOptions, Proxies, Timeouts, Tls};
use tokio::{runtime::Handle, sync::Semaphore};
use tree::{ByteBudget, Tenant};

use crate::{
    Call, Error, Listing, Remote, Session, SshAlgorithms,
    announced::Announcements,
    clock::Clock,
    intake::{Intake, Shares},
    remote::ClientTls,
    session::{Way, on_branch::Proofs},
    ssh::{
        connect::Server,
        reuse::{Access, MAX_KEPT_BY_ALL},
    },
};

/// Maximum number of clients with own certificates or proxies that are kept.
const MAX_KEPT: usize = 32;

/// Timeout for connecting; the deadline of the session ends it earlier.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// Timeout for each read of a response: servers of Git send a sign of life every few seconds.
const READ_TIMEOUT: Duration = Duration::from_secs(60);

/// Bytes of memory that all sessions of a network hold: lists of refs, and objects while packs are indexed and read.
const MEMORY: u64 = 192 << 20;

/// An HTTP client with its certificates and proxy.
#[derive(Debug, Clone)]
struct OwnClient {
    tls: Option<ClientTls>,
    client: Client,
    /// Number of the client in this process.
    number: u64,
}

/// Clients; the last one is the last used.
#[derive(Debug, Default)]
struct Clients {
    kept: Vec<OwnClient>,
    /// Number of clients that were made.
    made: u64,
}

/// The way to all Git servers, one in a process. HTTP connections are kept for a short while and reused; credentials are not. SSH
/// connections belong to the [`Call`]s. Its sessions share 192 MiB of memory.
#[derive(Debug, Clone)]
pub struct Network {
    runtime: Handle,
    addresses: AddressPolicy,
    algorithms: SshAlgorithms,
    clients: Arc<Mutex<Clients>>,
    announcements: Announcements,
    proofs: Proofs,
    memory: ByteBudget,
    /// Bytes of temporary files.
    disk: ByteBudget,
    /// Permits for keeping connections to SSH servers.
    permits: Arc<Semaphore>,
}

impl Network {
    /// Makes a network whose connections live on `runtime` and lead to `addresses` alone. Sessions block their thread and may not
    /// run on one of the runtime's own workers.
    #[must_use]
    pub fn new(runtime: Handle, addresses: AddressPolicy) -> Self {
        Self {
            runtime,
            addresses,
            algorithms: SshAlgorithms::default(),
            clients: Arc::default(),
            announcements: Announcements::default(),
            proofs: Proofs::default(),
            memory: ByteBudget::new(MEMORY),
            disk: ByteBudget::new(u64::MAX),
            permits: Arc::new(Semaphore::new(MAX_KEPT_BY_ALL)),
        }
    }

    /// Offers these algorithms to SSH servers.
    #[must_use]
    pub fn with_ssh_algorithms(mut self, algorithms: SshAlgorithms) -> Self {
        self.algorithms = algorithms;
        self
    }

    /// Bounds the temporary files of all fetches together, and what else takes bytes of `disk`. A fetch takes twice the bytes of its pack.
    #[must_use]
    pub fn with_disk(mut self, disk: ByteBudget) -> Self {
        self.disk = disk;
        self
    }

    /// Returns the part of the temporary files that a tenant may hold, for those beside its fetches.
    #[must_use]
    pub fn disk(&self, tenant: &str) -> Tenant {
        self.disk.tenant(tenant)
    }

    /// Begins to talk to `remote`; the time of `call` runs from here.
    ///
    /// # Errors
    /// Fails when its certificates cannot be used.
    pub fn open(&self, remote: &Remote, call: &Call) -> Result<Session, Error> {
        let tenant = match call.tenant.as_str() {
            "" => remote.url().host_str().unwrap_or_default(),
            tenant => tenant,
        };
        let of_tenant = Shares {
            memory: self.memory.tenant(tenant),
            disk: self.disk.tenant(tenant),
            holdings: call.holdings.clone(),
        };
        let way = match remote.ssh() {
            Some((address, login)) => Way::Ssh(Box::new(Access {
                server: Server {
                    address: address.clone(),
                    login: login.clone(),
                    algorithms: self.algorithms.clone(),
                    policy: self.addresses.clone(),
                    proxy: remote.tls().and_then(|tls| tls.proxy.clone()),
                },
                connections: call.ssh.clone(),
                permits: Arc::clone(&self.permits),
            })),
            None => {
                let own = self.client(remote)?;
                let announcement = self.announcements.of(own.number, remote.url());
                Way::Http(own.client, Arc::new(announcement), Arc::default())
            }
        };
        let clock = Clock::start(self.runtime.clone(), call, remote.shown());
        let intake = Intake::new(remote.shown(), clock.clone(), of_tenant, call.limits.slowest);
        Session::new(way, clock, intake, (remote, call), (tenant, &self.proofs))
    }

    /// Asks a server again for a list of refs. Returns true if the answer is the same, byte for byte: all references mean what they meant.
    /// False if it is another one or none can be had; a [`Session`] says why. Blocks no thread, and has no timeout but those of HTTP.
    pub async fn is_unchanged(&self, listing: &Listing) -> bool {
        let Ok(own) = self.client(listing.remote()) else {
            return false;
        };
        match own.client.send(listing.request()).await {
            Ok(response) => listing.is_answer(response).await,
            Err(_) => false,
        }
    }

    fn client(&self, remote: &Remote) -> Result<OwnClient, Error> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        let own = match clients
            .kept
            .iter()
            .position(|own| own.tls.as_ref() == remote.tls())
        {
            Some(at) => clients.kept.remove(at),
            None => {
                clients.made += 1;
                OwnClient {
                    tls: remote.tls().cloned(),
                    client: build(remote, &self.addresses)?,
                    number: clients.made,
                }
            }
        };
        if clients.kept.len() >= MAX_KEPT {
            clients.kept.remove(0);
        }
        clients.kept.push(own.clone());
        Ok(own)
    }
}

fn build(remote: &Remote, addresses: &AddressPolicy) -> Result<Client, Error> {
    let own = remote.tls().cloned().unwrap_or_default();
    let options = ClientOptions {
        tls: Tls {
            identity: own.identity,
            ..Tls::with_ca(own.ca.as_deref())
        },
        proxies: own.proxy.map_or(Proxies::Environment, Proxies::Only),
        timeouts: Timeouts {
            connect: CONNECT_TIMEOUT,
            read: Some(READ_TIMEOUT),
            total: None,
        },
        // Servers of Git tell clients apart by it.
        user_agent: concat!("git/weir-", env!("CARGO_PKG_VERSION")),
        ..ClientOptions::new(addresses.clone())
    };
    options.build().map_err(|error| match error {
        net::Error::InvalidCa(why) => Error::InvalidCa {
            url: remote.shown(),
            why,
        },
        net::Error::InvalidIdentity => Error::InvalidIdentity { url: remote.shown() },
        error => Error::Tls {
            url: remote.shown(),
            why: error.to_string(),
        },
    })
}

//! HTTP clients: one per set of certificates and proxy, shared by all sessions of the process.

#[cfg(test)]
mod fuzz;

use std::{sync::Arc, time::Duration};

use limits::{ByteBudget, Tenant};
use net::{AddressPolicy, Client, ClientOptions, Proxies, Timeouts, Tls};
use parking_lot::Mutex;
use tokio::{runtime::Handle, sync::Semaphore};

use crate::{
    Call, Error, Listing, Remote, Resolved, Session, SshAlgorithms,
    announced::Announcements,
    intake::{Intake, Shares},
    remote::ClientTls,
    session::{Connector, non_commits::NonCommits, proofs::Proofs},
    ssh::{
        address::FETCH,
        connect::Server,
        reuse::{Access, MAX_IDLE_BY_ALL},
    },
};

const MAX_CLIENTS: usize = 32;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// Timeout for each read of a response: Git servers send keepalives every few seconds.
const READ_TIMEOUT: Duration = Duration::from_secs(60);

/// Bytes of memory of all sessions, in a process without a ledger: lists of refs, and objects while packs are indexed and read.
const MEMORY: u64 = 192 << 20;

#[derive(Debug, Clone)]
struct OwnClient {
    tls: Option<ClientTls>,
    client: Client,
    number: u64,
}

/// The last one was used last.
#[derive(Debug, Default)]
struct Clients {
    all: Vec<OwnClient>,
    made: u64,
}

/// Connections to all Git servers of a process. HTTP connections are reused for a short while; credentials are not kept. SSH
/// connections belong to the [`Call`]s. The sessions share the ledger of the process, or 192 MiB of
/// memory.
#[derive(Debug, Clone)]
pub struct Network {
    runtime: Handle,
    addresses: AddressPolicy,
    algorithms: SshAlgorithms,
    clients: Arc<Mutex<Clients>>,
    announcements: Announcements,
    proofs: Proofs,
    non_commits: NonCommits,
    memory: ByteBudget,
    disk: ByteBudget,
    permits: Arc<Semaphore>,
}

impl Network {
    /// Creates a network with connections on `runtime`, to `addresses` only. Sessions block their thread and must not run on a
    /// worker of the runtime.
    #[must_use]
    pub fn new(runtime: Handle, addresses: AddressPolicy) -> Self {
        Self {
            runtime,
            addresses,
            algorithms: SshAlgorithms::default(),
            clients: Arc::default(),
            announcements: Announcements::default(),
            proofs: Proofs::default(),
            non_commits: NonCommits::default(),
            memory: limits::process_memory().unwrap_or_else(|| ByteBudget::new(MEMORY)),
            disk: ByteBudget::new(u64::MAX),
            permits: Arc::new(Semaphore::new(MAX_IDLE_BY_ALL)),
        }
    }

    #[must_use]
    pub fn with_ssh_algorithms(mut self, algorithms: SshAlgorithms) -> Self {
        self.algorithms = algorithms;
        self
    }

    /// Limits the temporary files of all fetches, together with other users of `disk`. A fetch takes twice the size of its
    /// pack.
    #[must_use]
    pub fn with_disk(mut self, disk: ByteBudget) -> Self {
        self.disk = disk;
        self
    }

    /// Returns a tenant's part of the temporary files, for files beside its fetches.
    #[must_use]
    pub fn disk(&self, tenant: &str) -> Tenant {
        self.disk.tenant(tenant)
    }

    /// Opens a session with `remote`; the timeout of `call` starts now. Fails when its certificates cannot be used.
    pub fn open(&self, remote: &Remote, call: &Call) -> Result<Session, Error> {
        let tenant = match call.tenant.as_str() {
            "" => remote.url().host_str().unwrap_or_default(),
            tenant => tenant,
        };
        let of_tenant = Shares {
            memory: self.memory.tenant(tenant).revoked_by(&call.revoked),
            disk: self.disk.tenant(tenant).revoked_by(&call.revoked),
            reservations: call.reservations.clone(),
        };
        let connector = match remote.ssh() {
            Some((address, login)) => Connector::Ssh(Box::new(Access {
                server: Server {
                    address: address.clone(),
                    login: login.clone(),
                    algorithms: self.algorithms.clone(),
                    policy: self.addresses.clone(),
                    proxy: remote.tls().and_then(|tls| tls.proxy.clone()),
                },
                program: FETCH,
                connections: call.ssh.clone(),
                permits: Arc::clone(&self.permits),
            })),
            None => {
                let own = self.client(remote)?;
                let announcement = self.announcements.of(own.number, remote.url());
                Connector::Http(own.client, Arc::new(announcement), Arc::default())
            }
        };
        let clock = call.start_clock(self.runtime.clone(), remote.safe_url());
        let intake = Intake::new(remote.safe_url(), clock.clone(), of_tenant, call.limits.slowest);
        Session::new(
            connector,
            clock,
            intake,
            (remote, call),
            (tenant, &self.proofs, &self.non_commits),
        )
    }

    /// Returns true if a fetch found that a reference leads to no commit. A range passes over such a tag from then on.
    #[must_use]
    pub fn is_no_commit(&self, resolved: &Resolved) -> bool {
        self.non_commits.has(&resolved.want)
    }

    /// Repeats a request for a list of refs. Returns true if the answer is the same, byte for byte: no reference has moved.
    /// False for another answer or none; a [`Session`] gives the reason. Async, and bounded by the timeouts of HTTP only.
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
        let mut clients = self.clients.lock();
        let own = match clients
            .all
            .iter()
            .position(|own| own.tls.as_ref() == remote.tls())
        {
            Some(at) => clients.all.remove(at),
            None => {
                clients.made += 1;
                OwnClient {
                    tls: remote.tls().cloned(),
                    client: build(remote, &self.addresses)?,
                    number: clients.made,
                }
            }
        };
        if clients.all.len() >= MAX_CLIENTS {
            clients.all.remove(0);
        }
        clients.all.push(own.clone());
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
        // Servers of Git tell clients apart by this name.
        user_agent: concat!("git/weir-", env!("CARGO_PKG_VERSION")),
        ..ClientOptions::new(addresses.clone())
    };
    options.build().map_err(|error| match error {
        net::Error::InvalidCa(why) => Error::InvalidCa {
            url: remote.safe_url(),
            why,
        },
        net::Error::InvalidIdentity => Error::InvalidIdentity {
            url: remote.safe_url(),
        },
        error => Error::Tls {
            url: remote.safe_url(),
            why: error.to_string(),
        },
    })
}

//! The HTTP clients: one per set of CA certificates, shared by all sessions of the process.

use std::{
    sync::{Arc, LazyLock, Mutex, PoisonError},
    time::Duration,
};

use net::{AddressPolicy, Client, ClientOptions, Timeouts, Tls};
use tokio::runtime::Handle;
use tree::Memory;

use crate::{Call, Error, Remote, Session};

/// Maximum number of clients with own CA certificates that are kept.
const MAX_KEPT: usize = 32;

/// Timeout for connecting; the deadline of the session ends it earlier.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// Timeout for each read of a response: servers of Git send a sign of life every few seconds.
const READ_TIMEOUT: Duration = Duration::from_secs(60);

/// Bytes of memory that all sessions of the process hold: lists of refs, and objects while packs are indexed and read.
const MEMORY: u64 = 192 << 20;

static PROCESS: LazyLock<Memory> = LazyLock::new(|| Memory::new(MEMORY));

/// A client by the CA certificates that it trusts beside the system's; the last one is the last used.
type TrustingClient = (Option<Vec<u8>>, Client);

/// The way to all Git servers. Connections are kept for a short while and reused; credentials are not.
#[derive(Debug, Clone)]
pub struct Network {
    runtime: Handle,
    addresses: AddressPolicy,
    clients: Arc<Mutex<Vec<TrustingClient>>>,
}

impl Network {
    /// Makes a network whose connections live on `runtime` and lead to `addresses` alone. Sessions block their thread and may not
    /// run on one of the runtime's own workers.
    #[must_use]
    pub fn new(runtime: Handle, addresses: AddressPolicy) -> Self {
        Self {
            runtime,
            addresses,
            clients: Arc::default(),
        }
    }

    /// Begins to talk to `remote`; the time of `call` runs from here.
    ///
    /// # Errors
    /// Fails when its CA certificates cannot be used.
    pub fn open(&self, remote: &Remote, call: &Call) -> Result<Session, Error> {
        let tenant = match call.tenant.as_str() {
            "" => remote.url().host_str().unwrap_or_default(),
            tenant => tenant,
        };
        let memory = PROCESS.tenant(tenant);
        Session::new(self.client(remote)?, self.runtime.clone(), memory, remote, call)
    }

    fn client(&self, remote: &Remote) -> Result<Client, Error> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = clients.iter().position(|(ca, _)| ca.as_deref() == remote.ca()) {
            let used = clients.remove(at);
            let client = used.1.clone();
            clients.push(used);
            return Ok(client);
        }
        let client = build(remote, &self.addresses)?;
        if clients.len() >= MAX_KEPT {
            clients.remove(0);
        }
        clients.push((remote.ca().map(<[u8]>::to_vec), client.clone()));
        Ok(client)
    }
}

fn build(remote: &Remote, addresses: &AddressPolicy) -> Result<Client, Error> {
    let options = ClientOptions {
        tls: Tls::with_ca(remote.ca()),
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
        error => Error::Tls {
            url: remote.shown(),
            why: error.to_string(),
        },
    })
}

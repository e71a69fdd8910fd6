//! The HTTP clients: one per set of CA certificates, shared by all sessions of the process.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use net::{Resolver, innermost};
use reqwest::{Certificate, Client, ClientBuilder, redirect::Policy};
use tokio::runtime::Handle;

use crate::{Call, Error, Remote, Session};

/// How many clients with own CA certificates are kept.
const MAX_KEPT: usize = 32;

/// How long a connection may take to stand; the deadline of the session ends it earlier.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// A client by the CA certificates that it trusts beside the system's; the last one is the last used.
type Kept = (Option<Vec<u8>>, Client);

/// The way to all Git servers. Connections are kept for a short while and reused; credentials are not.
#[derive(Debug, Clone)]
pub struct Network {
    runtime: Handle,
    clients: Arc<Mutex<Vec<Kept>>>,
}

impl Network {
    /// Makes a network whose connections live on `runtime`. Sessions block their thread and may not run on one of
    /// the runtime's own workers.
    #[must_use]
    pub fn new(runtime: Handle) -> Self {
        // Another part of the process may have chosen already; then that choice stays.
        let _ = rustls::crypto::ring::default_provider().install_default();
        Self {
            runtime,
            clients: Arc::default(),
        }
    }

    /// Begins to talk to `remote`; the time of `call` runs from here.
    ///
    /// # Errors
    /// When its CA certificates cannot be used.
    pub fn open(&self, remote: &Remote, call: &Call) -> Result<Session, Error> {
        Session::new(self.client(remote)?, self.runtime.clone(), remote, call)
    }

    fn client(&self, remote: &Remote) -> Result<Client, Error> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = clients.iter().position(|(ca, _)| ca.as_deref() == remote.ca()) {
            let used = clients.remove(at);
            let client = used.1.clone();
            clients.push(used);
            return Ok(client);
        }
        let client = build(remote)?;
        if clients.len() >= MAX_KEPT {
            clients.remove(0);
        }
        clients.push((remote.ca().map(<[u8]>::to_vec), client.clone()));
        Ok(client)
    }
}

fn build(remote: &Remote) -> Result<Client, Error> {
    let invalid_ca = |why: String| Error::InvalidCa {
        url: remote.shown(),
        why,
    };
    let extra = match remote.ca() {
        Some(pem) => Certificate::from_pem_bundle(pem).map_err(|error| invalid_ca(innermost(&error)))?,
        None => Vec::new(),
    };
    if remote.ca().is_some() && extra.is_empty() {
        return Err(invalid_ca("no certificate found".to_owned()));
    }
    // A system without any CA certificates can still use those of the secret, and plain http.
    builder()
        .tls_certs_merge(extra.clone())
        .build()
        .or_else(|_| builder().tls_certs_only(extra).build())
        .map_err(|error| match remote.ca() {
            Some(_) => invalid_ca(innermost(&error)),
            None => Error::Tls {
                url: remote.shown(),
                why: innermost(&error),
            },
        })
}

fn builder() -> ClientBuilder {
    Client::builder()
        .user_agent(concat!("git/weir-", env!("CARGO_PKG_VERSION")))
        .redirect(Policy::none())
        .connect_timeout(CONNECT_TIMEOUT)
        .pool_idle_timeout(Duration::from_secs(15))
        .pool_max_idle_per_host(2)
        .dns_resolver(Resolver)
}

//! HTTP clients, each bound to the addresses that were checked for it.

use std::{
    net::SocketAddr,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use reqwest::{Certificate, Client, Identity, redirect};
use url::Url;

use super::config::Tls;
use crate::Error;

/// Clients that are kept for their connections.
const KEPT: usize = 32;
const CONNECT: Duration = Duration::from_secs(10);

#[derive(Clone, PartialEq, Eq)]
struct Use {
    host: String,
    addresses: Vec<SocketAddr>,
    tls: Tls,
}

/// HTTP clients by host, addresses and certificates.
#[derive(Default)]
pub(super) struct Clients {
    /// The one used last comes last.
    kept: Mutex<Vec<(Use, Client)>>,
}

impl Clients {
    /// A client that connects to `addresses` and nowhere else, and follows no redirect.
    pub(super) fn get(&self, url: &Url, addresses: &[SocketAddr], tls: &Tls) -> Result<Client, Error> {
        let host = url.host_str().unwrap_or_default().to_owned();
        let mut addresses = addresses.to_vec();
        addresses.sort_unstable();
        let wanted = Use {
            host,
            addresses,
            tls: tls.clone(),
        };
        {
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(at) = kept.iter().position(|(known, _)| *known == wanted) {
                let found = kept.remove(at);
                let client = found.1.clone();
                kept.push(found);
                return Ok(client);
            }
        }
        let client = build(&wanted)?;
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= KEPT {
            kept.remove(0);
        }
        kept.push((wanted, client.clone()));
        Ok(client)
    }
}

fn build(wanted: &Use) -> Result<Client, Error> {
    let mut builder = Client::builder()
        .user_agent(concat!(
            "weir-notification-controller/",
            env!("CARGO_PKG_VERSION")
        ))
        .redirect(redirect::Policy::none())
        .referer(false)
        .connect_timeout(CONNECT)
        .pool_max_idle_per_host(1)
        .pool_idle_timeout(Duration::from_secs(30))
        .resolve_to_addrs(&wanted.host, &wanted.addresses);
    if let Some(ca) = &wanted.tls.ca {
        let certificates = Certificate::from_pem_bundle(ca).map_err(|_| Error::Certificates)?;
        builder = builder.tls_certs_only(certificates);
    }
    if let Some(pair) = &wanted.tls.client {
        let identity = Identity::from_pem(pair.expose()).map_err(|_| Error::Certificates)?;
        builder = builder.identity(identity);
    }
    builder.build().map_err(|_| Error::Certificates)
}

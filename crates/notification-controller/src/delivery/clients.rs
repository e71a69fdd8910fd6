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

/// Looks whether a client can be made with these certificates.
pub(super) fn check(tls: &Tls) -> Result<(), Error> {
    if *tls == Tls::default() {
        return Ok(());
    }
    let nowhere = Use {
        host: String::new(),
        addresses: Vec::new(),
        tls: tls.clone(),
    };
    build(&nowhere).map(|_| ())
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
        let bad = Error::Certificates("ca.crt holds no certificates in PEM");
        let certificates = Certificate::from_pem_bundle(ca).map_err(|_| bad.clone())?;
        if certificates.is_empty() {
            return Err(bad);
        }
        builder = builder.tls_certs_only(certificates);
    }
    if let Some(pair) = &wanted.tls.client {
        let bad = Error::Certificates("tls.crt and tls.key are no certificate and key in PEM");
        let identity = Identity::from_pem(pair.expose()).map_err(|_| bad)?;
        builder = builder.identity(identity);
    }
    // Nothing else of what is set here can be wrong.
    let unusable = Error::Certificates("a certificate cannot be used, or tls.key does not belong to tls.crt");
    builder.build().map_err(|_| unusable)
}

#[cfg(test)]
mod tests {
    use api::Secret;

    use super::*;

    #[test]
    fn certificates_are_judged_without_a_connection() {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let pem =
            |label: &str, body: &str| format!("-----BEGIN {label}-----\n{body}\n-----END {label}-----\n");
        let ca = |text: &str| Tls {
            ca: Some(text.as_bytes().to_vec()),
            client: None,
        };
        let client = |text: &str| Tls {
            ca: None,
            client: Some(Secret::new(text.as_bytes().to_vec())),
        };
        assert_eq!(check(&Tls::default()), Ok(()));
        for tls in [
            ca("s3cret"),
            ca(""),
            ca(&pem("CERTIFICATE", "s3cret!")),
            ca(&pem("CERTIFICATE", "AAAA")),
            client("s3cret"),
            client(&pem("CERTIFICATE", "AAAA")),
            client(&format!(
                "{}{}",
                pem("CERTIFICATE", "AAAA"),
                pem("PRIVATE KEY", "AAAA")
            )),
        ] {
            let error = check(&tls).unwrap_err();
            assert!(matches!(error, Error::Certificates(_)), "{error}");
        }
    }
}

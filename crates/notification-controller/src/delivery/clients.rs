//! HTTP clients for providers, by their certificates.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use net::{AddressPolicy, Client, ClientOptions, Roots, Timeouts};

use super::config::Tls;
use crate::Error;

/// The largest number of clients that are kept for their connections.
const MAX_CLIENTS: usize = 32;
const CONNECT: Duration = Duration::from_secs(10);

/// HTTP clients by certificates, all under one policy of addresses.
pub(super) struct Clients {
    addresses: AddressPolicy,
    /// The one used last comes last.
    clients: Mutex<Vec<(Tls, Client)>>,
}

impl Clients {
    pub(super) fn new(addresses: AddressPolicy) -> Self {
        Self {
            addresses,
            clients: Mutex::default(),
        }
    }

    /// Returns the policy of addresses.
    pub(super) fn addresses(&self) -> &AddressPolicy {
        &self.addresses
    }

    /// Returns a client that follows no redirect.
    pub(super) fn get(&self, tls: &Tls) -> Result<Client, Error> {
        {
            let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(at) = clients.iter().position(|(known, _)| known == tls) {
                let found = clients.remove(at);
                let client = found.1.clone();
                clients.push(found);
                return Ok(client);
            }
        }
        let client = build(&self.addresses, tls)?;
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if clients.len() >= MAX_CLIENTS {
            clients.remove(0);
        }
        clients.push((tls.clone(), client.clone()));
        Ok(client)
    }
}

/// Checks that a client can be made with these certificates.
pub(super) fn check(tls: &Tls) -> Result<(), Error> {
    if *tls == Tls::default() {
        return Ok(());
    }
    build(&AddressPolicy::unrestricted(), tls).map(|_| ())
}

fn build(addresses: &AddressPolicy, tls: &Tls) -> Result<Client, Error> {
    let options = ClientOptions {
        tls: net::Tls {
            roots: tls.ca.clone().map_or(Roots::System, Roots::Only),
            identity: tls.client.clone(),
            insecure_skip_verify: false,
        },
        timeouts: Timeouts {
            connect: CONNECT,
            read: None,
            total: None,
        },
        idle_per_host: 1,
        ..ClientOptions::new(addresses.clone())
    };
    options.build().map_err(|error| {
        Error::Certificates(match error {
            net::Error::InvalidCa(_) => "ca.crt holds no certificates in PEM",
            net::Error::InvalidIdentity => {
                "tls.crt and tls.key are no certificate and key in PEM, or do not belong together"
            }
            _ => "a certificate cannot be used",
        })
    })
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

//! HTTP clients for providers, by their certificates and proxies.

use std::time::Duration;

use net::{AddressPolicy, Client, ClientOptions, Proxies, Timeouts};
use parking_lot::Mutex;
use url::Url;

use super::{config::Route, lanes::WIDTH, nats};
use crate::Error;

/// Maximum number of cached clients.
const MAX_CLIENTS: usize = 32;
const CONNECT: Duration = Duration::from_secs(10);

/// HTTP clients by certificates and proxy, all under one policy of addresses.
pub(super) struct Clients {
    addresses: AddressPolicy,
    /// In order of their last use.
    clients: Mutex<Vec<(Route, Client)>>,
}

impl Clients {
    pub(super) fn new(addresses: AddressPolicy) -> Self {
        Self {
            addresses,
            clients: Mutex::default(),
        }
    }

    pub(super) fn addresses(&self) -> &AddressPolicy {
        &self.addresses
    }

    /// Checks an address under the policy, as far as this is possible without resolving it.
    pub(super) fn check(&self, address: &Url) -> Result<(), Error> {
        let checked = match address.scheme() {
            "http" | "https" => self.addresses.check_url(address),
            _ => {
                let host = nats::host(address)?;
                self.addresses.check_host(&host, Some(nats::port(address)))
            }
        };
        checked.map_err(Error::RefusedAddress)
    }

    /// Returns a client that follows no redirects.
    pub(super) fn get(&self, route: &Route) -> Result<Client, Error> {
        {
            let mut clients = self.clients.lock();
            if let Some(at) = clients.iter().position(|(known, _)| known == route) {
                let found = clients.remove(at);
                let client = found.1.clone();
                clients.push(found);
                return Ok(client);
            }
        }
        let client = build(&self.addresses, route)?;
        let mut clients = self.clients.lock();
        if clients.len() >= MAX_CLIENTS {
            clients.remove(0);
        }
        clients.push((route.clone(), client.clone()));
        Ok(client)
    }
}

/// Checks that a client can be made with these certificates and this proxy.
pub(super) fn check(addresses: &AddressPolicy, route: &Route) -> Result<(), Error> {
    if *route == Route::default() {
        return Ok(());
    }
    build(addresses, route).map(|_| ())
}

fn build(addresses: &AddressPolicy, route: &Route) -> Result<Client, Error> {
    let options = ClientOptions {
        proxies: route.proxy.clone().map_or(Proxies::Environment, Proxies::Only),
        tls: route.tls.settings(),
        timeouts: Timeouts {
            connect: CONNECT,
            read: None,
            total: None,
        },
        // With fewer, most deliveries of a busy Provider would make a connection of their own.
        idle_per_host: WIDTH,
        ..ClientOptions::new(addresses.clone())
    };
    options.build().map_err(|error| match error {
        net::Error::Refused(why) => Error::RefusedProxy(why),
        net::Error::InvalidCa(_) => Error::Certificates("ca.crt holds no certificates in PEM"),
        net::Error::InvalidIdentity => Error::Certificates(
            "tls.crt and tls.key are no certificate and key in PEM, or do not belong together",
        ),
        _ => Error::Certificates("a certificate cannot be used"),
    })
}

#[cfg(test)]
mod tests {
    use api::Secret;

    use super::{super::config::Tls, *};

    fn judged(tls: Tls) -> Result<(), Error> {
        let route = Route { tls, proxy: None };
        check(&AddressPolicy::unrestricted(), &route)
    }

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
        assert_eq!(judged(Tls::default()), Ok(()));
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
            let error = judged(tls).unwrap_err();
            assert!(matches!(error, Error::Certificates(_)), "{error}");
        }
    }

    #[test]
    fn proxy_obeys_the_policy_of_addresses() {
        let route = Route {
            proxy: Some(net::Proxy::parse("http://169.254.169.254", None, None).unwrap()),
            ..Route::default()
        };
        let error = check(
            &AddressPolicy::controller(net::ClusterServices::default()),
            &route,
        );
        assert!(matches!(error, Err(Error::RefusedProxy(_))), "{error:?}");
    }
}

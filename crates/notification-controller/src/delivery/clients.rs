//! HTTP clients for providers, by their certificates and proxies.

use std::{sync::OnceLock, time::Duration};

use limits::{TenantCache, compute};
use net::{AddressPolicy, Client, ClientOptions, Proxies, Timeouts};
use parking_lot::Mutex;
use url::{Host, Url};

use super::{lanes::WIDTH, settings::Connection};
use crate::error::Error;

/// Maximum number of cached clients.
const MAX_CLIENTS: usize = 32;
const NATS_PORT: u16 = 4222;
const CONNECT: Duration = Duration::from_secs(10);

/// HTTP clients by certificates and proxy, all under one policy of addresses.
pub(super) struct Clients {
    addresses: AddressPolicy,
    /// The client of Providers without certificates and proxy, once it is made.
    plain: OnceLock<Client>,
    /// The other clients, each of a namespace.
    clients: Mutex<TenantCache<(String, Connection), Client>>,
}

impl Clients {
    pub(super) fn new(addresses: AddressPolicy) -> Self {
        Self {
            addresses,
            plain: OnceLock::new(),
            clients: Mutex::new(TenantCache::new(MAX_CLIENTS)),
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
                let host = nats_host(address)?;
                self.addresses.check_host(&host, Some(nats_port(address)))
            }
        };
        checked.map_err(Error::RefusedAddress)
    }

    /// Returns a client that follows no redirects, for a Provider in `namespace`.
    pub(super) async fn get(&self, namespace: &str, connection: &Connection) -> Result<Client, Error> {
        if *connection == Connection::default() {
            return match self.plain.get() {
                Some(client) => Ok(client.clone()),
                None => {
                    let client = build(&self.addresses, connection)?;
                    Ok(self.plain.get_or_init(|| client).clone())
                }
            };
        }
        let key = (namespace.to_owned(), connection.clone());
        let known = self.clients.lock().get(&key).cloned();
        if let Some(client) = known {
            return Ok(client);
        }
        let (addresses, wanted) = (self.addresses.clone(), connection.clone());
        let built = compute(namespace, move |_| build(&addresses, &wanted));
        let client = built.await.unwrap_or(Err(Error::Busy))?;
        self.clients.lock().insert(namespace, key, client.clone(), 1);
        Ok(client)
    }
}

/// Returns the host of a NATS server. URLs of this scheme have it as a domain, even if it is an IP address.
pub(super) fn nats_host(server: &Url) -> Result<Host, Error> {
    let host = server.host_str().ok_or(Error::BadAddress)?;
    Host::parse(host).map_err(|_| Error::BadAddress)
}

pub(super) fn nats_port(server: &Url) -> u16 {
    server.port().unwrap_or(NATS_PORT)
}

/// Checks that a client can be made with these certificates and this proxy.
pub(super) fn check(addresses: &AddressPolicy, connection: &Connection) -> Result<(), Error> {
    if *connection == Connection::default() {
        return Ok(());
    }
    build(addresses, connection).map(|_| ())
}

fn build(addresses: &AddressPolicy, connection: &Connection) -> Result<Client, Error> {
    let options = ClientOptions {
        proxies: connection
            .proxy
            .clone()
            .map_or(Proxies::Environment, Proxies::Only),
        tls: connection.tls.settings(),
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

    use super::{super::settings::Tls, *};

    fn judged(tls: Tls) -> Result<(), Error> {
        let connection = Connection { tls, proxy: None };
        check(&AddressPolicy::unrestricted(), &connection)
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

    #[tokio::test]
    async fn many_connections_of_one_namespace_evict_none_of_another() {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let clients = Clients::new(AddressPolicy::unrestricted());
        let through = |port: usize| Connection {
            proxy: Some(net::Proxy::parse(&format!("http://127.0.0.1:{port}"), None, None).unwrap()),
            ..Connection::default()
        };
        assert!(clients.get("apps", &through(1)).await.is_ok());
        assert!(clients.get("apps", &Connection::default()).await.is_ok());
        for port in 0..MAX_CLIENTS + 4 {
            assert!(clients.get("greedy", &through(1000 + port)).await.is_ok());
        }
        let mut cache = clients.clients.lock();
        assert_eq!(cache.size(), MAX_CLIENTS);
        assert!(cache.get(&("apps".to_owned(), through(1))).is_some());
    }

    #[test]
    fn proxy_obeys_the_policy_of_addresses() {
        let connection = Connection {
            proxy: Some(net::Proxy::parse("http://169.254.169.254", None, None).unwrap()),
            ..Connection::default()
        };
        let error = check(
            &AddressPolicy::controller(net::ClusterServices::default()),
            &connection,
        );
        assert!(matches!(error, Err(Error::RefusedProxy(_))), "{error:?}");
    }
}

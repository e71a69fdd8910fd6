//! Where notifications must not go: whoever may create a Provider chooses the address, and this process may reach more
//! than he does.

use std::net::{IpAddr, SocketAddr};

use http::Uri;
use net::{is_link_local, plain};
use tokio::net::lookup_host;
use url::{Host, Url};

use crate::Error;

/// Refuses link-local addresses (metadata services of clouds), addresses that mean this host itself or a group, and the
/// API server.
#[derive(Debug)]
pub(super) struct AddressGuard {
    api_server: Vec<SocketAddr>,
    allow: bool,
}

impl AddressGuard {
    pub(super) async fn new(cluster: &Uri, allow: bool) -> Self {
        let mut api_server = Vec::new();
        let default_port = if cluster.scheme_str() == Some("http") {
            80
        } else {
            443
        };
        if let Some(host) = cluster.host() {
            let host = host.trim_start_matches('[').trim_end_matches(']');
            let port = cluster.port_u16().unwrap_or(default_port);
            api_server.extend(lookup_host((host, port)).await.into_iter().flatten());
        }
        let service = (
            std::env::var("KUBERNETES_SERVICE_HOST"),
            std::env::var("KUBERNETES_SERVICE_PORT"),
        );
        if let (Ok(host), Ok(port)) = service
            && let (Ok(host), Ok(port)) = (host.parse::<IpAddr>(), port.parse::<u16>())
        {
            api_server.push(SocketAddr::new(host, port));
        }
        Self { api_server, allow }
    }

    /// The addresses that may be connected to: all that the host has, or none. What was checked is what is used.
    pub(super) async fn resolve(&self, url: &Url) -> Result<Vec<SocketAddr>, Error> {
        let port = url.port_or_known_default().ok_or(Error::BadAddress)?;
        let addresses: Vec<SocketAddr> = match url.host().ok_or(Error::BadAddress)? {
            Host::Ipv4(ip) => vec![SocketAddr::new(ip.into(), port)],
            Host::Ipv6(ip) => vec![SocketAddr::new(ip.into(), port)],
            Host::Domain(name) => lookup_host((name, port))
                .await
                .map_err(|_| Error::Unresolved)?
                .collect(),
        };
        if addresses.is_empty() {
            return Err(Error::Unresolved);
        }
        self.permit(&addresses)?;
        Ok(addresses)
    }

    /// Refuses a URL whose host is an address by itself that must not be connected to. What a name means is found with
    /// each delivery.
    pub(super) fn check(&self, url: &Url) -> Result<(), Error> {
        let port = url.port_or_known_default().ok_or(Error::BadAddress)?;
        match url.host().ok_or(Error::BadAddress)? {
            Host::Ipv4(ip) => self.permit(&[SocketAddr::new(ip.into(), port)]),
            Host::Ipv6(ip) => self.permit(&[SocketAddr::new(ip.into(), port)]),
            Host::Domain(_) => Ok(()),
        }
    }

    fn permit(&self, addresses: &[SocketAddr]) -> Result<(), Error> {
        match addresses.iter().find_map(|address| self.refusal(*address)) {
            Some(why) if !self.allow => Err(Error::RefusedAddress(why)),
            _ => Ok(()),
        }
    }

    fn refusal(&self, address: SocketAddr) -> Option<&'static str> {
        let ip = plain(address.ip());
        let is_api_server = self
            .api_server
            .iter()
            .any(|server| plain(server.ip()) == ip && server.port() == address.port());
        if is_api_server {
            return Some("the API server");
        }
        match ip {
            ip if is_link_local(ip) => Some("a link-local address"),
            ip if ip.is_unspecified() => Some("the unspecified address"),
            ip if ip.is_multicast() => Some("a multicast address"),
            IpAddr::V4(ip) if ip.is_broadcast() => Some("the broadcast address"),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn resolved(guard: &AddressGuard, url: &str) -> Result<(), Error> {
        guard.resolve(&Url::parse(url).unwrap()).await.map(|_| ())
    }

    #[tokio::test]
    async fn addresses_that_only_this_process_reaches_are_refused() {
        let guard = AddressGuard::new(&Uri::from_static("https://127.0.0.1:6443"), false).await;
        for url in [
            "http://169.254.169.254/latest/meta-data",
            "http://[::ffff:169.254.169.254]/",
            "http://[64:ff9b::a9fe:a9fe]/",
            "http://[fe80::1]/",
            "http://[fd00:ec2::254]/",
            "http://0xa9fea9fe/",
            "http://2852039166/",
            "http://0.0.0.0:9090/",
            "http://[::]/",
            "http://224.0.0.1/",
            "http://255.255.255.255/",
            "https://127.0.0.1:6443/api",
            "https://[::ffff:127.0.0.1]:6443/api",
            "https://localhost:6443/api",
        ] {
            assert!(
                matches!(resolved(&guard, url).await, Err(Error::RefusedAddress(_))),
                "{url}"
            );
            let known = !url.contains("localhost");
            assert_eq!(guard.check(&Url::parse(url).unwrap()).is_err(), known, "{url}");
        }
        for url in [
            "http://127.0.0.1:8080/",
            "https://192.0.2.1/hook",
            "http://[2001:db8::1]/",
        ] {
            assert_eq!(resolved(&guard, url).await, Ok(()), "{url}");
            assert_eq!(guard.check(&Url::parse(url).unwrap()), Ok(()), "{url}");
        }
    }

    #[tokio::test]
    async fn a_flag_permits_them() {
        let guard = AddressGuard::new(&Uri::from_static("https://127.0.0.1:6443"), true).await;
        assert_eq!(resolved(&guard, "http://169.254.169.254/").await, Ok(()));
    }

    #[tokio::test]
    async fn a_host_without_addresses_is_told_apart() {
        let guard = AddressGuard::new(&Uri::from_static("https://127.0.0.1:6443"), false).await;
        assert_eq!(
            resolved(&guard, "https://host.invalid/").await,
            Err(Error::Unresolved)
        );
    }
}

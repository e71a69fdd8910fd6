//! Addresses of the controllers themselves, which the URLs of users must not lead to.

use std::{
    collections::HashSet,
    fmt, fs,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::Arc,
};

use parking_lot::RwLock;

use crate::address::{AddressClass, classify, unmasked};

/// The addresses that this process listens on.
static LISTENERS: RwLock<Vec<SocketAddr>> = RwLock::new(Vec::new());

/// Records that this process listens on an address. Policies of controllers refuse it, whatever networks and IP addresses they allow; a
/// host name that they allow is not checked.
pub fn add_listener(address: SocketAddr) {
    let mut listeners = LISTENERS.write();
    if !listeners.contains(&address) {
        listeners.push(address);
    }
}

/// Addresses of the cluster that are known only while the process runs. Clones are the same.
#[derive(Clone, Default)]
pub struct OwnAddresses {
    /// Addresses of the process's interfaces, loopback excepted.
    interfaces: Arc<[IpAddr]>,
    /// True in a Pod with a network of its own: nobody else has its addresses, or the addresses of the other controllers.
    is_pod: bool,
    watched: Arc<RwLock<Watched>>,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Watched {
    endpoints: HashSet<SocketAddr>,
    /// The addresses of `endpoints`.
    hosts: HashSet<IpAddr>,
    services: HashSet<IpAddr>,
    api_server: HashSet<SocketAddr>,
}

impl fmt::Debug for OwnAddresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnAddresses")
            .field("interfaces", &self.interfaces)
            .finish_non_exhaustive()
    }
}

impl PartialEq for OwnAddresses {
    fn eq(&self, other: &Self) -> bool {
        let same = Arc::ptr_eq(&self.watched, &other.watched);
        self.interfaces == other.interfaces
            && self.is_pod == other.is_pod
            && (same || *self.watched.read() == *other.watched.read())
    }
}

impl Eq for OwnAddresses {}

impl OwnAddresses {
    /// Reads the addresses of the process's interfaces. A Pod has one for each family: with more, it shares the network of its node, whose
    /// other ports belong to others.
    #[must_use]
    pub fn of_process(in_cluster: bool) -> Self {
        let read = |file: &str| fs::read_to_string(file).unwrap_or_default();
        let mut found = local_v4(&read("/proc/net/fib_trie"));
        found.extend(local_v6(&read("/proc/net/if_inet6")));
        Self::with_interfaces(found, in_cluster)
    }

    fn with_interfaces(found: Vec<IpAddr>, in_cluster: bool) -> Self {
        let is_own = |ip: &IpAddr| !matches!(classify(*ip), AddressClass::Loopback | AddressClass::LinkLocal);
        let interfaces: Vec<IpAddr> = found.into_iter().map(unmasked).filter(is_own).collect();
        let fours = interfaces.iter().filter(|ip| ip.is_ipv4()).count();
        Self {
            is_pod: in_cluster && fours <= 1 && interfaces.len() - fours <= 1,
            interfaces: interfaces.into(),
            watched: Arc::default(),
        }
    }

    /// Sets the endpoints of the Services in the own namespace.
    pub fn set_endpoints(&self, endpoints: impl IntoIterator<Item = SocketAddr>) {
        let endpoints: HashSet<_> = endpoints.into_iter().map(plain).collect();
        let mut watched = self.watched.write();
        watched.hosts = endpoints.iter().map(SocketAddr::ip).collect();
        watched.endpoints = endpoints;
    }

    /// Sets the addresses of the Services in the own namespace.
    pub fn set_services(&self, services: impl IntoIterator<Item = IpAddr>) {
        self.watched.write().services = services.into_iter().map(unmasked).collect();
    }

    /// Sets the endpoints of the API server.
    pub fn set_api_server(&self, endpoints: impl IntoIterator<Item = SocketAddr>) {
        self.watched.write().api_server = endpoints.into_iter().map(plain).collect();
    }

    /// Returns true if this process listens there.
    pub(crate) fn is_listener(&self, ip: IpAddr, port: Option<u16>) -> bool {
        let Some(port) = port else { return false };
        let is_here = ip.is_loopback() || ip.is_unspecified() || self.interfaces.contains(&ip);
        let listeners = LISTENERS.read();
        let mut on_port = listeners.iter().filter(|listener| listener.port() == port);
        on_port.any(|listener| match unmasked(listener.ip()) {
            any if any.is_unspecified() => is_here,
            own => own == ip || own.is_loopback() && ip.is_unspecified(),
        })
    }

    pub(crate) fn is_endpoint(&self, ip: IpAddr, port: Option<u16>) -> bool {
        port.is_some_and(|port| self.watched.read().endpoints.contains(&SocketAddr::new(ip, port)))
    }

    pub(crate) fn is_api_server(&self, ip: IpAddr, port: Option<u16>) -> bool {
        port.is_some_and(|port| {
            self.watched
                .read()
                .api_server
                .contains(&SocketAddr::new(ip, port))
        })
    }

    /// Returns true if all ports of an address belong to the controllers.
    pub(crate) fn is_own(&self, ip: IpAddr) -> bool {
        let watched = self.watched.read();
        let is_host = || self.interfaces.contains(&ip) || watched.hosts.contains(&ip);
        watched.services.contains(&ip) || self.is_pod && is_host()
    }

    /// Returns true if some port of an address is refused.
    pub(crate) fn has_refused_port(&self, ip: IpAddr) -> bool {
        let watched = self.watched.read();
        let is_here = || ip.is_loopback() || ip.is_unspecified() || self.interfaces.contains(&ip);
        let is_listener = |listener: &SocketAddr| unmasked(listener.ip()) == ip;
        watched.hosts.contains(&ip)
            || watched.api_server.iter().any(|socket| socket.ip() == ip)
            || !LISTENERS.read().is_empty() && is_here()
            || LISTENERS.read().iter().any(is_listener)
    }
}

fn plain(socket: SocketAddr) -> SocketAddr {
    SocketAddr::new(unmasked(socket.ip()), socket.port())
}

/// Returns the local addresses in `/proc/net/fib_trie`: a line with the address, and one that says `/32 host LOCAL`.
fn local_v4(table: &str) -> Vec<IpAddr> {
    let mut found = Vec::new();
    let mut last: Option<Ipv4Addr> = None;
    for line in table.lines().map(str::trim) {
        if let Some(address) = line.strip_prefix("|-- ") {
            last = address.parse().ok();
        } else if line == "/32 host LOCAL"
            && let Some(address) = last.map(IpAddr::from)
            && !found.contains(&address)
        {
            found.push(address);
        }
    }
    found
}

/// Returns the addresses in `/proc/net/if_inet6`: 32 hexadecimal digits begin a line.
fn local_v6(table: &str) -> Vec<IpAddr> {
    let address = |line: &str| {
        let bits = u128::from_str_radix(line.split_whitespace().next()?, 16).ok()?;
        Some(IpAddr::from(Ipv6Addr::from_bits(bits)))
    };
    table.lines().filter_map(address).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn interfaces_are_read_from_the_tables_of_the_kernel() {
        let trie = "Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 127.0.0.1\n        /32 host LOCAL\n     |-- 10.244.0.0\n        /24 link UNICAST\n     \
                    |-- 10.244.0.5\n        /32 host LOCAL\nLocal:\n     |-- 10.244.0.5\n        /32 host LOCAL\n     |-- 10.244.0.255\n        \
                    /32 link BROADCAST\n";
        assert_eq!(local_v4(trie), [ip("127.0.0.1"), ip("10.244.0.5")]);
        let six = "fd000000000000000000000000000002 04 40 00 82     eth0\n\nnone\n";
        assert_eq!(local_v6(six), [ip("fd00::2")]);
        let pod = OwnAddresses::with_interfaces(vec![ip("127.0.0.1"), ip("10.244.0.5"), ip("fd00::2")], true);
        assert!(pod.is_own(ip("10.244.0.5")) && pod.is_own(ip("fd00::2")) && !pod.is_own(ip("127.0.0.1")));
        let node = OwnAddresses::with_interfaces(vec![ip("192.0.2.1"), ip("10.244.0.1")], true);
        assert!(!node.is_own(ip("192.0.2.1")), "its other ports belong to others");
    }

    #[test]
    fn listeners_are_known_by_every_local_address() {
        let own = OwnAddresses::with_interfaces(vec![ip("192.0.2.9")], false);
        add_listener("0.0.0.0:61001".parse().unwrap());
        add_listener("[::]:61002".parse().unwrap());
        add_listener("127.0.0.1:61003".parse().unwrap());
        for (address, port, expected) in [
            ("127.0.0.1", 61001, true),
            ("127.0.0.2", 61001, true),
            ("192.0.2.9", 61001, true),
            ("0.0.0.0", 61001, true),
            ("192.0.2.9", 61002, true),
            ("::1", 61002, true),
            ("192.0.2.8", 61001, false),
            ("127.0.0.1", 61003, true),
            ("0.0.0.0", 61003, true),
            ("127.0.0.2", 61003, false),
            ("192.0.2.9", 61003, false),
            ("127.0.0.1", 61004, false),
        ] {
            assert_eq!(
                own.is_listener(ip(address), Some(port)),
                expected,
                "{address}:{port}"
            );
        }
        assert!(!own.is_listener(ip("127.0.0.1"), None) && own.has_refused_port(ip("127.0.0.1")));
    }

    #[test]
    fn watched_addresses_replace_each_other() {
        let own = OwnAddresses::with_interfaces(vec![ip("10.244.0.5")], true);
        let clone = own.clone();
        own.set_endpoints(["[::ffff:10.244.0.6]:9090".parse().unwrap()]);
        own.set_services([ip("10.96.3.4")]);
        own.set_api_server(["192.0.2.1:6443".parse().unwrap()]);
        assert!(clone.is_endpoint(ip("10.244.0.6"), Some(9090)) && clone.is_own(ip("10.244.0.6")));
        assert!(clone.is_own(ip("10.96.3.4")) && clone.is_api_server(ip("192.0.2.1"), Some(6443)));
        assert!(!clone.is_api_server(ip("192.0.2.1"), Some(443)) && !clone.is_own(ip("192.0.2.1")));
        own.set_endpoints([]);
        own.set_services([]);
        assert!(!clone.is_own(ip("10.244.0.6")) && !clone.is_own(ip("10.96.3.4")));
        assert_eq!(own, clone);
    }
}

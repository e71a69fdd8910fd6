//! The policy of addresses: the servers that a client may connect to.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use url::{Host, Url};

use crate::{
    Exception, OwnAddresses,
    address::{AddressClass, classify, unmasked},
};

/// Ports of the kubelet, kube-proxy, the controller manager and the scheduler, which every node or many of them have.
const NODE_PORTS: [u16; 7] = [10248, 10249, 10250, 10255, 10256, 10257, 10259];

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("only http and https are supported")]
    Scheme,
    #[error("it has no host")]
    NoHost,
    #[error("link-local addresses are not allowed")]
    LinkLocal,
    #[error("metadata services of clouds are not allowed")]
    Metadata,
    #[error("loopback addresses are not allowed")]
    Loopback,
    /// `0.0.0.0/8` or `::`, which means the machine or Pod itself.
    #[error("the unspecified address is not allowed")]
    Unspecified,
    #[error("multicast addresses are not allowed")]
    Multicast,
    /// The broadcast address, or the reserved range around it.
    #[error("the broadcast address is not allowed")]
    Broadcast,
    #[error("private addresses are not allowed")]
    Private,
    /// The API server of the process's cluster.
    #[error("the API server is not allowed")]
    ApiServer,
    #[error("services in the namespace of the controllers are not allowed")]
    OwnService,
    /// A port of the process itself.
    #[error("the controller itself is not allowed")]
    Itself,
    #[error("ports of the kubelet and other services of nodes are not allowed")]
    NodePort,
    /// A name that a proxy resolves again, without a certificate that proves the server.
    #[error(
        "names are not allowed through a proxy by plain http or unverified TLS, because the proxy may resolve them to an internal address"
    )]
    UnprovenName,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unresolved {
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error("the host cannot be resolved")]
    Unknown,
}

/// Services of the cluster that a controller's users must not reach: the API server and the controller's own namespace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClusterServices {
    /// IP addresses of the API server, refused with any port.
    pub api_server: Vec<IpAddr>,
    /// Addresses of the API server, for IP addresses whose other ports belong to others.
    pub api_server_sockets: Vec<SocketAddr>,
    /// IP addresses of services in the process's own namespace.
    pub own_services: Vec<IpAddr>,
    /// The process's own namespace, whose services are refused by name; empty outside of a cluster.
    pub own_namespace: String,
    /// Addresses that become known while the process runs.
    pub own_addresses: OwnAddresses,
}

impl ClusterServices {
    /// Reads the variables that Kubernetes sets in each Pod: `KUBERNETES_SERVICE_HOST`, and `<NAME>_SERVICE_HOST` for each
    /// service that its namespace had when the Pod started.
    #[must_use]
    pub fn from_variables(
        variables: impl IntoIterator<Item = (String, String)>,
        own_namespace: &str,
    ) -> Self {
        let mut found = Self::default();
        for (name, value) in variables {
            let service = name.strip_suffix("_SERVICE_HOST").filter(|name| !name.is_empty());
            match (service, value.parse()) {
                (Some("KUBERNETES"), Ok(ip)) => found.api_server.push(unmasked(ip)),
                (Some(_), Ok(ip)) => found.own_services.push(unmasked(ip)),
                _ => {}
            }
        }
        // Outside of a cluster no name means a service.
        if !found.api_server.is_empty() {
            own_namespace.clone_into(&mut found.own_namespace);
        }
        found
    }

    fn is_api_server(&self, ip: IpAddr, port: Option<u16>) -> bool {
        let same = |socket: &SocketAddr| unmasked(socket.ip()) == ip && Some(socket.port()) == port;
        self.api_server.contains(&ip)
            || self.api_server_sockets.iter().any(same)
            || self.own_addresses.is_api_server(ip, port)
    }

    /// Returns true for possible names of a service of the own namespace: `x`, `x.NAMESPACE`, `x.NAMESPACE.svc` and
    /// `x.NAMESPACE.svc.DOMAIN`.
    fn is_own_service(&self, host: &str) -> bool {
        if self.own_namespace.is_empty() || host == "localhost" {
            return false;
        }
        let mut labels = host.split('.').skip(1);
        match (labels.next(), labels.next()) {
            (None, _) => true,
            (Some(namespace), None | Some("svc")) => namespace == self.own_namespace,
            _ => false,
        }
    }
}

fn is_api_server_name(host: &str) -> bool {
    let rest = host.strip_prefix("kubernetes");
    let rest = rest.map(|rest| rest.strip_prefix(".default").unwrap_or(rest));
    rest.is_some_and(|rest| rest.is_empty() || rest == ".svc" || rest.starts_with(".svc."))
}

/// A policy of addresses, applied to hosts that are IP addresses, to the results of name resolution, and to redirects.
///
/// All policies but [`AddressPolicy::unrestricted`] refuse link-local addresses and metadata services of clouds. IPv6 addresses
/// that embed an IPv4 address count as the IPv4 address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddressPolicy(Arc<Rules>);

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Rules {
    metadata: bool,
    local: bool,
    private: bool,
    api_server: bool,
    own_services: bool,
    node_ports: bool,
    unproven_names: bool,
    services: ClusterServices,
    exceptions: Vec<Exception>,
}

impl AddressPolicy {
    /// The policy of the command line: its user may reach everything but metadata services and link-local addresses, which a
    /// project must not lead to.
    #[must_use]
    pub fn command_line() -> Self {
        Self(Arc::new(Rules {
            metadata: true,
            ..Rules::default()
        }))
    }

    /// The policy of a controller, whose users must not reach more through it than directly: also refuses loopback,
    /// unspecified, multicast and broadcast addresses, the API server, services of the controller's own namespace and their Pods, the
    /// controller itself, ports of the kubelet, and names that a proxy of the operator resolves again without a certificate that proves the
    /// server. Private networks are allowed.
    #[must_use]
    pub fn controller(services: ClusterServices) -> Self {
        Self(Arc::new(Rules {
            metadata: true,
            local: true,
            private: false,
            api_server: true,
            own_services: true,
            node_ports: true,
            unproven_names: true,
            services,
            exceptions: Vec::new(),
        }))
    }

    /// No restriction, for addresses that the operator or the program itself chooses.
    #[must_use]
    pub fn unrestricted() -> Self {
        Self(Arc::default())
    }

    fn with(mut self, change: impl FnOnce(&mut Rules)) -> Self {
        change(Arc::make_mut(&mut self.0));
        self
    }

    #[must_use]
    pub fn refusing_private(self) -> Self {
        self.with(|rules| rules.private = true)
    }

    /// Also refuses the API server at these addresses and by its names.
    #[must_use]
    pub fn refusing_api_server(self, services: ClusterServices) -> Self {
        self.with(|rules| {
            rules.api_server = true;
            rules.services = services;
        })
    }

    /// Allows the API server: for clients that have the user's credentials for it.
    #[must_use]
    pub fn allowing_api_server(self) -> Self {
        self.with(|rules| rules.api_server = false)
    }

    /// Allows all names through proxies of the operator, which refuse internal addresses themselves.
    #[must_use]
    pub fn trusting_proxies(self) -> Self {
        self.with(|rules| rules.unproven_names = false)
    }

    /// Returns the addresses of the controllers, for the one who watches them.
    #[must_use]
    pub fn own_addresses(&self) -> &OwnAddresses {
        &self.0.services.own_addresses
    }

    /// Allows services of the own namespace: for artifacts of the source-controller.
    #[must_use]
    pub fn allowing_own_services(self) -> Self {
        self.with(|rules| rules.own_services = false)
    }

    /// Allows hosts, addresses and networks. A network does not include the API server, which must be allowed by its host or
    /// address.
    #[must_use]
    pub fn allowing(self, exceptions: impl IntoIterator<Item = Exception>) -> Self {
        self.with(|rules| rules.exceptions.extend(exceptions))
    }

    /// Checks a URL without resolving its host.
    ///
    /// # Errors
    /// Fails if the scheme is neither `http` nor `https`, or the host is refused by its name or its IP address.
    pub fn check_url(&self, url: &Url) -> Result<(), Refusal> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(Refusal::Scheme);
        }
        let host = url.host().ok_or(Refusal::NoHost)?;
        self.check_host(&host, url.port_or_known_default())
    }

    pub fn check_host(&self, host: &Host<impl AsRef<str>>, port: Option<u16>) -> Result<(), Refusal> {
        match host {
            Host::Ipv4(ip) => self.check_address((*ip).into(), port),
            Host::Ipv6(ip) => self.check_address((*ip).into(), port),
            Host::Domain(name) => match self.check_name(name.as_ref())? {
                false if self.is_node_port(port) => Err(Refusal::NodePort),
                _ => Ok(()),
            },
        }
    }

    /// Checks an IP address. Without a port, addresses of an API server with one port are not recognized.
    pub fn check_address(&self, address: IpAddr, port: Option<u16>) -> Result<(), Refusal> {
        let (rules, ip) = (&self.0, unmasked(address));
        let excepted = |is: fn(&Exception, IpAddr) -> bool| {
            let mut exceptions = rules.exceptions.iter();
            exceptions.any(|exception| is(exception, ip) || is(exception, address))
        };
        let own = &rules.services.own_addresses;
        if rules.own_services && own.is_listener(ip, port) {
            return Err(Refusal::Itself);
        }
        if excepted(Exception::is) {
            return Ok(());
        }
        if rules.api_server && rules.services.is_api_server(ip, port) {
            return Err(Refusal::ApiServer);
        }
        if rules.own_services && own.is_endpoint(ip, port) {
            return Err(Refusal::OwnService);
        }
        if excepted(Exception::holds) {
            return Ok(());
        }
        if rules.own_services && (rules.services.own_services.contains(&ip) || own.is_own(ip)) {
            return Err(Refusal::OwnService);
        }
        if self.is_node_port(port) {
            return Err(Refusal::NodePort);
        }
        match classify(ip) {
            AddressClass::LinkLocal if rules.metadata => Err(Refusal::LinkLocal),
            AddressClass::Metadata if rules.metadata => Err(Refusal::Metadata),
            AddressClass::Loopback if rules.local => Err(Refusal::Loopback),
            AddressClass::Unspecified if rules.local => Err(Refusal::Unspecified),
            AddressClass::Multicast if rules.local => Err(Refusal::Multicast),
            AddressClass::Broadcast if rules.local => Err(Refusal::Broadcast),
            AddressClass::Private if rules.private => Err(Refusal::Private),
            _ => Ok(()),
        }
    }

    /// Checks a name, and returns true if an exception names it, so that its addresses need no check.
    pub(crate) fn check_name(&self, name: &str) -> Result<bool, Refusal> {
        let host = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
        let rules = &self.0;
        if host.is_empty() {
            return Err(Refusal::NoHost);
        }
        if rules.exceptions.iter().any(|exception| exception.names(&host)) {
            return Ok(true);
        }
        if rules.api_server && is_api_server_name(&host) {
            return Err(Refusal::ApiServer);
        }
        if rules.own_services && rules.services.is_own_service(&host) {
            return Err(Refusal::OwnService);
        }
        Ok(false)
    }

    /// Checks a name that is sent to a proxy, which resolves it again, by a request that proves the server by no certificate.
    pub(crate) fn check_unproven(&self, name: &str) -> Result<(), Refusal> {
        match self.check_name(name)? {
            false if self.0.unproven_names => Err(Refusal::UnprovenName),
            _ => Ok(()),
        }
    }

    /// Checks the server of a request that a proxy makes, which resolves a name again. `is_proven` says that a certificate proves the
    /// server, or that the proxy reaches nothing that its user doesn't. A name that only the proxy can resolve is allowed.
    ///
    /// # Errors
    /// Fails if the host, or all of its addresses, are refused.
    pub async fn check_proxied(&self, url: &Url, is_proven: bool) -> Result<(), Unresolved> {
        self.check_url(url)?;
        let Some(Host::Domain(name)) = url.host() else {
            return Ok(());
        };
        if !is_proven {
            self.check_unproven(name)?;
        }
        match self.resolve(url).await {
            Ok(_) | Err(Unresolved::Unknown) => Ok(()),
            Err(refused) => Err(refused),
        }
    }

    fn is_node_port(&self, port: Option<u16>) -> bool {
        self.0.node_ports && port.is_some_and(|port| NODE_PORTS.contains(&port))
    }

    /// Returns true if some port of an address is refused, so that it needs a check with its port.
    pub(crate) fn needs_port(&self, address: IpAddr) -> bool {
        let (rules, ip) = (&self.0, unmasked(address));
        let mut sockets = rules.services.api_server_sockets.iter();
        let has_api_server = rules.api_server && sockets.any(|socket| unmasked(socket.ip()) == ip);
        has_api_server
            || (rules.api_server || rules.own_services) && rules.services.own_addresses.has_refused_port(ip)
    }

    /// Resolves the host of a URL, and returns its allowed addresses.
    ///
    /// # Errors
    /// Fails if the host cannot be resolved, or it or all of its addresses are refused.
    pub async fn resolve(&self, url: &Url) -> Result<Vec<SocketAddr>, Unresolved> {
        self.check_url(url)?;
        let host = url.host().ok_or(Refusal::NoHost)?;
        self.resolve_host(&host, url.port_or_known_default().unwrap_or_default())
            .await
    }

    pub async fn resolve_host(
        &self,
        host: &Host<impl AsRef<str>>,
        port: u16,
    ) -> Result<Vec<SocketAddr>, Unresolved> {
        self.check_host(host, Some(port))?;
        match host {
            Host::Ipv4(ip) => Ok(vec![SocketAddr::new((*ip).into(), port)]),
            Host::Ipv6(ip) => Ok(vec![SocketAddr::new((*ip).into(), port)]),
            Host::Domain(name) => self.lookup(name.as_ref(), Some(port)).await,
        }
    }

    pub(crate) async fn lookup(&self, name: &str, port: Option<u16>) -> Result<Vec<SocketAddr>, Unresolved> {
        let excepted = self.check_name(name)?;
        let found = tokio::net::lookup_host((name, port.unwrap_or_default())).await;
        let found = found.map_err(|_| Unresolved::Unknown)?;
        let mut refusal = None;
        let mut allowed = Vec::new();
        for socket in found {
            match self.check_address(socket.ip(), port) {
                Err(why) if !excepted => refusal = Some(why),
                _ => allowed.push(socket),
            }
        }
        match refusal {
            _ if !allowed.is_empty() => Ok(allowed),
            Some(why) => Err(why.into()),
            None => Err(Unresolved::Unknown),
        }
    }
}

#[cfg(test)]
mod tests;

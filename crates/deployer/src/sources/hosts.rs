//! The hosts that artifacts are downloaded from.

use std::net::IpAddr;

use url::{Host, Url};

/// Namespace of Flux, whose source-controller may serve the artifacts.
const FLUX: &str = "flux-system";

/// The hosts that artifacts are downloaded from. Who may write the status of a source names the URL of its artifact, and must not send
/// the controller elsewhere.
#[derive(Debug, Clone)]
pub(crate) struct ArtifactHosts {
    /// Lower-case names and addresses without a trailing dot, some with a port; `None` accepts all.
    hosts: Option<Vec<String>>,
}

impl ArtifactHosts {
    /// Takes the hosts of the flag; without any, the hosts of the Service of the source-controller in `own`, and in the namespace of Flux.
    pub(crate) fn new(given: &[String], own: &str) -> Self {
        let mut hosts: Vec<String> = given.iter().map(|host| plain(host)).collect();
        if hosts.is_empty() {
            let namespaces = [own, FLUX].into_iter().filter(|namespace| !namespace.is_empty());
            let services = namespaces.map(|namespace| format!("source-controller.{namespace}"));
            hosts = services
                .flat_map(|service| {
                    ["", ".svc", ".svc.cluster.local"].map(|domain| format!("{service}{domain}"))
                })
                .collect();
        }
        Self { hosts: Some(hosts) }
    }

    /// Accepts all: the host of each URL is replaced.
    pub(crate) const fn any() -> Self {
        Self { hosts: None }
    }

    /// Returns true for a URL of one of the hosts. Loopback is left to the policy of addresses, which refuses it in clusters.
    pub(crate) fn accept(&self, url: &Url) -> bool {
        let Some(hosts) = &self.hosts else { return true };
        let Some(host) = url.host() else { return false };
        let name = plain(&host.to_string());
        let with_port = url.port_or_known_default().map(|port| format!("{name}:{port}"));
        is_loopback(&host)
            || hosts
                .iter()
                .any(|each| *each == name || Some(each) == with_port.as_ref())
    }
}

/// Returns true for an address of the machine itself.
pub(crate) fn is_loopback(host: &Host<&str>) -> bool {
    match *host {
        Host::Ipv4(ip) => IpAddr::from(ip).is_loopback(),
        Host::Ipv6(ip) => IpAddr::from(ip).is_loopback(),
        Host::Domain(name) => name == "localhost",
    }
}

/// Returns a host in lower case without the dot of a complete name.
fn plain(host: &str) -> String {
    let lower = host.trim().to_ascii_lowercase();
    match lower.rsplit_once(':') {
        Some((name, port)) if !lower.ends_with(']') => format!("{}:{port}", name.trim_end_matches('.')),
        _ => lower.trim_end_matches('.').to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepts(given: &[&str], own: &str, url: &str) -> bool {
        let given: Vec<String> = given.iter().map(|host| (*host).to_owned()).collect();
        ArtifactHosts::new(&given, own).accept(&url.parse().unwrap())
    }

    #[test]
    fn default_hosts_are_the_services_of_source_controllers() {
        for (own, host, expected) in [
            ("gitops", "source-controller.gitops.svc.cluster.local.", true),
            ("gitops", "source-controller.gitops.svc", true),
            ("gitops", "source-controller.gitops:9090", true),
            ("gitops", "SOURCE-controller.flux-system.svc.cluster.local", true),
            ("", "source-controller.flux-system.svc.cluster.local.", true),
            ("gitops", "source-controller.tenant.svc.cluster.local.", false),
            ("gitops", "source-controller.gitops.svc.example.com", false),
            ("gitops", "source-controller", false),
            ("", "source-controller.", false),
            ("gitops", "10.0.0.7", false),
            ("gitops", "kubernetes.default.svc", false),
            // The policy of addresses decides on these.
            ("gitops", "127.0.0.1:9090", true),
            ("gitops", "[::1]:9090", true),
        ] {
            assert_eq!(
                accepts(&[], own, &format!("http://{host}/a")),
                expected,
                "{own} {host}"
            );
        }
    }

    #[test]
    fn given_hosts_replace_the_default() {
        let given = ["Storage.example.com.", "10.0.0.7:9090", "[fd00::7]"];
        for (host, expected) in [
            ("storage.example.com", true),
            ("storage.example.com:8443", true),
            ("10.0.0.7:9090", true),
            ("10.0.0.7", false),
            ("[fd00::7]:80", true),
            ("other.example.com", false),
            ("source-controller.flux-system.svc", false),
        ] {
            let url = format!("http://{host}/a");
            assert_eq!(accepts(&given, "flux-system", &url), expected, "{host}");
        }
        assert!(ArtifactHosts::any().accept(&"http://anything/".parse().unwrap()));
    }
}

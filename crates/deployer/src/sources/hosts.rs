//! The hosts that artifacts are downloaded from.

use artifact::fetch::is_of_watcher;
use net::is_loopback;
use url::Url;

/// Namespace of Flux, whose source-controller may serve the artifacts.
const FLUX: &str = "flux-system";

/// The hosts that artifacts are downloaded from. Who may write the status of a source names the URL of its artifact, and must not send
/// the controller elsewhere.
#[derive(Debug, Clone)]
pub(crate) struct ArtifactHosts {
    /// Lower-case names and addresses without a trailing dot, some with a port; `None` accepts all.
    hosts: Option<Vec<String>>,
    /// True if the host of URLs of a source-watcher is replaced.
    replaces_watcher: bool,
}

impl ArtifactHosts {
    /// Takes the hosts of the flag; without any, the hosts of the Service of the source-controller in `own`, and in the namespace of Flux.
    pub(crate) fn new(given: &[String], own: &str) -> Self {
        let mut hosts: Vec<String> = given.iter().map(|host| plain(host)).collect();
        if hosts.is_empty() {
            hosts = services(own)
                .flat_map(|service| {
                    ["", ".svc", ".svc.cluster.local"].map(|domain| format!("{service}{domain}"))
                })
                .collect();
        }
        Self {
            hosts: Some(hosts),
            replaces_watcher: false,
        }
    }

    /// Accepts URLs of a source-watcher, too: their host is replaced.
    pub(crate) fn with_replaced_watcher(self) -> Self {
        Self {
            replaces_watcher: true,
            ..self
        }
    }

    /// Takes the hosts that get the token of downloads; without any, the default hosts of artifacts, and of `artifacts` those that are the
    /// same Service in another cluster domain.
    pub(crate) fn of_token(given: &[String], artifacts: &[String], own: &str) -> Self {
        let Self { mut hosts, .. } = Self::new(given, own);
        if given.is_empty() {
            let is_service =
                |host: &String| services(own).any(|service| host.starts_with(&format!("{service}.svc.")));
            let others = artifacts.iter().map(|host| plain(host)).filter(is_service);
            hosts.get_or_insert_default().extend(others);
        }
        Self {
            hosts,
            replaces_watcher: false,
        }
    }

    /// Accepts all: the host of each URL is replaced.
    pub(crate) const fn any() -> Self {
        Self {
            hosts: None,
            replaces_watcher: false,
        }
    }

    /// Returns true for a URL of one of the hosts. Loopback is left to the policy of addresses, which refuses it in clusters.
    pub(crate) fn accept(&self, url: &Url) -> bool {
        let is_replaced = self.replaces_watcher && is_of_watcher(url);
        self.name(url) || is_replaced || url.host().is_some_and(|host| is_loopback(&host))
    }

    /// Returns true for a URL of one of the hosts, loopback included only if it is one.
    pub(crate) fn name(&self, url: &Url) -> bool {
        let Some(hosts) = &self.hosts else { return true };
        let Some(host) = url.host() else { return false };
        let name = plain(&host.to_string());
        let with_port = url.port_or_known_default().map(|port| format!("{name}:{port}"));
        hosts
            .iter()
            .any(|each| *each == name || Some(each) == with_port.as_ref())
    }
}

/// Returns the names of the Service of the source-controller in a namespace, and in the namespace of Flux.
fn services(own: &str) -> impl Iterator<Item = String> {
    let namespaces = [own, FLUX].into_iter().filter(|namespace| !namespace.is_empty());
    namespaces.map(|namespace| format!("source-controller.{namespace}"))
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
    fn tokens_go_to_the_source_controller_and_named_hosts_alone() {
        let is_for = |given: &[&str], artifacts: &[&str], url: &str| {
            let owned = |list: &[&str]| list.iter().map(|host| (*host).to_owned()).collect::<Vec<_>>();
            let hosts = ArtifactHosts::of_token(&owned(given), &owned(artifacts), "gitops");
            hosts.name(&url.parse().unwrap())
        };
        for (given, artifacts, url, expected) in [
            (
                &[][..],
                &[][..],
                "http://source-controller.gitops.svc.cluster.local./a",
                true,
            ),
            (&[], &[], "http://source-controller.flux-system.svc/a", true),
            (&[], &[], "http://127.0.0.1:9090/a", false),
            (&[], &["watcher.gitops.svc"], "http://watcher.gitops.svc/a", false),
            (
                &[],
                &["source-controller.gitops.svc.corp.example"],
                "http://source-controller.gitops.svc.corp.example/a",
                true,
            ),
            (
                &[],
                &["source-controller.tenant.svc.corp.example"],
                "http://source-controller.tenant.svc.corp.example/a",
                false,
            ),
            (&["127.0.0.1:9090"], &[], "http://127.0.0.1:9090/a", true),
            (&["127.0.0.1:9090"], &[], "http://127.0.0.1:9091/a", false),
            (
                &["127.0.0.1:9090"],
                &[],
                "http://source-controller.gitops/a",
                false,
            ),
        ] {
            assert_eq!(
                is_for(given, artifacts, url),
                expected,
                "{given:?} {artifacts:?} {url}"
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
        let watcher = "http://source-watcher.any/a".parse().unwrap();
        let hosts = ArtifactHosts::new(&[], "gitops");
        assert!(!hosts.accept(&watcher));
        let hosts = hosts.with_replaced_watcher();
        assert!(hosts.accept(&watcher) && !hosts.name(&watcher));
        assert!(!hosts.accept(&"http://other.any/source-watcher".parse().unwrap()));
    }
}

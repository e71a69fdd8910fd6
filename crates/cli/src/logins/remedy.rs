//! Remedies for users of the command line when a server demands something.

use net::Need;
use remote::ServerKind;

/// Flags for credentials and TLS settings that a command has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum AccessFlags {
    /// kluctl's, for several servers: `--git-username HOST=USER`.
    Servers,
    /// Helm's, for one repository or registry: `--username USER`.
    Chart,
    #[default]
    None,
}

impl AccessFlags {
    /// Returns advice about a server's demand; `None` if there is none.
    pub(crate) fn remedy(self, server: ServerKind, need: Need) -> Option<&'static str> {
        match self {
            Self::Servers => with_server_flags(server, need),
            Self::Chart => with_chart_flags(server, need),
            Self::None => without_flags(server, need),
        }
    }

    /// Returns the message of a failed request to a Helm repository or a registry, with advice about its demand.
    pub(crate) fn explain_oci(self, address: &str, error: &oci::Error) -> String {
        let server = ServerKind::of_charts(address);
        match error.need().and_then(|need| self.remedy(server, need)) {
            Some(remedy) => format!("{error}: {remedy}"),
            None => error.to_string(),
        }
    }
}

fn with_server_flags(server: ServerKind, need: Need) -> Option<&'static str> {
    use ServerKind::{Git, Helm, Registry};
    Some(match (need, server) {
        (Need::Credentials, Git) => "use --git-username and --git-password",
        (Need::Credentials, Helm) => "use --helm-username and --helm-password",
        (Need::Credentials, Registry) => {
            "use --registry-username and --registry-password, or log in with Docker"
        }
        (Need::OtherCredentials, Git) => "check --git-username and --git-password",
        (Need::OtherCredentials, Helm) => "check --helm-username and --helm-password",
        (Need::OtherCredentials, Registry) => {
            "check --registry-username and --registry-password, or the login of Docker"
        }
        (Need::CaBundle, Git) => "use --git-ca-file with the CA bundle of the server",
        (Need::CaBundle, Helm) => "use --helm-ca-file with the CA bundle of the server",
        (Need::CaBundle, Registry) => "use --registry-ca-file with the CA bundle of the server",
        (Need::ValidCaBundle, Git) => "check --git-ca-file",
        (Need::ValidCaBundle, Helm) => "check --helm-ca-file",
        (Need::ValidCaBundle, Registry) => "check --registry-ca-file",
        (Need::ClientCertificate | Need::ValidClientCertificate, Git) => {
            "client certificates are not supported for Git"
        }
        (Need::ValidClientCertificate, Helm) => "check --helm-cert-file and --helm-key-file",
        (Need::ValidClientCertificate, Registry) => "check --registry-cert-file and --registry-key-file",
        (Need::SshKey, _) => "use --git-ssh-key-file, or add a key to the SSH agent with ssh-add",
        (Need::OtherSshKey, _) => {
            "check --git-ssh-key-file or the keys of the SSH agent, and that the server knows the public key"
        }
        (Need::HostKey | Need::OtherHostKey, _) => return host_key(need),
        (Need::ClientCertificate, Helm) => "use --helm-cert-file and --helm-key-file",
        (Need::ClientCertificate, Registry) => "use --registry-cert-file and --registry-key-file",
        (Need::LongerTimeout | Need::FewerRequests, _) => return general(need),
    })
}

fn with_chart_flags(server: ServerKind, need: Need) -> Option<&'static str> {
    Some(match (need, server) {
        (Need::Credentials, ServerKind::Registry) => "use --username and --password, or --registry-config",
        (Need::Credentials, _) => "use --username and --password",
        (Need::OtherCredentials, ServerKind::Registry) => {
            "check --username and --password, or --registry-config"
        }
        (Need::OtherCredentials, _) => "check --username and --password",
        (Need::CaBundle, _) => "use --ca-file with the CA bundle of the server",
        (Need::ValidCaBundle, _) => "check --ca-file",
        (Need::ClientCertificate, _) => "use --cert-file and --key-file",
        (Need::ValidClientCertificate, _) => "check --cert-file and --key-file",
        (Need::SshKey | Need::OtherSshKey | Need::HostKey | Need::OtherHostKey, _) => return host_key(need),
        (Need::LongerTimeout | Need::FewerRequests, _) => return general(need),
    })
}

fn without_flags(server: ServerKind, need: Need) -> Option<&'static str> {
    Some(match (need, server) {
        (Need::Credentials, ServerKind::Git) => {
            "the URL can contain a username and a token, for example https://USER:TOKEN@HOST/REPOSITORY"
        }
        (Need::OtherCredentials, ServerKind::Git | ServerKind::Helm) => {
            "check the username and the token in the URL"
        }
        (Need::Credentials, ServerKind::Helm) => {
            "the URL can contain a username and a password, for example https://USER:PASSWORD@HOST"
        }
        (Need::CaBundle, _) => "SSL_CERT_FILE can name a file with the CA bundle of the server",
        (Need::ValidCaBundle, _) => "check SSL_CERT_FILE",
        (Need::LongerTimeout, ServerKind::Git) => {
            "a longer one can be set in the URL, for example ?timeout=60s"
        }
        (Need::Credentials | Need::OtherCredentials, ServerKind::Registry)
        | (Need::ClientCertificate | Need::ValidClientCertificate, _) => {
            return None;
        }
        (Need::SshKey, _) => "add a key to the SSH agent with ssh-add",
        (Need::OtherSshKey, _) => "check the keys of the SSH agent, and that the server knows the public key",
        (Need::HostKey | Need::OtherHostKey, _) => return host_key(need),
        (Need::LongerTimeout | Need::FewerRequests, _) => return general(need),
    })
}

fn host_key(need: Need) -> Option<&'static str> {
    match need {
        Need::HostKey => Some("add the key to ~/.ssh/known_hosts if it is the server's own"),
        Need::OtherHostKey => Some(
            "only if the key is the server's own, remove the old one with ssh-keygen -R and add the new one",
        ),
        _ => None,
    }
}

fn general(need: Need) -> Option<&'static str> {
    match need {
        Need::LongerTimeout => Some("check the server"),
        Need::FewerRequests => Some("try again later"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEEDS: [Need; 8] = [
        Need::Credentials,
        Need::OtherCredentials,
        Need::CaBundle,
        Need::ValidCaBundle,
        Need::ClientCertificate,
        Need::ValidClientCertificate,
        Need::LongerTimeout,
        Need::FewerRequests,
    ];
    /// The needs that only servers of Git have.
    const NEEDS_OF_SSH: [Need; 4] = [Need::SshKey, Need::OtherSshKey, Need::HostKey, Need::OtherHostKey];

    #[test]
    fn remedies_name_flags_of_their_server() {
        for (server, prefix) in [
            (ServerKind::Git, "--git-"),
            (ServerKind::Helm, "--helm-"),
            (ServerKind::Registry, "--registry-"),
        ] {
            let of_ssh = NEEDS_OF_SSH.iter().filter(|_| server == ServerKind::Git);
            for need in NEEDS.iter().chain(of_ssh) {
                let remedy = AccessFlags::Servers.remedy(server, *need).unwrap();
                let flags: Vec<&str> = remedy
                    .split([' ', ','])
                    .filter(|word| word.starts_with("--"))
                    .collect();
                assert!(flags.iter().all(|flag| flag.starts_with(prefix)), "{remedy}");
            }
        }
    }

    #[test]
    fn remedies_of_commands_without_flags_name_none() {
        for server in [ServerKind::Git, ServerKind::Helm, ServerKind::Registry] {
            for need in NEEDS.iter().chain(&NEEDS_OF_SSH) {
                let remedy = AccessFlags::None.remedy(server, *need).unwrap_or_default();
                assert!(!remedy.contains("--"), "{remedy}");
            }
        }
    }
}

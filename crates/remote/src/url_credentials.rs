//! Credentials from Secrets that hold the URL of their repository, as in flux-kluctl-controller and source-controller.

use std::{
    collections::BTreeMap,
    fmt,
    net::IpAddr,
    sync::{Arc, OnceLock},
};

use api::Secret;
use futures::future::BoxFuture;
use git::{Auth, SshLogin};
use net::Need;
use oci::{Access, Credentials, Identity};
use tokio::runtime::Handle;
use url::Url;

use crate::{
    Error, ServerKind, SourceCredentials,
    secret_credentials::{SshError, ssh_login},
};

/// Error about the contents of a Secret. Messages follow the name of the Secret, and hold none of its values.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoginError {
    /// Neither of two keys is set, one of which is required.
    #[error("must at least contain 'credentialsId' or 'url'")]
    NoServer,
    #[error("{key}: {why}")]
    Invalid { key: &'static str, why: &'static str },
}

/// Credentials of the repositories of one project. An empty set grants anonymous access.
#[derive(Debug, Default)]
pub struct UrlCredentials {
    helm: Vec<HelmLogin>,
    git: Option<GitLogin>,
}

pub type SecretEntries = BTreeMap<String, Secret<Vec<u8>>>;

pub trait ReadSecret: fmt::Debug + Send + Sync {
    /// Returns the entries; `None` if the Secret is missing or may not be read.
    fn read(&self) -> BoxFuture<'_, Result<Option<SecretEntries>, Error>>;
}

#[derive(Debug)]
struct HelmLogin {
    id: Option<String>,
    url: Option<Url>,
    access: Access,
}

#[derive(Debug)]
struct GitLogin {
    url: Url,
    /// Other hosts that get them, each with or without a port.
    hosts: Vec<String>,
    secret: Arc<dyn ReadSecret>,
    runtime: Handle,
    found: OnceLock<Result<GitAccess, Error>>,
}

#[derive(Debug, Clone, Default)]
struct GitAccess {
    auth: Option<Auth>,
    ca: Option<Vec<u8>>,
    ssh: Option<Result<SshLogin, SshError>>,
}

struct Entries<F>(F);

impl<'a, F: Fn(&str) -> Option<&'a [u8]>> Entries<F> {
    fn text(&self, key: &'static str) -> Result<Option<String>, LoginError> {
        let text = (self.0)(key).map(str::from_utf8).transpose();
        let text = text.map_err(|_| LoginError::Invalid {
            key,
            why: "it is not UTF-8",
        })?;
        Ok(text.filter(|text| !text.is_empty()).map(str::to_owned))
    }

    fn bytes(&self, key: &str) -> Option<Vec<u8>> {
        (self.0)(key)
            .filter(|bytes| !bytes.is_empty())
            .map(<[u8]>::to_vec)
    }

    fn is_set(&self, key: &'static str) -> Result<bool, LoginError> {
        match self.text(key)?.as_deref() {
            None | Some("0" | "f" | "F" | "false" | "False" | "FALSE") => Ok(false),
            Some("1" | "t" | "T" | "true" | "True" | "TRUE") => Ok(true),
            Some(_) => Err(LoginError::Invalid {
                key,
                why: "it must be true or false",
            }),
        }
    }
}

impl UrlCredentials {
    /// Adds a Secret with credentials of a Helm repository, with the keys of the flux-kluctl-controller: `credentialsId` or `url`,
    /// `username`, `password`, `certFile`, `keyFile`, `caFile`, `insecureSkipTlsVerify` and `passCredentialsAll`.
    pub fn add_helm<'a>(&mut self, entry: impl Fn(&str) -> Option<&'a [u8]>) -> Result<(), LoginError> {
        let entries = Entries(entry);
        let (id, url) = (entries.text("credentialsId")?, entries.text("url")?);
        if id.is_none() && url.is_none() {
            return Err(LoginError::NoServer);
        }
        let url = url.map(|url| Url::parse(&url)).transpose();
        let url = url.ok().filter(|url| url.as_ref().is_none_or(Url::has_host));
        let url = url.ok_or(LoginError::Invalid {
            key: "url",
            why: "it is not the URL of a repository",
        })?;
        let credentials = match (entries.text("username")?, entries.text("password")?) {
            (None, None) => None,
            (username, password) => Some(Credentials::Basic {
                username: username.unwrap_or_default(),
                password: Secret::new(password.unwrap_or_default()),
            }),
        };
        let identity = match (entries.bytes("certFile"), entries.bytes("keyFile")) {
            (Some(certificate), Some(key)) => Some(Identity {
                certificate,
                key: Secret::new(key),
            }),
            (None, None) => None,
            _ => {
                return Err(LoginError::Invalid {
                    key: "certFile",
                    why: "a client certificate and its key (keyFile) must be given together",
                });
            }
        };
        let access = Access {
            credentials,
            pass_credentials: entries.is_set("passCredentialsAll")?,
            ca: entries.bytes("caFile"),
            identity,
            insecure_skip_verify: entries.is_set("insecureSkipTlsVerify")?,
            plain_http: false,
        };
        self.helm.push(HelmLogin { id, url, access });
        Ok(())
    }

    /// Sets the Secret with the credentials of the Git repository at `url`. They are used for all repositories with the same scheme, host
    /// and port, and for those on one of `hosts`. Its keys are the source-controller's: `username`, `password`, and `ca.crt` or `caFile`.
    /// Without a valid URL, they are used for none.
    ///
    /// # Panics
    /// Panics outside of a Tokio runtime.
    pub fn set_git(&mut self, url: &str, hosts: &[String], secret: Arc<dyn ReadSecret>) {
        let url = Url::parse(url).ok().filter(Url::has_host);
        self.git = url.map(|url| GitLogin {
            url,
            hosts: hosts.iter().map(|host| host.to_ascii_lowercase()).collect(),
            secret,
            runtime: Handle::current(),
            found: OnceLock::new(),
        });
    }

    /// Returns the access of the first login with this ID, otherwise of the first whose URL is the repository's or one above it. An ID is
    /// chosen by the author of a project: a login with a URL is for repositories below it only, also by its ID.
    fn of_chart(&self, url: &str, id: Option<&str>) -> Access {
        let parsed = Url::parse(url).ok();
        let is_above = |login: &&HelmLogin| {
            let pair = login.url.as_ref().zip(parsed.as_ref());
            pair.is_some_and(|(above, url)| is_same_server(above, url) && is_below(above, url))
        };
        let mut with_id = self
            .helm
            .iter()
            .filter(|login| id.is_some() && login.id.as_deref() == id);
        let by_id = with_id.find(|login| login.url.is_none() || is_above(login));
        let found = by_id.or_else(|| self.helm.iter().find(is_above));
        let access = found.map(|login| login.access.clone()).unwrap_or_default();
        // As Helm does, registries on this machine are used without TLS, unless a CA is given.
        let plain_http = parsed.as_ref().is_some_and(is_loopback_registry) && access.ca.is_none();
        Access { plain_http, ..access }
    }
}

impl GitLogin {
    /// Returns the credentials, which are read at the first call.
    fn access(&self) -> Result<GitAccess, Error> {
        let read = || {
            let Some(entries) = self.runtime.block_on(self.secret.read())? else {
                return Ok(GitAccess::default());
            };
            let get = |key: &str| entries.get(key).map(|value| value.expose().as_slice());
            git_access(&Entries(get)).map_err(|error| Error::Credentials(error.to_string()))
        };
        self.found.get_or_init(read).clone()
    }

    /// Returns true if a repository over SSH is on the server of the source, or on one of the hosts.
    fn is_for_ssh(&self, url: &Url) -> bool {
        let host = url.host_str().unwrap_or_default().to_ascii_lowercase();
        let with_port = format!("{host}:{}", url.port().unwrap_or(22));
        is_same_server(&self.url, url) || self.hosts.iter().any(|each| *each == host || *each == with_port)
    }

    fn is_for(&self, url: &Url) -> bool {
        if is_same_server(&self.url, url) {
            return true;
        }
        // Never in the clear, unless their own repository is.
        let is_safe = url.scheme() == "https" || url.scheme() == self.url.scheme();
        let host = url.host_str().unwrap_or_default().to_ascii_lowercase();
        let with_port = url.port_or_known_default().map(|port| format!("{host}:{port}"));
        is_safe
            && self
                .hosts
                .iter()
                .any(|each| *each == host || Some(each) == with_port.as_ref())
    }
}

fn git_access<'a>(entries: &Entries<impl Fn(&str) -> Option<&'a [u8]>>) -> Result<GitAccess, LoginError> {
    let password = entries.text("password")?;
    let auth = entries.text("username")?.map(|username| Auth {
        username,
        password: Secret::new(password.unwrap_or_default()),
    });
    let get = |key: &str| (entries.0)(key).filter(|bytes| !bytes.is_empty());
    Ok(GitAccess {
        auth,
        ca: entries.bytes("ca.crt").or_else(|| entries.bytes("caFile")),
        ssh: get("identity").map(|_| ssh_login(get)),
    })
}

fn is_same_server(a: &Url, b: &Url) -> bool {
    a.scheme() == b.scheme()
        && a.port_or_known_default() == b.port_or_known_default()
        && a.host_str().map(str::to_ascii_lowercase) == b.host_str().map(str::to_ascii_lowercase)
}

/// Returns true for a registry on a loopback address. The policy of addresses decides if it may be used at all.
fn is_loopback_registry(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let name = host.trim_start_matches('[').trim_end_matches(']');
    let is_loopback =
        name.eq_ignore_ascii_case("localhost") || name.parse().is_ok_and(|ip: IpAddr| ip.is_loopback());
    url.scheme() == "oci" && is_loopback
}

fn is_below(above: &Url, url: &Url) -> bool {
    let above = above.path().trim_end_matches('/');
    let rest = url.path().strip_prefix(above);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

impl SourceCredentials for UrlCredentials {
    fn git(&self, url: &str) -> Result<(Option<Auth>, Option<Vec<u8>>), Error> {
        let Ok(url) = Url::parse(url) else {
            return Ok((None, None));
        };
        let Some(login) = self.git.as_ref().filter(|login| login.is_for(&url)) else {
            return Ok((None, None));
        };
        let GitAccess { auth, ca, .. } = login.access()?;
        // A URL that names a user means another account.
        let is_meant = |auth: &Auth| url.username().is_empty() || url.username() == auth.username;
        let auth = auth.filter(|auth| is_meant(auth) && url.password().is_none());
        Ok((auth, ca))
    }

    fn ssh(&self, remote: git::Remote) -> Result<git::Remote, Error> {
        let url = remote.url();
        let Some(login) = self.git.as_ref().filter(|login| login.is_for_ssh(url)) else {
            return Ok(remote);
        };
        match login.access()?.ssh {
            Some(Ok(login)) => Ok(remote.with_ssh(login)),
            Some(Err(error)) => Err(Error::Credentials(format!("Secret of the source: {error}"))),
            None => Ok(remote),
        }
    }

    fn registry(&self, url: &str) -> Result<Access, Error> {
        Ok(self.of_chart(url, None))
    }

    fn helm(&self, url: &str, credentials_id: Option<&str>) -> Result<Access, Error> {
        Ok(self.of_chart(url, credentials_id))
    }

    fn remedy(&self, server: ServerKind, need: Need) -> Option<String> {
        let is_git = server == ServerKind::Git;
        let text = match need {
            Need::Credentials if is_git => {
                "only servers of the GitRepository, and hosts of --git-credentials-hosts, get the credentials of its Secret"
            }
            Need::OtherCredentials if is_git => "check the Secret of the source",
            Need::Credentials => "name a Secret with its url, username and password in spec.helmCredentials",
            Need::OtherCredentials => "check the Secrets of spec.helmCredentials",
            Need::CaBundle if is_git => "add the CA of the server as ca.crt to the Secret of the source",
            Need::CaBundle => "add the CA of the server as caFile to a Secret of spec.helmCredentials",
            Need::ValidCaBundle if is_git => "check ca.crt in the Secret of the source",
            Need::ValidCaBundle => "check caFile in the Secrets of spec.helmCredentials",
            Need::ClientCertificate if !is_git => {
                "add the certificate as certFile and keyFile to a Secret of spec.helmCredentials"
            }
            Need::SshKey | Need::HostKey => {
                "servers of the GitRepository, and hosts of --git-credentials-hosts, get identity and known_hosts of its Secret"
            }
            Need::OtherSshKey => "check identity in the Secret of the source",
            Need::OtherHostKey => "check known_hosts in the Secret of the source",
            Need::ClientCertificate
            | Need::ValidClientCertificate
            | Need::LongerTimeout
            | Need::FewerRequests => return None,
        };
        Some(text.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use std::{
        future::ready,
        sync::atomic::{AtomicUsize, Ordering},
    };

    use futures::FutureExt as _;

    use super::*;

    fn entry<'a>(pairs: &'a [(&'a str, &'a str)]) -> impl Fn(&str) -> Option<&'a [u8]> {
        move |key| {
            let found = pairs.iter().find(|(name, _)| *name == key);
            found.map(|(_, value)| value.as_bytes())
        }
    }

    fn user(access: &Access) -> &str {
        match &access.credentials {
            Some(Credentials::Basic { username, .. }) => username,
            _ => "",
        }
    }

    #[test]
    fn helm_credentials_are_found_by_id_and_by_server() {
        let mut all = UrlCredentials::default();
        all.add_helm(entry(&[("credentialsId", "one"), ("username", "one")]))
            .unwrap();
        all.add_helm(entry(&[
            ("url", "https://h.io/charts/"),
            ("username", "two"),
            ("passCredentialsAll", "true"),
        ]))
        .unwrap();
        all.add_helm(entry(&[("url", "oci://h.io:5000/x"), ("username", "three")]))
            .unwrap();
        all.add_helm(entry(&[
            ("credentialsId", "four"),
            ("url", "https://h.io/own"),
            ("username", "four"),
        ]))
        .unwrap();
        for (url, id, expected) in [
            ("https://h.io/own/x", Some("four"), "four"),
            ("https://evil.io/own/x", Some("four"), ""),
            ("http://h.io/own/x", Some("four"), ""),
            ("https://h.io:8443/own/x", Some("four"), ""),
            ("https://h.io/other", Some("four"), ""),
            ("https://h.io/charts", Some("four"), "two"),
            ("https://h.io/charts", None, "two"),
            ("https://H.io:443/charts/stable", None, "two"),
            ("https://h.io/charts/stable", Some("one"), "one"),
            ("https://h.io/charts", Some("none"), "two"),
            ("https://h.io/chartsmuseum", None, ""),
            ("https://h.io/charts/../other", None, ""),
            ("https://h.io/charts/%2e%2e/other", None, ""),
            ("http://h.io/charts", None, ""),
            ("https://h.io:8443/charts", None, ""),
            ("https://h.io.evil/charts", None, ""),
            ("oci://h.io:5000/x/chart", None, "three"),
            ("oci://h.io/x", None, ""),
        ] {
            assert_eq!(user(&all.of_chart(url, id)), expected, "{url} {id:?}");
        }
        assert!(all.of_chart("https://h.io/charts", None).pass_credentials);
        assert!(!all.of_chart("oci://h.io:5000/x", None).pass_credentials);
        for (url, expected) in [
            ("oci://127.0.0.1:5000/x", true),
            ("oci://localhost/x", true),
            ("oci://[::1]:5000/x", true),
            ("oci://h.io:5000/x", false),
            ("https://localhost/x", false),
        ] {
            assert_eq!(all.of_chart(url, None).plain_http, expected, "{url}");
        }
    }

    #[test]
    fn helm_certificates_are_not_mixed_up() {
        let mut all = UrlCredentials::default();
        let pairs = [
            ("url", "https://h"),
            ("certFile", "cert"),
            ("keyFile", "key"),
            ("caFile", "ca"),
        ];
        all.add_helm(entry(&pairs)).unwrap();
        let access = all.of_chart("https://h/x", None);
        let identity = access.identity.unwrap();
        assert_eq!(
            (access.ca.as_deref(), identity.certificate.as_slice()),
            (Some(&b"ca"[..]), &b"cert"[..])
        );
        assert_eq!(identity.key.expose(), b"key");
    }

    #[test]
    fn invalid_helm_credentials_are_named_without_their_values() {
        for (pairs, expected) in [
            (
                &[("username", "hunter2")][..],
                "must at least contain 'credentialsId' or 'url'",
            ),
            (&[("url", "hunter2")], "url: it is not the URL of a repository"),
            (
                &[("url", "https://h"), ("keyFile", "hunter2")],
                "certFile: a client certificate",
            ),
            (
                &[("url", "https://h"), ("insecureSkipTlsVerify", "hunter2")],
                "insecureSkipTlsVerify: it must be",
            ),
        ] {
            let error = UrlCredentials::default()
                .add_helm(entry(pairs))
                .unwrap_err()
                .to_string();
            assert!(
                error.starts_with(expected) && !error.contains("hunter2"),
                "{error}"
            );
        }
    }

    #[derive(Debug)]
    struct Known(&'static [(&'static str, &'static str)], AtomicUsize);

    impl ReadSecret for Known {
        fn read(&self) -> BoxFuture<'_, Result<Option<SecretEntries>, Error>> {
            self.1.fetch_add(1, Ordering::Relaxed);
            let pairs = self.0.iter();
            let entry =
                |(key, value): &(&str, &str)| ((*key).to_owned(), Secret::new(value.as_bytes().to_vec()));
            ready(Ok(Some(pairs.map(entry).collect()))).boxed()
        }
    }

    #[tokio::test]
    async fn git_credentials_are_for_their_server_and_named_hosts() {
        let mut all = UrlCredentials::default();
        let hosts = ["other.io".to_owned(), "Third.io:8443".to_owned()];
        let pairs = &[("username", "me"), ("password", "pw"), ("ca.crt", "ca")];
        let secret = Arc::new(Known(pairs, AtomicUsize::new(0)));
        all.set_git("https://h.io/a", &hosts, secret.clone());
        let work = move || {
            for (url, expected) in [
                ("http://h.io/b", false),
                ("https://h.io:8443/b", false),
                ("http://other.io/b", false),
                ("https://third.io/b", false),
                ("https://evil.io/?@h.io/", false),
                ("https://h.io.evil/b", false),
                ("https://h.io/b/c.git", true),
                ("https://H.IO:443/b", true),
                ("https://me@h.io/b", true),
                ("https://you@h.io/b", false),
                ("https://me:x@h.io/b", false),
                ("https://other.io:9000/b", true),
                ("https://third.io:8443/b", true),
            ] {
                let (auth, ca) = all.git(url).unwrap();
                assert_eq!(auth.is_some(), expected, "{url}");
                let reads = secret.1.load(Ordering::Relaxed);
                assert_eq!(
                    reads,
                    usize::from(ca.is_some() || reads > 0),
                    "{url}: read when it is needed"
                );
            }
            assert_eq!(all.git("https://h.io/b").unwrap().1.as_deref(), Some(&b"ca"[..]));
            assert_eq!(secret.1.load(Ordering::Relaxed), 1);
        };
        tokio::task::spawn_blocking(work).await.unwrap();
    }
}

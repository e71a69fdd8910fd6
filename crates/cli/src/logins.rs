//! Credentials for Helm repositories, OCI registries and Git repositories, from flags, environment variables and files.

mod docker;
mod environment;
mod flags;
mod git;
mod remedy;
mod ssh;
mod ssh_config;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context as _, Result, anyhow, bail};
use api::Secret;
use oci::{Access, Credentials, Identity};
use remote::{ServerAccess, ServerAddress, ServerKind, is_path_match};

pub(crate) use self::{
    flags::{LoginFlags, RegistryLoginFlags},
    remedy::AccessFlags,
};
use environment::{insecure_registries, of_environment, parse_switch};
use flags::{of_flags, of_registry_flags};

#[derive(Debug, Clone, Default)]
struct Login {
    id: Option<String>,
    /// URL scheme that the login is restricted to; `None` for any scheme.
    scheme: Option<String>,
    host: String,
    /// Glob pattern for the path; `None` for any path.
    path: Option<String>,
    username: String,
    password: Option<Secret<String>>,
    token: Option<Secret<String>>,
    identity_token: Option<Secret<String>>,
    ca: Option<PathBuf>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
    insecure: bool,
    pass: bool,
    plain: bool,
    ssh_key: Option<PathBuf>,
    known_hosts: Option<PathBuf>,
}

/// All known logins. The first match is used.
#[derive(Debug, Default)]
pub(crate) struct Logins {
    entries: Vec<(ServerKind, Login)>,
    insecure_registries: bool,
    /// Flags of the command. Registries on loopback addresses may use plain HTTP if these are kluctl's.
    pub(crate) flags: AccessFlags,
}

impl Logins {
    /// Reads the logins of flags, of the environment, of Git's credentials files and of Docker's config.json, in this order.
    pub(crate) fn new(args: &LoginFlags) -> Result<Self> {
        let mut all = of_flags(args)?;
        all.extend(of_environment(std::env::vars())?);
        all.extend(git::of_files()?);
        all.extend(docker::of_file()?);
        Ok(Self {
            entries: all,
            insecure_registries: insecure_registries()?,
            flags: AccessFlags::Servers,
        })
    }

    /// Reads the registry logins of flags, of the environment and of Docker's config.json, in this order.
    pub(crate) fn registries(args: &RegistryLoginFlags) -> Result<Self> {
        let mut all = of_registry_flags(args)?;
        all.extend(of_environment(std::env::vars())?);
        all.extend(docker::of_file()?);
        Ok(Self {
            entries: all,
            insecure_registries: insecure_registries()?,
            flags: AccessFlags::Servers,
        })
    }

    /// Reads the logins of the environment and of Docker's config.json, in this order, for commands without flags for them.
    pub(crate) fn of_user() -> Result<Self> {
        let mut all = of_environment(std::env::vars())?;
        all.extend(docker::of_file()?);
        Ok(Self {
            entries: all,
            insecure_registries: insecure_registries()?,
            flags: AccessFlags::Servers,
        })
    }

    /// Reads the registry logins of a file in the format of Docker's config.json; `None` means the default file.
    pub(crate) fn of_registries(file: Option<&Path>) -> Result<Self> {
        match file {
            Some(file) => docker::of_path(file).map(Self::of),
            None => docker::of_file().map(Self::of),
        }
    }

    fn of(entries: Vec<(ServerKind, Login)>) -> Self {
        Self {
            entries,
            insecure_registries: false,
            flags: AccessFlags::None,
        }
    }

    /// Returns the access of the user of a command line with these logins.
    pub(crate) fn servers(self) -> ServerAccess {
        ServerAccess {
            credentials: Some(Arc::new(self)),
            ..ServerAccess::default()
        }
    }

    /// Returns the credentials and TLS settings for a URL.
    ///
    /// Registries on loopback addresses that don't use TLS are accessed by plain HTTP, as by kluctl, unless there are TLS settings.
    pub(crate) fn access(&self, address: &str) -> Result<Access> {
        let kind = match address.split_once("://") {
            Some(("oci", _)) => ServerKind::Registry,
            _ => ServerKind::Helm,
        };
        let found = self.find(kind, address);
        let mut access = found.map_or_else(|| Ok(Access::default()), Login::access)?;
        let has_tls = access.ca.is_some() || access.identity.is_some() || access.insecure_skip_verify;
        if kind == ServerKind::Registry
            && self.flags == AccessFlags::Servers
            && !has_tls
            && !access.plain_http
        {
            let server = ServerAddress::parse(address);
            access.plain_http = server.is_some_and(|server| {
                remote::uses_plain_http(&server.host, &net::AddressPolicy::command_line())
            });
        }
        if kind == ServerKind::Registry && self.insecure_registries && !has_tls {
            access.insecure_skip_verify = true;
        }
        Ok(access)
    }

    /// Returns the credentials and TLS settings for the Helm repository of a chart, by the chart's `credentialsId` if there is a login
    /// with it, otherwise by the URL.
    pub(crate) fn helm_access(&self, url: &str, credentials_id: Option<&str>) -> Result<Access> {
        let mut logins = self.entries.iter().filter(|(kind, _)| *kind == ServerKind::Helm);
        let by_id =
            logins.find(|(_, login)| credentials_id.is_some() && login.id.as_deref() == credentials_id);
        match by_id {
            Some((_, login)) => login.access(),
            None => self.access(url),
        }
    }

    fn find(&self, kind: ServerKind, address: &str) -> Option<&Login> {
        let server = ServerAddress::parse(address)?;
        let mut logins = self.entries.iter().filter(|(of, _)| *of == kind);
        let (_, login) = logins.find(|(_, login)| login.matches(&server))?;
        Some(login)
    }
}

impl Login {
    fn for_server(server: &str) -> Self {
        let (host, path) = server
            .split_once('/')
            .map_or((server, None), |(host, path)| (host, Some(path)));
        Self {
            id: path.is_none().then(|| server.to_owned()),
            host: host.to_owned(),
            path: path.map(str::to_owned).filter(|path| !path.is_empty()),
            ..Self::default()
        }
    }

    fn matches(&self, server: &ServerAddress) -> bool {
        let is_host = [&server.host, &server.host_with_port]
            .iter()
            .any(|host| self.host.eq_ignore_ascii_case(host));
        let is_scheme = self.scheme.as_ref().is_none_or(|scheme| *scheme == server.scheme);
        let path = self.path.as_deref();
        is_host && is_scheme && path.is_none_or(|path| is_path_match(path.as_bytes(), server.path.as_bytes()))
    }

    fn access(&self) -> Result<Access> {
        let credentials = match (&self.token, &self.identity_token, &self.password) {
            (Some(token), ..) => Some(Credentials::Bearer(token.clone())),
            (None, Some(token), _) => Some(Credentials::Identity(token.clone())),
            (None, None, Some(password)) => Some(Credentials::Basic {
                username: self.username.clone(),
                password: password.clone(),
            }),
            (None, None, None) => None,
        };
        let identity = identity(self.certificate.as_deref(), self.key.as_deref());
        Ok(Access {
            credentials,
            pass_credentials: self.pass,
            ca: read(self.ca.as_deref())?,
            identity: identity.with_context(|| self.host.clone())?,
            insecure_skip_verify: self.insecure,
            plain_http: self.plain,
        })
    }

    /// Sets a field by the suffix of its environment variable. Messages don't contain the value.
    fn set(&mut self, field: &str, value: &str) -> Result<()> {
        let yes = || parse_switch(field, value);
        match field {
            "CREDENTIALS_ID" => self.id = Some(value.to_owned()).filter(|id| !id.is_empty()),
            "HOST" => value.clone_into(&mut self.host),
            "PATH" | "REPOSITORY" => self.path = Some(value.to_owned()).filter(|path| !path.is_empty()),
            "USERNAME" => value.clone_into(&mut self.username),
            "PASSWORD" => self.password = Some(Secret::new(value.to_owned())),
            "CREDS" => {
                let (user, password) = value
                    .split_once(':')
                    .ok_or_else(|| anyhow!("credentials must have the form USER:PASSWORD"))?;
                user.clone_into(&mut self.username);
                self.password = Some(Secret::new(password.to_owned()));
            }
            "IDENTITY_TOKEN" => self.identity_token = Some(Secret::new(value.to_owned())),
            "TOKEN" => self.token = Some(Secret::new(value.to_owned())),
            "CA_FILE" | "CA_BUNDLE" => self.ca = Some(value.into()),
            "CERT_FILE" => self.certificate = Some(value.into()),
            "KEY_FILE" => self.key = Some(value.into()),
            "SSH_KEY" | "SSH_KEY_FILE" => self.ssh_key = Some(value.into()),
            "SSH_KNOWN_HOSTS_FILE" => self.known_hosts = Some(value.into()),
            "INSECURE_SKIP_TLS_VERIFY" => self.insecure = yes()?,
            "PASS_CREDENTIALS_ALL" => self.pass = yes()?,
            "PLAIN_HTTP" => self.plain = yes()?,
            _ => bail!("{field} is not supported"),
        }
        Ok(())
    }
}

/// Reads an optional file, such as a certificate or a key.
pub(crate) fn read(file: Option<&Path>) -> Result<Option<Vec<u8>>> {
    let read = |file: &Path| std::fs::read(file).with_context(|| format!("read {}", file.display()));
    file.map(read).transpose()
}

pub(crate) fn identity(certificate: Option<&Path>, key: Option<&Path>) -> Result<Option<Identity>> {
    Ok(match (read(certificate)?, read(key)?) {
        (Some(certificate), Some(key)) => Some(Identity {
            certificate,
            key: Secret::new(key),
        }),
        (None, None) => None,
        _ => bail!("a TLS client certificate and its key must be given together"),
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        logins: LoginFlags,
    }

    fn flags(flags: &[&str]) -> Logins {
        let args = Cli::parse_from(std::iter::once(&"weir").chain(flags));
        Logins::of(of_flags(&args.logins).unwrap())
    }

    fn user(access: &Access) -> &str {
        match &access.credentials {
            Some(Credentials::Basic { username, .. }) => username,
            Some(Credentials::Bearer(_) | Credentials::Identity(_)) => "(token)",
            None => "",
        }
    }

    #[test]
    fn login_applies_to_its_server_only() {
        let logins = flags(&[
            "--helm-creds=h:8080=all:p",
            "--helm-username=h:8080/a/*=some",
            "--helm-password=h:8080/a/*=p",
            "--registry-token=h/x=t",
            "--registry-plain-http=h/x",
        ]);
        for (address, expected) in [
            ("https://h:8080", "all"),
            ("https://u:p@H:8080/b?x", "all"),
            ("https://h:8080/a/b/", "some"),
            ("https://h:8080/a/b/c", "all"),
            ("https://h/a/b", ""),
            // Ambiguous URLs are parsed as the HTTP client does.
            ("https://other\\@h:8080/a/b", ""),
            ("https://other?@h:8080/a/b", ""),
            ("https://other#@h:8080/a/b", ""),
            ("https://h:8080/a/x/../../b", "all"),
            ("https://h:8080/z/../a/b", "some"),
            ("oci://h:8080/a/b", ""),
            ("oci://h/x", "(token)"),
            ("oci://h/y", ""),
        ] {
            assert_eq!(user(&logins.access(address).unwrap()), expected, "{address}");
        }
        assert!(logins.access("oci://h/x").unwrap().plain_http);
        let printed = format!("{logins:?}");
        assert!(
            !printed.contains("\"p\"") && !printed.contains("\"t\""),
            "{printed}"
        );
    }

    #[test]
    fn logins_are_read_from_the_environment() {
        let set = [
            ("KLUCTL_HELM_HOST", "a"),
            ("KLUCTL_HELM_USERNAME", "one"),
            ("KLUCTL_HELM_PASSWORD", "p"),
            ("KLUCTL_HELM_1_HOST", "b"),
            ("KLUCTL_HELM_1_USERNAME", "two"),
            ("KLUCTL_HELM_1_PASSWORD", "p"),
            ("KLUCTL_HELM_1_INSECURE_SKIP_TLS_VERIFY", "true"),
            ("KLUCTL_REGISTRY_2_REPOSITORY", "c/**"),
            ("KLUCTL_REGISTRY_2_TOKEN", "t"),
            ("KLUCTL_OTHER", "x"),
        ];
        let vars = |set: &[(&str, &str)]| {
            let pairs: Vec<(String, String)> = set
                .iter()
                .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
                .collect();
            of_environment(pairs.into_iter())
        };
        let logins = Logins::of(vars(&set).unwrap());
        assert_eq!(user(&logins.access("https://a/x").unwrap()), "one");
        let two = logins.access("https://b/x").unwrap();
        assert!(user(&two) == "two" && two.insecure_skip_verify);
        assert_eq!(user(&logins.access("oci://c/x/y").unwrap()), "(token)");
        let known = Logins::of(
            vars(&[
                ("KLUCTL_REGISTRY_HOST", "h"),
                ("KLUCTL_REGISTRY_IDENTITY_TOKEN", "x"),
            ])
            .unwrap(),
        );
        let credentials = known.access("oci://h/a").unwrap().credentials;
        assert_eq!(
            credentials,
            Some(Credentials::Identity(Secret::new("x".to_owned())))
        );
        let error = vars(&[("KLUCTL_REGISTRY_PASSPHRASE", "s3cret")]).unwrap_err();
        assert_eq!(
            format!("{error:#}"),
            "KLUCTL_REGISTRY_PASSPHRASE: PASSPHRASE is not supported"
        );
    }

    #[test]
    fn invalid_login_flags_are_refused_without_showing_the_value() {
        let args = Cli::parse_from(["weir", "--helm-password", "s3cret"]);
        let error = of_flags(&args.logins).unwrap_err().to_string();
        assert_eq!(error, "invalid --helm-password: expected HOST/PATH=VALUE");
    }
}

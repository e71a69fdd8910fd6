//! Credentials for Helm repositories, OCI registries and Git repositories, from flags, environment variables and files.

mod docker;
mod git;
mod remedy;
mod ssh;
mod ssh_config;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, anyhow, bail};
use api::Secret;
use clap::Args;
use engine::{ServerAddress, ServerKind, is_path_match};
use oci::{Access, Credentials, Identity};

pub(crate) use self::remedy::AccessFlags;

/// Credentials and TLS settings. The value of each flag starts with the server that it applies to: `HOST[/PATH]`, where PATH may
/// be a glob pattern.
#[derive(Args)]
pub(crate) struct LoginFlags {
    /// Username for a Helm repository. Can be repeated
    #[arg(long, value_name = "HOST/PATH=USER", help_heading = "Helm repositories")]
    helm_username: Vec<String>,
    /// Password for a Helm repository. Can be repeated
    #[arg(long, value_name = "HOST/PATH=PASSWORD", help_heading = "Helm repositories")]
    helm_password: Vec<String>,
    /// Username and password for a Helm repository. Can be repeated
    #[arg(
        long,
        value_name = "HOST/PATH=USER:PASSWORD",
        help_heading = "Helm repositories"
    )]
    helm_creds: Vec<String>,
    /// CA bundle for verifying the Helm repository. Can be repeated
    #[arg(long, value_name = "HOST/PATH=FILE", help_heading = "Helm repositories")]
    helm_ca_file: Vec<String>,
    /// TLS client certificate for a Helm repository. Can be repeated
    #[arg(long, value_name = "HOST/PATH=FILE", help_heading = "Helm repositories")]
    helm_cert_file: Vec<String>,
    /// Private key of the TLS client certificate for a Helm repository. Can be repeated
    #[arg(long, value_name = "HOST/PATH=FILE", help_heading = "Helm repositories")]
    helm_key_file: Vec<String>,
    /// Skip verification of the TLS certificate of a Helm repository. Can be repeated
    #[arg(long, value_name = "HOST/PATH", help_heading = "Helm repositories")]
    helm_insecure_skip_tls_verify: Vec<String>,

    /// Username for a Git repository. Can be repeated
    #[arg(long, value_name = "HOST/PATH=USER", help_heading = "Git repositories")]
    git_username: Vec<String>,
    /// Password or token for a Git repository. Can be repeated
    #[arg(long, value_name = "HOST/PATH=PASSWORD", help_heading = "Git repositories")]
    git_password: Vec<String>,
    /// CA bundle for verifying the Git server. Can be repeated
    #[arg(long, value_name = "HOST/PATH=FILE", help_heading = "Git repositories")]
    git_ca_file: Vec<String>,

    /// Private key for a Git repository over SSH. Can be repeated
    #[arg(long, value_name = "HOST/PATH=FILE", help_heading = "Git repositories")]
    git_ssh_key_file: Vec<String>,
    /// File with the host keys of a Git server over SSH. Can be repeated
    #[arg(long, value_name = "HOST/PATH=FILE", help_heading = "Git repositories")]
    git_ssh_known_hosts_file: Vec<String>,

    #[command(flatten)]
    registry: RegistryLoginFlags,
}

/// Credentials and TLS settings for OCI registries.
#[derive(Args)]
#[command(next_help_heading = "OCI registries")]
pub(crate) struct RegistryLoginFlags {
    /// Username for an OCI registry. Can be repeated
    #[arg(long, value_name = "HOST/PATH=USER")]
    registry_username: Vec<String>,
    /// Password for an OCI registry. Can be repeated
    #[arg(long, value_name = "HOST/PATH=PASSWORD")]
    registry_password: Vec<String>,
    /// Username and password for an OCI registry. Can be repeated
    #[arg(long, value_name = "HOST/PATH=USER:PASSWORD")]
    registry_creds: Vec<String>,
    /// Identity token (OAuth2 refresh token) for an OCI registry. Can be repeated
    #[arg(long, value_name = "HOST/PATH=TOKEN")]
    registry_identity_token: Vec<String>,
    /// Bearer token for an OCI registry. Can be repeated
    #[arg(long, value_name = "HOST/PATH=TOKEN")]
    registry_token: Vec<String>,
    /// CA bundle for verifying the OCI registry. Can be repeated
    #[arg(long, value_name = "HOST/PATH=FILE")]
    registry_ca_file: Vec<String>,
    /// TLS client certificate for an OCI registry. Can be repeated
    #[arg(long, value_name = "HOST/PATH=FILE")]
    registry_cert_file: Vec<String>,
    /// Private key of the TLS client certificate for an OCI registry. Can be repeated
    #[arg(long, value_name = "HOST/PATH=FILE")]
    registry_key_file: Vec<String>,
    /// Use plain HTTP for an OCI registry. Can be repeated
    #[arg(long, value_name = "HOST/PATH")]
    registry_plain_http: Vec<String>,
    /// Skip verification of the TLS certificate of an OCI registry. Can be repeated
    #[arg(long, value_name = "HOST/PATH")]
    registry_insecure_skip_tls_verify: Vec<String>,
}

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
        let mut all = from_texts(&args.values(), &args.switches())?;
        all.extend(of_environment(std::env::vars())?);
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
                engine::uses_plain_http(&server.host, &net::AddressPolicy::command_line())
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

/// Field of a login with the values of its flag.
type FlagValues<'a> = (ServerKind, &'static str, &'a [String]);

impl RegistryLoginFlags {
    fn values(&self) -> [FlagValues<'_>; 8] {
        [
            ("USERNAME", &self.registry_username),
            ("PASSWORD", &self.registry_password),
            ("CREDS", &self.registry_creds),
            ("IDENTITY_TOKEN", &self.registry_identity_token),
            ("TOKEN", &self.registry_token),
            ("CA_FILE", &self.registry_ca_file),
            ("CERT_FILE", &self.registry_cert_file),
            ("KEY_FILE", &self.registry_key_file),
        ]
        .map(|(field, values)| (ServerKind::Registry, field, values.as_slice()))
    }

    fn switches(&self) -> [FlagValues<'_>; 2] {
        [
            ("PLAIN_HTTP", &self.registry_plain_http),
            (
                "INSECURE_SKIP_TLS_VERIFY",
                &self.registry_insecure_skip_tls_verify,
            ),
        ]
        .map(|(field, servers)| (ServerKind::Registry, field, servers.as_slice()))
    }
}

fn of_flags(args: &LoginFlags) -> Result<Vec<(ServerKind, Login)>> {
    use ServerKind::{Git, Helm};
    let with_values = [
        (Helm, "USERNAME", args.helm_username.as_slice()),
        (Helm, "PASSWORD", &args.helm_password),
        (Helm, "CREDS", &args.helm_creds),
        (Helm, "CA_FILE", &args.helm_ca_file),
        (Helm, "CERT_FILE", &args.helm_cert_file),
        (Helm, "KEY_FILE", &args.helm_key_file),
        (Git, "USERNAME", &args.git_username),
        (Git, "PASSWORD", &args.git_password),
        (Git, "CA_FILE", &args.git_ca_file),
        (Git, "SSH_KEY_FILE", &args.git_ssh_key_file),
        (Git, "SSH_KNOWN_HOSTS_FILE", &args.git_ssh_known_hosts_file),
    ];
    let skip_verify = args.helm_insecure_skip_tls_verify.as_slice();
    let switches = [(Helm, "INSECURE_SKIP_TLS_VERIFY", skip_verify)];
    from_texts(
        &[&with_values[..], &args.registry.values()].concat(),
        &[&switches[..], &args.registry.switches()].concat(),
    )
}

/// Reads logins of flags of the form `SERVER=VALUE`, and of switches, whose value is a server.
fn from_texts(
    with_values: &[FlagValues<'_>],
    switches: &[FlagValues<'_>],
) -> Result<Vec<(ServerKind, Login)>> {
    use ServerKind::Helm;
    let mut servers = BTreeMap::<(ServerKind, String), Login>::new();
    let mut set = |kind, server: &str, field: &str, value: &str| {
        let login = servers.entry((kind, server.to_owned()));
        login
            .or_insert_with(|| Login::for_server(server))
            .set(field, value)
    };
    for &(kind, field, texts) in with_values {
        for text in texts {
            // The message must not contain the value, which may be a password.
            let split = text.split_once('=');
            // The deprecated form `ID:VALUE` refers to `credentialsId` of charts.
            let split = split.or_else(|| text.split_once(':').filter(|_| kind == Helm));
            let (server, value) = split.ok_or_else(|| {
                let flag = format!("{kind:?}-{field}").to_lowercase().replace('_', "-");
                anyhow!("invalid --{flag}: expected HOST/PATH=VALUE")
            })?;
            set(kind, server, field, value)?;
        }
    }
    for &(kind, field, texts) in switches {
        for server in texts {
            set(kind, server, field, "true")?;
        }
    }
    // Servers with a path are more specific than those without.
    let (exact, hosts) = servers
        .into_iter()
        .partition::<Vec<_>, _>(|(_, login)| login.path.is_some());
    Ok(exact
        .into_iter()
        .chain(hosts)
        .map(|((kind, _), login)| (kind, login))
        .collect())
}

/// Variable that turns off the verification of certificates for all registries.
const INSECURE_REGISTRIES: &str = "KLUCTL_REGISTRY_DEFAULT_INSECURE_SKIP_TLS_VERIFY";

/// Variables that have the prefix of a login, but set none.
const NOT_LOGINS: [&str; 2] = [INSECURE_REGISTRIES, "KLUCTL_GIT_CACHE_UPDATE_INTERVAL"];

fn insecure_registries() -> Result<bool> {
    match std::env::var(INSECURE_REGISTRIES) {
        Ok(value) => parse_switch(INSECURE_REGISTRIES, &value),
        Err(_) => Ok(false),
    }
}

fn parse_switch(name: &str, value: &str) -> Result<bool> {
    match value.to_ascii_lowercase().as_str() {
        "true" | "1" | "t" => Ok(true),
        "false" | "0" | "f" | "" => Ok(false),
        _ => Err(anyhow!("{name} must be true or false")),
    }
}

/// Reads the logins of environment variables such as `KLUCTL_HELM_HOST` and `KLUCTL_HELM_1_HOST`.
fn of_environment(all: impl Iterator<Item = (String, String)>) -> Result<Vec<(ServerKind, Login)>> {
    let mut servers = BTreeMap::<(ServerKind, Option<u32>), Login>::new();
    for (name, value) in all {
        let kinds = [
            ("KLUCTL_HELM_", ServerKind::Helm),
            ("KLUCTL_REGISTRY_", ServerKind::Registry),
            ("KLUCTL_GIT_", ServerKind::Git),
        ];
        if NOT_LOGINS.contains(&name.as_str()) {
            continue;
        }
        let Some((rest, kind)) = kinds
            .iter()
            .find_map(|(prefix, kind)| Some((name.strip_prefix(prefix)?, *kind)))
        else {
            continue;
        };
        let (number, field) = match rest.split_once('_') {
            Some((digits, field)) if digits.parse::<u32>().is_ok() => (digits.parse().ok(), field),
            _ => (None, rest),
        };
        let login = servers.entry((kind, number)).or_default();
        login.set(field, &value).with_context(|| name.clone())?;
    }
    for login in servers.values_mut() {
        // REPOSITORY may contain the host.
        if login.host.is_empty()
            && let Some((host, path)) = login.path.as_deref().and_then(|path| path.split_once('/'))
        {
            (login.host, login.path) = (host.to_owned(), Some(path.to_owned()));
        }
    }
    Ok(servers
        .into_iter()
        .map(|((kind, _), login)| (kind, login))
        .collect())
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

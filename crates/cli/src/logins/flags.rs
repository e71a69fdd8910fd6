//! Logins from flags.

use std::collections::BTreeMap;

use anyhow::{Result, anyhow};
use clap::Args;
use remote::ServerKind;

use super::Login;

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

pub(super) fn of_flags(args: &LoginFlags) -> Result<Vec<(ServerKind, Login)>> {
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
    parse(
        &[&with_values[..], &args.registry.values()].concat(),
        &[&switches[..], &args.registry.switches()].concat(),
    )
}

/// Reads logins of flags of the form `SERVER=VALUE`, and of switches, whose value is a server.
fn parse(with_values: &[FlagValues<'_>], switches: &[FlagValues<'_>]) -> Result<Vec<(ServerKind, Login)>> {
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

pub(super) fn of_registry_flags(args: &RegistryLoginFlags) -> Result<Vec<(ServerKind, Login)>> {
    parse(&args.values(), &args.switches())
}

//! Access to a cluster: the process's own configuration, a user's kubeconfig, service accounts, contexts.

mod local;

use kube::{
    Client, Config,
    config::{AuthInfo, KubeConfigOptions, Kubeconfig},
};
use secrecy::ExposeSecret;

use crate::{Cluster, Error};

pub use local::LocalKubeconfig;

/// Name of the only context of every cluster.
pub const DEFAULT_CONTEXT: &str = "default";

#[must_use]
pub fn service_account(namespace: &str, name: &str) -> String {
    format!("system:serviceaccount:{namespace}:{name}")
}

/// Connects to the cluster of a user's kubeconfig, which has to meet the rules of [`user_config`].
pub async fn connect(kubeconfig: &[u8]) -> Result<Cluster, Error> {
    Ok(Cluster::new(client(user_config(kubeconfig).await?)?))
}

/// Creates a client for a configuration. [`crate::Cluster`] retries, as it knows which requests may be repeated.
///
/// # Errors
/// Fails when the proxy, certificates or credentials of the configuration can't be used.
pub fn client(mut config: Config) -> Result<Client, Error> {
    config.default_retry = false;
    config.proxy_url = net::server_proxy(&config.cluster_url, config.proxy_url.take());
    let agent = http::HeaderValue::from_static(concat!("weir/", env!("CARGO_PKG_VERSION")));
    config.headers.push((http::header::USER_AGENT, agent));
    Client::try_from(config).map_err(|error| match error {
        kube::Error::ProxyProtocolUnsupported { .. } | kube::Error::ProxyProtocolDisabled { .. } => {
            Error::KubeconfigRefused("only http, https and socks5 proxies are supported".to_owned())
        }
        // The TLS library's message may contain a piece of the key material.
        _ => Error::Kubeconfig("its certificates or credentials are malformed".to_owned()),
    })
}

/// Accepted settings of a user's kubeconfig; default none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KubeconfigRules {
    pub insecure_tls: bool,
}

/// Returns the configuration of the current context of a user's kubeconfig. Only inline values count: everything that would run
/// a program or read a file of this process is refused.
///
/// # Errors
/// Fails when the kubeconfig is larger than 1 MiB, does not parse, has an incomplete current context, or uses a refused field.
pub async fn user_config(kubeconfig: &[u8]) -> Result<Config, Error> {
    user_config_with(kubeconfig, KubeconfigRules::default()).await
}

/// Does the same as [`user_config`], but accepts the settings in `rules`.
pub async fn user_config_with(kubeconfig: &[u8], rules: KubeconfigRules) -> Result<Config, Error> {
    let kubeconfig = parse(kubeconfig)?;
    check(&kubeconfig, rules)?;
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .map_err(|error| Error::Kubeconfig(describe(&error).to_owned()))?;
    // The service account alone decides who acts.
    config.auth_info.impersonate = None;
    config.auth_info.impersonate_uid = None;
    config.auth_info.impersonate_groups = None;
    config.auth_info.impersonate_user_extra = None;
    Ok(config)
}

/// The server of a kubeconfig.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KubeconfigServer {
    pub address: String,
    /// Certificates in PEM, encoded in base64.
    pub authority: Option<String>,
}

/// Returns the server of the current context of a kubeconfig, whatever its users are.
///
/// # Errors
/// Fails when the kubeconfig is larger than 1 MiB, does not parse, or its current context has no server.
pub fn server_of(kubeconfig: &[u8]) -> Result<KubeconfigServer, Error> {
    let kubeconfig = parse(kubeconfig)?;
    let wanted = kubeconfig.current_context.unwrap_or_default();
    let context = kubeconfig.contexts.into_iter().find(|one| one.name == wanted);
    let context = context.and_then(|one| one.context);
    let named = |name: String| kubeconfig.clusters.into_iter().find(|one| one.name == name);
    let cluster = context.and_then(|context| named(context.cluster)?.cluster);
    let cluster =
        cluster.ok_or_else(|| Error::Kubeconfig("its current context names no cluster".to_owned()))?;
    let address = cluster.server.filter(|server| !server.is_empty());
    Ok(KubeconfigServer {
        address: address.ok_or_else(|| Error::Kubeconfig("its cluster has no server".to_owned()))?,
        authority: cluster.certificate_authority_data,
    })
}

fn parse(kubeconfig: &[u8]) -> Result<Kubeconfig, Error> {
    const MAX: usize = 1 << 20;
    if kubeconfig.len() > MAX {
        return Err(Error::Kubeconfig(format!("it is larger than {MAX} bytes")));
    }
    let text =
        std::str::from_utf8(kubeconfig).map_err(|_| Error::Kubeconfig("it is no UTF-8 text".to_owned()))?;
    // The parser's message may quote a token.
    Kubeconfig::from_yaml(text)
        .map_err(|_| Error::Kubeconfig("it is no valid YAML, or has not the form of a kubeconfig".to_owned()))
}

fn describe(error: &kube::config::KubeconfigError) -> &'static str {
    use kube::config::KubeconfigError as E;
    match error {
        E::CurrentContextNotSet => "current-context is not set",
        E::LoadContext(_) => "its current-context names no context",
        E::LoadClusterOfContext(_) => "its current context names no cluster",
        E::MissingClusterUrl => "its cluster has no server",
        E::ParseClusterUrl(_) => "the server of its cluster is no URL",
        E::ParseProxyUrl(_) => "the proxy-url of its cluster is no URL",
        E::LoadCertificateAuthority(_) | E::ParseCertificates(_) => {
            "its certificate-authority-data is malformed"
        }
        E::LoadClientCertificate(_) => "its client-certificate-data is malformed",
        E::LoadClientKey(_) => "its client-key-data is malformed",
        _ => "it can't be read",
    }
}

/// Refuses dangerous settings of an untrusted kubeconfig. All its users and clusters are checked, not only the chosen ones.
fn check(kubeconfig: &Kubeconfig, rules: KubeconfigRules) -> Result<(), Error> {
    for user in &kubeconfig.auth_infos {
        if let Some(info) = &user.auth_info {
            check_user(&user.name, info)?;
        }
    }
    for cluster in &kubeconfig.clusters {
        if let Some(info) = &cluster.cluster {
            let refused = [
                (
                    info.certificate_authority.is_some(),
                    "certificate-authority",
                    "certificate-authority-data",
                ),
                (
                    info.proxy_url.is_some(),
                    "proxy-url",
                    "a server that can be reached directly",
                ),
                (
                    info.insecure_skip_tls_verify == Some(true) && !rules.insecure_tls,
                    "insecure-skip-tls-verify",
                    "certificate-authority-data (the flag --insecure-kubeconfig-tls allows it)",
                ),
            ];
            refuse("cluster", &cluster.name, &refused)?;
        }
    }
    Ok(())
}

/// Fails with the first present field; `fields` has presence, name, and the alternative.
fn refuse(what: &str, name: &str, fields: &[(bool, &str, &str)]) -> Result<(), Error> {
    match fields.iter().find(|(present, ..)| *present) {
        None => Ok(()),
        Some((_, field, instead)) => Err(Error::KubeconfigRefused(format!(
            "{what} '{name}' uses {field}, which is not allowed: use {instead}"
        ))),
    }
}

fn check_user(name: &str, info: &AuthInfo) -> Result<(), Error> {
    let credentials = "a token or client-certificate-data";
    let impersonates = info.impersonate.is_some()
        || info.impersonate_uid.is_some()
        || info.impersonate_groups.is_some()
        || info.impersonate_user_extra.is_some();
    let refused = [
        (info.exec.is_some(), "exec", credentials),
        (info.auth_provider.is_some(), "auth-provider", credentials),
        (info.token_file.is_some(), "tokenFile", "token"),
        (
            info.client_certificate.is_some(),
            "client-certificate",
            "client-certificate-data",
        ),
        (info.client_key.is_some(), "client-key", "client-key-data"),
        (
            impersonates,
            "as (impersonation)",
            "spec.serviceAccountName of the object that names this kubeconfig",
        ),
    ];
    refuse("user", name, &refused)?;
    // The client takes for granted that it can be sent.
    let sendable = |token: &str| http::HeaderValue::try_from(format!("Bearer {token}")).is_ok();
    match &info.token {
        Some(token) if !sendable(token.expose_secret()) => Err(Error::Kubeconfig(format!(
            "the token of user '{name}' holds a line end or control character: remove it"
        ))),
        _ => Ok(()),
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contexts {
    pub current: Option<String>,
    pub names: Vec<String>,
}

impl Default for Contexts {
    fn default() -> Self {
        Self {
            current: Some(DEFAULT_CONTEXT.to_owned()),
            names: vec![DEFAULT_CONTEXT.to_owned()],
        }
    }
}

impl Contexts {
    /// Renames contexts, one after the other; the current one stays current.
    pub fn rename<'a>(
        mut self,
        renames: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, Error> {
        for (old, new) in renames {
            if self.names.iter().any(|name| name == new) {
                return Err(Error::ContextTaken {
                    old: old.to_owned(),
                    new: new.to_owned(),
                });
            }
            let Some(name) = self.names.iter_mut().find(|name| *name == old) else {
                return Err(Error::ContextMissing {
                    old: old.to_owned(),
                    new: new.to_owned(),
                });
            };
            new.clone_into(name);
            if self.current.as_deref() == Some(old) {
                self.current = Some(new.to_owned());
            }
        }
        Ok(self)
    }
}

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod tests;

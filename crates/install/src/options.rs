//! The options of an installation.

use std::fmt;

use crate::{Error, NAMESPACE, VERSION, components};

/// Maximum length of names in Kubernetes.
const MAX_NAME: usize = 63;

/// The objects that may be deployed as cluster-admin if they name no ServiceAccount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Admin {
    /// None: a ServiceAccount has the rights that somebody gave it.
    Nobody,
    /// Objects in the namespace of the controllers, by its ServiceAccount `default`. Objects of other namespaces are confined to the rights of their
    /// own ServiceAccounts.
    #[default]
    Namespace,
    /// Objects in any namespace, as in an installation of Flux without lockdown.
    Everybody,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogLevel {
    Debug,
    #[default]
    Info,
    Error,
}

impl fmt::Display for LogLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Error => "error",
        })
    }
}

/// The options of an installation. Names and defaults are the flags of `flux install`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    pub namespace: String,
    /// Version of the controllers, the tag of their images.
    pub version: String,
    pub components: Vec<String>,
    /// Registry and path of the images, without the name of the controller.
    pub registry: String,
    /// Name of a Secret in the namespace with which images are pulled.
    pub image_pull_secret: Option<String>,
    pub watch_all_namespaces: bool,
    pub network_policy: bool,
    pub log_level: LogLevel,
    pub cluster_domain: String,
    /// Keys of taints that the Pods tolerate.
    pub toleration_keys: Vec<String>,
    pub admin: Admin,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            namespace: NAMESPACE.to_owned(),
            version: VERSION.to_owned(),
            components: components::available().into_iter().map(str::to_owned).collect(),
            registry: "weir".to_owned(),
            image_pull_secret: None,
            watch_all_namespaces: true,
            network_policy: true,
            log_level: LogLevel::default(),
            cluster_domain: "cluster.local".to_owned(),
            toleration_keys: Vec::new(),
            admin: Admin::default(),
        }
    }
}

impl Options {
    /// Checks the options, whose values become parts of names and arguments.
    pub(crate) fn check(&self) -> Result<(), Error> {
        components::check(&self.components)?;
        check_name("namespace", &self.namespace)?;
        if let Some(secret) = &self.image_pull_secret {
            check_name("image pull secret", secret)?;
        }
        check_domain("cluster domain", &self.cluster_domain)?;
        check_words("registry", &self.registry, "._-:/@")?;
        check_words("version", &self.version, "._-")?;
        self.toleration_keys
            .iter()
            .try_for_each(|key| check_words("toleration key", key, "._-/"))
    }

    #[must_use]
    pub fn has(&self, component: &str) -> bool {
        self.components.iter().any(|name| name == component)
    }
}

/// Checks a label of a domain name.
pub(crate) fn check_name(what: &'static str, value: &str) -> Result<(), Error> {
    let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_valid = value.len() <= MAX_NAME
        && value.starts_with(is_word)
        && value.ends_with(is_word)
        && value.chars().all(|c| is_word(c) || c == '-');
    match is_valid {
        true => Ok(()),
        false => Err(Error::Invalid {
            what,
            value: value.to_owned(),
            why: "use at most 63 lower-case letters, digits and '-'",
        }),
    }
}

fn check_domain(what: &'static str, value: &str) -> Result<(), Error> {
    let is_valid = value.split('.').all(|label| check_name(what, label).is_ok());
    match is_valid {
        true => Ok(()),
        false => Err(Error::Invalid {
            what,
            value: value.to_owned(),
            why: "use a domain name such as cluster.local",
        }),
    }
}

fn check_words(what: &'static str, value: &str, others: &str) -> Result<(), Error> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || others.contains(c);
    if !value.is_empty() && value.len() <= 255 && value.chars().all(is_word) {
        return Ok(());
    }
    Err(Error::Invalid {
        what,
        value: value.to_owned(),
        why: "it is empty, too long, or has other characters than letters, digits and punctuation of names",
    })
}

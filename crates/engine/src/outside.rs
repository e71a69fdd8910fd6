//! What a render may take from elsewhere than from its project and its cluster.

use std::{collections::HashMap, ffi::OsString, fmt, path::PathBuf, sync::Arc};

use stores::Ambient;

/// What a render may take from elsewhere. The default is what holds for controllers, who trust neither repositories nor those
/// who write them: no variable of the environment and nobody's ambient identity.
#[derive(Debug, Clone)]
pub struct Outside {
    /// The variables of the environment that projects may read.
    pub environment: Environment,
    /// Who asks stores of secrets; without anybody, they are refused.
    pub stores: Option<Ambient>,
    /// Hosts that are not asked for variables.
    pub refused_hosts: Vec<String>,
    /// Directories that stand for repositories. The first that matches counts, those of groups after all others.
    pub overrides: Vec<Override>,
    /// Who knows the credentials of repositories and registries.
    pub credentials: Option<Arc<dyn SourceCredentials>>,
}

/// The variables of the environment that projects may read.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Environment {
    variables: HashMap<String, String>,
    /// Whether there may be others, which may not be read: what their names begin with instead.
    prefixes: Option<Vec<String>>,
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment")
            .field("prefixes", &self.prefixes)
            .finish_non_exhaustive()
    }
}

impl Environment {
    /// These, and no others exist.
    #[must_use]
    pub fn new(variables: impl IntoIterator<Item = (String, String)>) -> Self {
        Self {
            variables: variables.into_iter().collect(),
            prefixes: None,
        }
    }

    /// All variables of this process.
    #[must_use]
    pub fn of_process() -> Self {
        let text = |name: OsString| name.into_string().ok();
        Self::new(std::env::vars_os().filter_map(|(name, value)| Some((text(name)?, text(value)?))))
    }

    /// Those that begin with one of the prefixes.
    #[must_use]
    pub fn only(mut self, prefixes: &[String]) -> Self {
        self.variables
            .retain(|name, _| prefixes.iter().any(|prefix| name.starts_with(prefix)));
        self.prefixes = Some(prefixes.to_vec());
        self
    }

    /// A variable, if it is set. An error says that it may not be read.
    pub(crate) fn get(&self, name: &str) -> Result<Option<String>, String> {
        let allowed = |prefixes: &Vec<String>| prefixes.iter().any(|prefix| name.starts_with(prefix));
        if self.prefixes.as_ref().is_none_or(allowed) {
            return Ok(self.variables.get(name).cloned());
        }
        Err(format!(
            "the environment variable {name} may not be read here: only those may that begin with a prefix of --allow-env"
        ))
    }
}

/// A directory that stands for a repository, or for all repositories of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Override {
    /// Whether artifacts of registries are meant, in place of Git repositories.
    pub oci: bool,
    /// Whether all below the key are meant; what follows the key in the address leads on in the directory.
    pub group: bool,
    /// `host/path`.
    pub key: String,
    /// The directory.
    pub dir: PathBuf,
}

/// Knows the credentials of repositories and registries.
pub trait SourceCredentials: Send + Sync {
    /// What a Git repository is entered with, and the authorities that are trusted beside the system's, as PEM.
    ///
    /// # Errors
    /// When that can't be read, in words for people and without secrets.
    fn git(&self, url: &str) -> Result<(Option<git::Auth>, Option<Vec<u8>>), String>;

    /// How a registry is reached.
    ///
    /// # Errors
    /// When that can't be read, in words for people and without secrets.
    fn registry(&self, url: &str) -> Result<oci::Access, String>;

    /// How a Helm repository is reached.
    ///
    /// # Errors
    /// When that can't be read, in words for people and without secrets.
    fn helm(&self, url: &str) -> Result<oci::Access, String>;
}

impl fmt::Debug for dyn SourceCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SourceCredentials")
    }
}

impl Default for Outside {
    fn default() -> Self {
        let names = [
            "kubernetes",
            "kubernetes.default",
            "kubernetes.default.svc",
            "kubernetes.default.svc.cluster.local",
        ];
        let by_address = std::env::var("KUBERNETES_SERVICE_HOST").ok();
        Self {
            environment: Environment::default().only(&[]),
            stores: None,
            refused_hosts: names.map(str::to_owned).into_iter().chain(by_address).collect(),
            overrides: Vec::new(),
            credentials: None,
        }
    }
}

impl Outside {
    /// How a registry or a Helm repository is reached, by its address.
    pub(crate) fn access(&self, url: &str) -> Result<oci::Access, String> {
        match &self.credentials {
            Some(credentials) if url.starts_with("oci://") => credentials.registry(url),
            Some(credentials) => credentials.helm(url),
            None => Ok(oci::Access::default()),
        }
    }

    /// What holds for a user at a terminal: everything that the user may do.
    #[must_use]
    pub fn of_user() -> Self {
        let environment = Environment::of_process();
        Self {
            stores: Some(Ambient::new(environment.variables.clone()).with_instance()),
            environment,
            refused_hosts: Vec::new(),
            ..Self::default()
        }
    }

    /// The directory that stands for an address, if one does.
    pub(crate) fn overridden(&self, address: &str, oci: bool) -> Option<PathBuf> {
        let key = key(address);
        let own = self.overrides.iter().filter(|one| one.oci == oci);
        let exact = own.clone().filter(|one| !one.group);
        let mut exact = exact.filter(|one| self::key(&one.key) == key);
        exact.next().map(|one| one.dir.clone()).or_else(|| {
            let groups = own.filter(|one| one.group);
            let below = groups.filter_map(|one| {
                let rest = key.strip_prefix(&self::key(&one.key))?.strip_prefix('/')?;
                let inside = rest.split('/').all(|part| !matches!(part, "" | "." | ".."));
                inside.then(|| (one.key.len(), one.dir.join(rest)))
            });
            below.max_by_key(|(len, _)| *len).map(|(_, dir)| dir)
        })
    }
}

/// `host/path` of an address, as repositories are told apart; registries are, too. Overrides may name it without a scheme.
fn key(address: &str) -> String {
    let is_user_at_host = address.split('/').next().is_some_and(|host| host.contains('@'));
    let whole = match address.split_once("://") {
        Some(("oci", rest)) => format!("https://{rest}"),
        None if !is_user_at_host => format!("https://{address}"),
        _ => address.to_owned(),
    };
    let key = kluctl::repo_key(&whole).unwrap_or_else(|| address.to_lowercase());
    let key = key.strip_prefix("git://").unwrap_or(&key);
    key.strip_suffix(".git").unwrap_or(key).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_is_closed_unless_prefixes_open_it() {
        let pairs =
            [("APP_A", "1"), ("SECRET", "2")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        let all = Environment::new(pairs);
        assert_eq!(all.get("SECRET"), Ok(Some("2".to_owned())));
        assert_eq!(all.get("NOPE"), Ok(None));
        let some = all.only(&["APP_".to_owned()]);
        assert_eq!(some.get("APP_A"), Ok(Some("1".to_owned())));
        assert_eq!(some.get("APP_B"), Ok(None));
        assert!(some.get("SECRET").unwrap_err().contains("--allow-env"));
        assert!(Outside::default().environment.get("PATH").is_err());
        assert!(Outside::of_user().environment.get("PATH").unwrap().is_some());
    }

    #[test]
    fn addresses_are_overridden_by_host_and_path() {
        let one = |group, key: &str, dir: &str| Override {
            oci: false,
            group,
            key: key.to_owned(),
            dir: dir.into(),
        };
        let outside = Outside {
            overrides: vec![
                one(true, "h.io/g", "/g"),
                one(true, "h.io:8443/own", "/own"),
                one(true, "h.io/g/deeper", "/deeper"),
                one(false, "h.io/g/one", "/one"),
                Override {
                    oci: true,
                    ..one(false, "h.io/g/two", "/oci")
                },
            ],
            ..Outside::default()
        };
        for (address, expected) in [
            ("https://h.io/g/one.git", Some("/one")),
            ("https://u:p@H.io:443/G/One/", Some("/one")),
            ("ssh://git@h.io:22/g/one", Some("/one")),
            ("git@h.io:g/one.git", Some("/one")),
            ("https://h.io/g/two", Some("/g/two")),
            ("https://h.io/g/deeper/x", Some("/deeper/x")),
            ("https://h.io/g/../x", None),
            ("https://h.io:8443/g/one", None),
            ("https://h.io:8443/own/one", Some("/own/one")),
            ("https://h.io/gg/one", None),
        ] {
            let found = outside.overridden(address, false);
            assert_eq!(found, expected.map(PathBuf::from), "{address}");
        }
        assert_eq!(outside.overridden("oci://h.io/g/two", true), Some("/oci".into()));
        assert_eq!(outside.overridden("oci://h.io/g/one", true), None);
    }
}

//! Access of a render to anything other than its project and its cluster.

use std::{collections::HashMap, ffi::OsString, fmt, path::PathBuf, sync::Arc};

use bytes::Bytes;
use futures::future::BoxFuture;
use kluctl::CallbackError;
use net::{AddressPolicy, ClusterServices};
use remote::{ServerAccess, ServerKind, SourceCredentials};
use stores::Ambient;

use super::{fetch_permits::FetchPermits, pinned::PinnedSources};

/// Environment variables, servers, stores and repositories that a render may use.
///
/// The default is meant for controllers, which don't trust the authors of projects: no environment variables, no ambient cloud
/// identity, and no requests to the API server of the cluster.
#[derive(Debug, Clone)]
pub struct ExternalAccess {
    /// Environment variables that projects may read; none by default.
    pub environment: EnvironmentVariables,
    /// Identity for stores of secrets (Vault, AWS, GCP, Azure). If absent, such variables are refused.
    pub stores: Option<Ambient>,
    /// Git repositories, registries and Helm repositories. Its policy of addresses also holds for stores of secrets.
    pub servers: ServerAccess,
    /// Policy of addresses for `http` variables. Default: the command line's, without the API server.
    pub vars_addresses: AddressPolicy,
    /// Local directories used in place of repositories. The first exact match wins, then the longest group.
    pub overrides: Vec<SourceOverride>,
    pub remote_overrides: Vec<RemoteOverride>,
    pub status: Option<Arc<dyn FetchStatus>>,
    pub pinned: PinnedSources,
    /// Permits for the fetches of projects of a process; clones share them.
    pub fetches: FetchPermits,
}

#[derive(Clone, Default, PartialEq, Eq)]
pub struct EnvironmentVariables {
    variables: HashMap<String, String>,
    /// If set, only names with one of these prefixes may be read, and reading another one is an error.
    prefixes: Option<Vec<String>>,
}

impl fmt::Debug for EnvironmentVariables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EnvironmentVariables")
            .field("prefixes", &self.prefixes)
            .finish_non_exhaustive()
    }
}

impl EnvironmentVariables {
    #[must_use]
    pub fn new(variables: impl IntoIterator<Item = (String, String)>) -> Self {
        Self {
            variables: variables.into_iter().collect(),
            prefixes: None,
        }
    }

    #[must_use]
    pub fn from_process() -> Self {
        let text = |name: OsString| name.into_string().ok();
        Self::new(std::env::vars_os().filter_map(|(name, value)| Some((text(name)?, text(value)?))))
    }

    /// Returns the cloud credentials in these variables, and the machine's own: for the user of a command line.
    #[must_use]
    pub fn ambient(&self) -> Ambient {
        Ambient::new(self.variables.clone()).with_instance()
    }

    #[must_use]
    pub fn only(mut self, prefixes: &[String]) -> Self {
        self.variables
            .retain(|name, _| prefixes.iter().any(|prefix| name.starts_with(prefix)));
        self.prefixes = Some(prefixes.to_vec());
        self
    }

    /// Returns the value of a variable; `None` if it isn't set, an error if it may not be read.
    pub(crate) fn get(&self, name: &str) -> Result<Option<String>, CallbackError> {
        let allowed = |prefixes: &Vec<String>| prefixes.iter().any(|prefix| name.starts_with(prefix));
        if self.prefixes.as_ref().is_none_or(allowed) {
            return Ok(self.variables.get(name).cloned());
        }
        Err(CallbackError::new(format!(
            "the environment variable {name} may not be read: allow a prefix of its name with --allow-env"
        )))
    }
}

/// A local directory used in place of a repository, or of all repositories of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceOverride {
    pub oci: bool,
    /// True for all repositories below the key; the rest of their path is a path below the directory.
    pub group: bool,
    pub key: String,
    pub dir: PathBuf,
}

/// Files of a command line that are used in place of a repository, or of all repositories of a group.
#[derive(Debug, Clone)]
pub struct RemoteOverride {
    pub oci: bool,
    pub group: bool,
    pub key: String,
    pub files: Arc<dyn RemoteFiles>,
}

pub trait RemoteFiles: Send + Sync {
    /// Returns a gzipped tarball with the files of the repository with this key, as in `git://host/path`; `None` if it isn't replaced.
    fn fetch(&self, repo_key: String) -> BoxFuture<'_, Result<Option<Bytes>, CallbackError>>;
}

impl fmt::Debug for dyn RemoteFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RemoteFiles")
    }
}

pub trait FetchStatus: Send + Sync {
    fn show(&self, message: &str);

    /// Shows a warning; by default, as a message.
    fn warn(&self, warning: &str) {
        self.show(warning);
    }
}

impl fmt::Debug for dyn FetchStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FetchStatus")
    }
}

impl Default for ExternalAccess {
    fn default() -> Self {
        let text = |name: OsString| name.into_string().ok();
        let variables = std::env::vars_os().filter_map(|(name, value)| Some((text(name)?, text(value)?)));
        let services = ClusterServices::from_variables(variables, "");
        Self {
            environment: EnvironmentVariables::default().only(&[]),
            stores: None,
            servers: ServerAccess::default(),
            vars_addresses: AddressPolicy::command_line().refusing_api_server(services),
            overrides: Vec::new(),
            remote_overrides: Vec::new(),
            status: None,
            pinned: PinnedSources::default(),
            fetches: FetchPermits::default(),
        }
    }
}

impl ExternalAccess {
    /// Charges fetches to this tenant, such as a namespace.
    #[must_use]
    pub fn with_tenant(mut self, tenant: &str) -> Self {
        tenant.clone_into(&mut self.servers.tenant);
        self
    }

    #[must_use]
    pub fn with_credentials(mut self, credentials: Arc<dyn SourceCredentials>) -> Self {
        self.servers.credentials = Some(credentials);
        self
    }

    /// Returns the failure of a request to a Git server, with a remedy if there is one.
    pub(crate) fn git_failure(&self, error: &git::Error) -> CallbackError {
        let failure = self
            .servers
            .explain(error.to_string(), ServerKind::Git, error.need());
        CallbackError::new(match known_words(error) {
            Some(words) => format!("{words}: {failure}"),
            None => failure,
        })
    }

    pub(crate) fn oci_failure(&self, url: &str, error: &oci::Error) -> CallbackError {
        CallbackError::new(self.servers.explain_oci(url, error))
    }

    /// Allows everything that the user of a command line may access: all environment variables and ambient cloud identities.
    #[must_use]
    pub fn of_user() -> Self {
        let environment = EnvironmentVariables::from_process();
        Self {
            stores: Some(environment.ambient()),
            environment,
            vars_addresses: AddressPolicy::command_line(),
            ..Self::default()
        }
    }

    #[must_use]
    pub fn overridden(&self, address: &str, oci: bool) -> Option<PathBuf> {
        let own = self.overrides.iter().filter(|one| one.oci == oci);
        let (one, rest) = best(address, own.map(|one| (one, one.group, one.key.as_str())))?;
        Some(rest.map_or_else(|| one.dir.clone(), |rest| one.dir.join(rest)))
    }

    /// Returns the command line whose files override a URL, if any, and the key of the repository.
    pub(crate) fn remotely_overridden(
        &self,
        address: &str,
        oci: bool,
    ) -> Option<(Arc<dyn RemoteFiles>, String)> {
        let own = self.remote_overrides.iter().filter(|one| one.oci == oci);
        let (one, _) = best(address, own.map(|one| (one, one.group, one.key.as_str())))?;
        let repo_key = match address.strip_prefix("oci://") {
            Some(rest) => format!("oci://{}", rest.trim_end_matches('/')),
            None => kluctl::repo_key(address)?,
        };
        Some((Arc::clone(&one.files), repo_key))
    }
}

/// Returns the override of a URL among overrides, each with its key and whether it is of a group: the first exact match, then the longest
/// group. With a group comes the path below it.
fn best<'a, T>(
    address: &str,
    all: impl Iterator<Item = (&'a T, bool, &'a str)> + Clone,
) -> Option<(&'a T, Option<String>)> {
    let key = key(address);
    let mut exact = all.clone().filter(|(_, group, _)| !group);
    if let Some((one, ..)) = exact.find(|(_, _, own)| self::key(own) == key) {
        return Some((one, None));
    }
    let below = all.filter(|(_, group, _)| *group).filter_map(|(one, _, own)| {
        let rest = key.strip_prefix(&self::key(own))?.strip_prefix('/')?;
        let inside = rest.split('/').all(|part| !matches!(part, "" | "." | ".."));
        inside.then(|| (own.len(), one, rest.to_owned()))
    });
    let longest = below.max_by_key(|(length, ..)| *length);
    longest.map(|(_, one, rest)| (one, Some(rest)))
}

/// Returns the original's words for a failure of Git that scripts and dashboards look for.
fn known_words(error: &git::Error) -> Option<String> {
    match error {
        git::Error::AuthenticationFailed { .. } => Some("http transport: authentication required".to_owned()),
        git::Error::RefNotFound { what, .. } => {
            let (kind, name) = what.split_once(" '")?;
            let folder = match kind {
                "branch" => "heads",
                "tag" => "tags",
                _ => return None,
            };
            Some(format!(
                "ref refs/{folder}/{} not found",
                name.trim_end_matches('\'')
            ))
        }
        _ => None,
    }
}

/// Returns the normalized `host/path` of a URL, which identifies a repository. The scheme may be missing.
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
    fn environment_variables_need_an_allowed_prefix() {
        let pairs =
            [("APP_A", "1"), ("SECRET", "2")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        let all = EnvironmentVariables::new(pairs);
        assert_eq!(all.get("SECRET"), Ok(Some("2".to_owned())));
        assert_eq!(all.get("NOPE"), Ok(None));
        let some = all.only(&["APP_".to_owned()]);
        assert_eq!(some.get("APP_A"), Ok(Some("1".to_owned())));
        assert_eq!(some.get("APP_B"), Ok(None));
        assert!(
            some.get("SECRET")
                .unwrap_err()
                .to_string()
                .contains("--allow-env")
        );
        assert!(ExternalAccess::default().environment.get("PATH").is_err());
        assert!(
            ExternalAccess::of_user()
                .environment
                .get("PATH")
                .unwrap()
                .is_some()
        );
    }

    #[test]
    fn overrides_match_host_and_path() {
        let one = |group, key: &str, dir: &str| SourceOverride {
            oci: false,
            group,
            key: key.to_owned(),
            dir: dir.into(),
        };
        let external = ExternalAccess {
            overrides: vec![
                one(true, "h.io/g", "/g"),
                one(true, "h.io:8443/own", "/own"),
                one(true, "h.io/g/deeper", "/deeper"),
                one(false, "h.io/g/one", "/one"),
                SourceOverride {
                    oci: true,
                    ..one(false, "h.io/g/two", "/oci")
                },
            ],
            ..ExternalAccess::default()
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
            let found = external.overridden(address, false);
            assert_eq!(found, expected.map(PathBuf::from), "{address}");
        }
        assert_eq!(external.overridden("oci://h.io/g/two", true), Some("/oci".into()));
        assert_eq!(external.overridden("oci://h.io/g/one", true), None);
    }
}

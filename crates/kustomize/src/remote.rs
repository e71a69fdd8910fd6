//! Addresses of repositories, as entries of `resources` and `components` name them.

/// A repository, and a directory in it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Repository {
    /// Its address.
    pub url: String,
    /// The directory in it; empty for all of it.
    pub path: String,
    /// Branch, tag or commit; the default branch when nothing is said.
    pub reference: Option<String>,
    /// Whether submodules are wanted.
    pub submodules: bool,
    /// How long fetching may take, in seconds.
    pub timeout_seconds: u64,
}

impl Repository {
    /// The address that is cloned, as it is noted on objects.
    pub(crate) fn clone_spec(&self) -> String {
        self.url.clone()
    }
}

/// Takes an address apart; `None` when the entry names no repository.
pub(crate) fn parse(entry: &str) -> Option<Repository> {
    let remote = [
        "https://",
        "http://",
        "ssh://",
        "git::",
        "git@",
        "github.com/",
        "github.com:",
        "gh:",
    ];
    remote
        .iter()
        .any(|prefix| entry.starts_with(prefix))
        .then(Repository::default)
}

/// An entry without what may be secret in it.
pub(crate) fn shown(entry: &str) -> String {
    let entry = entry.split_once('?').map_or(entry, |(address, _)| address);
    match entry.split_once("://") {
        Some((scheme, rest)) => {
            let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
            let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
            format!("{scheme}://{host}/{path}")
        }
        None => entry.to_owned(),
    }
}

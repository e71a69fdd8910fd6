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

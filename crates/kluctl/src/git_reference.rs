//! A reference to a commit of a Git repository.

use std::fmt;

use yaml::Map;

#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub enum GitReference {
    /// The default branch.
    #[default]
    Head,
    Branch(String),
    Tag(String),
    Commit(String),
    /// The branch with this name, or the tag if the branch is missing.
    Name(String),
}

impl GitReference {
    /// Parses the full name of a branch or tag, such as `refs/heads/main`.
    #[must_use]
    pub fn from_full(text: &str) -> Option<Self> {
        let branch = text.strip_prefix("refs/heads/").map(str::to_owned);
        let tag = || text.strip_prefix("refs/tags/").map(str::to_owned);
        branch.map(Self::Branch).or_else(|| tag().map(Self::Tag))
    }

    /// Returns a map with one field, in the form of `ref` in project files.
    pub(crate) fn to_map(&self) -> Map {
        let mut map = Map::new();
        match self {
            Self::Head => {}
            Self::Branch(name) => drop(map.insert("branch", name.as_str())),
            Self::Tag(name) => drop(map.insert("tag", name.as_str())),
            Self::Commit(name) => drop(map.insert("commit", name.as_str())),
            Self::Name(name) => drop(map.insert("ref", name.as_str())),
        }
        map
    }
}

impl fmt::Display for GitReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Head => f.write_str("HEAD"),
            Self::Branch(name) => write!(f, "refs/heads/{name}"),
            Self::Tag(name) => write!(f, "refs/tags/{name}"),
            Self::Commit(id) => f.write_str(id),
            Self::Name(name) => f.write_str(name),
        }
    }
}

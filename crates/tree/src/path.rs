//! Normalised relative paths.

#[cfg(test)]
mod tests;

use std::fmt;

/// A path relative to a tree's root: slash separated, without `.`, `..`, empty components, or a leading slash. The root is
/// the empty path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct TreePath(String);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    #[error("{0:?}: absolute paths are not allowed here")]
    Absolute(String),
    /// More `..` than directories above.
    #[error("{0:?}: leads outside of its root directory, which is not allowed")]
    Escapes(String),
    #[error("{0:?}: contains a NUL byte")]
    Nul(String),
}

impl TreePath {
    pub const fn root() -> Self {
        Self(String::new())
    }

    /// Normalises `path` relative to the root. Fails if it is absolute or climbs above the root.
    pub fn parse(path: &str) -> Result<Self, PathError> {
        Self::root().join(path)
    }

    /// Resolves `path` relative to this directory, lexically. Fails if it is absolute or climbs above the root.
    pub fn join(&self, path: &str) -> Result<Self, PathError> {
        if path.starts_with('/') {
            return Err(PathError::Absolute(path.to_owned()));
        }
        if path.contains('\0') {
            return Err(PathError::Nul(path.to_owned()));
        }
        let mut parts: Vec<&str> = self.components().collect();
        for part in path.split('/') {
            match part {
                "" | "." => {}
                ".." => {
                    parts.pop().ok_or_else(|| PathError::Escapes(path.to_owned()))?;
                }
                name => parts.push(name),
            }
        }
        Ok(Self(parts.join("/")))
    }

    /// Normalises a path below the root: `..` never climbs above it, and a leading slash is the root.
    #[must_use]
    pub fn confined(path: &str) -> Self {
        let mut parts: Vec<&str> = Vec::new();
        for part in path.split('/') {
            match part {
                "" | "." => {}
                ".." => {
                    parts.pop();
                }
                name => parts.push(name),
            }
        }
        parts
            .into_iter()
            .fold(Self::root(), |path, part| path.child(part))
    }

    #[must_use]
    pub fn child(&self, name: &str) -> Self {
        if self.0.is_empty() {
            Self(name.to_owned())
        } else {
            Self(format!("{}/{name}", self.0))
        }
    }

    /// Returns the directory of this path; `None` for the root.
    #[must_use]
    pub fn parent(&self) -> Option<Self> {
        if self.0.is_empty() {
            return None;
        }
        Some(Self(
            self.0
                .rsplit_once('/')
                .map_or_else(String::new, |(dir, _)| dir.to_owned()),
        ))
    }

    /// Returns the last component; empty for the root.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0.rsplit_once('/').map_or(self.0.as_str(), |(_, name)| name)
    }

    /// Returns the path relative to the directory `base`, if it is below it.
    #[must_use]
    pub fn strip(&self, base: &Self) -> Option<&str> {
        if base.0.is_empty() {
            return Some(&self.0);
        }
        let rest = self.0.strip_prefix(base.0.as_str())?;
        if rest.is_empty() {
            Some("")
        } else {
            rest.strip_prefix('/')
        }
    }

    pub fn components(&self) -> impl Iterator<Item = &str> {
        self.0.split('/').filter(|part| !part.is_empty())
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the smallest path that may be below this directory, in the order of paths.
    pub(crate) fn first_below(&self) -> Self {
        if self.0.is_empty() {
            Self::root()
        } else {
            Self(format!("{}/", self.0))
        }
    }

    /// Returns a path after everything below this directory: `0` follows `/` in byte order.
    pub(crate) fn first_after(&self) -> Self {
        Self(format!("{}0", self.0))
    }

    #[must_use]
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<&TreePath> for TreePath {
    fn from(path: &TreePath) -> Self {
        path.clone()
    }
}

impl fmt::Display for TreePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "." } else { &self.0 })
    }
}

//! Where on the disk a directory is, and how its files are called in messages.

use std::{
    io::ErrorKind,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Result, anyhow, bail};
use kustomize::{Fetch as _, remote};
use tree::{Budget, Disk, Tree, TreePath};

use crate::fetch::Fetcher;

/// A directory to build, in a tree that holds all that its kustomizations may name.
pub(crate) struct Place {
    pub(crate) tree: Arc<dyn Tree>,
    pub(crate) dir: TreePath,
    /// Whether it is on this machine.
    pub(crate) is_ours: bool,
}

impl Place {
    /// Finds a directory, on this machine or in a repository that is fetched.
    pub(crate) fn find(dir: &Path, fetcher: &Fetcher, budget: &Budget) -> Result<Self> {
        let text = dir.to_str().unwrap_or_default();
        match remote::parse(text) {
            Ok(repository) => {
                let fetched = fetcher
                    .repository(&repository, budget)
                    .map_err(|why| anyhow!("fetching {}: {why}", remote::shown(text)))?;
                Ok(Self {
                    tree: fetched.tree,
                    dir: fetched.dir,
                    is_ours: false,
                })
            }
            Err(why) if text.contains("://") => {
                bail!("'{}' is no address of a repository: {why}", remote::shown(text))
            }
            Err(_) => Self::local(dir, budget),
        }
    }

    /// A directory of this machine. Its tree is the whole file system: a base may lie anywhere.
    fn local(dir: &Path, budget: &Budget) -> Result<Self> {
        let absolute = resolve(dir)?;
        let Some(text) = absolute.to_str() else {
            bail!("{}: the path is no UTF-8", absolute.display());
        };
        Ok(Self {
            tree: Arc::new(Disk::open("/", budget.limits())?),
            dir: TreePath::parse(text.trim_start_matches('/'))?,
            is_ours: true,
        })
    }

    /// Puts a slash before the paths in a message: those of the tree are relative to its root.
    ///
    /// What begins as the path of the directory does is taken for a path.
    pub(crate) fn absolute(&self, message: &str) -> String {
        let first: Vec<&str> = self.dir.components().take(2).collect();
        if first.is_empty() || !self.is_ours {
            return message.to_owned();
        }
        let first = first.join("/");
        let mut out = String::with_capacity(message.len());
        let mut rest = message;
        while let Some((before, after)) = rest.split_once(first.as_str()) {
            out.push_str(before);
            let ends = |c: char| c == '/' || is_around(c);
            if out.chars().next_back().is_none_or(is_around) && after.chars().next().is_none_or(ends) {
                out.push('/');
            }
            out.push_str(&first);
            rest = after;
        }
        out.push_str(rest);
        out
    }
}

/// Whether a character of a message stands before or behind paths.
fn is_around(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\'' | '"' | '`' | '(' | ')' | '[' | ']' | ':' | ',' | ';')
}

fn resolve(dir: &Path) -> Result<PathBuf> {
    let shown = dir.display();
    let absolute = match dir.canonicalize() {
        Ok(absolute) => absolute,
        Err(error) => {
            let whole = std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned());
            let why = match error.kind() {
                ErrorKind::NotFound => "no such file or directory".to_owned(),
                _ => error.to_string(),
            };
            bail!(
                "must build at directory: not a valid directory: evalsymlink failure on '{shown}' : lstat {}: {why}",
                whole.display()
            );
        }
    };
    if !absolute.is_dir() {
        bail!("must build at directory: '{shown}': file is not directory");
    }
    Ok(absolute)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_in_messages_are_made_absolute() {
        let place = Place {
            tree: Arc::new(tree::Mem::new()),
            dir: TreePath::parse("srv/u/x/overlay").unwrap(),
            is_ours: true,
        };
        for (message, expected) in [
            (
                "file 'srv/u/a' is not below 'srv/u'",
                "file '/srv/u/a' is not below '/srv/u'",
            ),
            ("srv/u/x:2: no", "/srv/u/x:2: no"),
            (
                "/srv/u/x and my/srv/u/x and srv/us",
                "/srv/u/x and my/srv/u/x and srv/us",
            ),
            ("nothing", "nothing"),
        ] {
            assert_eq!(place.absolute(message), expected);
        }
    }
}

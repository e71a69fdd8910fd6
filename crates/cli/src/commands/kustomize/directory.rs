//! Directory of a build, on disk or in a remote repository.

use std::{
    io::ErrorKind,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Result, anyhow, bail};
use kustomize::{Fetch as _, remote};
use tree::{Budget, Disk, Tree, TreePath};

use ::remote::RemoteFetcher;

/// Directory to build, in a tree with all files that its kustomizations may load.
pub(crate) struct BuildDirectory {
    pub(crate) tree: Arc<dyn Tree>,
    pub(crate) dir: TreePath,
    pub(crate) is_local: bool,
}

impl BuildDirectory {
    /// Finds a local directory, or fetches the repository that a URL names.
    pub(crate) fn find(dir: &Path, fetcher: &RemoteFetcher, budget: &Budget) -> Result<Self> {
        let text = dir.to_str().unwrap_or_default();
        match remote::parse(text) {
            Ok(repository) => {
                let fetched = fetcher
                    .repository(&repository, budget)
                    .map_err(|why| anyhow!("fetching {}: {why}", remote::redact_address(text)))?;
                Ok(Self {
                    tree: fetched.tree,
                    dir: fetched.dir,
                    is_local: false,
                })
            }
            Err(why) if text.contains("://") => {
                bail!(
                    "'{}' is not a valid repository URL: {why}",
                    remote::redact_address(text)
                )
            }
            Err(_) => Self::local(dir, budget),
        }
    }

    /// Opens a local directory. Its tree is the whole file system, because bases may be anywhere.
    pub(crate) fn local(dir: &Path, budget: &Budget) -> Result<Self> {
        let absolute = resolve(dir)?;
        let Some(text) = absolute.to_str() else {
            bail!("{}: the path is not valid UTF-8", absolute.display());
        };
        Ok(Self {
            tree: Arc::new(Disk::open("/", budget.limits())?),
            dir: TreePath::parse(text.trim_start_matches('/'))?,
            is_local: true,
        })
    }

    /// Makes the paths in a message absolute: paths of the tree are relative to its root.
    ///
    /// Words that begin with the first components of the directory are considered paths.
    pub(crate) fn absolute_paths(&self, message: &str) -> String {
        let first: Vec<&str> = self.dir.components().take(2).collect();
        if first.is_empty() || !self.is_local {
            return message.to_owned();
        }
        let first = first.join("/");
        let mut out = String::with_capacity(message.len());
        let mut rest = message;
        while let Some((before, after)) = rest.split_once(first.as_str()) {
            out.push_str(before);
            let ends = |c: char| c == '/' || is_path_boundary(c);
            if out.chars().next_back().is_none_or(is_path_boundary) && after.chars().next().is_none_or(ends) {
                out.push('/');
            }
            out.push_str(&first);
            rest = after;
        }
        out.push_str(rest);
        out
    }
}

/// Returns true for characters that precede or follow paths in messages.
fn is_path_boundary(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\'' | '"' | '`' | '(' | ')' | '[' | ']' | ':' | ',' | ';')
}

fn resolve(dir: &Path) -> Result<PathBuf> {
    let display = dir.display();
    let absolute = match dir.canonicalize() {
        Ok(absolute) => absolute,
        Err(error) => {
            let whole = std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned());
            let why = match error.kind() {
                ErrorKind::NotFound => "no such file or directory".to_owned(),
                _ => error.to_string(),
            };
            bail!(
                "must build at directory: not a valid directory: evalsymlink failure on '{display}' : lstat {}: {why}",
                whole.display()
            );
        }
    };
    if !absolute.is_dir() {
        bail!("must build at directory: '{display}': file is not directory");
    }
    Ok(absolute)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_in_messages_become_absolute() {
        let directory = BuildDirectory {
            tree: Arc::new(tree::Mem::new()),
            dir: TreePath::parse("srv/u/x/overlay").unwrap(),
            is_local: true,
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
            assert_eq!(directory.absolute_paths(message), expected);
        }
    }
}

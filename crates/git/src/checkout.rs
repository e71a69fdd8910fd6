//! What is known of a checkout on this machine, for those who work in it.

use std::path::{Path, PathBuf};

use crate::Error;

/// A directory that Git checked out. Nothing of it is changed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Checkout {
    /// Its root.
    pub root: PathBuf,
    /// The address of the remote `origin`, as it is configured: it may hold credentials.
    pub origin: Option<String>,
    /// The commit that is checked out, in hex; none before the first one.
    pub commit: Option<String>,
    /// The full name of the branch that is checked out; none when it is a commit or a tag.
    pub branch: Option<String>,
    /// A tag of the commit, by its full name, when no branch is checked out.
    pub tag: Option<String>,
    /// Whether files differ from the commit, or are not in it and not ignored.
    pub dirty: bool,
}

/// The repository of the checkout that a directory lies in.
pub(crate) fn repository_around(dir: &Path) -> Option<gix::ThreadSafeRepository> {
    // Only what the checkout itself says counts, not the configuration of the user or the machine.
    let mapping = gix::sec::trust::Mapping {
        full: gix::open::Options::isolated(),
        reduced: gix::open::Options::isolated(),
    };
    let upwards = gix::discover::upwards::Options::default();
    gix::ThreadSafeRepository::discover_opts(dir, upwards, mapping).ok()
}

impl Checkout {
    /// The checkout that a directory lies in; `None` when it lies in none.
    ///
    /// # Errors
    /// When it can't be read.
    pub fn around(dir: &Path) -> Result<Option<Self>, Error> {
        let Some(found) = repository_around(dir) else {
            return Ok(None);
        };
        let repository = found.to_thread_local();
        let Some(root) = repository.workdir().map(Path::to_path_buf) else {
            return Ok(None);
        };
        let failed = |why: String| Error::Disk(format!("read the checkout in {}: {why}", root.display()));
        let head = repository.head().map_err(|error| failed(error.to_string()))?;
        let commit = repository.head_id().ok().map(|id| id.to_string());
        let branch = head.referent_name().map(|name| name.as_bstr().to_string());
        let tag = match &branch {
            Some(_) => None,
            None => tag_of(&repository),
        };
        let dirty = is_dirty(&repository).map_err(failed)?;
        Ok(Some(Self {
            origin: origin(&repository),
            root,
            commit,
            branch,
            tag,
            dirty,
        }))
    }
}

fn origin(repository: &gix::Repository) -> Option<String> {
    let url = repository.config_snapshot().string("remote.origin.url")?;
    Some(url.to_string())
}

/// The first tag that leads to the commit that is checked out.
fn tag_of(repository: &gix::Repository) -> Option<String> {
    let head = repository.head_id().ok()?;
    let references = repository.references().ok()?;
    let tags = references.tags().ok()?;
    let mut tags = tags.filter_map(Result::ok);
    tags.find_map(|mut tag| {
        let id = tag.peel_to_id().ok()?;
        (id == head).then(|| tag.name().as_bstr().to_string())
    })
}

fn is_dirty(repository: &gix::Repository) -> Result<bool, String> {
    let status = repository
        .status(gix::progress::Discard)
        .map_err(|error| error.to_string())?
        .untracked_files(gix::status::UntrackedFiles::Collapsed);
    let mut changes = status.into_iter(None).map_err(|error| error.to_string())?;
    changes
        .next()
        .transpose()
        .map(|change| change.is_some())
        .map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::original::git;

    #[test]
    fn a_checkout_is_described() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        assert_eq!(Checkout::around(&root).unwrap(), None);
        git(&root, &["init"]);
        fs::create_dir(root.join("deploy")).unwrap();
        let around = || Checkout::around(&root.join("deploy")).unwrap().unwrap();
        assert_eq!((around().commit, around().origin), (None, None));

        fs::write(root.join("deploy/a"), "a").unwrap();
        assert!(around().dirty, "files that are in no commit count");
        git(&root, &["add", "."]);
        assert!(around().dirty);
        git(&root, &["commit", "-m", "one"]);
        git(
            &root,
            &["remote", "add", "origin", "https://example.com/shop.git"],
        );
        let found = around();
        assert_eq!(found.root.canonicalize().unwrap(), root);
        assert_eq!(found.origin.as_deref(), Some("https://example.com/shop.git"));
        assert_eq!(found.branch.as_deref(), Some("refs/heads/main"));
        assert_eq!(found.commit, Some(git(&root, &["rev-parse", "HEAD"])));
        assert!(!found.dirty);

        fs::write(root.join(".gitignore"), "out\n").unwrap();
        git(&root, &["add", "."]);
        git(&root, &["commit", "-m", "two"]);
        fs::write(root.join("out"), "").unwrap();
        assert!(!around().dirty, "what is ignored does not count");
        git(&root, &["tag", "v1"]);
        git(&root, &["checkout", "--detach"]);
        assert_eq!(
            (around().branch, around().tag.as_deref()),
            (None, Some("refs/tags/v1"))
        );

        let other = dir.path().join("tree");
        git(&root, &["worktree", "add", other.to_str().unwrap(), "main"]);
        let linked = Checkout::around(&other).unwrap().unwrap();
        assert_eq!(linked.branch.as_deref(), Some("refs/heads/main"));
    }
}

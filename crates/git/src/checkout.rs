//! A checkout on this machine.

use std::path::{Path, PathBuf};

use crate::{Error, discover::repository_around};

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Checkout {
    pub root: PathBuf,
    /// URL of the remote `origin`; may contain credentials.
    pub origin: Option<String>,
    pub commit: Option<String>,
    /// Committer date in RFC 3339 format, UTC; `None` before the first commit.
    pub committed: Option<String>,
    /// Full ref name; `None` for a commit or a tag.
    pub branch: Option<String>,
    /// Full ref name of a tag of the commit, if no branch is checked out.
    pub tag: Option<String>,
    /// True if files differ from the commit, or are untracked and not ignored.
    pub dirty: bool,
}

impl Checkout {
    pub fn around(dir: &Path) -> Result<Option<Self>, Error> {
        let Some(found) = repository_around(dir)? else {
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
            committed: committed(&repository),
            branch,
            tag,
            dirty,
        }))
    }
}

fn committed(repository: &gix::Repository) -> Option<String> {
    let time = repository.head_commit().ok()?.time().ok()?;
    let utc = gix::date::Time::new(time.seconds, 0);
    let text = utc.format(gix::date::time::format::ISO8601_STRICT).ok()?;
    Some(text.replace("+00:00", "Z"))
}

fn origin(repository: &gix::Repository) -> Option<String> {
    let url = repository.config_snapshot().string("remote.origin.url")?;
    Some(url.to_string())
}

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
    fn checkout_has_origin_commit_branch_and_changes() {
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
        let committed = found.committed.unwrap();
        assert!(
            committed.starts_with("20") && committed.ends_with('Z'),
            "{committed}"
        );
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

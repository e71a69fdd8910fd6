//! The history of a checkout on this machine.

use std::path::Path;

use gix::{ObjectId, revision::walk::Sorting, traverse::commit::simple::CommitTimeOrder};

use crate::{Error, discover::repository_around};

const MAX_COMMITS: usize = 200_000;
const CACHE_BYTES: usize = 16 << 20;

pub struct History {
    repository: gix::ThreadSafeRepository,
}

impl std::fmt::Debug for History {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("History").field(&self.repository.path()).finish()
    }
}

impl History {
    #[must_use]
    pub fn around(dir: &Path) -> Option<Self> {
        let repository = repository_around(dir).ok().flatten()?;
        Some(Self { repository })
    }

    /// Returns the last commit that changed a file or directory, in hex; `None` if no commit has it. A merge counts if it
    /// differs from all its parents.
    pub fn latest_commit(&self, path: &str) -> Result<Option<String>, Error> {
        let failed = |why: String| Error::Disk(format!("the history of {path}: {why}"));
        self.search(path)
            .map_err(|error| failed(error.to_string()))?
            .map_err(failed)
    }

    fn search(&self, path: &str) -> Result<Result<Option<String>, String>, gix::Error> {
        let mut repository = self.repository.to_thread_local();
        repository.object_cache_size(CACHE_BYTES);
        let Ok(head) = repository.head_id() else {
            return Ok(Ok(None));
        };
        let at = |id: ObjectId| -> Result<Option<ObjectId>, gix::Error> {
            let tree = repository.find_commit(id)?.tree()?;
            Ok(tree.lookup_entry_by_path(path)?.map(|entry| entry.object_id()))
        };
        let newest_first = Sorting::ByCommitTime(CommitTimeOrder::NewestFirst);
        let walk = repository.rev_walk([head]).sorting(newest_first).all()?;
        for (count, found) in walk.enumerate() {
            if count >= MAX_COMMITS {
                return Ok(Err(format!("it is longer than {MAX_COMMITS} commits")));
            }
            let commit = found?;
            let now = at(commit.id)?;
            // Commits that a shallow clone lacks count as empty.
            let before = commit
                .parent_ids
                .iter()
                .map(|parent| at(*parent).unwrap_or_default());
            let before: Vec<_> = before.collect();
            let changed = match before.as_slice() {
                [] => now.is_some(),
                before => before.iter().all(|before| *before != now),
            };
            if changed {
                return Ok(Ok(Some(commit.id.to_string())));
            }
        }
        Ok(Ok(None))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::original::git;

    #[test]
    fn the_last_change_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        assert!(History::around(root).is_none());
        git(root, &["init", "-q"]);
        let history = || History::around(&root.join("d")).unwrap();
        let commit = |path: &str, text: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
            git(root, &["add", "."]);
            git(root, &["commit", "-qm", text]);
            git(root, &["rev-parse", "HEAD"])
        };
        fs::create_dir(root.join("d")).unwrap();
        assert_eq!(history().latest_commit("d/a").unwrap(), None);
        let first = commit("d/a", "1");
        let second = commit("d/b", "2");
        git(root, &["checkout", "-qb", "side"]);
        let side = commit("c", "3");
        git(root, &["checkout", "-q", "main"]);
        let main = commit("d/b", "4");
        git(root, &["merge", "-q", "--no-edit", "side"]);
        let found = |path: &str| history().latest_commit(path).unwrap();
        assert_eq!(found("d/a"), Some(first));
        assert_eq!(found("d/b"), Some(main.clone()));
        assert_eq!(found("d"), Some(main));
        assert_eq!(found("c"), Some(side), "the merge itself changed nothing");
        assert_ne!(found("d/b"), Some(second));
        assert_eq!(found("nope"), None);
    }
}

//! Adds commits to a checkout on this machine.

use std::{
    fs,
    path::{Path, PathBuf},
};

use gix::{
    ObjectId,
    bstr::{BStr, BString, ByteSlice},
    config::tree::User,
    index::entry::{Flags, Mode, Stage, Stat},
    object::tree::EntryKind,
    status::UntrackedFiles,
};

use crate::{Error, discover::repository_around};

/// A checkout that commits are added to. Only the checkout's own configuration counts; no hook is run, nothing is signed, and
/// no filter is applied.
pub struct Worktree {
    repository: gix::Repository,
    root: PathBuf,
}

impl std::fmt::Debug for Worktree {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Worktree")
            .field("root", &self.root)
            .finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Author {
    /// Name and mail address that take precedence over the checkout's.
    pub named: Option<(String, String)>,
    /// Configuration files of the user, for a checkout without an author. The first with an author counts.
    pub files: Vec<PathBuf>,
}

impl Worktree {
    /// Returns the checkout that contains a directory, if any.
    ///
    /// # Errors
    /// Fails when it can't be read, or commits would have no author.
    pub fn around(dir: &Path, author: &Author) -> Result<Option<Self>, Error> {
        let Some(found) = repository_around(dir)? else {
            return Ok(None);
        };
        let mut repository = found.to_thread_local();
        let Some(root) = repository.workdir().map(Path::to_path_buf) else {
            return Ok(None);
        };
        sign(&mut repository, author).map_err(|why| failed(&root, &why))?;
        Ok(Some(Self { repository, root }))
    }

    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the files that differ from the checked out commit; with `untracked`, also files that are neither in it nor
    /// ignored.
    pub fn changes(&self, untracked: bool) -> Result<Vec<String>, Error> {
        let found = self.find_changes(untracked);
        found.map_err(|error| failed(&self.root, &error.to_string()))
    }

    fn find_changes(&self, untracked: bool) -> Result<Vec<String>, gix::Error> {
        let untracked = match untracked {
            true => UntrackedFiles::Files,
            false => UntrackedFiles::None,
        };
        let status = self.repository.status(gix::progress::Discard)?;
        let mut changes = Vec::new();
        for change in status.untracked_files(untracked).into_iter(None::<BString>)? {
            let path = change?.location().to_string();
            if !changes.contains(&path) {
                changes.push(path);
            }
        }
        changes.sort();
        Ok(changes)
    }

    /// Commits the current state of these files, and nothing else. Missing files are removed. Returns the commit.
    pub fn commit(&self, paths: &[String], message: &str) -> Result<String, Error> {
        let mut files = Vec::new();
        for path in paths {
            files.push(self.file(path)?);
        }
        let written = self.write(&files, message);
        written.map_err(|error| failed(&self.root, &error.to_string()))
    }

    fn file(&self, path: &str) -> Result<Changed, Error> {
        let file = self.root.join(path);
        let unreadable = |error: std::io::Error| failed(&file, &error.to_string());
        let found = match fs::symlink_metadata(&file) {
            Ok(found) => found,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Changed {
                    path: path.into(),
                    now: None,
                });
            }
            Err(error) => return Err(unreadable(error)),
        };
        if !found.is_file() {
            return Err(failed(&file, "it is no file"));
        }
        let bytes = fs::read(&file).map_err(unreadable)?;
        let stat = gix::index::fs::Metadata::from_path_no_follow(&file).map_err(unreadable)?;
        let executable = stat.is_executable();
        Ok(Changed {
            path: path.into(),
            now: Some((bytes, Stat::from_fs(&stat).unwrap_or_default(), executable)),
        })
    }

    fn write(&self, files: &[Changed], message: &str) -> Result<String, gix::Error> {
        let repository = &self.repository;
        let head = repository.head_id().ok().map(gix::Id::detach);
        let tree = match head {
            Some(_) => repository.head_tree_id()?.detach(),
            None => ObjectId::empty_tree(repository.object_hash()),
        };
        let mut editor = repository.edit_tree(tree)?;
        let mut index = (**repository.index_or_empty()?).clone();
        for file in files {
            let path = file.path.as_bstr();
            let Some((bytes, stat, executable)) = &file.now else {
                editor.remove(path)?;
                index.remove_entries(|_, known, _| known == path);
                continue;
            };
            let id = repository.write_blob(bytes)?.detach();
            let (kind, mode) = match executable {
                true => (EntryKind::BlobExecutable, Mode::FILE_EXECUTABLE),
                false => (EntryKind::Blob, Mode::FILE),
            };
            editor.upsert(path, kind, id)?;
            stage(&mut index, path, id, *stat, mode);
        }
        let tree = editor.write()?.detach();
        let commit = repository.commit("HEAD", message, tree, head)?.detach();
        // Its tree IDs are outdated.
        index.remove_tree();
        index.write(gix::index::write::Options::default())?;
        Ok(commit.to_string())
    }
}

struct Changed {
    path: BString,
    now: Option<(Vec<u8>, Stat, bool)>,
}

fn stage(index: &mut gix::index::File, path: &BStr, id: ObjectId, stat: Stat, mode: Mode) {
    if let Some(known) = index.entry_mut_by_path_and_stage(path, Stage::Unconflicted) {
        (known.id, known.stat, known.mode) = (id, stat, mode);
        return;
    }
    index.dangerously_push_entry(stat, id, Flags::empty(), mode, path);
    index.sort_entries();
}

fn sign(repository: &mut gix::Repository, author: &Author) -> Result<(), String> {
    let own = |config: &gix::config::File| {
        let text = |key: &str| config.string(key).map(|text| text.to_string());
        Some((text("user.name")?, text("user.email")?))
    };
    let of_files = || {
        let source = gix::config::Source::User;
        let read = |file: &PathBuf| gix::config::File::from_path_no_includes(file.clone(), source).ok();
        author
            .files
            .iter()
            .filter_map(read)
            .find_map(|config| own(&config))
    };
    let of_checkout = own(repository.config_snapshot().plumbing());
    let found = author.named.clone().or(of_checkout).or_else(of_files);
    let (name, email) = found.ok_or(
        "commits need an author: set it with 'git config user.name NAME' and 'git config user.email ADDRESS'",
    )?;
    let words = |error: gix::Error| error.to_string();
    let mut config = repository.config_snapshot_mut();
    config.set_value(&User::NAME, name.as_str()).map_err(words)?;
    config.set_value(&User::EMAIL, email.as_str()).map_err(words)?;
    config.commit().map_err(words)?;
    Ok(())
}

fn failed(file: &Path, why: &str) -> Error {
    Error::Disk(format!("the checkout in {}: {why}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::original::git;

    fn me() -> Author {
        Author {
            named: Some(("me".to_owned(), "me@example.com".to_owned())),
            files: Vec::new(),
        }
    }

    #[test]
    fn commits_contain_the_named_files_only() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        assert!(Worktree::around(&root, &me()).unwrap().is_none());
        git(&root, &["init", "-q"]);
        fs::create_dir_all(root.join("charts/old/deep")).unwrap();
        let write = |path: &str, text: &str| fs::write(root.join(path), text).unwrap();
        write(".gitignore", "*.log\n");
        write("a.yaml", "1");
        write("charts/old/deep/x", "x");
        let worktree = Worktree::around(&root.join("charts"), &me()).unwrap().unwrap();
        assert_eq!(worktree.root().canonicalize().unwrap(), root);
        let all = worktree.changes(true).unwrap();
        assert_eq!(all, [".gitignore", "a.yaml", "charts/old/deep/x"]);
        assert_eq!(worktree.changes(false).unwrap(), [""; 0]);
        let first = worktree.commit(&all, "first").unwrap();
        assert_eq!(git(&root, &["rev-parse", "HEAD"]), first);
        assert_eq!(git(&root, &["status", "--porcelain"]), "");

        write("a.yaml", "2");
        write("b.yaml", "other");
        write("c.log", "ignored");
        fs::remove_dir_all(root.join("charts/old")).unwrap();
        fs::create_dir_all(root.join("charts/new")).unwrap();
        write("charts/new/run.sh", "#!/bin/sh\n");
        let mut rights = fs::metadata(root.join("charts/new/run.sh"))
            .unwrap()
            .permissions();
        std::os::unix::fs::PermissionsExt::set_mode(&mut rights, 0o755);
        fs::set_permissions(root.join("charts/new/run.sh"), rights).unwrap();
        let changed = ["a.yaml", "b.yaml", "charts/new/run.sh", "charts/old/deep/x"];
        assert_eq!(worktree.changes(true).unwrap(), changed);
        let named: Vec<String> = [changed[0], changed[2], changed[3]].map(str::to_owned).into();
        worktree.commit(&named, "second").unwrap();
        assert_eq!(git(&root, &["status", "--porcelain"]), "?? b.yaml");
        assert_eq!(
            git(&root, &["log", "-1", "--format=%an %ae %s"]),
            "me me@example.com second"
        );
        let files = git(
            &root,
            &["ls-tree", "-r", "--format=%(objectmode) %(path)", "HEAD"],
        );
        assert_eq!(
            files,
            "100644 .gitignore\n100644 a.yaml\n100755 charts/new/run.sh"
        );
        git(&root, &["fsck", "--strict"]);
        assert_eq!(worktree.changes(false).unwrap(), [""; 0]);
        std::os::unix::fs::symlink("a.yaml", root.join("link")).unwrap();
        let error = worktree.commit(&["link".to_owned()], "third").unwrap_err();
        assert!(error.to_string().contains("it is no file"), "{error}");
    }

    #[test]
    fn authors_come_from_the_checkout_or_the_user() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        git(root, &["init", "-q"]);
        let error = Worktree::around(root, &Author::default()).unwrap_err();
        assert!(error.to_string().contains("git config user.name"), "{error}");
        let file = root.join("config");
        fs::write(&file, "[user]\n name = u\n email = u@example.com\n").unwrap();
        let user = Author {
            named: None,
            files: vec![root.join("nowhere"), file],
        };
        let author = || {
            let worktree = Worktree::around(root, &user).unwrap().unwrap();
            worktree.commit(&["config".to_owned()], "x").unwrap();
            git(root, &["log", "-1", "--format=%an"])
        };
        assert_eq!(author(), "u");
        git(root, &["config", "user.name", "local"]);
        git(root, &["config", "user.email", "local@example.com"]);
        assert_eq!(author(), "local");
    }
}

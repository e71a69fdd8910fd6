//! Finds and opens the repository of a checkout that may be hostile.
//!
//! Only a `.git` beside the files counts: no bare repository, no `core.worktree`. Sections of the repository's own
//! configuration are not trusted, so that no filter, no driver and no file outside is used; neither are alternates outside.
//! Plain values, such as the URL of a remote, can be read.

use std::{
    fs,
    path::{Path, PathBuf},
};

use gix::{
    ThreadSafeRepository,
    config::{Source, file::Metadata},
    open::Options,
};

use crate::Error;

const MAX_BYTES: u64 = 64 << 10;

/// Opens the repository of the checkout that contains a directory. `None` if there is none that can be opened.
///
/// # Errors
/// Fails when its objects are outside of it.
pub(crate) fn repository_around(dir: &Path) -> Result<Option<ThreadSafeRepository>, Error> {
    let Ok(dir) = dir.canonicalize() else {
        return Ok(None);
    };
    let Some(root) = dir.ancestors().find(|dir| is_root(dir)) else {
        return Ok(None);
    };
    let options = Options::isolated().filter_config_section(is_trusted);
    let Ok(repository) = options.open(root) else {
        return Ok(None);
    };
    let work_dir = repository.work_dir().and_then(|dir| dir.canonicalize().ok());
    if work_dir.as_deref() != Some(root) {
        return Ok(None);
    }
    refuse_alternates(root, &repository)?;
    Ok(Some(repository))
}

fn is_trusted(section: &Metadata) -> bool {
    !matches!(section.source, Source::Local | Source::Worktree)
}

/// Returns true for a directory with a `.git` directory, or with the `.git` file of a linked worktree or a submodule.
fn is_root(dir: &Path) -> bool {
    let git = dir.join(".git");
    match fs::symlink_metadata(&git) {
        Ok(found) if found.is_dir() => git.join("HEAD").is_file(),
        Ok(found) if found.is_file() => linked(dir, &git)
            .is_some_and(|target| is_worktree_of(&git, &target) || is_submodule_of(dir, &target)),
        _ => false,
    }
}

fn linked(dir: &Path, git: &Path) -> Option<PathBuf> {
    let text = read(git)?;
    let target = text.strip_prefix("gitdir:")?.trim();
    dir.join(target).canonicalize().ok()
}

fn is_worktree_of(git: &Path, target: &Path) -> bool {
    let back = read(&target.join("gitdir"));
    let back = back.and_then(|path| target.join(path.trim()).canonicalize().ok());
    back.is_some() && back == git.canonicalize().ok()
}

fn is_submodule_of(dir: &Path, target: &Path) -> bool {
    let above = dir.ancestors().skip(1);
    let mut modules = above.filter_map(|dir| dir.join(".git/modules").canonicalize().ok());
    modules.any(|modules| target.starts_with(modules))
}

fn refuse_alternates(root: &Path, repository: &ThreadSafeRepository) -> Result<(), Error> {
    let objects = repository.objects_dir();
    let Some(list) = read(&objects.join("info/alternates")) else {
        return Ok(());
    };
    let own = objects.canonicalize().ok();
    let is_own = |line: &str| own.is_some() && objects.join(line).canonicalize().ok() == own;
    let mut others = list
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    match others.find(|line| !is_own(line)) {
        None => Ok(()),
        Some(_) => Err(Error::Disk(format!(
            "the checkout in {} has objects elsewhere (.git/objects/info/alternates), which are not read: run 'git repack \
             -a -d' and remove that file",
            root.display()
        ))),
    }
}

fn read(path: &Path) -> Option<String> {
    let found = fs::symlink_metadata(path).ok()?;
    if !found.is_file() || found.len() > MAX_BYTES {
        return None;
    }
    fs::read_to_string(path).ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::{Author, Checkout, History, Worktree, original::git};

    struct Hostile {
        dir: tempfile::TempDir,
        root: PathBuf,
        program: PathBuf,
        trace: PathBuf,
    }

    impl Hostile {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let base = dir.path().canonicalize().unwrap();
            let (root, program, trace) = (base.join("root"), base.join("canary"), base.join("trace"));
            fs::create_dir(&root).unwrap();
            fs::write(&program, format!("#!/bin/sh\ntouch '{}'\ncat\n", trace.display())).unwrap();
            fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
            git(&root, &["init"]);
            fs::write(root.join("file"), "content\n").unwrap();
            git(&root, &["add", "."]);
            git(&root, &["commit", "-m", "one"]);
            git(&root, &["remote", "add", "origin", "https://example.com/r.git"]);
            Self {
                dir,
                root,
                program,
                trace,
            }
        }

        fn config(&self, text: &str) {
            let path = self.root.join(".git/config");
            let text = text.replace("PROGRAM", self.program.to_str().unwrap());
            fs::write(&path, format!("{}{text}\n", fs::read_to_string(&path).unwrap())).unwrap();
        }

        fn use_all(&self) -> Checkout {
            let checkout = Checkout::around(&self.root).unwrap().unwrap();
            let history = History::around(&self.root).unwrap();
            history.latest_commit("file").unwrap().unwrap();
            let me = Author {
                named: Some(("me".to_owned(), "me@example.com".to_owned())),
                files: Vec::new(),
            };
            let worktree = Worktree::around(&self.root, &me).unwrap().unwrap();
            let changes = worktree.changes(true).unwrap();
            if !changes.is_empty() {
                worktree.commit(&changes, "two").unwrap();
            }
            assert!(!self.trace.exists(), "a program was run");
            checkout
        }
    }

    #[test]
    fn configured_programs_are_not_run() {
        for config in [
            "[filter \"x\"]\n clean = PROGRAM\n smudge = PROGRAM\n required = true",
            "[filter \"x\"]\n process = PROGRAM\n required = true",
            "[diff \"x\"]\n textconv = PROGRAM\n command = PROGRAM\n[diff]\n external = PROGRAM",
            "[merge \"x\"]\n driver = PROGRAM",
            "[core]\n fsmonitor = PROGRAM",
            "[core]\n hooksPath = HOOKS\n editor = PROGRAM\n pager = PROGRAM\n sshCommand = PROGRAM\n askPass = PROGRAM",
            "[credential]\n helper = !PROGRAM\n[gpg]\n program = PROGRAM\n[commit]\n gpgSign = true",
        ] {
            let hostile = Hostile::new();
            let hooks = hostile.root.join(".git/hooks");
            fs::create_dir_all(&hooks).unwrap();
            for hook in [
                "pre-commit",
                "post-commit",
                "post-index-change",
                "reference-transaction",
            ] {
                fs::copy(&hostile.program, hooks.join(hook)).unwrap();
            }
            hostile.config(&config.replace("HOOKS", hooks.to_str().unwrap()));
            let attributes = "* filter=x diff=x merge=x\n";
            fs::write(hostile.root.join(".git/info/attributes"), attributes).unwrap();
            fs::write(hostile.root.join(".gitattributes"), attributes).unwrap();
            // Another modification time forces a comparison of the content.
            fs::write(hostile.root.join("file"), "changed\n").unwrap();
            let checkout = hostile.use_all();
            assert!(checkout.dirty, "{config}");
            assert_eq!(checkout.origin.as_deref(), Some("https://example.com/r.git"));
        }
    }

    #[test]
    fn included_configuration_is_not_read() {
        let hostile = Hostile::new();
        let other = hostile.dir.path().join("other");
        fs::write(&other, "[remote \"origin\"]\n url = https://evil.example.com/\n").unwrap();
        hostile.config(&format!("[include]\n path = {}", other.display()));
        let checkout = hostile.use_all();
        assert_eq!(checkout.origin.as_deref(), Some("https://example.com/r.git"));
    }

    #[test]
    fn configured_worktree_is_ignored() {
        let hostile = Hostile::new();
        let elsewhere = hostile.dir.path().join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        hostile.config(&format!("[core]\n worktree = {}", elsewhere.display()));
        assert_eq!(hostile.use_all().root.canonicalize().unwrap(), hostile.root);
    }

    #[test]
    fn bare_repositories_and_foreign_git_files_are_no_checkout() {
        let hostile = Hostile::new();
        let bare = hostile.dir.path().join("bare");
        fs::create_dir_all(bare.join("sub")).unwrap();
        git(&bare, &["init", "--bare"]);
        assert_eq!(Checkout::around(&bare.join("sub")).unwrap(), None);
        // A bare repository in a checkout is an ordinary directory.
        let inner = hostile.root.join("inner");
        fs::create_dir(&inner).unwrap();
        git(&inner, &["init", "--bare"]);
        let found = Checkout::around(&inner).unwrap().unwrap();
        assert_eq!(found.root.canonicalize().unwrap(), hostile.root);
        let other = hostile.dir.path().join("other");
        fs::create_dir(&other).unwrap();
        let target = hostile.root.join(".git");
        fs::write(other.join(".git"), format!("gitdir: {}\n", target.display())).unwrap();
        assert_eq!(Checkout::around(&other).unwrap(), None);
        std::os::unix::fs::symlink(&target, hostile.dir.path().join("link")).unwrap();
        fs::remove_file(other.join(".git")).unwrap();
        std::os::unix::fs::symlink(&target, other.join(".git")).unwrap();
        assert_eq!(Checkout::around(&other).unwrap(), None);
    }

    #[test]
    fn objects_elsewhere_are_refused() {
        let (hostile, other) = (Hostile::new(), Hostile::new());
        let info = hostile.root.join(".git/objects/info");
        fs::create_dir_all(&info).unwrap();
        let objects = other.root.join(".git/objects");
        fs::write(info.join("alternates"), format!("{}\n", objects.display())).unwrap();
        let error = Checkout::around(&hostile.root).unwrap_err().to_string();
        assert!(error.contains("alternates"), "{error}");
        assert!(History::around(&hostile.root).is_none());
    }
}

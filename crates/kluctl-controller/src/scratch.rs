//! A directory of this process for unpacked artifacts, and the end of those that crashed processes left behind.

use std::path::{Path, PathBuf};

/// What the directories are called, up to the id of their process.
const PREFIX: &str = "kluctl-controller-";

/// Names the directory of this process below `parent`, and removes those of processes that are no more.
pub(crate) fn directory(parent: &Path) -> PathBuf {
    for entry in std::fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let owner = name
            .to_str()
            .and_then(|name| name.strip_prefix(PREFIX)?.parse::<u32>().ok());
        let gone = owner.is_some_and(|pid| pid != std::process::id() && !is_running(pid));
        if gone && let Err(error) = std::fs::remove_dir_all(entry.path()) {
            tracing::debug!(%error, path = %entry.path().display(), "a directory of an ended process stays");
        }
    }
    parent.join(format!("{PREFIX}{}", std::process::id()))
}

fn is_running(pid: u32) -> bool {
    Path::new("/proc").join(pid.to_string()).exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_of_ended_processes_are_removed() {
        let parent = tempfile::tempdir().expect("a directory");
        // No process can have this id.
        let (dead, foreign) = (format!("{PREFIX}4294967295"), format!("{PREFIX}notes"));
        for name in [&dead, &foreign] {
            std::fs::create_dir_all(parent.path().join(name).join("deep")).expect("a directory");
        }
        let own = directory(parent.path());
        assert!(own.ends_with(format!("{PREFIX}{}", std::process::id())));
        assert!(!parent.path().join(dead).exists() && parent.path().join(foreign).exists());
    }
}

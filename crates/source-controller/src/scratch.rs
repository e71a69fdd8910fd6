//! A directory of this process for repositories that are being fetched, and the end of those that crashed processes
//! left behind.

use std::{
    io,
    path::{Path, PathBuf},
};

/// What the directories are called, up to the id of their process.
const PREFIX: &str = "source-controller-";

/// Makes an empty directory of this process below `parent`, and removes those of processes that are no more.
pub(crate) fn directory(parent: &Path) -> io::Result<PathBuf> {
    let own = std::process::id();
    for entry in std::fs::read_dir(parent)?.flatten() {
        let name = entry.file_name();
        let owner = name
            .to_str()
            .and_then(|name| name.strip_prefix(PREFIX)?.parse::<u32>().ok());
        // The first process of a container always has the same id, so the own one is left over too.
        let left = owner.is_some_and(|pid| pid == own || !is_running(pid));
        if left && let Err(error) = std::fs::remove_dir_all(entry.path()) {
            tracing::warn!(%error, path = %entry.path().display(), "a directory of an ended process stays");
        }
    }
    let dir = parent.join(format!("{PREFIX}{own}"));
    std::fs::create_dir_all(&dir)?;
    Ok(dir)
}

fn is_running(pid: u32) -> bool {
    Path::new("/proc").join(pid.to_string()).exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_of_ended_processes_are_removed_and_the_own_is_empty() {
        let parent = tempfile::tempdir().unwrap();
        let own = format!("{PREFIX}{}", std::process::id());
        // No process can have the first id, and init always runs.
        for name in [
            &format!("{PREFIX}4294967295"),
            &format!("{PREFIX}1"),
            &format!("{PREFIX}notes"),
            &own,
        ] {
            std::fs::create_dir_all(parent.path().join(name).join("deep")).unwrap();
        }
        let dir = directory(parent.path()).unwrap();
        assert_eq!(dir, parent.path().join(&own));
        assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 0);
        let mut names: Vec<_> = std::fs::read_dir(parent.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        names.sort();
        assert_eq!(names.len(), 3, "{names:?}");
    }
}

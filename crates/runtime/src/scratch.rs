//! A directory for the temporary files of this process, and the removal of the directories of ended processes.

use std::{
    io,
    path::{Path, PathBuf},
};

/// Makes an empty directory below `parent`, named after the controller and this process, and removes the directories of ended ones.
pub fn directory(parent: &Path, controller: &str) -> io::Result<PathBuf> {
    let own = std::process::id();
    let prefix = format!("{controller}-");
    for entry in std::fs::read_dir(parent)?.flatten() {
        let name = entry.file_name();
        let owner = name
            .to_str()
            .and_then(|name| name.strip_prefix(&prefix)?.parse::<u32>().ok());
        // The first process of a container always has the same id, so one of the own name is left over, too.
        let left = owner.is_some_and(|pid| pid == own || !is_running(pid));
        if left && let Err(error) = std::fs::remove_dir_all(entry.path()) {
            tracing::warn!(%error, path = %entry.path().display(), "a directory of an ended process stays");
        }
    }
    let dir = parent.join(format!("{prefix}{own}"));
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
        let own = format!("a-controller-{}", std::process::id());
        // No process can have the first id, and init always runs.
        for name in [
            "a-controller-4294967295",
            "a-controller-1",
            "a-controller-notes",
            "b-controller-4294967295",
            &own,
        ] {
            std::fs::create_dir_all(parent.path().join(name).join("deep")).unwrap();
        }
        let dir = directory(parent.path(), "a-controller").unwrap();
        assert_eq!(dir, parent.path().join(&own));
        assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 0);
        let mut names: Vec<_> = std::fs::read_dir(parent.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        let mut names_left = [
            "a-controller-1",
            "a-controller-notes",
            "b-controller-4294967295",
            &own,
        ];
        names_left.sort();
        assert_eq!(names, names_left);
    }
}

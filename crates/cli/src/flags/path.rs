//! Values of flags that are paths: `~` is the home directory, and files to read must exist.

use std::path::{Path, PathBuf};

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PathFlagError {
    #[error("{0} does not exist")]
    Missing(String),
    #[error("{0} exists but is a directory")]
    Directory(String),
    #[error("{0} exists but is not a directory")]
    NotDirectory(String),
}

/// Parses the path of a file that exists.
pub(crate) fn existing_file(text: &str) -> Result<PathBuf, PathFlagError> {
    let path = existing(text)?;
    match path.is_dir() {
        true => Err(PathFlagError::Directory(text.to_owned())),
        false => Ok(path),
    }
}

/// Parses the path of a directory that exists.
pub(crate) fn existing_dir(text: &str) -> Result<PathBuf, PathFlagError> {
    let path = existing(text)?;
    match path.is_dir() {
        true => Ok(path),
        false => Err(PathFlagError::NotDirectory(text.to_owned())),
    }
}

fn existing(text: &str) -> Result<PathBuf, PathFlagError> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let path = expanded(text, home.as_deref());
    match path.exists() {
        true => Ok(path),
        false => Err(PathFlagError::Missing(text.to_owned())),
    }
}

/// Replaces a leading `~`.
fn expanded(text: &str, home: Option<&Path>) -> PathBuf {
    match (text.strip_prefix('~'), home) {
        (Some(""), Some(home)) => home.to_owned(),
        (Some(rest), Some(home)) if rest.starts_with('/') => home.join(rest.trim_start_matches('/')),
        _ => PathBuf::from(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leading_tilde_is_the_home_directory() {
        let home = Some(Path::new("/h/me"));
        for (text, expected) in [
            ("~", "/h/me"),
            ("~/a/b", "/h/me/a/b"),
            ("~other/a", "~other/a"),
            ("a/~/b", "a/~/b"),
        ] {
            assert_eq!(expanded(text, home), Path::new(expected));
        }
        assert_eq!(expanded("~/a", None), Path::new("~/a"));
    }

    #[test]
    fn paths_must_exist_and_be_of_the_expected_type() {
        let dir = tempfile::tempdir().unwrap();
        let shown = dir.path().to_str().unwrap();
        assert_eq!(existing_dir(shown).as_deref(), Ok(dir.path()));
        assert_eq!(
            existing_file(shown),
            Err(PathFlagError::Directory(shown.to_owned()))
        );
        assert_eq!(
            existing_file("/no/such"),
            Err(PathFlagError::Missing("/no/such".to_owned()))
        );
        assert_eq!(
            existing_dir("/dev/null"),
            Err(PathFlagError::NotDirectory("/dev/null".to_owned()))
        );
    }
}

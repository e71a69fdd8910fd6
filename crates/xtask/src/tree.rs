//! Reads the files of the project.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

const SKIPPED: &[&str] = &["target", ".git", ".weir", "node_modules"];

pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_owned()
}

/// A text file: its path relative to the root, with forward slashes, and its content.
#[derive(Debug, Clone)]
pub(crate) struct TextFile {
    pub(crate) path: String,
    pub(crate) text: String,
}

/// Reads every text file below `dir` (relative to the root), sorted by path. Files that are not UTF-8 are left out; links
/// are not followed.
pub(crate) fn read(root: &Path, dir: &str) -> Result<Vec<TextFile>> {
    let mut files = Vec::new();
    let mut stack = vec![root.join(dir)];
    while let Some(dir) = stack.pop() {
        for entry in fs::read_dir(&dir).with_context(|| format!("cannot list {}", dir.display()))? {
            let entry = entry?;
            let (path, kind) = (entry.path(), entry.file_type()?);
            let name = entry.file_name();
            if kind.is_dir() && !SKIPPED.iter().any(|skipped| name == *skipped) {
                stack.push(path);
            } else if kind.is_file() {
                files.extend(read_text(root, &path)?);
            }
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

fn read_text(root: &Path, path: &Path) -> Result<Option<TextFile>> {
    match fs::read_to_string(path) {
        Ok(text) => {
            let path = path
                .strip_prefix(root)
                .unwrap_or(path)
                .to_string_lossy()
                .replace('\\', "/");
            Ok(Some(TextFile { path, text }))
        }
        // Not text, or removed between listing and reading.
        Err(error) if matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::NotFound) => {
            Ok(None)
        }
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

/// Lists the controllers: the crates whose names end in `-controller`, sorted.
#[cfg(test)]
pub(crate) fn controllers() -> Vec<String> {
    let entries = fs::read_dir(root().join("crates")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.filter(|name| name.ends_with("-controller")).collect();
    names.sort();
    names
}

//! The form of the sources: what a compiler does not check.

mod rules;
#[cfg(test)]
mod tests;

use std::path::Path;

use anyhow::Result;

use crate::tree;

/// Endings of the files that are looked at.
const ENDINGS: &[&str] = &["rs", "toml", "md", "yaml", "yml", "go", "sh", "json"];
/// Files without an ending that are looked at.
const NAMES: &[&str] = &["Makefile", "Containerfile"];

/// Lists what is untidy.
pub(crate) fn run(root: &Path) -> Result<Vec<String>> {
    let files = tree::read(root, ".")?;
    Ok(files
        .iter()
        .filter(|file| is_ours(&file.path))
        .flat_map(|file| rules::check(&file.path, &file.text))
        .collect())
}

fn is_ours(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    // Recorded inputs and outputs of tests are what they are.
    let recorded = path
        .split('/')
        .any(|part| matches!(part, "fixtures" | "testdata" | "golden"));
    let known = name
        .rsplit_once('.')
        .is_some_and(|(_, ending)| ENDINGS.contains(&ending))
        || NAMES.iter().any(|known| name.starts_with(known));
    known && !recorded
}

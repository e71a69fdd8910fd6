//! The form of the sources: what a compiler does not check.

mod rules;
mod test_code;
#[cfg(test)]
mod tests;

use std::{collections::BTreeSet, path::Path};

use anyhow::Result;

use crate::tree;

/// Endings of the files that are looked at.
const ENDINGS: &[&str] = &["rs", "toml", "md", "yaml", "yml", "go", "sh", "json"];
/// Files without an ending that are looked at.
const NAMES: &[&str] = &["Makefile", "Containerfile"];

/// Lists what is untidy.
pub(crate) fn run(root: &Path) -> Result<Vec<String>> {
    let files = tree::read(root, ".")?;
    let rust = files.iter().filter(|file| file.path.ends_with(".rs"));
    let tests: BTreeSet<String> = rust
        .flat_map(|file| test_code::test_modules(&file.path, &file.text))
        .collect();
    let check = |file: &tree::TextFile| rules::check(&file.path, &file.text, is_test(&file.path, &tests));
    Ok(files
        .iter()
        .filter(|file| is_ours(&file.path))
        .flat_map(check)
        .collect())
}

/// Whether a whole file is test code: by its place, by its name, or because its parent says so.
fn is_test(path: &str, modules: &BTreeSet<String>) -> bool {
    ["crates/testkit/", "e2e/"]
        .iter()
        .any(|dir| path.starts_with(dir))
        || path.ends_with("_tests.rs")
        || path
            .split('/')
            .any(|part| matches!(part, "tests" | "tests.rs" | "benches" | "examples"))
        || modules
            .iter()
            .any(|module| path == module || (module.ends_with('/') && path.starts_with(module)))
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

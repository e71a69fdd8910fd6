//! Checks of the sources that the compiler and clippy do not make.

mod docs;
mod rules;
mod subjects;
mod test_code;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use anyhow::Result;

use crate::{Report, tree};

/// Extensions of the files to check.
const EXTENSIONS: &[&str] = &["rs", "toml", "md", "yaml", "yml", "go", "sh", "json"];
/// Names (or beginnings of names) of files without an extension to check.
const NAMES: &[&str] = &["Makefile", "Containerfile"];

/// Crates whose doc comments still break the rules of [`docs`]. The list may only shrink: a crate that has become clean is
/// a finding until it is removed from here.
const UNFINISHED_DOCS: &[&str] = &[];

/// Checks all files of the project and the subjects of recent commits.
pub(crate) fn run(root: &Path) -> Result<Report> {
    let files = tree::read(root, ".")?;
    let rust = files.iter().filter(|file| file.path.ends_with(".rs"));
    let tests: BTreeSet<String> = rust
        .clone()
        .flat_map(|file| test_code::test_modules(&file.path, &file.text))
        .collect();
    let check = |file: &tree::TextFile| rules::check(&file.path, &file.text, is_test(&file.path, &tests));
    let findings = files.iter().filter(|file| is_checked(&file.path)).flat_map(check);
    let mut report = Report::from(findings.collect::<Vec<_>>());
    let mut by_crate: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for file in rust {
        by_crate
            .entry(crate_of(&file.path))
            .or_default()
            .extend(docs::check(&file.path, &file.text));
    }
    doc_findings(&by_crate, UNFINISHED_DOCS, &mut report);
    subjects::check(root, &mut report);
    Ok(report)
}

/// Sorts the findings on doc comments: those of unfinished crates are counted in a note, all others are reported.
fn doc_findings(by_crate: &BTreeMap<&str, Vec<String>>, unfinished: &[&str], report: &mut Report) {
    let mut left = 0;
    for (name, findings) in by_crate {
        if !unfinished.contains(name) {
            report.findings.extend(findings.iter().cloned());
        } else if findings.is_empty() {
            report.notes.push(format!(
                "the doc comments of `{name}` are clean: remove it from UNFINISHED_DOCS in xtask"
            ));
        } else {
            left += findings.len();
        }
    }
    if !unfinished.is_empty() {
        report.notes.push(format!(
            "doc comments: {} crates are not finished ({left} findings): {}",
            unfinished.len(),
            unfinished.join(", ")
        ));
    }
}

/// Returns the folder name of the crate that a path belongs to.
fn crate_of(path: &str) -> &str {
    let mut parts = path.split('/');
    match (parts.next(), parts.next()) {
        (Some("crates"), Some(name)) => name,
        (Some(first), _) => first,
        (None, _) => "",
    }
}

/// Returns true if a whole file is test code: by its folder, by its name, or because its parent module says so.
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

/// Returns true for files written by us. Recorded inputs and outputs of tests are left as they are.
fn is_checked(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let recorded = path
        .split('/')
        .any(|part| matches!(part, "fixtures" | "testdata" | "golden"));
    let known = name
        .rsplit_once('.')
        .is_some_and(|(_, extension)| EXTENSIONS.contains(&extension))
        || NAMES.iter().any(|known| name.starts_with(known));
    known && !recorded
}

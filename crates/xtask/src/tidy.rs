//! Checks of the sources that the compiler and clippy do not make.

mod docs;
mod named_tests;
mod rules;
mod subjects;
mod test_code;
#[cfg(test)]
mod tests;

use std::{collections::BTreeSet, path::Path};

use anyhow::Result;

use crate::{Report, tree};

/// Extensions of the files to check.
const EXTENSIONS: &[&str] = &["rs", "toml", "md", "yaml", "yml", "go", "sh", "json"];
/// Names (or beginnings of names) of files without an extension to check.
const NAMES: &[&str] = &["Makefile", "Containerfile"];

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
    report.findings.extend(named_tests::check(&files));
    for file in rust {
        report.findings.extend(docs::check(&file.path, &file.text));
    }
    subjects::check(root, &mut report);
    Ok(report)
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

//! Checks of the sources that the compiler and clippy do not make.

mod circles;
mod comments;
mod lexer;
mod named_tests;
mod names;
mod rules;
mod subjects;
mod test_code;
#[cfg(test)]
mod tests;

use std::{collections::BTreeSet, path::Path};

use anyhow::Result;
use clap::{Args, ValueEnum};

use crate::{Report, tree};

const EXTENSIONS: &[&str] = &["rs", "toml", "md", "yaml", "yml", "go", "sh", "json"];
/// Names (or beginnings of names) of files without an extension to check.
const NAMES: &[&str] = &["Makefile", "Containerfile"];

#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Selection {
    /// Print the findings in these files and folders only
    paths: Vec<String>,
    /// Make this check only
    #[arg(long, value_enum)]
    only: Vec<Check>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Check {
    /// Lengths of files, calls that panic, leftovers
    Text,
    /// Overused words in the names of definitions and files
    Names,
    /// Openings and phrases of comments
    Comments,
    /// Circles of imports between the files of a crate
    Circles,
    /// Tests that documentation names
    Tests,
    /// Subjects of commits
    Subjects,
}

/// Checks all files of the project and the subjects of recent commits. Findings are sorted by file.
pub(crate) fn run(root: &Path, selection: &Selection) -> Result<Report> {
    let files = tree::read(root, ".")?;
    let mut report = Report::default();
    if selection.makes(Check::Text) {
        let tests = test_modules(&files);
        let checked = files.iter().filter(|file| is_checked(&file.path));
        let check = |file: &tree::TextFile| rules::check(&file.path, &file.text, is_test(&file.path, &tests));
        report.findings.extend(checked.flat_map(check));
    }
    if selection.makes(Check::Tests) {
        report.findings.extend(named_tests::check(&files));
    }
    report.findings.extend(rust(&files, selection));
    if selection.makes(Check::Subjects) {
        subjects::check(root, &mut report);
    }
    report.findings.retain(|finding| selection.covers(finding));
    report.findings.sort_by(|a, b| position(a).cmp(&position(b)));
    Ok(report)
}

fn rust(files: &[tree::TextFile], selection: &Selection) -> Vec<String> {
    let tests = test_modules(files);
    let mut findings = Vec::new();
    let rust = files.iter().filter(|file| file.path.ends_with(".rs"));
    let rust: Vec<_> = rust.map(|file| (file, lexer::tokens(&file.text))).collect();
    let mut sources = Vec::new();
    for (tree::TextFile { path, text }, tokens) in &rust {
        if selection.makes(Check::Comments) {
            findings.extend(comments::check(path, tokens));
        }
        // The test kit and the end-to-end programs are named with the same care as the rest.
        if is_test_file(path, &tests) {
            continue;
        }
        if selection.makes(Check::Names) {
            findings.extend(names::check(path, text, tokens));
        }
        sources.push(circles::Source { path, text, tokens });
    }
    if selection.makes(Check::Circles) {
        findings.extend(circles::check(&sources));
    }
    findings
}

impl Selection {
    fn makes(&self, check: Check) -> bool {
        self.only.is_empty() || self.only.contains(&check)
    }

    fn covers(&self, finding: &str) -> bool {
        let covers = |path: &String| finding.starts_with(path.trim_start_matches("./"));
        self.paths.is_empty() || self.paths.iter().any(covers)
    }
}

/// Returns file and line of a finding, to sort by.
fn position(finding: &str) -> (&str, usize) {
    let (path, rest) = finding.split_once(':').unwrap_or((finding, ""));
    let line = rest.split(':').next().and_then(|line| line.parse().ok());
    (path, line.unwrap_or(0))
}

fn test_modules(files: &[tree::TextFile]) -> BTreeSet<String> {
    let rust = files.iter().filter(|file| file.path.ends_with(".rs"));
    rust.flat_map(|file| test_code::test_modules(&file.path, &file.text))
        .collect()
}

/// Returns true if a whole file is test code or serves tests only.
fn is_test(path: &str, modules: &BTreeSet<String>) -> bool {
    let folders = ["crates/testkit/", "e2e/"];
    folders.iter().any(|dir| path.starts_with(dir)) || is_test_file(path, modules)
}

/// Returns true if a whole file is test code: by its folder, by its name, or because its parent module says so.
fn is_test_file(path: &str, modules: &BTreeSet<String>) -> bool {
    path.ends_with("_tests.rs")
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

//! The rule for commit subjects: at most 72 characters.

use std::{path::Path, process::Command};

use crate::Report;

const LONGEST: usize = 72;
/// Commits before this time are older than the rule.
const SINCE: &str = "2026-11-22T16:00:00Z";

/// Adds a finding for each long subject among the commits since [`SINCE`], or a note if there is no Git history to read.
pub(crate) fn check(root: &Path, report: &mut Report) {
    match log(root) {
        Ok(subjects) => report.findings.extend(long(&subjects)),
        Err(reason) => report
            .notes
            .push(format!("skipped: the subjects of commits ({reason})")),
    }
}

fn log(root: &Path) -> Result<String, String> {
    let since = format!("--since={SINCE}");
    let output = Command::new("git")
        .args(["log", "--no-merges", "--format=%h %s", &since])
        .current_dir(root)
        .output()
        .map_err(|error| format!("git cannot be run: {error}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        let error = String::from_utf8_lossy(&output.stderr);
        Err(format!("git log failed: {}", error.trim()))
    }
}

/// Lists the lines `HASH SUBJECT` whose subject is too long.
pub(super) fn long(lines: &str) -> Vec<String> {
    let subjects = lines.lines().filter_map(|line| line.split_once(' '));
    subjects
        .filter(|(_, subject)| subject.chars().count() > LONGEST)
        .map(|(hash, subject)| {
            format!("commit {hash}: the subject has more than {LONGEST} characters: {subject}")
        })
        .collect()
}

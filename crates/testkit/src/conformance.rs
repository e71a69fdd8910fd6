//! Recordings of the original programs. They are not part of the project: tests look for them in `$CONFORMANCE_DIR`, by
//! default `../shared/conformance` beside the workspace, and in its folder `more`. Absent ones are skipped with a note.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crate::skipped;

/// The page that names the cases that fail for a known reason.
const DIFFERENCES: &str = "docs/differences.md";

#[derive(Debug)]
pub struct Recordings {
    dirs: Vec<PathBuf>,
}

/// The result of one suite: its name, the number of passed cases, and a line `CASE<tab>REASON` for each failed one.
pub type Outcome<'a> = (&'a str, usize, &'a [String]);

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

impl Recordings {
    /// Finds the recordings in a subfolder of all recordings. Returns `None`, with a note for `make test`, if they
    /// are absent.
    #[must_use]
    pub fn find(below: &str) -> Option<Self> {
        let given = std::env::var_os("CONFORMANCE_DIR").filter(|dir| !dir.is_empty());
        let base = given.map_or_else(|| workspace().join("../shared/conformance"), PathBuf::from);
        let mut dirs = vec![base.join(below), base.join("more").join(below)];
        let first = dirs.first().cloned().unwrap_or_default();
        dirs.retain(|dir| dir.is_dir());
        if dirs.is_empty() {
            skipped::note(
                &format!("recorded cases of {below}"),
                &format!("{} is absent", first.display()),
            );
            return None;
        }
        Some(Self { dirs })
    }

    #[must_use]
    pub fn dir(&self) -> &Path {
        self.dirs.first().map_or(Path::new(""), PathBuf::as_path)
    }

    /// Lists the folders and files of all recordings of the suite, sorted.
    pub fn entries(&self) -> io::Result<Vec<PathBuf>> {
        let mut entries = Vec::new();
        for dir in &self.dirs {
            for entry in fs::read_dir(dir)? {
                entries.push(entry?.path());
            }
        }
        entries.sort();
        Ok(entries)
    }

    /// Prints the results of the suites, and writes the failures of each to `target/conformance/SUITE-failures.txt`.
    ///
    /// # Panics
    /// Panics if a case failed that docs/differences.md does not name, or if a file can't be written.
    #[track_caller]
    #[allow(
        clippy::print_stdout,
        reason = "the harness of tests captures what is printed"
    )]
    pub fn conclude(&self, outcomes: &[Outcome<'_>]) {
        let differences = fs::read_to_string(workspace().join(DIFFERENCES)).unwrap_or_default();
        let mut unexplained = Vec::new();
        for (suite, passed, failures) in outcomes {
            let written = write(suite, failures);
            assert!(
                written.is_ok(),
                "cannot write the failures of {suite}: {written:?}"
            );
            // On a line of its own, after the output of the test harness.
            println!("\n{suite}: {passed} passed, {} failed", failures.len());
            let new = failures.iter().filter(|line| !is_explained(line, &differences));
            unexplained.extend(new.map(|line| format!("{suite}: {line}")));
        }
        assert!(
            unexplained.is_empty(),
            "{} cases failed that {DIFFERENCES} does not name:\n{}",
            unexplained.len(),
            unexplained.join("\n")
        );
    }
}

fn write(suite: &str, failures: &[String]) -> io::Result<()> {
    let dir = workspace().join("target/conformance");
    fs::create_dir_all(&dir)?;
    let lines = failures
        .iter()
        .map(|line| format!("{}\n", line.replace('\n', " | ")));
    fs::write(
        dir.join(format!("{suite}-failures.txt")),
        lines.collect::<String>(),
    )
}

/// Returns true if the page names the case of a failure in backticks.
fn is_explained(failure: &str, differences: &str) -> bool {
    let case = failure.split('\t').next().unwrap_or_default();
    !case.is_empty() && differences.contains(&format!("`{case}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_explained_by_the_name_of_their_case() {
        let page = "| `known/case` | so |";
        assert!(is_explained("known/case\tdiffers", page));
        assert!(!is_explained("known\tdiffers", page));
        assert!(!is_explained("", page));
    }

    #[test]
    #[should_panic(
        expected = "1 cases failed that docs/differences.md does not name:\nnothing: no-such-case"
    )]
    fn conclude_panics_for_unexplained_failures() {
        let recordings = Recordings { dirs: Vec::new() };
        recordings.conclude(&[("nothing", 0, &["no-such-case\twhy".to_owned()])]);
    }
}

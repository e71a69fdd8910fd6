//! Notes of tests that did not run. The test harness hides the output of passing tests, so the notes are files in
//! `target/skipped/`, which `make test` prints at the end.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/skipped")
}

/// Notes that some tests were skipped, and why. Notes of the same `tests` replace each other.
#[allow(
    clippy::print_stdout,
    reason = "the harness of tests captures what is printed"
)]
pub fn note(tests: &str, reason: &str) {
    let line = format!("{tests}: {reason}");
    println!("\nskipped: {line}");
    let name: String = tests
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    // The note is a courtesy: a test must not fail because it can't be written.
    let dir = folder();
    let _ = fs::create_dir_all(&dir).and_then(|()| fs::write(dir.join(name), format!("{line}\n")));
}

/// Returns true if a program that `tests` need is missing on this machine, and notes that they are skipped.
#[must_use]
pub fn lacks(program: &str, tests: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    if env::split_paths(&path).any(|dir| dir.join(program).is_file()) {
        return false;
    }
    note(tests, &format!("{program} isn't installed"));
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_missing_programs_are_lacking() {
        assert!(!lacks("sh", "test of programs"));
        assert!(lacks("no-such-program-at-all", "test of programs"));
        fs::remove_file(folder().join("test-of-programs")).unwrap();
    }
}

//! The script that checks the dependencies against the advisory database, with programs that stand in for git and cargo-deny.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Command, Output},
};

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("weir-xtask-{name}-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("is made");
        Self(dir)
    }

    fn program(&self, name: &str, code: i32) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, format!("#!/bin/sh\nexit {code}\n")).expect("is written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("may be run");
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Runs the script where git and cargo-deny end with these codes.
fn run(folder: &Folder, git: i32, deny: i32) -> Output {
    command(folder, git, deny).output().expect("runs")
}

fn command(folder: &Folder, git: i32, deny: i32) -> Command {
    folder.program("git", git);
    let path = std::env::var("PATH").unwrap_or_default();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../hack/advisories.sh");
    let mut command = Command::new("bash");
    command
        .arg(script)
        .env("PATH", format!("{}:{path}", folder.0.display()))
        .env("CARGO_HOME", folder.0.join("cargo"))
        .env("DENY", folder.program("deny", deny))
        .env("SKIPPED_CHECKS", folder.0.join("note"));
    command
}

#[test]
fn unchecked_advisories_are_skipped_in_capitals_and_noted_until_they_are_checked() {
    let folder = Folder::new("advisories");
    let note = folder.0.join("note");
    let skipped = run(&folder, 1, 1);
    let text = String::from_utf8_lossy(&skipped.stdout).into_owned();
    assert!(
        skipped.status.success() && text.starts_with("SKIPPED: advisories: "),
        "{skipped:?}"
    );
    assert_eq!(fs::read_to_string(&note).expect("is noted"), text);
    let mut required = command(&folder, 1, 1);
    let required = required.env("REQUIRE_ADVISORIES", "1").output().expect("runs");
    assert!(!required.status.success(), "{required:?}");

    // With a database the result is cargo-deny's, and nothing else succeeds.
    assert!(run(&folder, 0, 0).status.success() && !note.exists());
    assert!(!run(&folder, 0, 1).status.success() && !note.exists());
    fs::create_dir_all(folder.0.join("cargo/advisory-dbs/db/crates")).expect("is made");
    assert!(run(&folder, 1, 0).status.success() && !note.exists());
    assert!(!run(&folder, 1, 1).status.success() && !note.exists());
}

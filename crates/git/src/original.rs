//! Runs Git itself, for tests of its checkouts.

use std::{path::Path, process::Command};

/// Runs git in a directory, and returns its output. Each commit is a second later than its parent: commits of one second have
/// no order.
pub(crate) fn git(dir: &Path, args: &[&str]) -> String {
    let run = |args: &[&str], date: &str| {
        Command::new("git")
            .args(["-c", "user.name=n", "-c", "user.email=e@example.com"])
            .args(["-c", "init.defaultBranch=main"])
            .args(args)
            .envs([("GIT_COMMITTER_DATE", date), ("GIT_AUTHOR_DATE", date)])
            .current_dir(dir)
            .output()
            .unwrap()
    };
    let known = run(&["rev-list", "--all", "--count"], "");
    let count: u32 = String::from_utf8_lossy(&known.stdout)
        .trim()
        .parse()
        .unwrap_or_default();
    let output = run(
        args,
        &format!("2026-01-01T00:{:02}:{:02}Z", count / 60, count % 60),
    );
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {said}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

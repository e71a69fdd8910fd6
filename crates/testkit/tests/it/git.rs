//! The Git server, asked by the real git.

use std::{path::Path, process::Command, time::Duration};

use testkit::{Fault, GitServer, Repo, git::Step};

/// Runs git as a client; returns its output, or its complaint.
fn git(dir: &Path, args: &[&str]) -> Result<String, String> {
    git_with(dir, &[], args)
}

fn git_with(dir: &Path, env: &[(&str, &Path)], args: &[&str]) -> Result<String, String> {
    let output = Command::new("git")
        .current_dir(dir)
        .args(["-c", "http.lowSpeedLimit=1", "-c", "http.lowSpeedTime=1"])
        .args(args)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_TERMINAL_PROMPT", "0")
        .envs(env.iter().copied())
        .output()
        .expect("git runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() {
        Ok(text(&output.stdout))
    } else {
        Err(text(&output.stderr))
    }
}

fn clone(url: &str) -> Result<tempfile::TempDir, String> {
    let dir = tempfile::tempdir().expect("is made");
    git(dir.path(), &["clone", "--quiet", url, "."]).map(|_| dir)
}

fn shop(server: &GitServer, name: &str) -> Repo {
    let repo = server.repo(name).expect("is made");
    repo.commit(
        "first",
        &[("README.md", "hello\n"), ("deploy/app.yaml", "kind: App\n")],
    )
    .expect("is committed");
    repo
}

#[test]
fn clone_holds_the_committed_files() {
    let server = GitServer::start().expect("starts");
    let repo = shop(&server, "team/shop");
    let second = repo
        .change("second")
        .write("bin/run", "#!/bin/sh\n")
        .executable("bin/run", "#!/bin/sh\n")
        .link("link", "README.md")
        .remove("deploy")
        .push()
        .expect("is committed");
    let dir = clone(&repo.url()).expect("is cloned");
    assert_eq!(git(dir.path(), &["rev-parse", "HEAD"]), Ok(second));
    let tree = git(dir.path(), &["ls-tree", "-r", "HEAD"]).expect("is listed");
    let modes: Vec<_> = tree
        .lines()
        .map(|line| (&line[..6], line.rsplit('\t').next().expect("has a path")))
        .collect();
    assert_eq!(
        modes,
        [("100644", "README.md"), ("100755", "bin/run"), ("120000", "link")]
    );
    let steps: Vec<_> = repo
        .requests()
        .iter()
        .map(|request| (request.step, request.status))
        .collect();
    assert_eq!(
        steps,
        [
            (Step::Info, Some(200)),
            (Step::LsRefs, Some(200)),
            (Step::Fetch, Some(200))
        ]
    );
}

#[test]
fn commits_are_the_same_in_each_run() {
    let ids = [(); 2].map(|()| {
        shop(&GitServer::start().expect("starts"), "shop")
            .rev("main")
            .expect("is there")
    });
    assert_eq!(ids[0], ids[1]);
}

#[test]
fn branches_and_tags_can_be_moved_and_deleted() {
    let server = GitServer::start().expect("starts");
    let repo = shop(&server, "shop");
    let first = repo.rev("main").expect("is there");
    repo.commit("second", &[("a", "1")]).expect("is committed");
    repo.tag("v1", &first).expect("is tagged");
    let tag = repo.annotated_tag("v2", "main", "the second").expect("is tagged");
    assert_ne!(tag, repo.rev("v2^{commit}").expect("leads to a commit"));
    repo.branch("old", &first).expect("is made");
    repo.change("aside")
        .on("aside")
        .from(&first)
        .write("b", "2")
        .push()
        .expect("is committed");
    let forced = repo
        .change("anew")
        .orphan()
        .write("only", "this")
        .push()
        .expect("is committed");
    repo.delete_ref("refs/heads/old").expect("is removed");
    let refs = git(Path::new("/"), &["ls-remote", &repo.url()]).expect("is listed");
    let names: Vec<_> = refs.lines().filter_map(|line| line.split('\t').nth(1)).collect();
    let expected = [
        "HEAD",
        "refs/heads/aside",
        "refs/heads/main",
        "refs/tags/v1",
        "refs/tags/v2",
        "refs/tags/v2^{}",
    ];
    assert_eq!(names, expected);
    assert!(refs.starts_with(&forced), "{refs}");
    assert_eq!(
        repo.git(&["ls-tree", "--name-only", "-r", "main"])
            .expect("is listed")
            .trim(),
        "only"
    );
}

#[test]
fn clone_can_push() {
    let server = GitServer::start().expect("starts");
    let repo = shop(&server, "shop");
    let dir = clone(&repo.url()).expect("is cloned");
    let who = ["-c", "user.name=x", "-c", "user.email=x@example.com"];
    git(
        dir.path(),
        &[&who[..], &["commit", "--quiet", "--allow-empty", "-m", "pushed"]].concat(),
    )
    .expect("commits");
    git(dir.path(), &["push", "--quiet"]).expect("pushes");
    let pushed = git(dir.path(), &["rev-parse", "HEAD"]).expect("is there");
    assert_eq!(repo.rev("main").expect("is there"), pushed);
}

#[test]
fn private_repository_requires_credentials() {
    let server = GitServer::start().expect("starts");
    let repo = shop(&server, "private");
    repo.require_basic_auth("me", "s3cret");
    let refused = clone(&repo.url()).expect_err("is refused");
    assert!(refused.contains("could not read Username"), "{refused}");
    let with = |password: &str| repo.url().replace("http://", &format!("http://me:{password}@"));
    let refused = clone(&with("wrong")).expect_err("is refused");
    assert!(refused.contains("Authentication failed"), "{refused}");
    clone(&with("s3cret")).expect("is let in");
    assert!(repo.requests().iter().any(|request| request.status == Some(401)));
}

#[test]
fn faults_reach_the_client_and_heal() {
    let server = GitServer::start().expect("starts");
    let other = GitServer::start().expect("starts");
    let repo = shop(&server, "shop");
    let moved = shop(&other, "moved");
    // Enough that half of the pack is something.
    let noise: String = (0..20_000).map(|_| fastrand::alphanumeric()).collect();
    repo.commit("noise", &[("noise", &noise)]).expect("is committed");
    let cases = [
        (Fault::Status(404), "not found"),
        (Fault::Status(500), "500"),
        (Fault::Hang, "Operation too slow"),
        (Fault::HangMidPack, "Operation too slow"),
        (Fault::CutMidPack, "early EOF"),
        (Fault::Cut, ""),
        (
            Fault::Page("<html>\nwelcome\n</html>\n".to_owned()),
            "not valid: is this a git repository",
        ),
    ];
    for (fault, complaint) in cases {
        repo.fail(fault.clone());
        let failed = clone(&repo.url())
            .map(|_| format!("{fault:?}"))
            .expect_err("fails");
        assert!(failed.contains(complaint), "{fault:?}: {failed}");
    }
    repo.fail(Fault::Redirect(moved.url(), 302));
    let dir = clone(&repo.url()).expect("is redirected");
    assert_eq!(
        git(dir.path(), &["rev-parse", "HEAD"]).expect("is there"),
        moved.rev("main").expect("is there")
    );
    repo.heal();
    repo.delay(Duration::from_millis(10));
    clone(&repo.url()).expect("is well");
    let missing = clone(&format!("{}/absent.git", server.origin())).expect_err("isn't there");
    assert!(missing.contains("not found"), "{missing}");
}

#[test]
fn https_is_trusted_with_its_own_ca_only() {
    let server = GitServer::start_tls().expect("starts");
    let repo = shop(&server, "shop");
    let refused = clone(&repo.url()).expect_err("isn't trusted");
    assert!(refused.contains("certificate"), "{refused}");
    let dir = tempfile::tempdir().expect("is made");
    let ca = dir.path().join("ca.pem");
    std::fs::write(&ca, server.ca_pem()).expect("is written");
    git_with(
        dir.path(),
        &[("GIT_SSL_CAINFO", &ca)],
        &["ls-remote", &repo.url()],
    )
    .expect("is trusted");
}

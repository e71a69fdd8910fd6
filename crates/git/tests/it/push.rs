//! Pushing commits over HTTP and SSH, to repositories of the real Git.

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt as _,
    path::Path,
};

use git::{Auth, Error, NewCommit, Remote, Snapshot};
use testkit::{GitServer, Repo, SshServer};

use super::{NETWORK, branch, call, fetch, ssh};

fn files(files: &[(&str, &str)]) -> Vec<(String, Vec<u8>)> {
    let owned = |(path, content): &(&str, &str)| ((*path).to_owned(), content.as_bytes().to_vec());
    files.iter().map(owned).collect()
}

fn push(
    remote: &Remote,
    base: Option<&Snapshot>,
    on: &str,
    files: &[(String, Vec<u8>)],
) -> Result<Option<String>, Error> {
    let commit = NewCommit {
        branch: on,
        author: ("Flux", "flux@example.com"),
        time: 1_700_000_000,
        message: "Add manifests\n\n",
        files,
    };
    NETWORK.open(remote, &call())?.push(base, &commit)
}

/// Returns mode and path of each file of a branch, after the real Git has checked all objects.
fn listed(repo: &Repo, branch: &str) -> String {
    repo.git(&["fsck", "--strict", "--connectivity-only"]).unwrap();
    repo.git(&["fsck", "--strict"]).unwrap();
    repo.git(&["ls-tree", "-r", "--format=%(objectmode) %(path)", branch])
        .unwrap()
}

#[test]
fn pushed_commit_keeps_the_other_files_of_the_branch() {
    let server = GitServer::start().unwrap();
    let repo = server.repo("pushed").unwrap();
    let change = repo
        .change("first")
        .write("a", "1")
        .write("clusters/one/x.yaml", "x: 1\n");
    let change = change.write("clusters.txt", "").link("link", "a");
    let change = change.executable("clusters/one/run.sh", "#!/bin/sh\n");
    let first = change
        .submodule("sub", "1111111111111111111111111111111111111111")
        .push()
        .unwrap();
    let remote = Remote::new(&repo.url()).unwrap();
    let base = fetch(&remote, &branch("main"), &call()).unwrap().snapshot;
    let written = files(&[
        ("clusters/one/flux-system/gotk-sync.yaml", "kind: GitRepository\n"),
        ("clusters/one/run.sh", "#!/bin/sh\nexit\n"),
        ("a/b", "a was a file"),
    ]);
    let id = push(&remote, Some(&base), "main", &written).unwrap().unwrap();
    assert_eq!(repo.rev("main").unwrap(), id);
    assert_eq!(repo.rev("main^").unwrap(), first);
    let format = "--format=%an|%ae|%cn|%at|%B";
    let shown = repo.git(&["log", "-1", format, "main"]).unwrap();
    assert_eq!(
        shown.trim_end(),
        "Flux|flux@example.com|Flux|1700000000|Add manifests"
    );
    assert_eq!(
        listed(&repo, "main"),
        "100644 a/b\n100644 clusters.txt\n100644 clusters/one/flux-system/gotk-sync.yaml\n100755 clusters/one/run.sh\n\
         100644 clusters/one/x.yaml\n120000 link\n160000 sub\n"
    );

    // Nothing is pushed if the files are there already.
    let now = fetch(&remote, &branch("main"), &call()).unwrap().snapshot;
    assert_eq!(push(&remote, Some(&now), "main", &written).unwrap(), None);
    // The branch has moved since the base.
    let error = push(&remote, Some(&base), "main", &files(&[("z", "")])).unwrap_err();
    assert!(matches!(error, Error::Rejected { .. }), "{error}");
    assert_eq!(repo.rev("main").unwrap(), id);
}

#[test]
fn push_starts_an_empty_repository_and_new_branches() {
    let server = GitServer::start().unwrap();
    let repo = server.repo("empty").unwrap();
    let remote = Remote::new(&repo.url()).unwrap();
    let id = push(&remote, None, "main", &files(&[("d/f", "1")])).unwrap();
    assert_eq!(repo.rev("main").unwrap(), id.unwrap());
    assert_eq!(listed(&repo, "main"), "100644 d/f\n");
    push(&remote, None, "fleet", &files(&[("other", "2")])).unwrap();
    assert_eq!(listed(&repo, "fleet"), "100644 other\n");
    // Somebody else has created it meanwhile.
    let error = push(&remote, None, "main", &files(&[("d/f", "2")])).unwrap_err();
    assert!(matches!(error, Error::Rejected { .. }), "{error}");
}

#[test]
fn push_needs_the_credentials_of_the_server() {
    let server = GitServer::start_tls().unwrap();
    let repo = server.repo("private").unwrap();
    repo.require_basic_auth("user", "secret");
    let auth = |password: &str| Auth {
        username: "user".to_owned(),
        password: api::Secret::new(password.to_owned()),
    };
    let remote = Remote::new(&repo.url())
        .unwrap()
        .with_ca(server.ca_pem().as_bytes().to_vec());
    let written = files(&[("f", "1")]);
    let refused = push(&remote.clone().with_auth(auth("wrong")), None, "main", &written).unwrap_err();
    assert!(matches!(refused, Error::AuthenticationFailed { .. }), "{refused}");
    assert!(!refused.to_string().contains("wrong"), "{refused}");
    push(&remote.with_auth(auth("secret")), None, "main", &written).unwrap();
    assert_eq!(listed(&repo, "main"), "100644 f\n");
}

/// Lets the user of the SSH server write to a repository.
fn writable(path: &Path) {
    let is_dir = path.is_dir();
    fs::set_permissions(path, Permissions::from_mode(if is_dir { 0o777 } else { 0o666 })).unwrap();
    if is_dir {
        for entry in fs::read_dir(path).unwrap() {
            writable(&entry.unwrap().path());
        }
    }
}

#[test]
fn push_over_ssh_reuses_the_connection_of_the_fetch() {
    let git = GitServer::start().unwrap();
    let (repo, first) = ssh::repo(&git);
    writable(&repo.path());
    let pair = ssh::pair();
    let server = SshServer::start(&git, &[&pair]).unwrap();
    let login = ssh::login(&pair, &server.known_hosts().unwrap());
    let remote = ssh::remote(&server.url(&repo), login);
    let call = call();
    let base = fetch(&remote, &branch("main"), &call).unwrap().snapshot;
    let written = files(&[("new/file", "1")]);
    let commit = NewCommit {
        branch: "main",
        author: ("Flux", "flux@example.com"),
        time: 1_700_000_000,
        message: "Add a file",
        files: &written,
    };
    let session = NETWORK.open(&remote, &call).unwrap();
    let id = session.push(Some(&base), &commit).unwrap().unwrap();
    assert_eq!(
        (repo.rev("main").unwrap(), repo.rev("main^").unwrap()),
        (id, first)
    );
    assert_eq!(server.logins(), 1);
    assert_eq!(listed(&repo, "main"), "100644 a/b\n100644 n\n100644 new/file\n");
}

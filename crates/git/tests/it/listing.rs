//! Lists of refs: a server whose capabilities are known is asked once.

use git::{Auth, Error, Remote};
use testkit::{
    GitServer,
    git::{Fault, Repo, Step},
};

use super::{branch, call, fetch, resolve};

fn repo(server: &GitServer, name: &str) -> (Repo, Remote) {
    let repo = server.repo(name).unwrap();
    repo.commit("first", &[("n", "1")]).unwrap();
    let remote = Remote::new(&repo.url()).unwrap();
    (repo, remote)
}

/// Returns the steps of the requests after the first ones.
fn steps(repo: &Repo, after: usize) -> Vec<Step> {
    let requests = repo.requests().into_iter().skip(after);
    requests.map(|request| request.step).collect()
}

#[test]
fn later_lists_and_fetches_begin_with_the_refs() {
    let server = GitServer::start().unwrap();
    let (repo, remote) = repo(&server, "known");
    for _ in 0..3 {
        resolve(&remote, &branch("main"), &call()).unwrap();
    }
    repo.commit("second", &[("n", "2")]).unwrap();
    assert_eq!(fetch(&remote, &branch("main"), &call()).unwrap().read("n"), "2");
    assert_eq!(
        steps(&repo, 0),
        [
            Step::Info,
            Step::LsRefs,
            Step::LsRefs,
            Step::LsRefs,
            Step::LsRefs,
            Step::Fetch
        ]
    );
}

#[test]
fn other_repository_of_a_known_server_is_fetched_with_two_requests() {
    let server = GitServer::start().unwrap();
    let [(_, first), (repo, second)] = ["first", "second"].map(|name| repo(&server, name));
    resolve(&first, &branch("main"), &call()).unwrap();
    assert_eq!(fetch(&second, &branch("main"), &call()).unwrap().read("n"), "1");
    assert_eq!(steps(&repo, 0), [Step::LsRefs, Step::Fetch]);
}

#[test]
fn repository_that_refuses_is_asked_with_one_request_from_then_on() {
    let server = GitServer::start().unwrap();
    let (_, known) = repo(&server, "known");
    resolve(&known, &branch("main"), &call()).unwrap();
    let repo = server.repo("private").unwrap();
    repo.require_basic_auth("me", "s3cret");
    let remote = Remote::new(&repo.url()).unwrap();
    for expected in [&[Step::LsRefs, Step::Info][..], &[Step::Info]] {
        let asked = repo.requests().len();
        resolve(&remote, &branch("main"), &call()).unwrap_err();
        assert_eq!(steps(&repo, asked), expected);
    }
}

#[test]
fn list_that_fails_is_repeated_with_the_capabilities() {
    let server = GitServer::start().unwrap();
    let (repo, remote) = repo(&server, "changing");
    resolve(&remote, &branch("main"), &call()).unwrap();

    repo.require_basic_auth("me", "s3cret");
    let asked = repo.requests().len();
    let error = resolve(&remote, &branch("main"), &call()).unwrap_err();
    assert!(matches!(error, Error::AuthenticationFailed { .. }), "{error}");
    assert_eq!(steps(&repo, asked), [Step::LsRefs, Step::Info]);
    let remote = remote.with_auth(Auth {
        username: "me".to_owned(),
        password: "s3cret".to_owned().into(),
    });
    for expected in [&[Step::Info, Step::LsRefs][..], &[Step::LsRefs]] {
        let asked = repo.requests().len();
        resolve(&remote, &branch("main"), &call()).unwrap();
        assert_eq!(steps(&repo, asked), expected);
    }
}

#[test]
fn repository_that_moved_is_found_although_its_capabilities_were_known() {
    let server = GitServer::start().unwrap();
    let (old, remote) = repo(&server, "old");
    resolve(&remote, &branch("main"), &call()).unwrap();
    let new = server.repo("new").unwrap();
    new.commit("there", &[("n", "3")]).unwrap();
    old.fail(Fault::Redirect(new.url(), 301));
    for _ in 0..2 {
        let asked = new.requests().len();
        assert_eq!(fetch(&remote, &branch("main"), &call()).unwrap().read("n"), "3");
        assert_eq!(steps(&new, asked), [Step::Info, Step::LsRefs, Step::Fetch]);
    }
}

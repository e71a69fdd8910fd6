//! Lists of refs: a server whose capabilities are known is asked once.

use git::{Auth, Error, Remote};
use testkit::{
    GitServer,
    git::{Fault, Repo, Step},
};

use super::{NETWORK, RUNTIME, branch, call, fetch, resolve};

fn repo(server: &GitServer, name: &str) -> (Repo, Remote) {
    let repo = server.repo(name).unwrap();
    repo.commit("first", &[("n", "1")]).unwrap();
    let remote = Remote::new(&repo.url()).unwrap();
    (repo, remote)
}

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
fn lists_one_after_another_need_one_connection() {
    let server = GitServer::start().unwrap();
    let (_, remote) = repo(&server, "connected");
    for _ in 0..20 {
        resolve(&remote, &branch("main"), &call()).unwrap();
    }
    let connections = server.connections();
    // The end of an answer may come while the next request is being sent.
    assert!(connections < 10, "{connections} connections");
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
    let mut session = NETWORK.open(&remote, &call()).unwrap();
    session.resolve(&branch("main")).unwrap();
    assert!(
        session.listing().is_none(),
        "the redirect may lead elsewhere later"
    );
}

#[test]
fn unchanged_list_is_seen_with_one_request_on_a_kept_connection() {
    let server = GitServer::start().unwrap();
    let (repo, remote) = repo(&server, "again");
    let mut session = NETWORK.open(&remote, &call()).unwrap();
    assert!(session.listing().is_none(), "nothing was listed");
    session.resolve(&branch("main")).unwrap();
    let listing = session.listing().unwrap();
    let is_unchanged = || RUNTIME.block_on(NETWORK.is_unchanged(&listing));
    let asked = repo.requests().len();
    // A connection may be busy when the next request starts.
    let keeps_connection = |_| {
        let before = server.connections();
        assert!(is_unchanged());
        server.connections() == before
    };
    assert!((0..50).any(keeps_connection));
    let steps_since = steps(&repo, asked);
    assert!(!steps_since.is_empty() && steps_since.iter().all(|step| *step == Step::LsRefs));

    repo.branch("other", "main").unwrap();
    assert!(is_unchanged(), "only the wanted branch is listed");
    repo.commit("second", &[("n", "2")]).unwrap();
    assert!(!is_unchanged());
    session.list_all().unwrap();
    assert!(session.listing().is_none(), "two lists");
}

#[test]
fn list_of_a_private_repository_is_compared_with_its_credentials() {
    let server = GitServer::start().unwrap();
    let (repo, remote) = repo(&server, "private");
    repo.require_basic_auth("me", "s3cret");
    let remote = remote.with_auth(Auth {
        username: "me".to_owned(),
        password: "s3cret".to_owned().into(),
    });
    let mut session = NETWORK.open(&remote, &call()).unwrap();
    session.resolve(&branch("main")).unwrap();
    let listing = session.listing().unwrap();
    assert!(!format!("{listing:?}").contains("s3cret"));
    assert!(RUNTIME.block_on(NETWORK.is_unchanged(&listing)));
    repo.require_basic_auth("me", "an0ther");
    assert!(!RUNTIME.block_on(NETWORK.is_unchanged(&listing)));
    repo.require_basic_auth("me", "s3cret");
    for fault in [Fault::Status(500), Fault::Cut, Fault::EndlessRefs] {
        repo.fail(fault);
        assert!(!RUNTIME.block_on(NETWORK.is_unchanged(&listing)));
        repo.heal();
    }
    assert!(RUNTIME.block_on(NETWORK.is_unchanged(&listing)));
}

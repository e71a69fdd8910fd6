//! Commits that must be on a branch: the server is asked with a small request, only if the branch moved.

use git::{Error, Reference, Remote, Selector};
use testkit::{
    GitServer, SshOptions, SshServer,
    git::{Repo, Step},
};

use super::{call, fetch, resolve, ssh};

struct Setup {
    server: GitServer,
    repo: Repo,
    remote: Remote,
    first: String,
    third: String,
    other: String,
}

impl Setup {
    fn new() -> Self {
        let server = GitServer::start().unwrap();
        let repo = server.repo("branches").unwrap();
        let first = repo.commit("first", &[("n", "1")]).unwrap();
        let second = repo.commit("second", &[("n", "2")]).unwrap();
        let third = repo.commit("third", &[("n", "3")]).unwrap();
        let other = repo
            .change("other")
            .on("other")
            .from(&second)
            .write("n", "4")
            .push()
            .unwrap();
        let remote = Remote::new(&repo.url()).unwrap();
        Self {
            server,
            repo,
            remote,
            first,
            third,
            other,
        }
    }

    fn steps(&self, seen: &mut usize) -> Vec<Step> {
        let steps: Vec<Step> = self
            .repo
            .requests()
            .into_iter()
            .map(|request| request.step)
            .collect();
        let new = steps.iter().skip(*seen).copied().collect();
        *seen = steps.len();
        new
    }
}

fn on(branch: &str, commit: &str) -> Reference {
    Selector {
        branch: Some(branch.to_owned()),
        commit: Some(commit.to_owned()),
        ..Selector::default()
    }
    .reference()
    .unwrap()
}

fn refusal(commit: &str, branch: &str) -> String {
    format!(
        "unable to resolve commit object for '{commit}': object not found: it is not on the branch '{branch}' of '"
    )
}

#[test]
fn commit_with_a_branch_must_be_on_it() {
    let setup = Setup::new();
    for filter in ["true", "false"] {
        setup
            .repo
            .git(&["config", "uploadpack.allowFilter", filter])
            .unwrap();
        for (branch, commit, content) in [
            ("main", &setup.third, "3"),
            ("main", &setup.first, "1"),
            ("other", &setup.first, "1"),
            ("other", &setup.other, "4"),
        ] {
            let fetched = fetch(&setup.remote, &on(branch, commit), &call()).unwrap();
            assert_eq!(fetched.resolved.revision(), format!("{branch}@sha1:{commit}"));
            assert_eq!(fetched.read("n"), content, "{branch} {commit}");
        }
        for (branch, commit) in [("main", &setup.other), ("other", &setup.third)] {
            let error = resolve(&setup.remote, &on(branch, commit), &call()).unwrap_err();
            assert!(error.to_string().starts_with(&refusal(commit, branch)), "{error}");
            assert!(matches!(error, Error::NotOnBranch { .. }) && !error.is_of_call());
        }
    }
    let missing = resolve(&setup.remote, &on("gone", &setup.first), &call()).unwrap_err();
    assert!(
        missing.to_string().starts_with("branch 'gone' not found in '"),
        "{missing}"
    );
    let unknown = resolve(&setup.remote, &on("main", &"7".repeat(40)), &call()).unwrap_err();
    assert!(matches!(unknown, Error::RefNotFound { .. }), "{unknown}");
}

#[test]
fn server_is_asked_for_a_commit_of_a_branch_when_the_branch_moved() {
    let setup = Setup::new();
    let network = super::NETWORK.clone();
    let ask = |commit: &str| network.open(&setup.remote, &call())?.resolve(&on("main", commit));
    let mut seen = 0;
    ask(&setup.third).unwrap();
    assert_eq!(
        setup.steps(&mut seen),
        [Step::Info, Step::LsRefs],
        "the head itself"
    );
    ask(&setup.first).unwrap();
    assert_eq!(setup.steps(&mut seen), [Step::LsRefs, Step::Fetch]);
    ask(&setup.first).unwrap();
    assert_eq!(setup.steps(&mut seen), [Step::LsRefs]);
    setup.repo.commit("moved", &[("n", "5")]).unwrap();
    ask(&setup.first).unwrap();
    assert_eq!(setup.steps(&mut seen), [Step::LsRefs, Step::Fetch]);
    setup
        .repo
        .change("forced")
        .orphan()
        .write("n", "6")
        .push()
        .unwrap();
    let error = ask(&setup.first).unwrap_err();
    assert!(matches!(error, Error::NotOnBranch { .. }), "{error}");
}

#[test]
fn commit_of_a_branch_is_found_over_ssh_in_both_protocols() {
    let setup = Setup::new();
    let pair = ssh::pair();
    for accepts_protocol in [true, false] {
        let options = SshOptions {
            accepts_protocol,
            ..SshOptions::default()
        };
        let server = SshServer::start_with(&setup.server, &[&pair], options).unwrap();
        let login = ssh::login(&pair, &server.known_hosts().unwrap());
        let remote = ssh::remote(&server.url(&setup.repo), login);
        let fetched = fetch(&remote, &on("main", &setup.first), &call()).unwrap();
        assert_eq!(fetched.read("n"), "1");
        let error = resolve(&remote, &on("main", &setup.other), &call()).unwrap_err();
        assert!(matches!(error, Error::NotOnBranch { .. }), "{error}");
    }
}

//! Repositories that no ordinary program writes.

use git::{Remote, Selector};
use testkit::GitServer;

use super::{
    branch, call, fetch,
    fetching::{publish, refusal, tree},
};

#[test]
fn names_that_lead_elsewhere_or_are_there_twice_are_refused() {
    let server = GitServer::start().unwrap();
    let repo = server.repo("names").unwrap();
    repo.commit("first", &[("file", "a")]).unwrap();
    let blob = repo.rev("main:file").unwrap();
    for (name, why) in [
        ("..", "its name is reserved"),
        (".", "its name is reserved"),
        (".git", "its name is reserved"),
        (".GIT", "its name is reserved"),
        ("a/b", "its name holds a separator"),
    ] {
        publish(&repo, &tree(&repo, &[("100644", name, &blob)]));
        let error = refusal(&repo);
        assert!(error.contains(why), "{name}: {error}");
    }
    publish(
        &repo,
        &tree(&repo, &[("100644", "a", &blob), ("100644", "a", &blob)]),
    );
    assert!(refusal(&repo).contains("it is there twice"));
}

#[test]
fn names_that_differ_in_case_stay_apart() {
    let server = GitServer::start().unwrap();
    let repo = server.repo("case").unwrap();
    let files = [("README", "1"), ("readme", "2"), ("Dir/a", "3"), ("dir/a", "4")];
    repo.commit("first", &files).unwrap();
    let remote = Remote::new(&repo.url()).unwrap();
    let fetched = fetch(&remote, &branch("main"), &call()).unwrap();
    for (path, content) in files {
        assert_eq!(fetched.read(path), content, "{path}");
    }
}

#[test]
fn objects_of_another_kind_are_refused() {
    let server = GitServer::start().unwrap();
    let repo = server.repo("kinds").unwrap();
    repo.commit("first", &[("file", "a")]).unwrap();
    let blob = repo.rev("main:file").unwrap();
    repo.set_ref("refs/tags/blob", &blob).unwrap();
    let reference = Selector {
        tag: Some("blob".to_owned()),
        ..Selector::default()
    };
    let remote = Remote::new(&repo.url()).unwrap();
    let error = fetch(&remote, &reference.reference().unwrap(), &call())
        .map(|_| ())
        .unwrap_err();
    assert!(
        error.to_string().contains("the ref does not lead to a commit"),
        "{error}"
    );
}

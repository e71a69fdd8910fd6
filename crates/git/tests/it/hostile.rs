//! Repositories that no ordinary program writes.

use git::{Remote, Selector};
use testkit::GitServer;

use super::{
    branch, call, fetch,
    fetching::{publish, refusal, tree},
    own_network,
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
    repo.annotated_tag("tree", "main^{tree}", "a directory").unwrap();
    let remote = Remote::new(&repo.url()).unwrap();
    for (name, kind) in [("blob", "blob"), ("tree", "tree")] {
        let reference = Selector {
            tag: Some(name.to_owned()),
            ..Selector::default()
        };
        let error = fetch(&remote, &reference.reference().unwrap(), &call())
            .map(|_| ())
            .unwrap_err()
            .to_string();
        let expected = format!(
            "the ref does not lead to a commit: '{name}' of '{}' is a {kind}",
            repo.url()
        );
        assert!(error.contains(&expected), "{error}");
    }
}

#[test]
fn range_passes_over_tags_that_lead_to_no_commit() {
    let server = GitServer::start().unwrap();
    let repo = server.repo("ranges").unwrap();
    let commit = repo.commit("first", &[("file", "range")]).unwrap();
    repo.tag("1.0.0", &commit).unwrap();
    repo.set_ref("refs/tags/1.2.0", &repo.rev("main:file").unwrap())
        .unwrap();
    repo.annotated_tag("v1.1.0", "main^{tree}", "a directory")
        .unwrap();
    let remote = Remote::new(&repo.url()).unwrap();
    let network = own_network();
    let range = |text: &str| {
        let selector = Selector {
            semver: Some(text.to_owned()),
            ..Selector::default()
        };
        selector.reference().unwrap()
    };
    let resolve = |text: &str| network.open(&remote, &call()).unwrap().resolve(&range(text));
    let above = tempfile::tempdir().unwrap();
    for bad in ["1.2.0", "v1.1.0"] {
        let resolved = resolve("1.x").unwrap();
        assert_eq!(resolved.name.as_deref(), Some(bad));
        assert!(!network.is_no_commit(&resolved));
        let fetched = network
            .open(&remote, &call())
            .unwrap()
            .fetch(&resolved, above.path());
        let error = fetched.map(drop).unwrap_err().to_string();
        assert!(error.contains(&format!("'{bad}' of")), "{error}");
        assert!(network.is_no_commit(&resolved));
    }
    assert_eq!(resolve("1.x").unwrap().revision(), format!("1.0.0@sha1:{commit}"));
    let error = resolve(">1.1.0").unwrap_err().to_string();
    let expected = "no match found for semver: >1.1.0: the tag '1.2.0' does not lead to a commit";
    assert_eq!(error, expected);
}

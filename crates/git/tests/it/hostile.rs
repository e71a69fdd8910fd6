//! Repositories that no ordinary program writes.

use git::{Commit, NodeKind, Remote, Selector};
use testkit::GitServer;
use tree::{Tree as _, TreePath};

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
fn names_that_are_not_utf8_are_passed_over() {
    let server = GitServer::start().unwrap();
    let repo = server.repo("bytes").unwrap();
    repo.commit("first", &[("dir/file", "a")]).unwrap();
    let (blob, dir) = (repo.rev("main:dir/file").unwrap(), repo.rev("main:dir").unwrap());
    let entries = [
        ("100644", b"a".as_slice(), blob.as_str()),
        ("100644", b"b\xfe", &blob),
        ("100644", b"b\xff", &blob),
        ("100644", "b\u{fffd}".as_bytes(), &blob),
        ("40000", b"d\xe9", &dir),
    ];
    publish(&repo, &tree(&repo, &entries));
    let remote = Remote::new(&repo.url()).unwrap();
    let fetched = fetch(&remote, &branch("main"), &call()).unwrap();
    let file = NodeKind::File { executable: false };
    let mut kinds: Vec<_> = fetched
        .paths()
        .into_iter()
        .filter(|(_, kind)| *kind == file)
        .collect();
    kinds.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(kinds, [("a".to_owned(), file), ("b\u{fffd}".to_owned(), file)]);
    let others: Vec<_> = fetched
        .paths()
        .into_iter()
        .filter(|(_, kind)| *kind != file)
        .collect();
    let not_utf8 = |path: &str| (path.to_owned(), NodeKind::NotUtf8);
    assert_eq!(
        others,
        [
            not_utf8("b\u{fffd}"),
            not_utf8("b\u{fffd}"),
            not_utf8("d\u{fffd}")
        ]
    );
    let mut session = own_network().open(&remote, &call()).unwrap();
    let resolved = session.resolve(&branch("main")).unwrap();
    let commit = Commit::fetch(&mut session, &resolved, 1 << 20).unwrap();
    let listed = commit.list(&TreePath::root()).unwrap();
    let names: Vec<_> = listed.iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(names, ["a", "b\u{fffd}"]);
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

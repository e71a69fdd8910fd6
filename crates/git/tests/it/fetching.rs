//! Fetching by each kind of reference.

use git::{Auth, Commit, Error, Limits, NodeKind, Remote, Selector};
use testkit::{GitServer, git::Step};

use tree::{Tree as _, TreePath};

use super::{NETWORK, branch, call, fetch, own_network, resolve};

#[test]
fn the_files_of_a_commit_come_with_their_kinds_and_content() {
    let server = GitServer::start().unwrap();
    let repo = server.repo("files").unwrap();
    repo.commit("first", &[("old", "gone later")]).unwrap();
    let other = "1111111111111111111111111111111111111111";
    let commit = repo
        .change("second: more files\n\nwith a body\n")
        .write("a/b/c.yaml", "c: 1\n")
        .write("ünï.txt", "")
        .executable("run.sh", "#!/bin/sh\n")
        .link("link", "a/b")
        .submodule("sub", other)
        .remove("old")
        .push()
        .unwrap();
    let fetched = fetch(&Remote::new(&repo.url()).unwrap(), &branch("main"), &call()).unwrap();
    assert_eq!(fetched.snapshot.commit(), commit);
    assert_eq!(fetched.resolved.revision(), format!("main@sha1:{commit}"));
    assert_eq!(fetched.snapshot.subject(), "second: more files");
    assert_eq!(fetched.read("a/b/c.yaml"), "c: 1\n");
    assert_eq!(fetched.read("ünï.txt"), "");
    let file = |executable| NodeKind::File { executable };
    let expected = [
        ("a", NodeKind::Dir),
        ("a/b", NodeKind::Dir),
        ("a/b/c.yaml", file(false)),
        ("link", NodeKind::Link),
        ("run.sh", file(true)),
        ("sub", NodeKind::Submodule),
        ("ünï.txt", file(false)),
    ];
    assert_eq!(
        fetched.paths(),
        expected.map(|(path, kind)| (path.to_owned(), kind))
    );
}

#[test]
fn held_commit_has_the_files_and_links_of_the_fetched_one() {
    let server = GitServer::start().unwrap();
    let repo = server.repo("held").unwrap();
    let change = repo.change("1").write("a/b/c.yaml", "c: 1\n").write("empty", "");
    let change = change.executable("run.sh", "#!/bin/sh\n").link("link", "a/b");
    let id = change.link("out", "../x").push().unwrap();
    let mut session = NETWORK.open(&Remote::new(&repo.url()).unwrap(), &call()).unwrap();
    let resolved = session.resolve(&branch("main")).unwrap();
    let fetched = Commit::fetch(&mut session, &resolved, 1 << 20).unwrap();
    assert!(fetched.in_memory(20).is_none(), "it is larger");
    let (in_memory, bytes) = fetched.in_memory(1 << 20).unwrap();
    assert!((20..1 << 20).contains(&bytes), "{bytes}");
    assert_eq!((in_memory.id(), in_memory.entries()), (id, fetched.entries()));
    for path in [
        "",
        "a",
        "a/b/c.yaml",
        "link",
        "link/c.yaml",
        "empty",
        "run.sh",
        "out",
        "none",
    ] {
        let path = TreePath::parse(path).unwrap();
        let seen = |tree: &Commit| {
            format!(
                "{:?} {:?} {:?} {:?}",
                tree.read(&path),
                tree.list(&path),
                tree.kind(&path),
                tree.resolve(&path)
            )
        };
        assert_eq!(seen(&in_memory), seen(&fetched), "{path}");
    }
    drop((fetched, session));
    assert_eq!(
        &in_memory.read(&TreePath::parse("link/c.yaml").unwrap()).unwrap()[..],
        b"c: 1\n"
    );
}

#[test]
fn each_kind_of_reference_finds_its_commit() {
    let server = GitServer::start().unwrap();
    let repo = server.repo("refs").unwrap();
    let first = repo.commit("first", &[("n", "1")]).unwrap();
    let second = repo.commit("second", &[("n", "2")]).unwrap();
    let third = repo.commit("third", &[("n", "3")]).unwrap();
    repo.branch("feature/x", &first).unwrap();
    repo.tag("v1.0.0", &first).unwrap();
    repo.annotated_tag("v1.1.0", &second, "a release").unwrap();
    repo.tag("v2.0.0-rc.1", &third).unwrap();
    repo.set_ref("refs/pull/420/head", &second).unwrap();
    let selector = |field: &str, value: &str| {
        let value = Some(value.to_owned());
        match field {
            "branch" => Selector {
                branch: value,
                ..Selector::default()
            },
            "tag" => Selector {
                tag: value,
                ..Selector::default()
            },
            "semver" => Selector {
                semver: value,
                ..Selector::default()
            },
            "name" => Selector {
                name: value,
                ..Selector::default()
            },
            _ => Selector {
                commit: value,
                ..Selector::default()
            },
        }
    };
    let remote = Remote::new(&repo.url()).unwrap();
    for (field, value, commit, revision, content) in [
        ("branch", "main", &third, "main@", "3"),
        ("branch", "feature/x", &first, "feature/x@", "1"),
        ("tag", "v1.0.0", &first, "v1.0.0@", "1"),
        ("tag", "v1.1.0", &second, "v1.1.0@", "2"),
        ("semver", "*", &second, "v1.1.0@", "2"),
        ("semver", ">=2.0.0-0", &third, "v2.0.0-rc.1@", "3"),
        ("name", "refs/pull/420/head", &second, "refs/pull/420/head@", "2"),
        (
            "name",
            "refs/tags/v1.1.0^{}",
            &second,
            "refs/tags/v1.1.0^{}@",
            "2",
        ),
        ("name", "HEAD", &third, "HEAD@", "3"),
        ("commit", &first, &first, "", "1"),
        ("commit", &second, &second, "", "2"),
    ] {
        let fetched = fetch(&remote, &selector(field, value).reference().unwrap(), &call()).unwrap();
        assert_eq!(
            fetched.resolved.revision(),
            format!("{revision}sha1:{commit}"),
            "{field} {value}"
        );
        assert_eq!(&fetched.snapshot.commit(), commit, "{field} {value}");
        assert_eq!(fetched.read("n"), content, "{field} {value}");
    }
}

#[test]
fn listing_fetches_nothing_and_a_commit_needs_no_listing() {
    let server = GitServer::start().unwrap();
    let repo = server.repo("quiet").unwrap();
    let commit = repo.commit("first", &[("a", "b")]).unwrap();
    let remote = Remote::new(&repo.url()).unwrap();
    resolve(&remote, &branch("main"), &call()).unwrap();
    let steps: Vec<_> = repo.requests().into_iter().map(|request| request.step).collect();
    assert_eq!(steps, [Step::Info, Step::LsRefs]);
    let by_hash = Selector {
        commit: Some(commit.clone()),
        ..Selector::default()
    }
    .reference()
    .unwrap();
    assert_eq!(resolve(&remote, &by_hash, &call()).unwrap().commit, commit);
    assert_eq!(repo.requests().len(), 2);
}

#[test]
fn the_commit_that_was_listed_is_fetched_though_the_branch_moves() {
    let server = GitServer::start().unwrap();
    let repo = server.repo("moving").unwrap();
    let listed = repo.commit("listed", &[("n", "1")]).unwrap();
    let remote = Remote::new(&repo.url()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let mut session = super::NETWORK.open(&remote, &call()).unwrap();
    let resolved = session.resolve(&branch("main")).unwrap();
    repo.change("replaced").orphan().write("n", "2").push().unwrap();
    let snapshot = session.fetch(&resolved, dir.path()).unwrap();
    assert_eq!(snapshot.commit(), listed);
}

#[test]
fn missing_references_are_named_with_the_existing_ones() {
    let server = GitServer::start().unwrap();
    let empty = server.repo("empty").unwrap();
    for reference in [
        branch("main"),
        Selector {
            semver: Some("*".into()),
            ..Selector::default()
        }
        .reference()
        .unwrap(),
    ] {
        let error = resolve(&Remote::new(&empty.url()).unwrap(), &reference, &call()).unwrap_err();
        assert!(matches!(error, Error::EmptyRepository { .. }), "{error}");
    }
    let repo = server.repo("named").unwrap();
    repo.commit("first", &[("a", "b")]).unwrap();
    let remote = Remote::new(&repo.url()).unwrap();
    let error = resolve(&remote, &branch("master"), &call())
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        format!(
            "branch 'master' not found in '{}': its branches are main",
            repo.url()
        )
    );
    let missing = Selector {
        commit: Some("1".repeat(40)),
        ..Selector::default()
    }
    .reference()
    .unwrap();
    let error = fetch(&remote, &missing, &call()).err().unwrap();
    assert!(matches!(error, Error::RefNotFound { .. }), "{error}");
    let error = resolve(
        &Remote::new(&format!("{}/none", server.origin())).unwrap(),
        &branch("main"),
        &call(),
    );
    assert!(matches!(error, Err(Error::NotFound { .. })), "{error:?}");
}

#[test]
fn credentials_of_both_places_are_sent_and_their_absence_is_explained() {
    let server = GitServer::start().unwrap();
    let repo = server.repo("private").unwrap();
    repo.commit("first", &[("a", "b")]).unwrap();
    repo.require_basic_auth("me", "s3cret/canary");
    let remote = Remote::new(&repo.url()).unwrap();
    let auth = |password: &str| Auth {
        username: "me".to_owned(),
        password: password.to_owned().into(),
    };
    fetch(
        &remote.clone().with_auth(auth("s3cret/canary")),
        &branch("main"),
        &call(),
    )
    .unwrap();
    let in_url = repo.url().replace("http://", "http://me:s3cret%2Fcanary@");
    fetch(&Remote::new(&in_url).unwrap(), &branch("main"), &call()).unwrap();
    for (remote, advice) in [
        (remote.clone(), "asks for credentials"),
        (remote.with_auth(auth("wrong-canary")), "refused the credentials"),
    ] {
        let error = fetch(&remote, &branch("main"), &call()).err().unwrap();
        assert!(matches!(error, Error::AuthenticationFailed { .. }), "{error}");
        let message = error.to_string();
        assert!(
            message.contains(advice) && !message.contains("canary"),
            "{message}"
        );
    }
}

#[test]
fn an_own_authority_is_trusted_beside_the_systems() {
    let server = GitServer::start_tls().unwrap();
    let repo = server.repo("tls").unwrap();
    repo.commit("first", &[("a", "b")]).unwrap();
    let remote = Remote::new(&repo.url()).unwrap();
    fetch(
        &remote.clone().with_ca(server.ca_pem().as_bytes().to_vec()),
        &branch("main"),
        &call(),
    )
    .unwrap();
    let error = fetch(&remote, &branch("main"), &call()).err().unwrap();
    assert!(
        matches!(error, Error::Tls { .. }) && error.need() == Some(net::Need::CaBundle),
        "{error}"
    );
    let other = GitServer::start_tls().unwrap();
    let wrong = remote.clone().with_ca(other.ca_pem().as_bytes().to_vec());
    assert!(matches!(
        fetch(&wrong, &branch("main"), &call()),
        Err(Error::Tls { .. })
    ));
    for pem in [
        "",
        "no certificate",
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
    ] {
        let bad = remote.clone().with_ca(pem.as_bytes().to_vec());
        let error = fetch(&bad, &branch("main"), &call()).err().unwrap();
        assert!(matches!(error, Error::InvalidCa { .. }), "{error}");
    }
}

#[test]
fn limits_are_named() {
    let server = GitServer::start().unwrap();
    let repo = server.repo("large").unwrap();
    // Digits that do not compress to nothing.
    let noise: String = (0_u64..4000)
        .map(|n| n.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_string())
        .collect();
    repo.change("large")
        .write("noise", noise)
        .write("a/b/c/d", "")
        .push()
        .unwrap();
    let remote = Remote::new(&repo.url()).unwrap();
    let cases = [
        (
            Limits {
                pack_bytes: 1000,
                ..Limits::default()
            },
            "1000 bytes of a pack",
        ),
        (
            Limits {
                refs_bytes: 10,
                ..Limits::default()
            },
            "10 bytes of a list of refs",
        ),
        (
            Limits {
                entries: 3,
                ..Limits::default()
            },
            "3 files and directories",
        ),
        (
            Limits {
                depth: 2,
                ..Limits::default()
            },
            "2 nested directories",
        ),
    ];
    for (limits, expected) in cases {
        let call = git::Call { limits, ..call() };
        let error = fetch(&remote, &branch("main"), &call)
            .and_then(|fetched| fetched.snapshot.nodes())
            .unwrap_err();
        assert!(error.to_string().contains(expected), "{expected}: {error}");
    }
    // The limit of a single object applies while the pack is indexed, or when it is read.
    let call = git::Call {
        limits: Limits {
            object_bytes: 5000,
            ..Limits::default()
        },
        ..call()
    };
    let read = fetch(&remote, &branch("main"), &call).and_then(|fetched| {
        let nodes = fetched.snapshot.nodes()?;
        nodes.iter().try_for_each(|node| match node.kind {
            NodeKind::File { .. } => fetched.snapshot.read(node, &mut Vec::new()),
            _ => Ok(()),
        })
    });
    assert!(read.is_err());
}

pub(super) fn tree(repo: &testkit::Repo, entries: &[(&str, impl AsRef<[u8]>, &str)]) -> String {
    let mut bytes = Vec::new();
    for (mode, name, id) in entries {
        bytes.extend_from_slice(&[mode.as_bytes(), b" ", name.as_ref(), b"\0"].concat());
        let digits = |at: usize| u8::from_str_radix(&id[at..at + 2], 16).unwrap();
        bytes.extend((0..40).step_by(2).map(digits));
    }
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&file, bytes).unwrap();
    let path = file.path().to_string_lossy().into_owned();
    let id = repo
        .git(&["hash-object", "-t", "tree", "--literally", "-w", &path])
        .unwrap();
    id.trim().to_owned()
}

pub(super) fn publish(repo: &testkit::Repo, tree: &str) {
    let named = [
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@example.com",
        "commit-tree",
        "-m",
        "m",
        tree,
    ];
    let commit = repo.git(&named).unwrap();
    repo.set_ref("refs/heads/main", commit.trim()).unwrap();
}

pub(super) fn refusal(repo: &testkit::Repo) -> String {
    let remote = Remote::new(&repo.url()).unwrap();
    let fetched = fetch(&remote, &branch("main"), &call());
    let error = fetched
        .and_then(|fetched| fetched.snapshot.nodes())
        .unwrap_err()
        .to_string();
    assert!(error.len() < 30_000, "{} bytes", error.len());
    error
}

#[test]
fn names_and_paths_longer_than_those_of_disks_are_refused() {
    let server = testkit::GitServer::start().unwrap();
    let repo = server.repo("long").unwrap();
    repo.commit("first", &[(&"x".repeat(255), "a")]).unwrap();
    let remote = Remote::new(&repo.url()).unwrap();
    let fetched = fetch(&remote, &branch("main"), &call()).unwrap();
    assert_eq!(fetched.snapshot.nodes().unwrap().len(), 1);
    let blob = repo.rev("main:".to_owned().as_str()).unwrap();
    let blob = repo.git(&["ls-tree", "--object-only", &blob]).unwrap();
    let blob = blob.trim();

    // A pack of a few kilobytes: 10,000 entries below a name of 1 MiB.
    let names: Vec<String> = (0..10_000).map(|number| format!("{number:05}")).collect();
    let files: Vec<_> = names.iter().map(|name| ("100644", name.as_str(), blob)).collect();
    let below = tree(&repo, &files);
    publish(&repo, &tree(&repo, &[("40000", &"y".repeat(1 << 20), &below)]));
    assert!(refusal(&repo).contains("longer than 255 bytes"));

    // The same with 90 nested directories.
    let name = "z".repeat(250);
    let deep = (0..90).fold(below, |below, _| tree(&repo, &[("40000", &name, &below)]));
    publish(&repo, &deep);
    assert!(refusal(&repo).contains("bytes of paths was reached"));
}

#[test]
fn a_list_of_refs_over_16_mib_is_refused() {
    let server = testkit::GitServer::start().unwrap();
    let repo = server.repo("refs").unwrap();
    let commit = repo.commit("first", &[("a", "a")]).unwrap();
    let packed: String = (0..150_000)
        .map(|number| format!("{commit} refs/tags/{}{number:06}\n", "long-".repeat(20)))
        .collect();
    std::fs::write(repo.path().join("packed-refs"), packed).unwrap();
    let reference = Selector {
        semver: Some("*".to_owned()),
        ..Selector::default()
    };
    let remote = Remote::new(&repo.url()).unwrap();
    let mut session = own_network().open(&remote, &call()).unwrap();
    let error = session.resolve(&reference.reference().unwrap()).unwrap_err();
    assert!(
        error.to_string().contains("bytes of a list of refs was reached"),
        "{error}"
    );
}

#[test]
fn large_lists_of_refs_never_wait_for_each_other() {
    let server = GitServer::start().unwrap();
    let repo = server.repo("refs").unwrap();
    let commit = repo.commit("first", &[("a", "a")]).unwrap();
    // 6 MiB that count as 48 MiB of memory, of 192 MiB for all: eight lists exhaust it long before one of them is complete.
    let packed: String = (0..40_000)
        .map(|number| format!("{commit} refs/tags/{}{number}.0.0\n", "long-".repeat(19)))
        .collect();
    let packed = packed + &format!("{commit} refs/tags/v1.0.0\n");
    std::fs::write(repo.path().join("packed-refs"), packed).unwrap();
    let reference = Selector {
        semver: Some("*".to_owned()),
        ..Selector::default()
    };
    let (remote, reference) = (Remote::new(&repo.url()).unwrap(), reference.reference().unwrap());
    let network = &own_network();
    let list = |number: usize, refs_bytes: u64| {
        let limits = Limits {
            refs_bytes,
            ..Limits::default()
        };
        let call = git::Call {
            tenant: format!("tenant-{number}"),
            limits,
            ..call()
        };
        let resolved = network.open(&remote, &call)?.resolve(&reference);
        resolved.map(|resolved| resolved.revision())
    };
    let list = &list;
    let lists = |refs_bytes: u64| -> Vec<_> {
        std::thread::scope(|scope| {
            let lists: Vec<_> = (0..8)
                .map(|number| scope.spawn(move || list(number, refs_bytes)))
                .collect();
            lists.into_iter().map(|list| list.join().unwrap()).collect()
        })
    };
    for found in lists(8 << 20) {
        assert_eq!(found.unwrap(), format!("v1.0.0@sha1:{commit}"));
    }
    for refused in lists(5 << 20) {
        let refused = refused.unwrap_err().to_string();
        assert!(
            refused.contains("bytes of a list of refs was reached"),
            "{refused}"
        );
    }
}

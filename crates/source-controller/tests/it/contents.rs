//! The parts of an artifact: directories of a commit, submodules, and the artifacts of other objects.

use api::{condition_type as types, source::GitRepository};
use serde_json::json;
use testkit::{GitServer, git::Step};

use super::{TestNamespace, artifact_of, condition, is_done, ready, revision};

fn status(object: &GitRepository) -> &api::source::GitRepositoryStatus {
    object.status.as_ref().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn sparse_checkout_selects_directories_that_must_exist() {
    let (setup, git) = (TestNamespace::start().await, GitServer::start().unwrap());
    let repo = git.repo("sparse").unwrap();
    let files = [
        ("a/b/x", "1"),
        ("a/y", "2"),
        ("c/z", "3"),
        ("cc/z", "4"),
        ("root", "5"),
    ];
    repo.commit("first", &files).unwrap();
    let spec = json!({"sparseCheckout": ["./a/b", "c"]});
    setup.apply("sparse", &repo.url(), spec).await;
    let object = setup.wait_ready("sparse").await;
    assert_eq!(status(&object).observed_sparse_checkout, ["./a/b", "c"]);
    let files = setup.fetch(&object).await;
    assert_eq!(
        (files.names("."), files.names("a")),
        (vec!["a".to_owned(), "c".to_owned()], vec!["b".to_owned()])
    );

    let spec = json!({"sparseCheckout": ["a", "missing"]});
    setup.apply("sparse", &repo.url(), spec).await;
    let message =
        "failed to sparse checkout directories : sparse checkout dir 'missing' does not exist in repository";
    let object = setup.wait_failed("sparse", "GitOperationFailed", message).await;
    assert_eq!(status(&object).observed_sparse_checkout, ["./a/b", "c"]);
    setup
        .apply("sparse", &repo.url(), json!({"sparseCheckout": ["a"]}))
        .await;
    let object = setup
        .wait("sparse", "the other directory", |object| {
            is_done(object) && status(object).observed_sparse_checkout == ["a"]
        })
        .await;
    assert_eq!(setup.fetch(&object).await.names("a"), ["b", "y"]);
    setup
        .patch("sparse", json!({"spec": {"sparseCheckout": null}}))
        .await;
    let object = setup
        .wait("sparse", "all directories", |object| {
            is_done(object) && status(object).observed_sparse_checkout.is_empty()
        })
        .await;
    assert_eq!(setup.fetch(&object).await.names("."), ["a", "c", "cc", "root"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn submodules_are_fetched_with_the_credentials_of_their_server_only() {
    let (setup, git, other) = (
        TestNamespace::start().await,
        GitServer::start().unwrap(),
        GitServer::start().unwrap(),
    );
    let (app, lib, deep, foreign) = (
        git.repo("app").unwrap(),
        git.repo("lib").unwrap(),
        git.repo("deep").unwrap(),
        other.repo("foreign").unwrap(),
    );
    for repo in [&app, &lib, &deep] {
        repo.require_basic_auth("me", "canary");
    }
    let deepest = deep.commit("deep", &[("d", "deepest")]).unwrap();
    let of_lib = lib
        .change("lib")
        .write("l", "library")
        .write(
            ".gitmodules",
            "[submodule \"deep\"]\n\tpath = deep\n\turl = ../deep\n",
        )
        .submodule("deep", &deepest)
        .push()
        .unwrap();
    let foreign_commit = foreign.commit("foreign", &[("f", "foreign")]).unwrap();
    let modules = format!(
        "[submodule \"lib\"]\n\tpath = libs/lib\n\turl = ../lib\n[submodule \"f\"]\n\tpath = f\n\turl = {}\n",
        foreign.url()
    );
    app.change("app")
        .write("a", "app")
        .write(".gitmodules", modules)
        .submodule("libs/lib", &of_lib)
        .submodule("f", &foreign_commit)
        .submodule("unnamed", &foreign_commit)
        .push()
        .unwrap();
    setup
        .secret("creds", json!({"username": "me", "password": "canary"}))
        .await;
    let spec = json!({"recurseSubmodules": true, "secretRef": {"name": "creds"}});
    setup.apply("app", &app.url(), spec).await;
    let object = setup.wait_ready("app").await;
    assert_eq!(status(&object).observed_recurse_submodules, Some(true));
    let files = setup.fetch(&object).await;
    assert_eq!(files.read("libs/lib/l"), "library");
    assert_eq!(files.read("libs/lib/deep/d"), "deepest");
    assert_eq!(files.read("f/f"), "foreign");
    let sent = foreign.requests();
    assert!(!sent.is_empty() && sent.iter().all(|request| request.authorization.is_none()));

    setup
        .patch("app", json!({"spec": {"recurseSubmodules": false}}))
        .await;
    let object = setup
        .wait("app", "no submodules", |object| {
            is_done(object) && status(object).observed_recurse_submodules.is_none()
        })
        .await;
    assert_eq!(setup.fetch(&object).await.names("."), ["a", "libs"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn small_submodules_do_not_wait_for_memory_of_each_other() {
    const COUNT: usize = 24;
    let (setup, git) = (TestNamespace::start().await, GitServer::start().unwrap());
    let (app, lib) = (git.repo("app").unwrap(), git.repo("lib").unwrap());
    let commit = lib.commit("lib", &[("l", "library")]).unwrap();
    let names: Vec<String> = (0..COUNT).map(|number| format!("m{number:02}")).collect();
    let modules = names
        .iter()
        .map(|name| format!("[submodule \"{name}\"]\n\tpath = {name}\n\turl = ../lib\n"));
    let modules = modules.collect::<String>();
    let change = app.change("app").write(".gitmodules", modules);
    let change = names
        .iter()
        .fold(change, |change, name| change.submodule(name, &commit));
    change.push().unwrap();
    setup
        .apply("app", &app.url(), json!({"recurseSubmodules": true}))
        .await;
    let object = setup.wait_ready("app").await;
    let files = setup.fetch(&object).await;
    assert_eq!(files.names("."), names);
    assert_eq!(files.read("m23/l"), "library");
}

#[tokio::test(flavor = "multi_thread")]
async fn endless_submodules_are_given_up() {
    let (setup, git) = (TestNamespace::start().await, GitServer::start().unwrap());
    let repo = git.repo("endless").unwrap();
    // A commit can't name itself, but an earlier one of its own repository.
    let modules = "[submodule \"s\"]\n\tpath = s\n\turl = ../endless\n";
    let mut last = repo
        .commit("first", &[("a", "b"), (".gitmodules", modules)])
        .unwrap();
    for n in 0..12 {
        let change = repo.change("next").write("n", n.to_string());
        last = change.submodule("s", &last).push().unwrap();
    }
    setup
        .apply("endless", &repo.url(), json!({"recurseSubmodules": true}))
        .await;
    setup
        .wait_failed(
            "endless",
            "GitOperationFailed",
            "it is nested deeper than 10 levels",
        )
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn includes_are_copied_and_their_new_artifacts_wake_the_object() {
    let setup = TestNamespace::start_with(|launch| launch.flag("--requeue-dependency=1h")).await;
    let git = GitServer::start().unwrap();
    let (app, lib) = (git.repo("app").unwrap(), git.repo("lib").unwrap());
    let commit = app.commit("app", &[("a", "app")]).unwrap();
    lib.commit("lib", &[("deploy/d", "1"), ("other", "x")]).unwrap();
    let spec = json!({"include": [
        {"repository": {"name": "lib"}, "fromPath": "deploy", "toPath": "vendor/lib"},
        {"repository": {"name": "lib"}},
    ]});
    setup.apply("app", &app.url(), spec).await;
    let missing = "could not get resource for include 'lib'";
    let object = setup.wait_failed("app", "NotFound", missing).await;
    let unavailable = condition(&object, types::INCLUDE_UNAVAILABLE).unwrap();
    assert_eq!(
        (unavailable.status.as_str(), unavailable.reason.as_str()),
        ("True", "NotFound")
    );

    // The delay is an hour: only the watch wakes it.
    setup.apply("lib", &lib.url(), json!({})).await;
    let library = setup.wait_ready("lib").await;
    let object = setup.wait_ready("app").await;
    assert!(condition(&object, types::INCLUDE_UNAVAILABLE).is_none());
    let files = setup.fetch(&object).await;
    assert_eq!(files.names("."), ["a", "lib", "vendor"]);
    assert_eq!(
        (files.read("vendor/lib/d"), files.read("lib/other")),
        ("1".to_owned(), "x".to_owned())
    );
    assert_eq!(
        status(&object).included_artifacts,
        [artifact_of(&library), artifact_of(&library)]
    );
    assert_eq!(status(&object).observed_include.len(), 2);
    let before = artifact_of(&object);

    lib.commit("new", &[("deploy/d", "2")]).unwrap();
    setup.request("lib", "1").await;
    let object = setup
        .wait("app", "the new artifact of the include", |object| {
            ready(object, "True") && artifact_of(object).digest != before.digest
        })
        .await;
    assert_eq!(revision(&object), format!("main@sha1:{commit}"));
    assert_eq!(setup.fetch(&object).await.read("vendor/lib/d"), "2");
}

#[tokio::test(flavor = "multi_thread")]
async fn includes_need_an_artifact_and_a_free_target_and_stay_in_their_directories() {
    let setup = TestNamespace::start_with(|launch| launch.flag("--requeue-dependency=1s")).await;
    let git = GitServer::start().unwrap();
    let (app, lib) = (git.repo("app").unwrap(), git.repo("lib").unwrap());
    app.commit("app", &[("taken/a", "app"), ("file", "")]).unwrap();
    lib.commit("lib", &[("d", "1")]).unwrap();
    let include = |from: &str, to: &str| json!({"include": [{"repository": {"name": "lib"}, "fromPath": from, "toPath": to}]});
    setup
        .apply("lib", &lib.url(), json!({"ref": {"branch": "missing"}}))
        .await;
    setup.wait_failed("lib", "GitOperationFailed", "missing").await;
    setup.apply("app", &app.url(), include("", "new")).await;
    setup
        .wait_failed("app", "NoArtifact", "no artifact available for include 'lib'")
        .await;
    setup.apply("lib", &lib.url(), json!({})).await;
    setup.wait_ready("lib").await;
    setup.wait_ready("app").await;
    for (from, to, why) in [
        ("../../../path", "x", "no such file or directory"),
        ("", "taken", "file exists"),
        ("", "file/x", "file exists"),
        ("", "..", "file exists"),
    ] {
        setup.apply("app", &app.url(), include(from, to)).await;
        let object = setup.wait_failed("app", "CopyFailure", why).await;
        let failed = condition(&object, types::STORAGE_OPERATION_FAILED).unwrap();
        assert!(failed.is_true() && failed.message.starts_with("failed to copy 'lib' include from "));
    }
    setup.apply("app", &app.url(), include("../..", "../../up")).await;
    let object = setup.wait_ready("app").await;
    assert_eq!(setup.fetch(&object).await.read("up/d"), "1");
}

/// Publishes a commit with `directories` directories of 1000 empty files.
fn publish_wide(repo: &testkit::Repo, directories: usize) {
    repo.commit("first", &[("empty", "")]).unwrap();
    let id = |text: String| text.trim().to_owned();
    let blob = id(repo.git(&["rev-parse", "main:empty"]).unwrap());
    let tree = |entries: &mut dyn Iterator<Item = (&str, String, &str)>| {
        let mut bytes = Vec::new();
        for (mode, name, object) in entries {
            bytes.extend(format!("{mode} {name}\0").bytes());
            let digits = |at: usize| u8::from_str_radix(&object[at..at + 2], 16).unwrap();
            bytes.extend((0..40).step_by(2).map(digits));
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&file, bytes).unwrap();
        let path = file.path().to_string_lossy().into_owned();
        id(repo.git(&["hash-object", "-t", "tree", "-w", &path]).unwrap())
    };
    let below = tree(&mut (0..1000).map(|n| ("100644", format!("{n:03}"), blob.as_str())));
    let root = tree(&mut (0..directories).map(|n| ("40000", format!("{n:03}"), below.as_str())));
    let author = ["-c", "user.name=a", "-c", "user.email=a@example.com"];
    let commit = [&author[..], &["commit-tree", "-m", "wide", &root]].concat();
    let commit = id(repo.git(&commit).unwrap());
    repo.set_ref("refs/heads/main", &commit).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn includes_have_the_limits_of_one_artifact_together() {
    let (setup, git) = (TestNamespace::start().await, GitServer::start().unwrap());
    let (app, lib) = (git.repo("app").unwrap(), git.repo("lib").unwrap());
    publish_wide(&app, 195);
    publish_wide(&lib, 3);
    setup.apply("lib", &lib.url(), json!({})).await;
    setup.wait_ready("lib").await;
    let spec = json!({"include": [
        {"repository": {"name": "lib"}, "toPath": "one"},
        {"repository": {"name": "lib"}, "toPath": "two"},
    ]});
    setup.apply("app", &app.url(), spec).await;
    let why = "failed to copy 'lib' include from '' to 'two': the limit of 200000 files and directories";
    setup.wait_failed("app", "CopyFailure", why).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn includes_that_form_a_cycle_do_not_stop_others() {
    let setup = TestNamespace::start_with(|launch| launch.flag("--requeue-dependency=1s")).await;
    let git = GitServer::start().unwrap();
    let repo = git.repo("repo").unwrap();
    repo.commit("first", &[("a", "b")]).unwrap();
    for (name, other) in [("one", "two"), ("two", "one"), ("self", "self")] {
        let spec = json!({"include": [{"repository": {"name": other}}]});
        setup.apply(name, &repo.url(), spec).await;
    }
    setup.apply("other", &repo.url(), json!({})).await;
    setup.wait_ready("other").await;
    for name in ["one", "two", "self"] {
        setup
            .wait_failed(name, "NoArtifact", "no artifact available for include")
            .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_fetched_again_for_an_unchanged_commit_tag_or_range() {
    let (setup, git) = (TestNamespace::start().await, GitServer::start().unwrap());
    let repo = git.repo("quiet").unwrap();
    let first = repo.commit("first", &[("n", "1")]).unwrap();
    repo.tag("0.2.0", &first).unwrap();
    let second = repo.commit("second", &[("n", "2")]).unwrap();
    repo.annotated_tag("v1.0.0-alpha", &second, "a").unwrap();
    let third = repo.commit("third", &[("n", "3")]).unwrap();
    repo.tag("v2.0.0", &third).unwrap();
    repo.tag("non-semver-tag", &third).unwrap();
    // A range passes over it.
    let blob = repo.rev("main:n").unwrap();
    repo.set_ref("refs/tags/v3.0.0", &blob).unwrap();
    repo.set_ref("refs/pull/420/head", &second).unwrap();
    let cases = [
        ("commit", json!({"commit": first}), format!("sha1:{first}")),
        (
            "both",
            json!({"branch": "main", "commit": first}),
            format!("main@sha1:{first}"),
        ),
        (
            "tag",
            json!({"branch": "main", "tag": "0.2.0", "semver": "*"}),
            format!("0.2.0@sha1:{first}"),
        ),
        ("newest", json!({"semver": "*"}), format!("v2.0.0@sha1:{third}")),
        (
            "older",
            json!({"semver": "<v0.2.1"}),
            format!("0.2.0@sha1:{first}"),
        ),
        (
            "alpha",
            json!({"semver": ">=1.0.0-0 <1.1.0-0"}),
            format!("v1.0.0-alpha@sha1:{second}"),
        ),
        (
            "pull",
            json!({"name": "refs/pull/420/head", "tag": "0.2.0"}),
            format!("refs/pull/420/head@sha1:{second}"),
        ),
        (
            "peeled",
            json!({"name": "refs/tags/v1.0.0-alpha^{}"}),
            format!("refs/tags/v1.0.0-alpha^{{}}@sha1:{second}"),
        ),
    ];
    for (name, reference, _) in &cases {
        setup.apply(name, &repo.url(), json!({"ref": reference})).await;
    }
    for (name, _, expected) in &cases {
        assert_eq!(&revision(&setup.wait_ready(name).await), expected, "{name}");
    }
    let fetches = |repo: &testkit::git::Repo| {
        let requests = repo.requests().into_iter();
        requests.filter(|request| request.step == Step::Fetch).count()
    };
    let (before, asked) = (fetches(&repo), repo.requests().len());
    for (name, _, _) in &cases {
        setup.request(name, "again").await;
    }
    for (name, _, expected) in &cases {
        let object = setup
            .wait(name, "the request to be handled", |object| {
                status(object).last_handled_reconcile_at.as_deref() == Some("again") && is_done(object)
            })
            .await;
        assert_eq!(&revision(&object), expected, "{name}");
    }
    assert_eq!(fetches(&repo), before);
    // One list of refs for each, and nothing for the one that names a commit alone.
    let steps: Vec<Step> = repo
        .requests()
        .into_iter()
        .skip(asked)
        .map(|request| request.step)
        .collect();
    assert_eq!(steps, vec![Step::LsRefs; cases.len() - 1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn commit_that_is_not_on_its_branch_is_refused_and_the_artifact_stays() {
    let (setup, git) = (TestNamespace::start().await, GitServer::start().unwrap());
    let repo = git.repo("pinned").unwrap();
    let first = repo.commit("first", &[("n", "1")]).unwrap();
    repo.commit("second", &[("n", "2")]).unwrap();
    let elsewhere = repo
        .change("elsewhere")
        .on("other")
        .from(&first)
        .write("n", "3")
        .push()
        .unwrap();
    let pin = |commit: &str| json!({"ref": {"branch": "main", "commit": commit}});
    setup.apply("pinned", &repo.url(), pin(&first)).await;
    setup.apply("elsewhere", &repo.url(), pin(&elsewhere)).await;
    let refused = |commit: &str| {
        format!(
            "failed to checkout and determine revision: unable to resolve commit object for '{commit}': object not found"
        )
    };
    setup
        .wait_failed("elsewhere", "GitOperationFailed", &refused(&elsewhere))
        .await;
    let stored = artifact_of(&setup.wait_ready("pinned").await);

    repo.change("forced").orphan().write("n", "4").push().unwrap();
    setup.request("pinned", "again").await;
    let failed = setup
        .wait_failed("pinned", "GitOperationFailed", &refused(&first))
        .await;
    assert_eq!(artifact_of(&failed).revision, stored.revision);
}

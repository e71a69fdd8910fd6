//! From a commit to an artifact that consumers can use.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use api::{condition_type as types, source::GitRepository};
use artifact::{DirectoryHashes, hashes};
use serde_json::json;
use testkit::{GitServer, controller::Launch};
use tree::TreePath;

use super::{TestNamespace, artifact_of, condition, revision};

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_becomes_an_artifact_and_the_next_one_follows() {
    let (setup, git) = (TestNamespace::start().await, GitServer::start().unwrap());
    let repo = git.repo("shop").unwrap();
    let first = repo
        .change("the first commit")
        .write("app/deployment.yaml", "kind: Deployment\n")
        .executable("run.sh", "#!/bin/sh\n")
        .write("picture.png", "left out by default")
        .write(".github/workflow.yaml", "left out by default")
        .link("link", "app")
        .push()
        .unwrap();
    setup.apply("shop", &repo.url(), json!({})).await;
    let object = setup.wait_ready("shop").await;
    let artifact = artifact_of(&object);
    assert_eq!(artifact.revision, format!("main@sha1:{first}"));
    assert_eq!(
        artifact.path,
        format!("gitrepository/{}/shop/{first}.tar.gz", setup.namespace)
    );
    let message = format!("stored artifact for revision 'main@sha1:{first}'");
    for name in [types::READY, types::ARTIFACT_IN_STORAGE] {
        assert_eq!(condition(&object, name).unwrap().message, message);
    }
    let unpacked = setup.fetch(&object).await;
    assert_eq!(unpacked.names("."), ["app", "run.sh"]);
    assert_eq!(unpacked.read("app/deployment.yaml"), "kind: Deployment\n");
    // Both addresses serve the same bytes.
    let get = async |url: &str| {
        reqwest::get(url)
            .await
            .unwrap()
            .error_for_status()
            .unwrap()
            .bytes()
            .await
            .unwrap()
    };
    let latest = object.status.as_ref().unwrap().url.clone().unwrap();
    assert!(latest.ends_with("/shop/latest.tar.gz"), "{latest}");
    let bytes = get(&artifact.url).await;
    assert_eq!(bytes, get(&latest).await);
    assert_eq!(bytes.len() as i64, artifact.size.unwrap());
    let event = setup.wait_event("shop", "NewArtifact").await;
    assert_eq!(
        (event.0.as_str(), event.2.as_str()),
        ("Normal", "stored artifact for commit 'the first commit'")
    );

    let second = repo
        .commit("second", &[("app/deployment.yaml", "kind: Changed\n")])
        .unwrap();
    setup.request("shop", "1").await;
    let wanted = format!("main@sha1:{second}");
    let object = setup
        .wait("shop", "the new revision", |object| revision(object) == wanted)
        .await;
    assert_eq!(
        object
            .status
            .as_ref()
            .unwrap()
            .last_handled_reconcile_at
            .as_deref(),
        Some("1")
    );
    assert_eq!(
        setup.fetch(&object).await.read("app/deployment.yaml"),
        "kind: Changed\n"
    );
    assert_ne!(bytes, get(&latest).await);
    // Running downloads of the old one are not disturbed.
    assert_eq!(bytes, get(&artifact.url).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn ignore_rules_of_repository_and_spec_select_the_files() {
    let (setup, git) = (TestNamespace::start().await, GitServer::start().unwrap());
    let repo = git.repo("rules").unwrap();
    let files = [
        (".sourceignore", "*.md\n"),
        ("a.md", ""),
        ("a.png", ""),
        ("sub/.sourceignore", "!keep.md\n/drop\n"),
        ("sub/keep.md", ""),
        ("sub/drop", ""),
        ("sub/deploy.yaml", ""),
        // Consumers would refuse an artifact with this name.
        ("sub\\x.yaml", ""),
    ];
    let commit = repo.commit("first", &files).unwrap();
    setup.apply("rules", &repo.url(), json!({})).await;
    let object = setup.wait_ready("rules").await;
    let unpacked = setup.fetch(&object).await;
    assert_eq!(unpacked.names("."), [".sourceignore", "a.png", "sub"]);
    assert_eq!(unpacked.names("sub"), [".sourceignore", "deploy.yaml", "keep.md"]);
    let before = artifact_of(&object);

    setup
        .apply(
            "rules",
            &repo.url(),
            json!({"ignore": "/*\n!/sub\n*.md\n.sourceignore\n"}),
        )
        .await;
    let object = setup.wait_ready("rules").await;
    let unpacked = setup.fetch(&object).await;
    assert_eq!(
        (unpacked.names("."), unpacked.names("sub")),
        (
            vec!["sub".to_owned()],
            vec!["deploy.yaml".to_owned(), "drop".to_owned()]
        )
    );
    let after = artifact_of(&object);
    assert_eq!(after.revision, format!("main@sha1:{commit}"));
    assert_ne!(after.digest, before.digest);
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_of_2021_are_served_in_their_own_words() {
    let setup = TestNamespace::start_with(|launch| launch.flag("--revision-format=legacy")).await;
    let git = GitServer::start().unwrap();
    let repo = git.repo("old").unwrap();
    let commit = repo.commit("first", &[("a", "b")]).unwrap();
    let spec = json!({"gitImplementation": "go-git", "timeout": "20s"});
    setup.apply_version("v1beta1", "old", &repo.url(), spec).await;
    let object = setup.wait_ready("old").await;
    let status = object.status.as_ref().unwrap();
    let artifact = artifact_of(&object);
    assert_eq!(artifact.revision, format!("main/{commit}"));
    assert_eq!(artifact.checksum.as_ref().map(String::len), Some(40));
    let shown: Vec<_> = status
        .conditions
        .iter()
        .map(|condition| condition.type_.as_str())
        .collect();
    assert_eq!(shown, [types::READY]);
    let ready = condition(&object, types::READY).unwrap();
    assert_eq!(ready.reason, "GitOperationSucceed");
    assert_eq!(ready.message, format!("Fetched revision: main/{commit}"));
    let event = setup.wait_event("old", "info").await;
    assert_eq!(event.2, format!("Fetched revision: main/{commit}"));
    let described = setup
        .kubectl(&[
            "describe",
            "gitrepositories.v1beta1.source.toolkit.fluxcd.io",
            "old",
        ])
        .await;
    for shown in [
        "Checksum:",
        "Last Update Time:",
        "Path:",
        "Revision:",
        "latest.tar.gz",
    ] {
        assert!(described.contains(shown), "{shown} in {described}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn digests_are_of_the_algorithm_of_the_flag() {
    let setup = TestNamespace::start_with(|launch| launch.flag("--artifact-digest-algo=blake3")).await;
    let git = GitServer::start().unwrap();
    let repo = git.repo("shop").unwrap();
    repo.commit("first", &[("a", "b")]).unwrap();
    setup.apply("shop", &repo.url(), json!({})).await;
    let object = setup.wait_ready("shop").await;
    let digest = artifact_of(&object).digest.unwrap();
    assert!(digest.starts_with("blake3:") && digest.len() == 71, "{digest}");
    assert_eq!(setup.fetch(&object).await.read("a"), "b");
}

async fn directories(artifact: &api::Artifact) -> DirectoryHashes {
    let url = hashes::companion(&artifact.url);
    let text = reqwest::get(url).await.unwrap().error_for_status().unwrap();
    let text = text.bytes().await.unwrap();
    let named = artifact.metadata.get(hashes::METADATA).cloned();
    assert_eq!(named, hashes::metadata(&text).map(|(_, digest)| digest));
    DirectoryHashes::parse(&text).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn hashes_of_directories_are_published_beside_the_artifact() {
    let (setup, git) = (TestNamespace::start().await, GitServer::start().unwrap());
    let repo = git.repo("mono").unwrap();
    let apps = [
        ("shop/app/a.yaml", "1"),
        ("shop/.hidden", "2"),
        ("blog/b.yaml", "3"),
    ];
    repo.commit("first", &apps).unwrap();
    setup.apply("mono", &repo.url(), json!({})).await;
    let first = directories(&artifact_of(&setup.wait_ready("mono").await)).await;

    let pushed = repo.commit("second", &[("blog/b.yaml", "4")]).unwrap();
    setup.request("mono", "now").await;
    let revision_of = format!("main@sha1:{pushed}");
    let has = |object: &GitRepository| revision(object) == revision_of && super::is_done(object);
    let object = setup.wait("mono", "the new revision", has).await;
    let second = directories(&artifact_of(&object)).await;
    let all = |hashes: &DirectoryHashes, dir: &str| hashes.all(&TreePath::parse(dir).unwrap()).unwrap();
    for (dir, is_same) in [("shop", true), ("shop/app", true), ("blog", false), ("", false)] {
        assert_eq!(all(&first, dir) == all(&second, dir), is_same, "{dir}");
    }
}

fn with_umask(dir: &Path, umask: &str) -> PathBuf {
    let path = dir.join(format!("controller-{umask}"));
    let program = env!("CARGO_BIN_EXE_source-controller");
    fs::write(
        &path,
        format!("#!/bin/sh\numask {umask}\nexec {program} \"$@\"\n"),
    )
    .unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[tokio::test(flavor = "multi_thread")]
async fn artifacts_are_the_same_bytes_whatever_the_time_zone_locale_and_umask() {
    let (git, dir) = (GitServer::start().unwrap(), tempfile::tempdir().unwrap());
    let files = [("base/ünï.yaml", "a: 1\n"), ("base/I.yaml", "b: 1\n")];
    let repo = git.repo("shop").unwrap();
    let change = files
        .iter()
        .fold(repo.change("first"), |change, (path, content)| {
            change.write(path, content)
        });
    change.executable("run.sh", "#!/bin/sh\n").push().unwrap();
    let mut digests = Vec::new();
    for (umask, zone, locale) in [
        ("000", "UTC", "C"),
        ("077", "Asia/Kathmandu", "tr_TR.UTF-8"),
        ("027", "America/St_Johns", "de_DE.UTF-8"),
    ] {
        let program = with_umask(dir.path(), umask);
        let change = |launch: Launch| {
            let launch = launch.program(program).flag("--watch-all-namespaces=false");
            launch.env("TZ", zone).env("LC_ALL", locale)
        };
        let setup = TestNamespace::start_of(change).await;
        setup.apply("shop", &repo.url(), json!({})).await;
        // Its files were unpacked to a disk.
        let include = json!({"include": [{"repository": {"name": "shop"}}]});
        setup.apply("all", &repo.url(), include).await;
        let mut of = Vec::new();
        for name in ["shop", "all"] {
            of.push(artifact_of(&setup.wait_ready(name).await).digest.unwrap());
        }
        digests.push(of);
    }
    assert!(digests.iter().all(|of| *of == digests[0]), "{digests:?}");
    assert_ne!(digests[0][0], digests[0][1]);
}

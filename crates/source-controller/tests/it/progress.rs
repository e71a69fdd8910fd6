//! The conditions of a GitRepository while a pass runs, and after a pass that could not store a newer revision.

use std::{fs, time::Duration};

use api::{condition_type as types, source::GitRepository};
use serde_json::json;
use testkit::{Fault, GitServer, Repo};

use super::{TestNamespace, artifact_of, condition, is_done, revision};

/// Delay of each answer of the Git server, with which a pass takes so long that it is announced.
const DELAY: Duration = Duration::from_secs(3);

/// Type, status, reason and message of all conditions.
fn conditions(object: &GitRepository) -> Vec<[String; 4]> {
    let conditions = &object.status.as_ref().unwrap().conditions;
    let texts = conditions.iter().map(|condition| {
        let status = condition.status.as_str().to_owned();
        let (name, reason) = (condition.type_.clone(), condition.reason.clone());
        [name, status, reason, condition.message.clone()]
    });
    texts.collect()
}

/// The conditions of an object with an artifact of this revision, after those in `before`.
fn stored(before: &[[&str; 4]], revision: &str) -> Vec<[String; 4]> {
    let message = format!("stored artifact for revision '{revision}'");
    let after = [
        [types::READY, "True", "Succeeded", &message],
        [types::ARTIFACT_IN_STORAGE, "True", "Succeeded", &message],
    ];
    owned(&[before, &after].concat())
}

fn owned(conditions: &[[&str; 4]]) -> Vec<[String; 4]> {
    let texts = conditions.iter().map(|condition| condition.map(str::to_owned));
    texts.collect()
}

/// Waits until the running pass is announced.
async fn announced(setup: &TestNamespace, name: &str) -> GitRepository {
    setup
        .wait(name, "the pass to be announced", |object| {
            condition(object, types::RECONCILING).is_some()
        })
        .await
}

fn repo(git: &GitServer, name: &str) -> (Repo, String) {
    let repo = git.repo(name).unwrap();
    let commit = repo.commit("first", &[("a", "1")]).unwrap();
    (repo, format!("main@sha1:{commit}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn ready_is_unknown_until_the_first_pass_ends() {
    let (setup, git) = (TestNamespace::start().await, GitServer::start().unwrap());
    let (slow, revision) = repo(&git, "slow");
    slow.delay(DELAY);
    setup.apply("slow", &slow.url(), json!({})).await;
    let message = "processing object: new generation -1 -> 1";
    let expected = [
        [types::RECONCILING, "True", "Progressing", message],
        [types::READY, "Unknown", "Progressing", message],
    ];
    assert_eq!(conditions(&announced(&setup, "slow").await), owned(&expected));
    assert_eq!(
        conditions(&setup.wait_ready("slow").await),
        stored(&[], &revision)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn object_stays_ready_while_its_artifact_is_replaced() {
    let (setup, git) = (TestNamespace::start().await, GitServer::start().unwrap());
    let names = ["moved", "lost", "corrupt", "changed"];
    let repos = names.map(|name| repo(&git, name));
    let mut files = Vec::new();
    for (name, (repo, _)) in names.iter().zip(&repos) {
        setup.apply(name, &repo.url(), json!({})).await;
        let path = artifact_of(&setup.wait_ready(name).await).path;
        files.push(setup.controller.storage_path().join(path));
        repo.delay(DELAY);
    }
    let second = repos[0].0.commit("second", &[("a", "2")]).unwrap();
    let second = format!("main@sha1:{second}");
    fs::remove_file(&files[1]).unwrap();
    fs::write(&files[2], "corrupt").unwrap();
    let mark = setup.plane.audit_mark();
    for name in &names[..3] {
        setup.request(name, "now").await;
    }
    setup.patch("changed", json!({"spec": {"ignore": "b"}})).await;

    for (name, (_, first)) in names.iter().zip(&repos) {
        let message = match *name {
            "changed" => "processing object: new generation 1 -> 2",
            _ => "reconciliation in progress",
        };
        let running = [types::RECONCILING, "True", "Progressing", message];
        let object = announced(&setup, name).await;
        assert_eq!(conditions(&object), stored(&[running], first), "{name}");
    }
    for (name, (_, first)) in names.iter().zip(&repos) {
        let object = setup.wait(name, "the pass to end", is_done).await;
        let current = if *name == "moved" { &second } else { first };
        assert_eq!(&revision(&object), current, "{name}");
        assert_eq!(conditions(&object), stored(&[], current), "{name}");
        let path = artifact_of(&object).path;
        assert!(setup.controller.storage_path().join(path).is_file(), "{name}");
    }
    // The announcement and the end are the only writes.
    let audit = setup.plane.audit_since(mark).unwrap();
    for name in names {
        let writes = audit.iter().filter(|entry| {
            let is_object = entry.namespace == setup.namespace && entry.name == name;
            is_object && entry.subresource == "status" && entry.is_write() && entry.code == 200
        });
        assert_eq!(writes.count(), 2, "{name}");
    }
    let log = setup.controller.log();
    for why in [
        "new upstream revision",
        "it disappeared from storage",
        "it was corrupt",
        "spec.ignore changed",
    ] {
        assert!(log.contains(why), "{why} is not in the log");
    }
    let (kind, _, message) = setup.wait_event("corrupt", "ArtifactVerificationFailed").await;
    let begin = "failed to verify integrity of artifact: digest is sha256:";
    assert!(
        kind == "Warning" && message.starts_with(begin),
        "{kind}: {message}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn artifact_is_outdated_while_a_newer_revision_cannot_be_stored() {
    let (setup, git) = (TestNamespace::start().await, GitServer::start().unwrap());
    let (torn, first) = repo(&git, "torn");
    setup.apply("torn", &torn.url(), json!({})).await;
    setup.wait_ready("torn").await;
    let second = torn.commit("second", &[("a", "2")]).unwrap();
    torn.fail(Fault::CutMidPack);
    setup.request("torn", "now").await;
    let begin = "failed to checkout and determine revision: ";
    let object = setup.wait_failed("torn", "GitOperationFailed", begin).await;
    let failure = condition(&object, types::READY).unwrap().message.clone();
    let in_storage = format!("stored artifact for revision '{first}'");
    let newer = format!("new upstream revision 'main@sha1:{second}'");
    let expected = [
        [
            types::RECONCILING,
            "True",
            "ProgressingWithRetry",
            "reconciliation in progress",
        ],
        [types::READY, "False", "GitOperationFailed", &failure],
        [types::ARTIFACT_IN_STORAGE, "True", "Succeeded", &in_storage],
        [types::ARTIFACT_OUTDATED, "True", "NewRevision", &newer],
        [types::FETCH_FAILED, "True", "GitOperationFailed", &failure],
    ];
    assert_eq!(conditions(&object), owned(&expected));
    assert_eq!(revision(&object), first);
    torn.heal();
    let object = setup.wait_ready("torn").await;
    assert_eq!(conditions(&object), stored(&[], &format!("main@sha1:{second}")));
}

//! Suspension, requests, deletion, restarts, and quiet.

use std::fs;

use kube::api::DeleteParams;
use serde_json::json;
use testkit::{GitServer, git::Step, wait_gone};

use super::{TIMEOUT, TestNamespace, artifact_of, condition, is_done, revision, types};

#[tokio::test(flavor = "multi_thread")]
async fn a_suspended_object_is_left_alone_until_it_is_resumed() {
    let (setup, git) = (TestNamespace::start().await, GitServer::start().unwrap());
    let repo = git.repo("paused").unwrap();
    let first = repo.commit("first", &[("a", "1")]).unwrap();
    setup.apply("paused", &repo.url(), json!({})).await;
    setup.wait_ready("paused").await;
    setup.patch("paused", json!({"spec": {"suspend": true}})).await;
    let second = repo.commit("second", &[("a", "2")]).unwrap();
    let asked = repo.requests().len();
    setup.request("paused", "while suspended").await;
    let object = setup.wait("paused", "the request to be handled", |object| {
        let status = object.status.as_ref();
        status.and_then(|status| status.last_handled_reconcile_at.as_deref()) == Some("while suspended")
    });
    assert!(revision(&object.await).ends_with(&first));
    assert_eq!(repo.requests().len(), asked);
    setup.patch("paused", json!({"spec": {"suspend": null}})).await;
    setup
        .wait("paused", "the new revision", |object| {
            revision(object).ends_with(&second)
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn object_that_is_suspended_in_its_first_pass_is_not_ready_until_it_is_resumed() {
    let (setup, git) = (TestNamespace::start().await, GitServer::start().unwrap());
    let repo = git.repo("slow").unwrap();
    repo.commit("first", &[("a", "1")]).unwrap();
    repo.delay(TIMEOUT);
    setup.apply("slow", &repo.url(), json!({})).await;
    setup
        .wait("slow", "the pass to be announced", |object| {
            condition(object, types::RECONCILING).is_some()
        })
        .await;
    setup.patch("slow", json!({"spec": {"suspend": true}})).await;
    let object = setup.wait("slow", "the suspension", is_done).await;
    let ready = condition(&object, types::READY).unwrap();
    assert_eq!(
        (ready.status.as_str(), ready.reason.as_str()),
        ("False", "Suspended")
    );
    repo.heal();
    setup.patch("slow", json!({"spec": {"suspend": null}})).await;
    setup.wait_ready("slow").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deletion_removes_the_artifacts_also_of_suspended_objects() {
    let (setup, git) = (TestNamespace::start().await, GitServer::start().unwrap());
    let repo = git.repo("going").unwrap();
    repo.commit("first", &[("a", "1")]).unwrap();
    for name in ["going", "suspended"] {
        setup.apply(name, &repo.url(), json!({})).await;
        let object = setup.wait_ready(name).await;
        assert_eq!(
            object.metadata.finalizers,
            Some(vec!["finalizers.fluxcd.io".to_owned()])
        );
        assert!(setup.dir(name).join("latest.tar.gz").exists());
    }
    setup.patch("suspended", json!({"spec": {"suspend": true}})).await;
    for name in ["going", "suspended"] {
        setup.api.delete(name, &DeleteParams::default()).await.unwrap();
        wait_gone(&setup.api, name, TIMEOUT).await.unwrap();
        assert!(!setup.dir(name).exists());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unchanged_source_causes_no_writes_and_fetches() {
    let (setup, git) = (TestNamespace::start().await, GitServer::start().unwrap());
    let repo = git.repo("quiet").unwrap();
    let commit = repo.commit("first", &[("a", "1")]).unwrap();
    let fixed = git.repo("fixed").unwrap();
    let fixed_commit = fixed.commit("first", &[("a", "1")]).unwrap();
    setup.apply("quiet", &repo.url(), json!({"interval": "1s"})).await;
    setup
        .apply(
            "fixed",
            &fixed.url(),
            json!({"interval": "1s", "ref": {"commit": fixed_commit}}),
        )
        .await;
    let before = setup.wait_ready("quiet").await;
    setup.wait_ready("fixed").await;
    setup.wait_event("quiet", "NewArtifact").await;
    setup.wait_event("fixed", "NewArtifact").await;
    let polls = || {
        repo.requests()
            .iter()
            .filter(|request| request.step == Step::LsRefs)
            .count()
    };
    let (begun, asked_fixed, mark) = (polls(), fixed.requests().len(), setup.plane.audit_mark());
    testkit::eventually("a few polls", TIMEOUT, || async {
        anyhow::ensure!(polls() >= begun + 4, "{} polls", polls() - begun);
        Ok(())
    })
    .await
    .unwrap();
    let mut written = setup.plane.audit_since(mark).unwrap();
    written.retain(|entry| entry.is_write() && entry.namespace == setup.namespace);
    assert_eq!(written, []);
    let after = setup.api.get("quiet").await.unwrap();
    assert_eq!(after.metadata.resource_version, before.metadata.resource_version);
    let fetches = repo
        .requests()
        .iter()
        .filter(|request| request.step == Step::Fetch)
        .count();
    assert_eq!((fetches, revision(&after)), (1, format!("main@sha1:{commit}")));
    // A commit cannot change: the server is not even asked.
    assert_eq!(fixed.requests().len(), asked_fixed);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wiped_storage_is_filled_again_and_a_corrupt_file_replaced() {
    let (mut setup, git) = (TestNamespace::start().await, GitServer::start().unwrap());
    let repo = git.repo("lost").unwrap();
    repo.commit("first", &[("a", "1")]).unwrap();
    setup.apply("lost", &repo.url(), json!({})).await;
    let before = artifact_of(&setup.wait_ready("lost").await);
    setup.controller.kill().await.unwrap();
    fs::remove_dir_all(setup.controller.storage_path()).unwrap();
    setup.controller.restart().await.unwrap();
    let file = setup.controller.storage_path().join(&before.path);
    testkit::eventually("the artifact to be back", TIMEOUT, || async {
        anyhow::ensure!(file.exists(), "{}", setup.controller.log());
        Ok(())
    })
    .await
    .unwrap();
    let object = setup.wait_ready("lost").await;
    let again = artifact_of(&object);
    assert_eq!(
        (&again.digest, &again.revision),
        (&before.digest, &before.revision)
    );

    fs::write(&file, b"corrupt").unwrap();
    setup.request("lost", "corrupt").await;
    let object = setup.wait("lost", "the artifact to be replaced", |object| {
        object
            .status
            .as_ref()
            .and_then(|status| status.last_handled_reconcile_at.as_deref())
            == Some("corrupt")
    });
    assert_eq!(setup.fetch(&object.await).await.read("a"), "1");
    let event = setup.wait_event("lost", "ArtifactVerificationFailed").await;
    assert_eq!(event.0, "Warning");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clean_end_leaves_nothing_behind_and_a_restart_changes_nothing() {
    let (mut setup, git) = (TestNamespace::start().await, GitServer::start().unwrap());
    let repo = git.repo("steady").unwrap();
    repo.commit("first", &[("a", "1")]).unwrap();
    setup.apply("steady", &repo.url(), json!({})).await;
    let before = setup.wait_ready("steady").await;
    assert!(setup.controller.terminate().await.unwrap().success());
    setup.controller.restart().await.unwrap();
    setup.request("steady", "after").await;
    let object = setup.wait("steady", "the request to be handled", |object| {
        object
            .status
            .as_ref()
            .and_then(|status| status.last_handled_reconcile_at.as_deref())
            == Some("after")
    });
    assert_eq!(artifact_of(&object.await), artifact_of(&before));
    let fetches = repo
        .requests()
        .iter()
        .filter(|request| request.step == Step::Fetch)
        .count();
    assert_eq!(fetches, 1);
    let names: Vec<_> = fs::read_dir(setup.dir("steady"))
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    // The artifact, the hashes of its directories, and the alias.
    assert_eq!(names.len(), 3, "{names:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn object_that_vanishes_without_its_finalizer_leaves_nothing() {
    let (setup, git) = (TestNamespace::start().await, GitServer::start().unwrap());
    let repo = git.repo("vanishing").unwrap();
    repo.commit("first", &[("a", "1")]).unwrap();
    for name in ["vanishing", "staying"] {
        setup.apply(name, &repo.url(), json!({})).await;
        setup.wait_ready(name).await;
    }
    assert!(setup.dir("vanishing").is_dir());
    let series = setup.controller.metrics().await.unwrap();
    assert!(series.contains("name=\"vanishing\""), "{series}");

    // Nobody cleans up while the controller stands still.
    setup.controller.pause().unwrap();
    setup
        .kubectl(&["delete", "gitrepository", "vanishing", "--wait=false"])
        .await;
    setup
        .patch("vanishing", json!({"metadata": {"finalizers": null}}))
        .await;
    wait_gone(&setup.api, "vanishing", TIMEOUT).await.unwrap();
    setup.controller.resume().unwrap();
    testkit::eventually("everything of the object to go", TIMEOUT, || async {
        let series = setup.controller.metrics().await?;
        anyhow::ensure!(!series.contains("vanishing"), "{series}");
        anyhow::ensure!(!setup.dir("vanishing").exists(), "its artifacts are there");
        Ok(())
    })
    .await
    .unwrap();
    assert!(setup.dir("staying").is_dir());
    let series = setup.controller.metrics().await.unwrap();
    assert!(series.contains("name=\"staying\""), "{series}");
}

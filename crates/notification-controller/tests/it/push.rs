//! A push from end to end: webhook, reconciliation by the source-controller, event, notification.

use serde_json::json;
use testkit::{Controller, GitServer};

use crate::{
    receivers::Hooks,
    setup::{TIMEOUT, TestNamespace},
};

#[tokio::test]
async fn push_is_fetched_by_a_webhook_and_notified_with_its_commit() {
    let hooks = Hooks::of(TestNamespace::new("push").await).await;
    let setup = &hooks.setup;
    let sources = Controller::named("source-controller")
        .run_by(setup.plane.kubeconfig())
        .namespace(&setup.namespace)
        .events_to(&setup.controller.events_url())
        .flag("--watch-all-namespaces=false")
        .start()
        .await
        .unwrap();
    setup
        .extended("hook", &json!({"weir.io/commit-metadata": "true"}), &json!({}))
        .await;
    setup.generic("plain", &json!({})).await;
    let git = GitServer::start().unwrap();
    let repo = git.repo("shop").unwrap();
    repo.commit("first", &[("a", "1")]).unwrap();
    let object = json!({
        "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
        "metadata": {"name": "shop", "namespace": setup.namespace},
        // Without the webhook, nothing would be fetched for hours.
        "spec": {"url": repo.url(), "interval": "12h", "ref": {"branch": "main"}},
    });
    let (api, _) = setup.plane.api_for(object.clone()).await.unwrap();
    setup.plane.apply(object).await.unwrap();
    let first = setup.wait_message("hook", "first").await.json();
    assert_eq!(first["metadata"]["commitAuthor"], "Test Kit");
    let message = "Sell more\n\nSee https://user:s3cret@example.com/issue?token=s3cret for why.\n";
    let second = repo
        .change(message)
        .write("a", "2")
        .author("Ada Lovelace <ada@example.com>")
        .push()
        .unwrap();
    let url = hooks.receiver("push", &json!({})).await;
    let answer = setup.http.post(&url).json(&json!({})).send().await.unwrap();
    assert_eq!(answer.status(), 200);
    let revision = format!("main@sha1:{second}");
    testkit::wait_for(&api, "shop", "the artifact of the push", TIMEOUT, |object| {
        object.data["status"]["artifact"]["revision"] == revision
    })
    .await
    .unwrap();
    let sent = setup.wait_message("hook", "Sell more").await;
    assert!(!String::from_utf8_lossy(&sent.body).contains("s3cret"));
    let expected = json!({
        "revision": revision, "commitAuthor": "Ada Lovelace", "commitSubject": "Sell more",
        "commitMessage": "Sell more\n\nSee https://example.com/issue for why.",
    });
    assert_eq!(sent.json()["metadata"], expected);
    let plain = setup.wait_message("plain", "Sell more").await.json();
    assert_eq!(plain["metadata"], json!({"revision": revision}));
    assert!(sources.terminate().await.unwrap().success());
}

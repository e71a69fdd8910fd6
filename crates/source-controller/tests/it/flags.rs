//! Flags that decide which objects a process watches, and the address where it serves.

use std::net::TcpListener;

use serde_json::json;
use testkit::{Controller, GitServer};

use super::{TestNamespace, condition, plane, types};

#[tokio::test(flavor = "multi_thread")]
async fn objects_without_the_selected_label_are_left_alone() {
    let setup = TestNamespace::start_with(|launch| launch.flag("--watch-label-selector=team=shop")).await;
    let git = GitServer::start().unwrap();
    let (selected, other) = (git.repo("selected").unwrap(), git.repo("other").unwrap());
    for repo in [&selected, &other] {
        repo.commit("first", &[("a", "1")]).unwrap();
    }
    let mark = setup.plane.audit_mark();
    setup
        .apply("other", &other.url(), json!({"interval": "1s"}))
        .await;
    setup
        .apply("selected", &selected.url(), json!({"interval": "1s"}))
        .await;
    let label = json!({"metadata": {"labels": {"team": "shop"}}});
    setup.patch("selected", label.clone()).await;
    setup.wait_ready("selected").await;
    setup.wait_event("selected", "NewArtifact").await;
    setup.more_passes(3.0).await;

    let mut asked = setup.plane.audit_since(mark).unwrap();
    asked.retain(|entry| {
        entry.namespace == setup.namespace && entry.resource == "gitrepositories" && entry.name == "other"
    });
    assert_eq!(asked.len(), 1, "only the test has applied it: {asked:?}");
    let object = setup.api.get("other").await.unwrap();
    assert_eq!(object.metadata.finalizers, None);
    let status = object.status.unwrap_or_default();
    assert_eq!((status.conditions, status.artifact), (Vec::new(), None));
    assert_eq!(setup.events("other").await, []);
    assert_eq!(other.requests().len(), 0);
    assert!(!setup.dir("other").exists());

    setup.patch("other", label).await;
    let object = setup.wait_ready("other").await;
    let finalizers = object.metadata.finalizers.clone();
    assert_eq!(finalizers, Some(vec!["finalizers.fluxcd.io".to_owned()]));
    assert!(condition(&object, types::ARTIFACT_IN_STORAGE).is_some());
    setup.wait_event("other", "NewArtifact").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn storage_address_in_use_is_named_and_ends_the_process() {
    let plane = plane().await;
    let namespace = plane.namespace("port").await.unwrap();
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let held = holder.local_addr().unwrap();
    for address in [held.to_string(), format!(":{}", held.port())] {
        let controller = Controller::named("source-controller")
            .program(env!("CARGO_BIN_EXE_source-controller"))
            .run_by(plane.kubeconfig())
            .namespace(&namespace)
            .flag("--watch-all-namespaces=false")
            .flag(&format!("--storage-addr={address}"))
            .spawn()
            .unwrap();
        let status = controller.exit().await.unwrap();
        assert!(!status.success(), "{status}");
        let message = format!(
            "artifacts cannot be served, see --storage-addr: cannot listen on {address}: Address already in use"
        );
        let log = controller.log();
        assert!(log.contains(&message), "{log}");
    }
}

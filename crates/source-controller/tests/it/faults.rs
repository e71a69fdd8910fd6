//! Bad days: an API server that lags behind or forgets, deletions in the middle, a full disk.

use std::{
    fs,
    time::{Duration, Instant},
};

use k8s_openapi::api::core::v1::Namespace;
use kube::{Api, api::DeleteParams};
use serde_json::json;
use testkit::{ControlPlane, Fault, FaultProxy, GitServer, git::Step, wait_gone};

use super::{PATIENCE, TestNamespace, artifact_of, condition, failures::noise, plane, ready, revision};

/// A controller that reaches the API server by way of a proxy.
async fn by_proxy(plane: &'static ControlPlane) -> (TestNamespace, FaultProxy) {
    let proxy = FaultProxy::start(plane).unwrap();
    let kubeconfig = proxy.kubeconfig(plane.kubeconfig()).unwrap();
    let setup = TestNamespace::start_with(|launch| launch.run_by(&kubeconfig)).await;
    (setup, proxy)
}

impl TestNamespace {
    /// Waits for further passes, whatever their results.
    async fn more_passes(&self, number: f64) {
        let passes = async || {
            let text = self.controller.metrics().await?;
            let counts = text
                .lines()
                .filter(|line| line.starts_with("controller_runtime_reconcile_total"));
            let numbers = counts.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
            anyhow::Ok(numbers.sum::<f64>())
        };
        let before = passes().await.unwrap();
        testkit::eventually("passes", PATIENCE, || async {
            let now = passes().await?;
            anyhow::ensure!(now >= before + number, "{} so far", now - before);
            Ok(())
        })
        .await
        .unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_older_spec_brings_no_older_artifact_back() {
    let (setup, proxy) = by_proxy(plane().await).await;
    let git = GitServer::start().unwrap();
    let repo = git.repo("stale").unwrap();
    repo.commit("first", &[("a", "1")]).unwrap();
    let second = repo.change("second").on("dev").write("a", "2").push().unwrap();
    setup.apply("stale", &repo.url(), json!({"interval": "1s"})).await;
    setup.wait_ready("stale").await;
    let older = setup.plane.revision().await.unwrap();
    let dev = json!({"spec": {"ref": {"branch": "dev"}}});
    setup.patch("stale", dev).await;
    let current = setup
        .wait("stale", "the other branch", |object| {
            revision(object).ends_with(&second) && ready(object, "True")
        })
        .await;

    let mark = setup.plane.audit_mark();
    proxy.freeze(older, |_| true);
    setup.more_passes(3.0).await;
    let mut written = setup.plane.audit_since(mark).unwrap();
    written
        .retain(|entry| entry.is_write() && entry.namespace == setup.namespace && entry.resource != "events");
    assert_eq!(written, []);
    let object = setup.api.get("stale").await.unwrap();
    assert_eq!(artifact_of(&object), artifact_of(&current));
    assert_eq!(setup.fetch(&object).await.read("a"), "2");

    proxy.thaw();
    let third = repo.change("third").on("dev").write("a", "3").push().unwrap();
    setup
        .wait("stale", "the newest revision", |object| {
            revision(object).ends_with(&third)
        })
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deletion_ends_a_fetch_at_once_and_leaves_nothing() {
    let (setup, git) = (TestNamespace::start().await, GitServer::start().unwrap());
    let repo = git.repo("leaving").unwrap();
    repo.commit("first", &[("a", "1")]).unwrap();
    for name in ["deleted", "terminating"] {
        setup.apply(name, &repo.url(), json!({"timeout": "10m"})).await;
        setup.wait_ready(name).await;
    }
    let fetches = || {
        let requests = repo.requests();
        requests
            .iter()
            .filter(|request| request.step == Step::Fetch)
            .count()
    };
    let before = fetches();
    repo.commit("second", &[("a", "2")]).unwrap();
    repo.fail(Fault::HangMidPack);
    for name in ["deleted", "terminating"] {
        setup.request(name, "now").await;
    }
    testkit::eventually("both to fetch", PATIENCE, || async {
        anyhow::ensure!(fetches() == before + 2, "{} fetches", fetches() - before);
        Ok(())
    })
    .await
    .unwrap();

    // The client gives up a silent server after 30 s; nothing waits for that.
    let started = Instant::now();
    setup
        .api
        .delete("deleted", &DeleteParams::default())
        .await
        .unwrap();
    wait_gone(&setup.api, "deleted", PATIENCE).await.unwrap();
    assert!(!setup.dir("deleted").exists());
    let namespaces: Api<Namespace> = Api::all(setup.plane.client().await.unwrap());
    namespaces
        .delete(&setup.namespace, &DeleteParams::default())
        .await
        .unwrap();
    wait_gone(&namespaces, &setup.namespace, PATIENCE).await.unwrap();
    assert!(!setup.dir("terminating").exists());
    let took = started.elapsed();
    assert!(took < Duration::from_secs(20), "it took {took:?}");
    assert_eq!(fetches(), before + 2, "a deleted object was fetched again");
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_is_reported_and_the_old_artifact_stays() {
    let setup = TestNamespace::start_with(testkit::controller::Launch::bounded_files).await;
    let git = GitServer::start().unwrap();
    let repo = git.repo("full").unwrap();
    repo.commit("first", &[("a", "1")]).unwrap();
    setup.apply("full", &repo.url(), json!({"interval": "1s"})).await;
    let before = setup.wait_ready("full").await;
    let files = || {
        let dir = fs::read_dir(setup.dir("full")).unwrap().flatten();
        let mut names: Vec<_> = dir.map(|entry| entry.file_name()).collect();
        names.sort();
        names
    };
    let stored = files();

    // The pack has one copy of the text, the tarball many.
    setup.controller.limit_files(Some(1 << 20)).unwrap();
    let text = noise(600_000);
    let names = ["b", "c", "d", "e", "f", "g"];
    let many: Vec<(&str, &str)> = names.iter().map(|name| (*name, text.as_str())).collect();
    let second = repo.commit("second", &many).unwrap();
    let failed = setup
        .wait("full", "the full disk to be reported", |object| {
            condition(object, api::condition_type::STORAGE_OPERATION_FAILED).is_some()
        })
        .await;
    let message = condition(&failed, api::condition_type::READY)
        .unwrap()
        .message
        .clone();
    assert!(
        ready(&failed, "False") && message.contains("File too large"),
        "{message}"
    );
    assert_eq!(artifact_of(&failed), artifact_of(&before));
    assert_eq!(setup.fetch(&failed).await.read("a"), "1");
    assert_eq!(files(), stored, "something is left of the attempt");

    setup.controller.limit_files(None).unwrap();
    let after = setup
        .wait("full", "the new artifact", |object| {
            revision(object).ends_with(&second) && ready(object, "True")
        })
        .await;
    assert_eq!(setup.fetch(&after).await.read("g"), text);
    assert!(condition(&after, api::condition_type::STORAGE_OPERATION_FAILED).is_none());
}

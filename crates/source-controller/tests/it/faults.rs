//! Bad days: an API server that lags behind or forgets, deletions in the middle, a full disk.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use ::api::source::GitRepository;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::json;
use testkit::{
    ControlPlane, Fault, FaultProxy, GitServer, Options, Outcome, git::Step, proxy::ApiRequest, wait_for,
    wait_gone,
};

use super::{TIMEOUT, TestNamespace, artifact_of, condition, failures::noise, plane, ready, revision};

/// A controller that reaches the API server through a proxy.
async fn by_proxy(plane: &'static ControlPlane) -> (TestNamespace, FaultProxy) {
    let proxy = FaultProxy::start(plane).unwrap();
    let kubeconfig = proxy.kubeconfig(plane.kubeconfig()).unwrap();
    let setup = TestNamespace::start_with(|launch| launch.run_by(&kubeconfig)).await;
    (setup, proxy)
}

impl TestNamespace {
    pub(super) async fn more_passes(&self, number: f64) {
        let passes = async || {
            let text = self.controller.metrics().await?;
            let counts = text
                .lines()
                .filter(|line| line.starts_with("controller_runtime_reconcile_total"));
            let numbers = counts.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
            anyhow::Ok(numbers.sum::<f64>())
        };
        let before = passes().await.unwrap();
        testkit::eventually("passes", TIMEOUT, || async {
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

    // The write of the status is in the audit log once the next pass has begun.
    setup.more_passes(2.0).await;
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
async fn crash_before_the_status_is_written_leaves_what_it_names_and_warns_of_nothing() {
    let (mut setup, proxy) = by_proxy(plane().await).await;
    let git = GitServer::start().unwrap();
    let repo = git.repo("torn").unwrap();
    repo.commit("first", &[("a", "1"), ("b", "2")]).unwrap();
    setup.apply("torn", &repo.url(), json!({})).await;
    let before = setup.wait_ready("torn").await;
    let writes = |request: &ApiRequest| {
        let body = String::from_utf8_lossy(&request.body);
        request.path.ends_with("/torn/status") && body.contains("observedIgnore")
    };
    proxy.outcomes(writes, [Outcome::Hang]);
    setup.patch("torn", json!({"spec": {"ignore": "/b"}})).await;
    testkit::eventually("the write of the new artifact", TIMEOUT, || async {
        anyhow::ensure!(proxy.requests().iter().any(writes), "none");
        Ok(())
    })
    .await
    .unwrap();
    let torn = setup.api.get("torn").await.unwrap();
    assert_eq!(artifact_of(&torn), artifact_of(&before));
    assert_eq!(setup.fetch(&torn).await.names(""), ["a", "b"]);

    setup.controller.kill().await.unwrap();
    proxy.heal();
    setup.controller.restart().await.unwrap();
    let after = setup.wait_ready("torn").await;
    assert_eq!(setup.fetch(&after).await.names(""), ["a"]);
    let log = setup.controller.log();
    assert!(!log.contains("removed a corrupt artifact"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn deletion_ends_a_fetch_at_once_and_leaves_nothing() {
    let (setup, git) = (TestNamespace::start().await, GitServer::start().unwrap());
    let repo = git.repo("leaving").unwrap();
    let first = repo.commit("first", &[("a", "1")]).unwrap();
    // Objects of one branch would share the fetch.
    for name in ["deleted", "terminating"] {
        repo.branch(name, &first).unwrap();
        let spec = json!({"timeout": "10m", "ref": {"branch": name}});
        setup.apply(name, &repo.url(), spec).await;
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
    let second = repo.commit("second", &[("a", "2")]).unwrap();
    for name in ["deleted", "terminating"] {
        repo.branch(name, &second).unwrap();
    }
    repo.fail(Fault::HangMidPack);
    for name in ["deleted", "terminating"] {
        setup.request(name, "now").await;
    }
    testkit::eventually("both to fetch", TIMEOUT, || async {
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
    wait_gone(&setup.api, "deleted", TIMEOUT).await.unwrap();
    assert!(!setup.dir("deleted").exists());
    let namespaces: Api<Namespace> = Api::all(setup.plane.client().await.unwrap());
    namespaces
        .delete(&setup.namespace, &DeleteParams::default())
        .await
        .unwrap();
    wait_gone(&namespaces, &setup.namespace, TIMEOUT).await.unwrap();
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

#[tokio::test(flavor = "multi_thread")]
async fn list_of_5000_objects_that_is_gone_halfway_is_read_again() {
    const OBJECTS: usize = 5_000;
    let options = Options {
        // A list from a cache would go on.
        api_server_flags: vec!["--feature-gates=ListFromCacheSnapshot=false".to_owned()],
        ..Options::default()
    };
    let own = ControlPlane::lent(options).await.unwrap();
    let plane = own.get();
    let crds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crds");
    plane.install_crds(&crds).await.unwrap();
    let namespace = plane.namespace("many").await.unwrap();
    let api: Api<GitRepository> = Api::namespaced(plane.client().await.unwrap(), &namespace);
    let git = GitServer::start().unwrap();
    let repo = git.repo("many").unwrap();
    repo.commit("first", &[("a", "1")]).unwrap();
    let objects = (0..OBJECTS).map(|number| {
        let object = json!({
            "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
            "metadata": {"name": format!("repo-{number:04}"), "finalizers": ["finalizers.fluxcd.io"]},
            "spec": {"url": repo.url(), "interval": "1h", "suspend": true, "ref": {"branch": "main"}},
        });
        let api = api.clone();
        async move {
            let object = serde_json::from_value(object)?;
            api.create(&PostParams::default(), &object).await?;
            anyhow::Ok(())
        }
    });
    stream::iter(objects)
        .buffer_unordered(64)
        .try_collect::<()>()
        .await
        .unwrap();

    let proxy = FaultProxy::start(plane).unwrap();
    let kubeconfig = proxy.kubeconfig(plane.kubeconfig()).unwrap();
    let pages = |request: &ApiRequest| request.path.contains("/gitrepositories") && request.is_next_page();
    proxy.outcomes(
        pages,
        [Outcome::Pass, Outcome::Pass, Outcome::Pass, Outcome::Compacted],
    );
    // It is ready when it knows all objects.
    let controller = testkit::Controller::named("source-controller")
        .program(env!("CARGO_BIN_EXE_source-controller"))
        .run_by(&kubeconfig)
        .namespace(&namespace)
        .start()
        .await
        .unwrap();
    let codes: Vec<u16> = proxy
        .answers()
        .into_iter()
        .filter(|(request, _)| pages(request))
        .map(|(_, code)| code)
        .collect();
    assert_eq!(codes.iter().filter(|code| **code == 410).count(), 1, "{codes:?}");
    assert!(
        codes.len() > 12 && codes[4..].iter().all(|code| *code == 200),
        "{codes:?}"
    );
    // Objects of the pages before, at and after it.
    for name in ["repo-0000", "repo-1999", "repo-2000", "repo-4999"] {
        let resume = json!({"spec": {"suspend": false}});
        api.patch(name, &PatchParams::default(), &Patch::Merge(resume))
            .await
            .unwrap();
        let what = "it to be fetched";
        wait_for(&api, name, what, TIMEOUT, |object| ready(object, "True"))
            .await
            .unwrap();
    }
    let usage = controller.usage().unwrap();
    let (peak, steady) = (usage.peak >> 20, usage.resident >> 20);
    assert!(peak < 2 * steady, "{peak} MiB at most, {steady} MiB in the end");
    let deleted = proxy.requests();
    let deleted = deleted.iter().filter(|request| request.method == "DELETE");
    assert_eq!(deleted.count(), 0);
}

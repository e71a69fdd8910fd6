//! Bad days of the API server.

use std::time::Duration;

use anyhow::Context as _;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;
use testkit::{
    FaultProxy,
    proxy::{ApiRequest, Outcome},
};

use crate::setup::{TIMEOUT, TestNamespace};

fn is_status(request: &ApiRequest) -> bool {
    request.method == "PATCH" && request.path.ends_with("/status")
}

fn is_act(request: &ApiRequest) -> bool {
    request.method == "PATCH" && request.path.contains("/configmaps/")
}

/// Returns the resourceVersion that a read asks for.
fn version(request: &ApiRequest) -> Option<u64> {
    let mut parts = request.query.split('&');
    parts.find_map(|part| part.strip_prefix("resourceVersion=")?.parse().ok())
}

#[tokio::test]
async fn a_status_that_meets_faults_is_written_late_and_the_act_not_repeated() {
    let setup = TestNamespace::new("faults").await;
    let proxy = FaultProxy::start(setup.plane).unwrap();
    let kubeconfig = proxy.kubeconfig(&setup.kubeconfig("weir").await).unwrap();
    let outcomes = [
        Outcome::Status(409, None),
        Outcome::Status(429, Some(1)),
        Outcome::Status(500, None),
        Outcome::Status(503, Some(1)),
        Outcome::Status(504, None),
        Outcome::Cut,
        Outcome::CutAnswer,
        Outcome::Hang,
    ];
    let count = outcomes.len();
    proxy.outcomes(is_status, outcomes);
    let _controller = setup.controller_by(&kubeconfig).start().await.unwrap();
    setup
        .probe("app", &json!({"interval": "10m", "behaviour": "write"}))
        .await;
    setup.wait_ready("app", "True", "Succeeded").await;
    // The first write that reached the API server was cut before its answer: the object was ready before the last.
    testkit::eventually("the status to be written after all faults", TIMEOUT, || async {
        let written = proxy
            .requests()
            .iter()
            .filter(|request| is_status(request))
            .count();
        anyhow::ensure!(written > count, "{written} attempts");
        Ok(())
    })
    .await
    .unwrap();
    assert_eq!(
        proxy.requests().iter().filter(|request| is_act(request)).count(),
        1
    );
}

#[tokio::test]
async fn status_is_not_written_to_another_object_of_the_same_name() {
    let setup = TestNamespace::new("another").await;
    let proxy = FaultProxy::start(setup.plane).unwrap();
    let kubeconfig = proxy.kubeconfig(&setup.kubeconfig("weir").await).unwrap();
    let _controller = setup.controller_by(&kubeconfig).start().await.unwrap();
    let unavailable = |request: &ApiRequest| match is_status(request) {
        true => Outcome::Status(503, None),
        false => Outcome::Pass,
    };
    proxy.rule(unavailable);
    let first = setup.probe("app", &json!({"interval": "10m"})).await;
    testkit::eventually("an attempt to write the status", TIMEOUT, || async {
        anyhow::ensure!(proxy.requests().iter().any(is_status), "none");
        Ok(())
    })
    .await
    .unwrap();

    // The controller doesn't learn that the object is replaced.
    proxy.swallow_events(true);
    let params = PatchParams::default();
    let unfinished = json!({"metadata": {"finalizers": null}});
    setup
        .probes()
        .delete("app", &DeleteParams::default())
        .await
        .unwrap();
    setup
        .probes()
        .patch("app", &params, &Patch::Merge(&unfinished))
        .await
        .unwrap();
    let second = setup
        .probe("app", &json!({"interval": "10m", "suspend": true}))
        .await;
    assert_ne!(first.metadata.uid, second.metadata.uid);
    proxy.heal();
    testkit::eventually("the answer of the API server", TIMEOUT, || async {
        let answers = proxy.answers();
        let answer = answers.iter().find(|(request, _)| is_status(request));
        let (_, code) = answer.context("none")?;
        anyhow::ensure!(*code == 422, "{code}");
        Ok(())
    })
    .await
    .unwrap();
    let second = setup.probes().get("app").await.unwrap();
    assert_eq!(second.data.get("status"), None);
}

#[tokio::test]
async fn object_is_read_from_the_cache_of_the_api_server_unless_that_stays_behind() {
    let setup = TestNamespace::new("cache").await;
    let proxy = FaultProxy::start(setup.plane).unwrap();
    let kubeconfig = proxy.kubeconfig(&setup.kubeconfig("weir").await).unwrap();
    let _controller = setup.controller_by(&kubeconfig).start().await.unwrap();
    let versions = || {
        let requests = proxy.requests();
        let reads = requests
            .iter()
            .filter(|request| request.method == "GET" && request.path.ends_with("/app"));
        reads.map(version).collect::<Vec<_>>()
    };
    // The watch has it, but it is too large for the cache.
    let spec = |interval| json!({"interval": interval, "padding": "x".repeat(80_000)});
    let created = setup.probe("app", &spec("10m")).await;
    setup.wait_ready("app", "True", "Succeeded").await;
    let first = versions();
    let created = created.metadata.resource_version.unwrap().parse().unwrap();
    assert!(first[0].is_some_and(|known| known >= created), "{first:?}");

    proxy.rule(
        |request| match request.path.ends_with("/app") && version(request).is_some() {
            true => Outcome::Status(504, None),
            false => Outcome::Pass,
        },
    );
    setup.probe("app", &spec("9m")).await;
    setup.wait_ready("app", "True", "Succeeded").await;
    let second = versions().split_off(first.len());
    assert!(
        second
            .windows(2)
            .any(|reads| reads[0].is_some() && reads[1].is_none()),
        "{second:?}"
    );
}

#[tokio::test]
async fn object_in_the_cache_of_the_watch_is_not_read() {
    let setup = TestNamespace::new("shown").await;
    let proxy = FaultProxy::start(setup.plane).unwrap();
    let kubeconfig = proxy.kubeconfig(&setup.kubeconfig("weir").await).unwrap();
    let _controller = setup.controller_by(&kubeconfig).start().await.unwrap();
    setup.probe("first", &json!({"interval": "10m"})).await;
    setup.wait_ready("first", "True", "Succeeded").await;
    setup.probe("app", &json!({"interval": "10m"})).await;
    setup.wait_ready("app", "True", "Succeeded").await;
    setup.probe("app", &json!({"interval": "9m"})).await;
    setup.wait_ready("app", "True", "Succeeded").await;
    let requests = proxy.requests();
    let mut reads = requests.iter().filter(|request| request.method == "GET");
    assert!(!reads.any(|read| read.path.ends_with("/app")), "{requests:?}");
}

#[tokio::test]
async fn changes_missed_by_a_watch_are_found_without_a_restart() {
    let setup = TestNamespace::new("deaf").await;
    let proxy = FaultProxy::start(setup.plane).unwrap();
    let kubeconfig = proxy.kubeconfig(&setup.kubeconfig("weir").await).unwrap();
    let _controller = setup.controller_by(&kubeconfig).start().await.unwrap();
    setup.probe("known", &json!({"interval": "10m"})).await;
    setup.wait_ready("known", "True", "Succeeded").await;
    proxy.swallow_events(true);
    setup.probe("new", &json!({"interval": "10m"})).await;
    setup.probe("known", &json!({"interval": "9m"})).await;
    setup.wait_ready("new", "True", "Succeeded").await;
    setup.wait_ready("known", "True", "Succeeded").await;
    assert!(proxy.swallowed() > 0);
}

#[tokio::test]
async fn an_api_server_that_goes_away_for_a_while_is_waited_for() {
    let setup = TestNamespace::new("away").await;
    let proxy = FaultProxy::start(setup.plane).unwrap();
    let kubeconfig = proxy.kubeconfig(&setup.kubeconfig("weir").await).unwrap();
    let controller = setup
        .controller_by(&kubeconfig)
        .flag("--enable-leader-election")
        .flag("--leader-election-lease-duration=20s")
        .flag("--leader-election-renew-deadline=15s")
        .flag("--leader-election-retry-period=500ms")
        .start()
        .await
        .unwrap();
    setup.probe("app", &json!({"interval": "300ms"})).await;
    setup.wait_ready("app", "True", "Succeeded").await;
    proxy.rule(|_| Outcome::Cut);
    controller
        .wait_log("the lease to be in danger", TIMEOUT, |entry| {
            entry["msg"] == "cannot get or renew the lease"
        })
        .await
        .unwrap();
    setup.probe("app", &json!({"interval": "400ms"})).await;
    proxy.heal();
    setup.wait_ready("app", "True", "Succeeded").await;
    assert!(controller.is_running());
}

#[tokio::test]
async fn a_leader_without_an_api_server_ends_before_its_lease() {
    let setup = TestNamespace::new("cutoff").await;
    let proxy = FaultProxy::start(setup.plane).unwrap();
    let kubeconfig = proxy.kubeconfig(&setup.kubeconfig("weir").await).unwrap();
    let controller = setup
        .controller_by(&kubeconfig)
        .flag("--enable-leader-election")
        .flag("--leader-election-lease-duration=6s")
        .flag("--leader-election-renew-deadline=3s")
        .flag("--leader-election-retry-period=500ms")
        .start()
        .await
        .unwrap();
    controller
        .wait_log("to lead", TIMEOUT, |entry| entry["msg"] == "this process leads")
        .await
        .unwrap();
    let cut = std::time::Instant::now();
    proxy.rule(|_| Outcome::Hang);
    assert!(!controller.exit().await.unwrap().success());
    assert!(cut.elapsed() < Duration::from_secs(12), "{:?}", cut.elapsed());
    assert!(controller.log().contains("lost the lease probe-leader-election"));
}

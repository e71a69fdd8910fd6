//! The proxy between a controller and the API server.

use std::time::Duration;

use futures::{StreamExt as _, pin_mut};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api,
    api::{ListParams, PostParams, WatchEvent, WatchParams},
};
use testkit::{ControlPlane, FaultProxy, Options, Outcome};

fn config_map(name: &str) -> ConfigMap {
    serde_json::from_value(serde_json::json!({"metadata": {"name": name}})).expect("is one")
}

#[tokio::test]
async fn proxy_delays_drops_and_fails_requests() {
    let plane = ControlPlane::shared().await.expect("starts");
    let namespace = plane.namespace("proxy").await.expect("is made");
    let proxy = FaultProxy::start(plane).expect("starts");
    let kubeconfig = proxy.kubeconfig(plane.kubeconfig()).expect("is made");
    let client = testkit::controlplane::client(&kubeconfig)
        .await
        .expect("connects");
    let maps: Api<ConfigMap> = Api::namespaced(client, &namespace);
    let parameters = PostParams::default();
    maps.create(&parameters, &config_map("first"))
        .await
        .expect("passes");

    proxy.rule(|request| {
        if request.is_write() {
            Outcome::Status(403, None)
        } else {
            Outcome::Pass
        }
    });
    let refused = maps
        .create(&parameters, &config_map("refused"))
        .await
        .expect_err("is refused");
    assert!(
        matches!(&refused, kube::Error::Api(status) if status.code == 403),
        "{refused}"
    );
    maps.get("first").await.expect("reads pass");

    proxy.rule(|request| {
        if request.is_write() {
            Outcome::CutAnswer
        } else {
            Outcome::Pass
        }
    });
    maps.create(&parameters, &config_map("unknown"))
        .await
        .expect_err("has no answer");
    maps.get("unknown").await.expect("was made nevertheless");

    proxy.rule(|_| Outcome::Cut);
    maps.get("first").await.expect_err("is cut");
    proxy.rule(|_| Outcome::Hang);
    let hanging = tokio::time::timeout(Duration::from_millis(200), maps.get("first")).await;
    assert!(hanging.is_err());
    proxy.heal();
    assert!(maps.get_opt("refused").await.expect("passes").is_none());
    let paths: Vec<_> = proxy
        .requests()
        .into_iter()
        .filter(|request| request.is_write())
        .collect();
    assert_eq!(paths.len(), 3, "{paths:?}");
}

#[tokio::test]
async fn proxy_drops_events_of_watches() {
    let plane = ControlPlane::shared().await.expect("starts");
    let namespace = plane.namespace("deaf").await.expect("is made");
    let proxy = FaultProxy::start(plane).expect("starts");
    let kubeconfig = proxy.kubeconfig(plane.kubeconfig()).expect("is made");
    let client = testkit::controlplane::client(&kubeconfig)
        .await
        .expect("connects");
    let maps: Api<ConfigMap> = Api::namespaced(client, &namespace);
    let parameters = PostParams::default();
    let start = maps.list(&kube::api::ListParams::default()).await.expect("lists");
    let from = start.metadata.resource_version.expect("has a version");
    let events = maps.watch(&WatchParams::default(), &from).await.expect("opens");
    pin_mut!(events);
    let mut added = async |name: &str| loop {
        let event = tokio::time::timeout(Duration::from_secs(10), events.next()).await;
        match event.expect("comes").expect("goes on").expect("is no error") {
            WatchEvent::Added(map) if map.metadata.name.as_deref() != Some("kube-root-ca.crt") => {
                return assert_eq!(map.metadata.name.as_deref(), Some(name));
            }
            _ => {}
        }
    };
    maps.create(&parameters, &config_map("heard"))
        .await
        .expect("is made");
    added("heard").await;
    proxy.swallow_events(true);
    maps.create(&parameters, &config_map("unheard"))
        .await
        .expect("is made");
    testkit::eventually("an event to be swallowed", Duration::from_secs(10), || async {
        anyhow::ensure!(proxy.swallowed() == 1, "{} were swallowed", proxy.swallowed());
        Ok(())
    })
    .await
    .expect("is swallowed");
    proxy.swallow_events(false);
    maps.create(&parameters, &config_map("heard-again"))
        .await
        .expect("is made");
    added("heard-again").await;
}

#[tokio::test]
async fn frozen_reads_are_as_of_their_revision_until_the_thaw() {
    let plane = ControlPlane::shared().await.expect("starts");
    let namespace = plane.namespace("frozen").await.expect("is made");
    let proxy = FaultProxy::start(plane).expect("starts");
    let kubeconfig = proxy.kubeconfig(plane.kubeconfig()).expect("is made");
    let client = testkit::controlplane::client(&kubeconfig)
        .await
        .expect("connects");
    let maps: Api<ConfigMap> = Api::namespaced(client, &namespace);
    let named = |name: &'static str| move |map: &ConfigMap| map.metadata.name.as_deref() == Some(name);
    let create = async |name| maps.create(&PostParams::default(), &config_map(name)).await;
    create("deleted").await.expect("is made");
    let old = create("changed").await.expect("is made");
    let revision = plane.revision().await.expect("has one");
    let from = old.metadata.resource_version.clone().expect("has one");
    let events = maps.watch(&WatchParams::default(), &from).await.expect("opens");
    pin_mut!(events);

    proxy.freeze(revision, |request| request.path.contains("/configmaps"));
    let change = kube::api::Patch::Merge(serde_json::json!({"data": {"a": "1"}}));
    let patched = maps.patch("changed", &Default::default(), &change).await;
    let new = patched.expect("writes pass");
    assert_ne!(new.metadata.resource_version, old.metadata.resource_version);
    create("new").await.expect("writes pass");
    maps.delete("deleted", &Default::default())
        .await
        .expect("writes pass");
    let read = maps.get("changed").await.expect("is read");
    assert_eq!((&read.data, &read.metadata), (&old.data, &old.metadata));
    let metadata = maps.get_metadata("changed").await.expect("is read");
    assert_eq!(metadata.metadata, old.metadata);
    maps.get("deleted").await.expect("is there still");
    assert!(maps.get_opt("new").await.expect("is answered").is_none());
    let listed = maps.list(&Default::default()).await.expect("lists").items;
    assert!(listed.iter().any(named("deleted")) && !listed.iter().any(named("new")));
    let silent = tokio::time::timeout(Duration::from_millis(300), events.next()).await;
    assert!(silent.is_err(), "{silent:?}");

    proxy.thaw();
    assert_eq!(maps.get("changed").await.expect("is read").data, new.data);
    assert!(maps.get_opt("deleted").await.expect("is answered").is_none());
    let event = tokio::time::timeout(Duration::from_secs(10), events.next()).await;
    let event = event.expect("comes").expect("goes on").expect("is no error");
    assert!(matches!(event, WatchEvent::Modified(map) if map.data == new.data));
}

#[tokio::test]
async fn lists_that_began_before_a_compaction_are_gone() {
    // A list from a cache would go on.
    let options = Options {
        api_server_flags: vec!["--feature-gates=ListFromCacheSnapshot=false".to_owned()],
        ..Options::default()
    };
    let plane = ControlPlane::start(options).await.expect("starts");
    let proxy = FaultProxy::start(&plane).expect("starts");
    let kubeconfig = proxy.kubeconfig(plane.kubeconfig()).expect("is made");
    let client = testkit::controlplane::client(&kubeconfig)
        .await
        .expect("connects");
    let maps: Api<ConfigMap> = Api::namespaced(client, "default");
    for name in ["a", "b", "c"] {
        maps.create(&PostParams::default(), &config_map(name))
            .await
            .expect("is made");
    }
    let page = ListParams::default().limit(1);
    let second = async || {
        let first = maps.list(&page).await.expect("lists");
        let token = first.metadata.continue_.expect("there is more");
        maps.list(&page.clone().continue_token(&token)).await
    };
    second().await.expect("goes on");
    // The second of them fails.
    proxy.outcomes(
        testkit::proxy::ApiRequest::is_next_page,
        [Outcome::Pass, Outcome::Compacted],
    );
    second().await.expect("goes on");
    let gone = second().await.expect_err("is gone");
    assert!(
        matches!(&gone, kube::Error::Api(status) if status.code == 410),
        "{gone}"
    );
    second().await.expect("a new one goes on");
    let codes: Vec<u16> = proxy
        .answers()
        .into_iter()
        .filter(|(request, _)| request.is_next_page())
        .map(|(_, code)| code)
        .collect();
    assert_eq!(codes, [200, 200, 410, 200]);
}

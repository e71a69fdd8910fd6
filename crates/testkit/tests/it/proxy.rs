//! The proxy between a controller and the API server.

use std::time::Duration;

use futures::{StreamExt as _, pin_mut};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api,
    api::{PostParams, WatchEvent, WatchParams},
};
use testkit::{ControlPlane, Fate, FaultProxy};

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
            Fate::Status(403, None)
        } else {
            Fate::Pass
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
            Fate::CutAnswer
        } else {
            Fate::Pass
        }
    });
    maps.create(&parameters, &config_map("unknown"))
        .await
        .expect_err("has no answer");
    maps.get("unknown").await.expect("was made nevertheless");

    proxy.rule(|_| Fate::Cut);
    maps.get("first").await.expect_err("is cut");
    proxy.rule(|_| Fate::Hang);
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

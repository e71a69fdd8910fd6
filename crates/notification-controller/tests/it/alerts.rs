//! Alerts of all versions, for the kinds of all groups, and their metadata.

use serde_json::{Value, json};

use crate::setup::{TIMEOUT, TestNamespace};

/// An event as the original controllers post it, without a token.
fn event_of(setup: &TestNamespace, group: &str, controller: &str, metadata: &Value) -> Value {
    json!({
        "involvedObject": {
            "kind": "KluctlDeployment", "namespace": setup.namespace, "name": "shop", "uid": "u-2",
            "apiVersion": format!("{group}/v1"), "resourceVersion": "12",
        },
        "severity": "info", "timestamp": "2026-11-21T10:00:00Z", "message": format!("deployed by {controller}"),
        "reason": "DeploySucceeded", "metadata": metadata, "reportingController": controller,
        "reportingInstance": format!("{controller}-5d8c7b9f4-x2x7k"),
    })
}

#[tokio::test]
async fn kluctl_deployments_of_both_groups_raise_alerts() {
    let setup = TestNamespace::new("kluctl").await;
    let sources = json!({"eventSources": [{"kind": "KluctlDeployment", "name": "shop"}]});
    setup.generic("hook", &sources).await;
    let groups = ["flux.kluctl.io", "gitops.kluctl.io"];
    for group in groups {
        let metadata = json!({format!("{group}/revision"): "main@sha1:1", "other.io/x": "y"});
        setup.accepted(&event_of(&setup, group, group, &metadata)).await;
    }
    for group in groups {
        let message = setup
            .wait_message("hook", &format!("deployed by {group}\""))
            .await;
        let body = message.json();
        assert_eq!(body["metadata"], json!({"revision": "main@sha1:1"}));
        assert_eq!(body["involvedObject"]["apiVersion"], format!("{group}/v1"));
        assert_eq!(message.header("gotk-component"), group);
    }
}

#[tokio::test]
async fn objects_of_earlier_versions_deliver_and_read_as_the_newest() {
    let setup = TestNamespace::new("versions").await;
    let sources = json!([{"kind": "GitRepository", "name": "*"}]);
    for version in ["v1beta1", "v1beta2", "v1beta3"] {
        let provider = json!({"type": "generic", "address": setup.sink.url(version)});
        let alert = json!({"providerRef": {"name": version}, "eventSources": sources, "summary": version});
        for (kind, spec) in [("Provider", provider), ("Alert", alert)] {
            let metadata = json!({"name": version, "namespace": setup.namespace});
            let api_version = format!("notification.toolkit.fluxcd.io/{version}");
            let object = json!({"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec});
            let (api, _) = setup.plane.api_for(object.clone()).await.unwrap();
            setup.plane.apply(object).await.unwrap();
            // Read as the newest version, and as its own, it has a status.
            setup.wait_ready(kind, version, "True").await;
            let has_status =
                |object: &kube::api::DynamicObject| object.data["status"]["observedGeneration"] == 1;
            testkit::wait_for(&api, version, "a status", TIMEOUT, has_status)
                .await
                .unwrap();
        }
    }
    setup.accepted(&setup.event("to all")).await;
    for version in ["v1beta1", "v1beta2", "v1beta3"] {
        let message = setup.wait_message(version, "to all").await;
        assert_eq!(message.json()["metadata"]["summary"], version);
    }
}

#[tokio::test]
async fn metadata_of_several_sources_is_joined_and_contradictions_are_reported() {
    let setup = TestNamespace::new("metadata").await;
    let alert = json!({"summary": "from summary", "eventMetadata": {
        "env": "test", "revision": "from alert", "summary": "from metadata", "user": "from alert",
    }});
    setup.generic("hook", &alert).await;
    let mut event = setup.event("joined");
    let metadata = event["metadata"].as_object_mut().unwrap();
    metadata.insert("event.toolkit.fluxcd.io/user".into(), "from object".into());
    metadata.insert("event.toolkit.fluxcd.io/team".into(), "shop".into());
    metadata.insert("source.toolkit.fluxcd.io/token".into(), "t0ken".into());
    setup.accepted(&event).await;
    let body = setup.wait_message("hook", "joined").await.json();
    let expected = json!({
        "env": "test", "revision": "main@sha1:1", "summary": "from summary", "team": "shop", "user": "from alert",
    });
    assert_eq!(body["metadata"], expected);
    let warning = setup.warning("hook", "MetadataAppendFailed").await;
    let annotations = warning.metadata.annotations.unwrap_or_default();
    let keys: Vec<_> = annotations
        .keys()
        .filter_map(|key| key.rsplit('/').next())
        .collect();
    for key in ["revision", "summary", "user"] {
        assert!(keys.contains(&key), "{annotations:?}");
    }
}

#[tokio::test]
async fn alerts_hear_what_they_name_and_suspended_providers_get_nothing() {
    let setup = TestNamespace::new("names").await;
    for (name, source) in [
        ("one", json!({"kind": "GitRepository", "name": "shop"})),
        ("all", json!({"kind": "GitRepository", "name": "*"})),
        ("kind", json!({"kind": "Bucket", "name": "*"})),
        ("name", json!({"kind": "GitRepository", "name": "other"})),
        (
            "foreign",
            json!({"kind": "GitRepository", "name": "*", "namespace": "elsewhere"}),
        ),
    ] {
        setup.generic(name, &json!({"eventSources": [source]})).await;
    }
    let suspended = json!({"type": "generic", "address": setup.sink.url("suspended"), "suspend": true});
    setup.provider("suspended", &suspended).await;
    setup.alert("suspended", "suspended", &json!({})).await;
    setup.wait_ready("Alert", "suspended", "True").await;
    setup.accepted(&setup.event("own")).await;
    let mut foreign = setup.event("foreign");
    foreign["involvedObject"]["namespace"] = "elsewhere".into();
    setup.accepted(&foreign).await;
    let mut second = setup.event("second");
    second["involvedObject"]["name"] = "second".into();
    setup.accepted(&second).await;
    setup.wait_message("foreign", "foreign").await;
    setup.wait_message("all", "second").await;
    // The controller sends accepted events before it ends: a notification that is missing then was never sent.
    assert!(setup.controller.terminate().await.unwrap().success());
    let counts = ["one", "all", "kind", "name", "foreign", "suspended"].map(|name| setup.bodies(name).len());
    assert_eq!(counts, [1, 2, 0, 0, 1, 0]);
}

#[tokio::test]
async fn labels_of_an_object_are_read_once_for_all_alerts() {
    const ALERTS: usize = 20;
    let setup = TestNamespace::new("labels-once").await;
    let labels = json!({"name": "web", "namespace": setup.namespace, "labels": {"tier": "web"}});
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": labels});
    setup.plane.apply(object).await.unwrap();
    let source = json!({"kind": "ConfigMap", "name": "*", "matchLabels": {"tier": "web"}});
    setup.generic("hook", &json!({"eventSources": [source]})).await;
    for number in 1..ALERTS {
        let name = format!("hook-{number}");
        let spec = json!({"eventSources": [source]});
        setup.alert(&name, "hook", &spec).await;
        setup.wait_ready("Alert", &name, "True").await;
    }
    let mark = setup.plane.audit_mark();
    let mut event = setup.event("labelled");
    let about = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "web", "namespace": setup.namespace});
    event["involvedObject"] = about;
    setup.accepted(&event).await;
    testkit::eventually("a notification of each Alert", TIMEOUT, || async {
        let count = setup.bodies("hook").len();
        anyhow::ensure!(count == ALERTS, "{count} notifications");
        Ok(())
    })
    .await
    .unwrap();
    let entries = setup.plane.audit_since(mark).unwrap();
    let reads = entries.iter().filter(|entry| {
        entry.resource == "configmaps" && entry.name == "web" && entry.namespace == setup.namespace
    });
    assert_eq!(reads.count(), 1);
}

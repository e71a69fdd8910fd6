//! The real notification-controller of Flux takes the events of our controllers, and delivers them.

use anyhow::{Result, ensure};
use e2e::cluster::{NAMESPACE, TIMEOUT, TestCluster};
use kube::ResourceExt as _;
use serde_json::{Value, json};
use testkit::{Controller, Received, WebhookSink, flux_controllers::NOTIFICATION, skipped};

const SENDERS: [&str; 2] = ["source-controller", "kluctl-controller"];

/// Applies a Provider that posts to a path of the sink, and an Alert for all our objects in the namespace.
async fn apply_alert(cluster: &TestCluster, name: &str, severity: &str) -> Result<()> {
    let version = "notification.toolkit.fluxcd.io/v1beta3";
    let metadata = json!({"name": name, "namespace": NAMESPACE});
    let provider = json!({"type": "generic", "address": cluster.sink.url(name)});
    let sources = ["GitRepository", "KluctlDeployment"].map(|kind| json!({"kind": kind, "name": "*"}));
    let alert = json!({
        "providerRef": {"name": name}, "eventSeverity": severity, "eventSources": sources,
        "eventMetadata": {"cluster": "test"},
    });
    for (kind, spec) in [("Provider", provider), ("Alert", alert)] {
        let object = json!({"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec});
        cluster.plane.apply(object).await?;
    }
    Ok(())
}

/// An event that is expected: the name of its object, its reason, and the start of its message. Events of a pass can share their
/// reason, and the notification-controller sends them side by side, in any order.
struct Expected {
    name: &'static str,
    reason: &'static str,
    message: &'static str,
}

async fn delivered(sink: &WebhookSink, path: &str, expected: &Expected) -> Result<(Received, Value)> {
    let Expected {
        name,
        reason,
        message,
    } = expected;
    let what = format!("{reason} of {name}: {message}");
    let found = sink.wait_for(&what, TIMEOUT, |request| {
        let event = request.json();
        let said = event["message"].as_str().unwrap_or_default();
        request.path == path
            && event["involvedObject"]["name"] == *name
            && event["reason"] == *reason
            && said.starts_with(message)
    });
    let request = found.await?;
    let event = request.json();
    Ok((request, event))
}

/// Checks the parts that events of all kinds have in common.
fn check_sender(request: &Received, event: &Value, controller: &str) -> Result<()> {
    ensure!(request.header("gotk-component") == controller, "{request:?}");
    ensure!(event["reportingController"] == controller, "{event}");
    ensure!(event["metadata"]["cluster"] == "test", "{event}");
    let object = &event["involvedObject"];
    ensure!(object["namespace"] == NAMESPACE, "{event}");
    ensure!(object["resourceVersion"].is_string(), "{event}");
    // The token of our controllers is for the receiver alone.
    ensure!(request.header("authorization").is_empty(), "{request:?}");
    Ok(())
}

/// Checks that each post was taken, or is a repetition, and that no controller dropped an event.
async fn check_counts(cluster: &TestCluster, peer: &Controller) -> Result<()> {
    let metrics = peer.metrics().await?;
    let counts: Vec<&str> = metrics
        .lines()
        .filter(|line| line.starts_with("gotk_event_http_request_duration_seconds_count{"))
        .collect();
    ensure!(
        counts.iter().any(|line| line.contains("code=\"202\"")),
        "{counts:?}"
    );
    let foreign = |line: &&&str| !line.contains("code=\"202\"") && !line.contains("code=\"429\"");
    ensure!(counts.iter().find(foreign).is_none(), "{counts:?}");
    for name in SENDERS {
        let metrics = cluster.controller(name)?.metrics().await?;
        let dropped = metrics
            .lines()
            .find(|line| line.starts_with("weir_events_dropped_total"));
        ensure!(dropped.is_none(), "{name}: {dropped:?}");
    }
    Ok(())
}

/// Returns the metadata of events at a commit: keys of our own group are not delivered.
fn metadata(commit: &str) -> Value {
    json!({"cluster": "test", "revision": format!("main@sha1:{commit}")})
}

async fn check_fetched(cluster: &TestCluster, url: &str, commit: &str) -> Result<()> {
    cluster.apply_repository("project", url, "1h").await?;
    let source = cluster.fetched("project", commit).await?;
    let expected = Expected {
        name: "project",
        reason: "NewArtifact",
        message: "stored artifact for commit 'first'",
    };
    let (request, event) = delivered(&cluster.sink, "/all", &expected).await?;
    check_sender(&request, &event, "source-controller")?;
    let object = &event["involvedObject"];
    ensure!(object["apiVersion"] == "source.toolkit.fluxcd.io/v1", "{event}");
    ensure!(object["kind"] == "GitRepository", "{event}");
    ensure!(object["uid"] == json!(source.uid()), "{event}");
    ensure!(event["severity"] == "info", "{event}");
    ensure!(event["message"] == expected.message, "{event}");
    ensure!(event["metadata"] == metadata(commit), "{event}");
    Ok(())
}

/// Checks the event of failing passes, which comes with each of them and is taken once.
async fn check_failed(cluster: &TestCluster, url: &str) -> Result<()> {
    cluster.apply_repository("broken", url, "1s").await?;
    let expected = Expected {
        name: "broken",
        reason: "GitOperationFailed",
        message: "failed to checkout and determine revision: ",
    };
    for path in ["/all", "/errors"] {
        let (request, event) = delivered(&cluster.sink, path, &expected).await?;
        check_sender(&request, &event, "source-controller")?;
        ensure!(event["severity"] == "error", "{event}");
    }
    Ok(())
}

async fn check_deployed(cluster: &TestCluster, commit: &str) -> Result<()> {
    let spec = json!({"target": "only", "interval": "1h"});
    cluster.apply_deployment("app", "project", spec).await?;
    cluster.ready("app", commit).await?;
    let expected = Expected {
        name: "app",
        reason: "ReconciliationSucceeded",
        message: "deploy succeeded. ",
    };
    let (request, event) = delivered(&cluster.sink, "/all", &expected).await?;
    check_sender(&request, &event, "flux-kluctl-controller")?;
    let object = &event["involvedObject"];
    ensure!(object["apiVersion"] == "flux.kluctl.io/v1alpha1", "{event}");
    ensure!(object["kind"] == "KluctlDeployment", "{event}");
    ensure!(event["severity"] == "info", "{event}");
    ensure!(event["message"] == "deploy succeeded. 1 new objects.", "{event}");
    ensure!(event["metadata"] == metadata(commit), "{event}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn flux_delivers_events_of_our_controllers() -> Result<()> {
    crate::init();
    let Some(program) = NOTIFICATION.find()? else {
        skipped::note(
            "the notification-controller of Flux with our events",
            "it isn't built: run make flux-notification",
        );
        return Ok(());
    };
    let mut cluster = TestCluster::bare().await?;
    apply_alert(&cluster, "all", "info").await?;
    apply_alert(&cluster, "errors", "error").await?;
    let peer = NOTIFICATION.start(&program, &cluster.plane).await?;
    let events = format!("--events-addr={}", peer.events_url());
    for name in SENDERS {
        cluster.start(name, &[&events]).await?;
    }

    let repo = cluster.git.repo("project")?;
    let object =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "app", "namespace": "default"}});
    let commit = repo
        .change("first")
        .write(
            ".kluctl.yaml",
            "discriminator: peer\ntargets:\n  - name: only\n    context: default\n",
        )
        .write("deployment.yaml", "deployments:\n  - path: app\n")
        .write("app/map.yaml", object.to_string())
        .push()?;
    check_fetched(&cluster, &repo.url(), &commit).await?;
    check_failed(&cluster, &repo.url().replace("project", "missing")).await?;
    check_deployed(&cluster, &commit).await?;
    check_counts(&cluster, &peer).await?;
    let received = cluster.sink.received();
    for request in received.iter().filter(|request| request.path == "/errors") {
        ensure!(request.json()["severity"] == "error", "{request:?}");
    }
    peer.terminate().await?;
    cluster.stop().await
}

//! Logs of the controller. The test plays the node of its Pod: the API server reads the log there.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value as Json, json};
use testkit::{
    tls::Authority,
    web::{Page, WebServer},
};

use super::{Fixture, double::Answer, failed, stderr, succeeded};

/// Makes a node whose kubelet is the web server, and a Pod of the controller on it.
pub(super) async fn pod(fixture: &Fixture, server: &WebServer, namespace: &str) -> Result<()> {
    let node = format!("node-{namespace}");
    let port: u16 = server
        .url("")
        .trim_end_matches('/')
        .rsplit(':')
        .next()
        .unwrap_or_default()
        .parse()?;
    let status = json!({
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
    });
    fixture
        .plane
        .apply(json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": node}}))
        .await?;
    let patch = json!({"status": status}).to_string();
    fixture
        .plane
        .kubectl(&[
            "patch",
            "node",
            &node,
            "--subresource=status",
            "--type=merge",
            "-p",
            &patch,
        ])
        .await?;
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "controller", "namespace": namespace, "labels": {"control-plane": "kluctl-controller"}},
        "spec": {
            "nodeName": node, "automountServiceAccountToken": false,
            "containers": [{"name": "manager", "image": "i"}, {"name": "sidecar", "image": "i"}],
        },
    });
    fixture.plane.apply(pod).await?;
    Ok(())
}

fn line(at: &str, name: &str, namespace: &str, id: &str, message: &str) -> String {
    let line: Json = json!({
        "level": "info", "ts": at, "logger": "x", "msg": message, "controller": "kluctldeployment", "name": name,
        "namespace": namespace, "reconcileID": id,
    });
    format!("{at} {line}\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn logs_are_those_of_the_selected_objects_grouped_by_reconciliation() -> Result<()> {
    let fixture = Fixture::new("gitops-logs").await?;
    fixture.deployment("shop", json!({})).await?;
    let namespace = fixture.plane.namespace("gitops-controller").await?;
    let words = format!(
        "logs --name shop -n {} --controller-namespace {namespace}",
        fixture.namespace
    );
    let missing = failed(&fixture.gitops(&words).await?)?;
    ensure!(
        missing.contains("there are no Pods with the label control-plane=kluctl-controller"),
        "{missing}"
    );

    let server = WebServer::start_tls(Authority::new(&["127.0.0.1"])?)?;
    let own = |second: u32, id: &str, message: &str| {
        line(
            &format!("2026-01-01T00:00:0{second}.000000001Z"),
            "shop",
            &fixture.namespace,
            id,
            message,
        )
    };
    let log = [
        own(1, "a", "one"),
        own(2, "b", "two"),
        own(2, "b", "at the same time"),
        "2026-01-01T00:00:03Z panic: no JSON\n".to_owned(),
        line(
            "2026-01-01T00:00:04Z",
            "other",
            &fixture.namespace,
            "c",
            "of another",
        ),
        line(
            "2026-01-01T00:00:05Z",
            "shop",
            "elsewhere",
            "d",
            "of another namespace",
        ),
        own(6, "a", "three\u{1b}[2J"),
        own(7, "shop-deploy", "four"),
    ];
    let path = format!("/containerLogs/{namespace}/controller/manager");
    server.page(&path, Page::Content(log.concat().into()));
    pod(&fixture, &server, &namespace).await?;

    let title = |id: &str| format!("--- {}/shop, reconciliation {id}\n", fixture.namespace);
    let printed = succeeded(&fixture.gitops(&words).await?)?;
    let expected = [
        title("a"),
        "one\nthree\u{fffd}[2J\n".to_owned(),
        title("b"),
        "two\nat the same time\n".to_owned(),
        title("shop-deploy"),
        "four\n".to_owned(),
    ];
    assert_eq!(printed, expected.concat());
    let one = succeeded(
        &fixture
            .gitops(&format!("{words} --reconcile-id b --log-time"))
            .await?,
    )?;
    assert_eq!(
        one,
        title("b") + "2026-01-01T00:00:02.000000001Z two\n2026-01-01T00:00:02.000000001Z at the same time\n"
    );
    let all = format!("logs --all --controller-namespace {namespace}");
    ensure!(succeeded(&fixture.gitops(&all).await?)?.contains("of another namespace"));

    // A request shows the lines of its own reconciliation.
    let words = format!(
        "deploy --name shop -n {} --controller-namespace {namespace} --log-grouping-time 3s",
        fixture.namespace
    );
    let (printed, _) = tokio::try_join!(
        fixture.gitops(&words),
        fixture.answers("shop", "deploy", Answer::default())
    )?;
    let messages = stderr(&printed);
    ensure!(
        messages.contains("four") && !messages.contains("two"),
        "{messages}"
    );
    let asked = server.asked();
    let asked = asked
        .iter()
        .find(|asked| asked.path.contains("follow=true"))
        .context("it did not follow")?;
    ensure!(
        asked.path.contains("sinceSeconds=60") && asked.path.contains("timestamps=true"),
        "{}",
        asked.path
    );
    Ok(())
}

//! `weir logs`. The test plays the node of the Pods: the API server reads the logs there.

use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use testkit::{
    tls::Authority,
    web::{Page, WebServer},
};
use tokio::io::{AsyncBufReadExt as _, BufReader};

use super::Objects;

/// Makes a node whose kubelet is the web server.
async fn node(objects: &Objects, server: &WebServer) -> Result<String> {
    let name = format!("node-{}", objects.namespace);
    let port = server
        .url("")
        .trim_end_matches('/')
        .rsplit(':')
        .next()
        .context("no port")?
        .parse::<u16>()?;
    objects
        .plane
        .apply(json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}))
        .await?;
    let status = json!({
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}], "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
    });
    let patch = json!({"status": status}).to_string();
    let words = [
        "patch",
        "node",
        &name,
        "--subresource=status",
        "--type=merge",
        "-p",
        &patch,
    ];
    objects.plane.kubectl(&words).await?;
    Ok(name)
}

/// Makes a Deployment of a controller without replicas, and a Pod that it selects.
async fn controller(objects: &Objects, node: &str, name: &str) -> Result<()> {
    let labels = json!({"app": name});
    let container = json!([{"name": "manager", "image": "i"}]);
    let spec = json!({
        "replicas": 0, "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": container}},
    });
    let rest = json!({"labels": {"app.kubernetes.io/part-of": "flux"}, "spec": spec});
    objects.put("apps/v1", "Deployment", name, rest).await?;
    let spec = json!({"nodeName": node, "automountServiceAccountToken": false, "containers": container});
    let rest = json!({"labels": labels, "spec": spec, "status": {"phase": "Running"}});
    objects.put("v1", "Pod", name, rest).await
}

fn line(second: u32, level: &str, kind: &str, name: &str, namespace: &str, message: &str) -> String {
    let time = format!("2026-01-01T00:00:0{second}Z");
    let line = json!({
        "level": level, "ts": time, "logger": "x", "msg": message, "controllerKind": kind, "name": name, "namespace": namespace,
    });
    format!("{time} {line}\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn logs_of_all_controllers_are_merged_by_time() -> Result<()> {
    let objects = Objects::new("logs").await?;
    let namespace = objects.namespace.as_str();
    ensure!(
        objects
            .fails("logs")
            .await?
            .contains(&format!("no Flux pods found in namespace \"{namespace}\""))
    );
    let server = WebServer::start_tls(Authority::new(&["127.0.0.1"])?)?;
    let node = node(&objects, &server).await?;
    let source = [
        line(1, "info", "GitRepository", "repo", namespace, "one"),
        "2026-01-01T00:00:02Z panic: no JSON\n".to_owned(),
        line(4, "error", "GitRepository", "repo", namespace, "four"),
    ];
    let kustomize = [
        line(2, "info", "Kustomization", "apps", namespace, "two\u{1b}[2J"),
        line(3, "info", "Kustomization", "apps", "elsewhere", "three"),
        line(5, "info", "Kustomization", "infra", namespace, "five"),
    ];
    for (name, log) in [
        ("source-controller", source.concat()),
        ("kustomize-controller", kustomize.concat()),
    ] {
        controller(&objects, &node, name).await?;
        let path = format!("/containerLogs/{namespace}/{name}/manager");
        server.page(&path, Page::Content(log.into()));
    }
    let printed = objects.succeeds("logs").await?;
    let expected = format!(
        "2026-01-01T00:00:01Z info GitRepository/repo.{namespace} - one \n\
         2026-01-01T00:00:02Z info Kustomization/apps.{namespace} - two\u{fffd}[2J \n\
         2026-01-01T00:00:04Z error GitRepository/repo.{namespace} - four \n\
         2026-01-01T00:00:05Z info Kustomization/infra.{namespace} - five \n"
    );
    assert_eq!(printed, expected);
    for (flags, messages) in [
        ("-A", "one two\u{fffd}[2J three four five"),
        ("--level error", "four"),
        ("--kind kustomization --name apps", "two\u{fffd}[2J"),
    ] {
        let printed = objects.succeeds(&format!("logs {flags}")).await?;
        let found: Vec<&str> = printed
            .lines()
            .filter_map(|line| line.split(" - ").nth(1))
            .map(str::trim)
            .collect();
        assert_eq!(found.join(" "), messages, "{flags}");
    }
    let both = objects
        .run("logs --since 1m --since-time 2026-01-01T00:00:00Z")
        .await?;
    ensure!(!both.status.success());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn logs_are_followed_while_the_controllers_write() -> Result<()> {
    let objects = Objects::new("logs-follow").await?;
    let namespace = objects.namespace.as_str();
    let server = WebServer::start_tls(Authority::new(&["127.0.0.1"])?)?;
    let node = node(&objects, &server).await?;
    controller(&objects, &node, "source-controller").await?;
    let log = [
        line(1, "info", "GitRepository", "repo", namespace, "one"),
        line(2, "info", "GitRepository", "repo", "elsewhere", "two"),
        line(3, "error", "GitRepository", "repo", namespace, "three"),
    ];
    let path = format!("/containerLogs/{namespace}/source-controller/manager");
    // The connection stays open.
    server.page(&path, Page::Stalled(log.concat().into()));
    let mut following = objects.start("logs -f --tail 10")?;
    let out = following.stdout.take().context("no output")?;
    let mut lines = BufReader::new(out).lines();
    for expected in [" - one", " - three"] {
        let line = lines.next_line().await?.context("the command ended")?;
        ensure!(line.trim().ends_with(expected), "{line}");
    }
    let asked = server.asked();
    ensure!(
        asked
            .iter()
            .any(|one| one.path.contains("follow=true") && one.path.contains("tailLines=10")),
        "{asked:?}"
    );
    ensure!(following.try_wait()?.is_none(), "the command ended");
    Ok(())
}

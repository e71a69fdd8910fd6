//! The commands that change objects, answered by our controllers.

use anyhow::{Context as _, Result};
use serde_json::{Value as Json, json};
use testkit::{Controller, GitServer};

use super::Objects;
use crate::commands::stderr;

const KUSTOMIZE: &str = "kustomize.toolkit.fluxcd.io/v1";

/// Starts controllers for the namespace alone: other tests play the controllers of theirs.
async fn start(objects: &Objects, names: &[&str]) -> Result<Vec<Controller>> {
    let starts = names.iter().map(|name| {
        Controller::named(name)
            .run_by(objects.plane.kubeconfig())
            .namespace(&objects.namespace)
            .flag("--watch-all-namespaces=false")
            .start()
    });
    futures::future::try_join_all(starts).await
}

/// Runs a command that succeeds, and returns the last line of its messages.
async fn last(objects: &Objects, line: &str) -> Result<String> {
    let output = objects.run(line).await?;
    let said = stderr(&output);
    anyhow::ensure!(output.status.success(), "{line}: {said}");
    Ok(said.lines().last().unwrap_or_default().to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn controllers_answer_each_command() -> Result<()> {
    let objects = Objects::new("steer-real").await?;
    let controllers = [
        "source-controller",
        "kustomize-controller",
        "notification-controller",
    ];
    let _controllers = start(&objects, &controllers).await?;
    let git = GitServer::start()?;
    let repo = git.repo("app")?;
    let map = |value: &str| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", "namespace": objects.namespace}, "data": {"a": value}})
            .to_string()
    };
    let first = format!("main@sha1:{}", repo.commit("one", &[("app/m.yaml", &map("1"))])?);
    let url = repo.url();
    let create = format!("create source git app --url={url} --branch=main --interval=1h");
    assert_eq!(
        last(&objects, &create).await?,
        format!("✔ fetched revision: {first}")
    );
    let create = "create ks app --source=app --path=./app --prune --interval=1h";
    assert_eq!(
        last(&objects, create).await?,
        format!("✔ applied revision {first}")
    );

    let second = format!("main@sha1:{}", repo.commit("two", &[("app/m.yaml", &map("2"))])?);
    let applied = format!("✔ applied revision {second}");
    assert_eq!(last(&objects, "reconcile ks app --with-source").await?, applied);
    assert_eq!(
        last(&objects, "suspend ks app").await?,
        "✔ kustomization suspended"
    );
    assert_eq!(last(&objects, "resume ks app").await?, applied);

    let broken = "create ks broken --source=app --path=./nope --prune --interval=1h --timeout=15s";
    let error = objects.fails(broken).await?;
    let message = error.lines().last().context("no message")?;
    assert!(
        message.starts_with("✗ the last message of the controller: "),
        "{error}"
    );
    assert!(message.contains("nope"), "{error}");

    last(
        &objects,
        "create secret receiver hook --type=generic --hostname=example.com",
    )
    .await?;
    let hook = last(
        &objects,
        "create receiver hook --type=generic --secret-ref=hook --resource=GitRepository/app",
    )
    .await?;
    let secret = ["get", "secret", "hook", "-n", &objects.namespace, "-o", "json"];
    let secret: Json = serde_json::from_str(&objects.plane.kubectl(&secret).await?)?;
    let announced = &secret["metadata"]["annotations"]["notification.toolkit.fluxcd.io/webhook"];
    let path = hook.strip_prefix("✔ generated webhook URL ").context("no URL")?;
    assert_eq!(*announced, format!("https://example.com{path}"));
    assert_eq!(
        last(&objects, "reconcile receiver hook").await?,
        "✔ Receiver reconciliation completed"
    );

    last(&objects, "delete ks app broken --silent").await?;
    let gone = testkit::eventually("the end of the Kustomization", super::TIMEOUT, || async {
        let found = objects.live(KUSTOMIZE, "Kustomization", "app").await;
        anyhow::ensure!(found.is_err(), "it is still there");
        Ok(())
    });
    gone.await?;
    let map = [
        "get",
        "configmap",
        "m",
        "-n",
        &objects.namespace,
        "--ignore-not-found",
    ];
    assert_eq!(objects.plane.kubectl(&map).await?, "", "it is pruned");
    Ok(())
}

//! The real `flux` command line as a client of our controllers.

use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use e2e::cluster::{NAMESPACE, TestCluster};
use serde_json::json;
use testkit::{flux, skipped};
use tokio::process::Command;

/// The command line with the kubeconfig of a cluster.
struct Flux<'a> {
    program: PathBuf,
    cluster: &'a TestCluster,
}

impl Flux<'_> {
    /// Runs a command in the namespace of the controllers, and returns what it printed.
    async fn run(&self, command: &str) -> Result<String> {
        let (succeeded, printed) = self.try_run(command).await?;
        ensure!(succeeded, "flux {command}: {printed}");
        Ok(printed)
    }

    async fn try_run(&self, command: &str) -> Result<(bool, String)> {
        let output = Command::new(&self.program)
            .args(command.split_ascii_whitespace())
            .args(["--namespace", NAMESPACE, "--timeout", "60s"])
            .arg("--kubeconfig")
            .arg(self.cluster.plane.kubeconfig())
            .output()
            .await?;
        let printed = [output.stdout, output.stderr].concat();
        Ok((output.status.success(), String::from_utf8(printed)?))
    }

    /// Runs a command whose output must contain these texts.
    async fn says(&self, command: &str, texts: &[&str]) -> Result<()> {
        let printed = self.run(command).await?;
        for text in texts {
            ensure!(
                printed.contains(text),
                "flux {command}: no {text:?} in\n{printed}"
            );
        }
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn flux_is_a_client_of_sources_alerts_and_receivers() -> Result<()> {
    crate::init();
    let Some(program) = flux::find()? else {
        skipped::note(
            "the flux command line as a client",
            "it isn't built: run make flux-cli",
        );
        return Ok(());
    };
    let mut cluster = TestCluster::bare().await?;
    for name in ["source-controller", "notification-controller"] {
        cluster.start(name, &[]).await?;
    }
    let repo = cluster.git.repo("client")?;
    let commit = repo.change("first").write("a.yaml", "a: b\n").push()?;
    cluster.apply_secret("hook", json!({"token": "s3cret"})).await?;
    let flux = Flux {
        program,
        cluster: &cluster,
    };
    let revision = format!("main@sha1:{commit}");
    let short = revision.get(..18).context("a revision")?;
    let url = repo.url();
    let create = format!("create source git app --url {url} --branch main --interval 1h");
    flux.says(
        &create,
        &["GitRepository source reconciliation completed", &revision],
    )
    .await?;
    flux.says(
        "get sources git",
        &["app", short, "False", "True", "stored artifact for revision"],
    )
    .await?;
    let next = repo.change("second").write("a.yaml", "a: c\n").push()?;
    let next = format!("main@sha1:{next}");
    flux.says("reconcile source git app", &["fetched revision", &next])
        .await?;
    flux.says("suspend source git app", &["source git suspended"])
        .await?;
    flux.says("get sources all", &["gitrepository/app", "True"])
        .await?;
    flux.says(
        "resume source git app",
        &["GitRepository app reconciliation completed", &next],
    )
    .await?;
    flux.says(
        "export source git app",
        &["kind: GitRepository", &url, "branch: main"],
    )
    .await?;
    flux.says(
        "events --for GitRepository/app",
        &["NewArtifact", "stored artifact for commit 'second'"],
    )
    .await?;

    flux.says(
        "create alert-provider chat --type generic --address https://hooks.example.com/x",
        &["chat is ready"],
    )
    .await?;
    let alert = "create alert all --provider-ref chat --event-severity info --event-source GitRepository/*";
    flux.says(alert, &["all is ready"]).await?;
    let receiver =
        "create receiver hook --type generic --secret-ref hook --resource GitRepository/app --event ping";
    flux.says(receiver, &["hook is ready", "generated webhook URL /hook/"])
        .await?;
    flux.says("reconcile receiver hook", &["Receiver reconciliation completed"])
        .await?;
    for (command, text) in [
        ("suspend alert all", "alert suspended"),
        ("resume alert all", "Alert all reconciliation completed"),
        ("suspend receiver hook", "receiver suspended"),
        ("resume receiver hook", "Receiver hook reconciliation completed"),
        ("export alert all", "eventSeverity: info"),
        ("export receiver hook", "type: generic"),
        ("export alert-provider chat", "type: generic"),
        ("get all", "provider/chat"),
        ("get receivers", "Receiver initialized for path: /hook/"),
        ("stats", "GitRepository"),
        ("delete alert all --silent", "alert deleted"),
        ("delete source git app --silent", "source git deleted"),
    ] {
        flux.says(command, &[text]).await?;
    }
    let (succeeded, printed) = flux.try_run("reconcile source git app").await?;
    ensure!(!succeeded && printed.contains("not found"), "{printed}");
    cluster.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn flux_creates_helm_repositories() -> Result<()> {
    crate::init();
    let Some(program) = flux::find()? else {
        skipped::note(
            "the flux command line as a client",
            "it isn't built: run make flux-cli",
        );
        return Ok(());
    };
    let mut cluster = TestCluster::bare().await?;
    cluster.start("source-controller", &[]).await?;
    let server = testkit::WebServer::start()?;
    let index = "apiVersion: v1\nentries:\n  shop:\n  - {version: 1.0.0, urls: [shop.tgz]}\n";
    server.page("/index.yaml", testkit::Page::Content(index.into()));
    let flux = Flux {
        program,
        cluster: &cluster,
    };
    let create = format!("create source helm charts --interval 1h --url {}", server.url(""));
    flux.says(
        &create,
        &["HelmRepository source reconciliation completed", "sha256:"],
    )
    .await?;
    flux.says(
        "get sources helm",
        &["charts", "True", "stored artifact: revision"],
    )
    .await?;
    flux.says("reconcile source helm charts", &["fetched revision sha256:"])
        .await?;
    flux.says(
        "create source helm registry --interval 1h --url oci://ghcr.io/org/charts",
        &["HelmRepository source reconciliation completed"],
    )
    .await?;
    flux.says("get sources helm", &["registry"]).await?;
    flux.says("export source helm registry", &["type: oci"]).await?;
    cluster.stop().await
}

//! The command lines `weir` and, if it is built, the real `flux` as clients of our controllers.

mod kustomizations;
mod manifests;
mod secrets;

use std::{path::PathBuf, process::Output};

use anyhow::{Context as _, Result, ensure};
use e2e::cluster::{NAMESPACE, TestCluster};
use serde_json::json;
use testkit::{
    Registry, S3Server,
    archive::tar_gz,
    controller::find_program,
    flux,
    registry::Login,
    s3::{ACCESS_KEY, SECRET_KEY},
    skipped,
};
use tokio::process::Command;

/// Returns the programs that are tried: ours, and the original if it is in the cache.
fn programs(tests: &str) -> Result<Vec<PathBuf>> {
    let mut programs = vec![find_program("weir")?];
    match flux::find()? {
        Some(program) => programs.push(program),
        None => skipped::note(
            &format!("the flux command line as a client {tests}"),
            "it isn't built: run make flux-cli",
        ),
    }
    Ok(programs)
}

/// Returns true for the message about an object that is gone, or that goes while the command waits for it.
fn is_missing(message: &str) -> bool {
    message.contains("not found") || message.contains("was deleted")
}

struct Client<'a> {
    program: PathBuf,
    cluster: &'a TestCluster,
}

impl Client<'_> {
    async fn run(&self, command: &str) -> Result<String> {
        let (succeeded, printed) = self.try_run(command).await?;
        ensure!(succeeded, "{} {command}: {printed}", self.program.display());
        Ok(printed)
    }

    /// Runs a command that has to succeed, and returns its output without messages.
    async fn run_quietly(&self, command: &str) -> Result<String> {
        let output = self.output(command).await?;
        let messages = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{command}: {messages}");
        Ok(String::from_utf8(output.stdout)?)
    }

    async fn try_run(&self, command: &str) -> Result<(bool, String)> {
        let output = self.output(command).await?;
        let printed = [output.stdout, output.stderr].concat();
        Ok((output.status.success(), String::from_utf8(printed)?))
    }

    async fn output(&self, command: &str) -> Result<Output> {
        let mut program = Command::new(&self.program);
        program
            .args(command.split_ascii_whitespace())
            .args(["--namespace", NAMESPACE])
            .arg("--kubeconfig")
            .arg(self.cluster.plane.kubeconfig());
        if !command.contains("--timeout") {
            program.args(["--timeout", "60s"]);
        }
        Ok(program.kill_on_drop(true).output().await?)
    }

    async fn says(&self, command: &str, texts: &[&str]) -> Result<()> {
        let printed = self.run(command).await?;
        for text in texts {
            ensure!(
                printed.contains(text),
                "{} {command}: no {text:?} in\n{printed}",
                self.program.display()
            );
        }
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_use_sources_alerts_and_receivers() -> Result<()> {
    crate::init();
    for program in programs("of sources, alerts and receivers")? {
        use_sources_alerts_and_receivers(program).await?;
    }
    Ok(())
}

async fn use_sources_alerts_and_receivers(program: PathBuf) -> Result<()> {
    let mut cluster = TestCluster::bare().await?;
    for name in ["source-controller", "notification-controller"] {
        cluster.start(name, &[]).await?;
    }
    let repo = cluster.git.repo("client")?;
    let commit = repo.change("first").write("a.yaml", "a: b\n").push()?;
    cluster.apply_secret("hook", json!({"token": "s3cret"})).await?;
    let client = Client {
        program,
        cluster: &cluster,
    };
    let revision = format!("main@sha1:{commit}");
    let short = revision.get(..18).context("a revision")?;
    let url = repo.url();
    let create = format!("create source git app --url {url} --branch main --interval 1h");
    client
        .says(
            &create,
            &["GitRepository source reconciliation completed", &revision],
        )
        .await?;
    client
        .says(
            "get sources git",
            &["app", short, "False", "True", "stored artifact for revision"],
        )
        .await?;
    let next = repo.change("second").write("a.yaml", "a: c\n").push()?;
    let next = format!("main@sha1:{next}");
    client
        .says("reconcile source git app", &["fetched revision", &next])
        .await?;
    client
        .says("suspend source git app", &["source git suspended"])
        .await?;
    client
        .says("get sources all", &["gitrepository/app", "True"])
        .await?;
    client
        .says(
            "resume source git app",
            &["GitRepository app reconciliation completed", &next],
        )
        .await?;
    client
        .says(
            "export source git app",
            &["kind: GitRepository", &url, "branch: main"],
        )
        .await?;
    client
        .says(
            "events --for GitRepository/app",
            &["NewArtifact", "stored artifact for commit 'second'"],
        )
        .await?;

    client
        .says(
            "create alert-provider chat --type generic --address https://hooks.example.com/x",
            &["chat is ready"],
        )
        .await?;
    let alert = "create alert all --provider-ref chat --event-severity info --event-source GitRepository/*";
    client.says(alert, &["all is ready"]).await?;
    let receiver =
        "create receiver hook --type generic --secret-ref hook --resource GitRepository/app --event ping";
    client
        .says(receiver, &["hook is ready", "generated webhook URL /hook/"])
        .await?;
    client
        .says("reconcile receiver hook", &["Receiver reconciliation completed"])
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
        client.says(command, &[text]).await?;
    }
    let (succeeded, printed) = client.try_run("reconcile source git app").await?;
    ensure!(!succeeded && is_missing(&printed), "{printed}");
    cluster.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_create_helm_repositories() -> Result<()> {
    crate::init();
    for program in programs("of Helm repositories")? {
        create_helm_repositories(program).await?;
    }
    Ok(())
}

async fn create_helm_repositories(program: PathBuf) -> Result<()> {
    let mut cluster = TestCluster::bare().await?;
    cluster.start("source-controller", &[]).await?;
    let server = testkit::WebServer::start()?;
    let index = "apiVersion: v1\nentries:\n  shop:\n  - {name: a, version: 1.0.0, urls: [shop.tgz]}\n";
    server.page("/index.yaml", testkit::Page::Content(index.into()));
    let client = Client {
        program,
        cluster: &cluster,
    };
    let create = format!("create source helm charts --interval 1h --url {}", server.url(""));
    client
        .says(
            &create,
            &["HelmRepository source reconciliation completed", "sha256:"],
        )
        .await?;
    client
        .says(
            "get sources helm",
            &["charts", "True", "stored artifact: revision"],
        )
        .await?;
    client
        .says("reconcile source helm charts", &["fetched revision sha256:"])
        .await?;
    client
        .says(
            "create source helm registry --interval 1h --url oci://ghcr.io/org/charts",
            &["HelmRepository source reconciliation completed"],
        )
        .await?;
    client.says("get sources helm", &["registry"]).await?;
    client.says("export source helm registry", &["type: oci"]).await?;
    cluster.stop().await
}

fn fetched(printed: &str) -> Result<&str> {
    let behind = printed.rsplit_once("fetched revision").map(|(_, behind)| behind);
    let revision = behind.and_then(|behind| behind.trim_start_matches(':').split_ascii_whitespace().next());
    revision.with_context(|| format!("no revision in\n{printed}"))
}

struct Source<'a> {
    /// Kind as in the names of commands.
    command: &'a str,
    kind: &'a str,
    flags: String,
    /// The last words of its creation.
    created: &'a str,
    /// Parts of its manifest.
    exported: &'a [&'a str],
}

impl Source<'_> {
    /// Creates it as `app`, and returns its revision.
    async fn create(&self, client: &Client<'_>) -> Result<String> {
        let command = format!("create source {} app --interval 1h {}", self.command, self.flags);
        let printed = client.run(&command).await?;
        ensure!(printed.contains(self.created), "{command}: {printed}");
        let revision = fetched(&printed)?.to_owned();
        let short = revision.get(..12).unwrap_or(&revision);
        let get = format!("get sources {}", self.command);
        client.says(&get, &["app", short, "False", "True"]).await?;
        Ok(revision)
    }

    /// Reconciles it after a change, suspends and resumes it, exports and deletes it.
    async fn follow(&self, client: &Client<'_>, first: &str) -> Result<()> {
        let (command, kind) = (self.command, self.kind);
        let printed = client.run(&format!("reconcile source {command} app")).await?;
        let next = fetched(&printed)?;
        ensure!(next != first, "{kind} stays at {first}: {printed}");
        let suspended = format!("source {command} suspended");
        client
            .says(&format!("suspend source {command} app"), &[&suspended])
            .await?;
        let get = format!("get sources {command}");
        client.says(&get, &["app", "True"]).await?;
        let resumed = format!("{kind} app reconciliation completed");
        client
            .says(&format!("resume source {command} app"), &[&resumed, next])
            .await?;
        let listed = client.run(&get).await?;
        ensure!(listed.contains("False"), "it is resumed: {listed}");
        let lower = kind.to_lowercase();
        client.says("get sources all", &[&format!("{lower}/app")]).await?;
        let manifest = [&[kind], self.exported].concat();
        client
            .says(&format!("export source {command} app"), &manifest)
            .await?;
        client
            .says(&format!("events --for {kind}/app"), &["Normal"])
            .await?;
        let deleted = format!("source {command} deleted");
        client
            .says(&format!("delete source {command} app --silent"), &[&deleted])
            .await?;
        let gone = client.try_run(&format!("reconcile source {command} app")).await?;
        ensure!(!gone.0 && is_missing(&gone.1), "{}", gone.1);
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_create_and_follow_buckets_artifacts_and_charts() -> Result<()> {
    crate::init();
    for program in programs("of buckets, artifacts and charts")? {
        create_and_follow_sources(program).await?;
    }
    Ok(())
}

async fn create_and_follow_sources(program: PathBuf) -> Result<()> {
    let mut cluster = TestCluster::bare().await?;
    cluster.start("source-controller", &[]).await?;
    let (server, registry) = (
        S3Server::start().await?,
        Registry::start(Login::Anonymous, None).await?,
    );
    let client = Client {
        program,
        cluster: &cluster,
    };
    let chart = |version: &str| {
        let metadata = format!("apiVersion: v2\nname: shop\nversion: {version}\n");
        tar_gz(&[("shop/Chart.yaml", metadata.as_bytes())])
    };
    let push = async |content: &str| {
        let kinds = [
            "application/vnd.cncf.flux.config.v1+json",
            "application/vnd.cncf.flux.content.v1.tar+gzip",
        ];
        let layer = tar_gz(&[("a.yaml", content.as_bytes())]);
        registry.push("org/app", "latest", kinds, &layer).await
    };
    server.put("charts", &[("shop.tgz", chart("1.0.0"))]).await?;
    push("a: 1").await?;

    let endpoint = server.endpoint();
    let bucket = Source {
        command: "bucket",
        kind: "Bucket",
        flags: format!(
            "--bucket-name charts --endpoint {endpoint} --insecure --access-key {ACCESS_KEY} --secret-key {SECRET_KEY}"
        ),
        created: "Bucket source reconciliation completed",
        exported: &["bucketName: charts", "insecure: true", "name: bucket-app"],
    };
    let host = registry.host();
    let artifact = Source {
        command: "oci",
        kind: "OCIRepository",
        flags: format!("--url oci://{host}/org/app --tag latest --insecure"),
        created: "OCIRepository reconciliation completed",
        exported: &["tag: latest", "insecure: true", &host],
    };
    let chart_source = Source {
        command: "chart",
        kind: "HelmChart",
        flags: "--source Bucket/app --chart shop.tgz".to_owned(),
        created: "HelmChart source reconciliation completed",
        exported: &["chart: shop.tgz", "kind: Bucket"],
    };
    let first_bucket = bucket.create(&client).await?;
    let first_artifact = artifact.create(&client).await?;
    let first_chart = chart_source.create(&client).await?;
    ensure!(first_chart == "1.0.0", "{first_chart}");

    push("a: 2").await?;
    artifact.follow(&client, &first_artifact).await?;
    server.put("charts", &[("shop.tgz", chart("1.1.0"))]).await?;
    client
        .says(
            "reconcile source chart app --with-source",
            &[
                "annotating Bucket app",
                "annotating HelmChart app",
                "fetched revision 1.1.0",
            ],
        )
        .await?;
    chart_source.follow(&client, &first_chart).await?;
    bucket.follow(&client, &first_bucket).await?;
    cluster.stop().await
}

//! The real `flux` command line as a client of our controllers.

use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use e2e::cluster::{NAMESPACE, TestCluster};
use serde_json::json;
use testkit::{
    Registry, S3Server,
    archive::tar_gz,
    flux,
    registry::Login,
    s3::{ACCESS_KEY, SECRET_KEY},
    skipped,
};
use tokio::process::Command;

struct Flux<'a> {
    program: PathBuf,
    cluster: &'a TestCluster,
}

impl Flux<'_> {
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
    let index = "apiVersion: v1\nentries:\n  shop:\n  - {name: a, version: 1.0.0, urls: [shop.tgz]}\n";
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
    async fn create(&self, flux: &Flux<'_>) -> Result<String> {
        let command = format!("create source {} app --interval 1h {}", self.command, self.flags);
        let printed = flux.run(&command).await?;
        ensure!(printed.contains(self.created), "flux {command}: {printed}");
        let revision = fetched(&printed)?.to_owned();
        let short = revision.get(..12).unwrap_or(&revision);
        let get = format!("get sources {}", self.command);
        flux.says(&get, &["app", short, "False", "True"]).await?;
        Ok(revision)
    }

    /// Reconciles it after a change, suspends and resumes it, exports and deletes it.
    async fn follow(&self, flux: &Flux<'_>, first: &str) -> Result<()> {
        let (command, kind) = (self.command, self.kind);
        let printed = flux.run(&format!("reconcile source {command} app")).await?;
        let next = fetched(&printed)?;
        ensure!(next != first, "{kind} stays at {first}: {printed}");
        let suspended = format!("source {command} suspended");
        flux.says(&format!("suspend source {command} app"), &[&suspended])
            .await?;
        let get = format!("get sources {command}");
        flux.says(&get, &["app", "True"]).await?;
        let resumed = format!("{kind} app reconciliation completed");
        flux.says(&format!("resume source {command} app"), &[&resumed, next])
            .await?;
        let listed = flux.run(&get).await?;
        ensure!(listed.contains("False"), "it is resumed: {listed}");
        let lower = kind.to_lowercase();
        flux.says("get sources all", &[&format!("{lower}/app")]).await?;
        let manifest = [&[kind], self.exported].concat();
        flux.says(&format!("export source {command} app"), &manifest)
            .await?;
        flux.says(&format!("events --for {kind}/app"), &["Normal"])
            .await?;
        let deleted = format!("source {command} deleted");
        flux.says(&format!("delete source {command} app --silent"), &[&deleted])
            .await?;
        let gone = flux.try_run(&format!("reconcile source {command} app")).await?;
        ensure!(!gone.0 && gone.1.contains("not found"), "{}", gone.1);
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn flux_creates_and_follows_buckets_artifacts_and_charts() -> Result<()> {
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
    let (server, registry) = (
        S3Server::start().await?,
        Registry::start(Login::Anonymous, None).await?,
    );
    let flux = Flux {
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
    let first_bucket = bucket.create(&flux).await?;
    let first_artifact = artifact.create(&flux).await?;
    let first_chart = chart_source.create(&flux).await?;
    ensure!(first_chart == "1.0.0", "{first_chart}");

    push("a: 2").await?;
    artifact.follow(&flux, &first_artifact).await?;
    server.put("charts", &[("shop.tgz", chart("1.1.0"))]).await?;
    flux.says(
        "reconcile source chart app --with-source",
        &[
            "annotating Bucket app",
            "annotating HelmChart app",
            "fetched revision 1.1.0",
        ],
    )
    .await?;
    chart_source.follow(&flux, &first_chart).await?;
    bucket.follow(&flux, &first_bucket).await?;
    cluster.stop().await
}

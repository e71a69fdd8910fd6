//! Each command through the real kluctl-controller, with a real Git server.

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, api::ListParams};
use serde_json::json;
use testkit::{ControlPlane, Controller, GitServer, Page, Repo, WebServer, eventually, tls::Authority};

use super::{
    Fixture, TIMEOUT, config_map, delete_config_map, failed, logs, plane, stderr, stdout, succeeded,
};

/// A project in a repository, and a controller that watches its namespace.
pub(super) struct Real {
    pub(super) fixture: Fixture,
    pub(super) controller: Controller,
    pub(super) repo: Repo,
    pub(super) server: GitServer,
}

impl Real {
    async fn new(prefix: &str) -> Result<Self> {
        Self::with(prefix, &[]).await
    }

    /// Starts the controller with more flags.
    pub(super) async fn with(prefix: &str, flags: &[&str]) -> Result<Self> {
        Self::within(plane().await?, prefix, flags).await
    }

    /// Starts the controller with more flags in another control plane.
    pub(super) async fn within(plane: &'static ControlPlane, prefix: &str, flags: &[&str]) -> Result<Self> {
        let namespace = plane.namespace(prefix).await?;
        let server = GitServer::start()?;
        let repo = server.repo("shop")?;
        let fixture = Fixture::of_repository(plane, namespace, repo.url())?;
        let mut launch = Controller::named("kluctl-controller").run_by(plane.kubeconfig());
        for flag in flags {
            launch = launch.flag(flag);
        }
        let controller = launch
            .namespace(&fixture.namespace)
            .flag(&format!("--namespace={}", fixture.namespace))
            .flag(&format!("--command-result-namespace={}", fixture.results));
        let real = Self {
            controller: controller.start().await?,
            fixture,
            repo,
            server,
        };
        real.commit("m")?;
        Ok(real)
    }

    /// Commits the project with a ConfigMap of this name.
    fn commit(&self, name: &str) -> Result<()> {
        let config = self
            .fixture
            .read(".kluctl.yaml")?
            .replace("default: m", &format!("default: {name}"));
        let files = [
            ("deploy/.kluctl.yaml", config),
            ("deploy/deployment.yaml", self.fixture.read("deployment.yaml")?),
            ("deploy/app/m.yaml", self.fixture.read("app/m.yaml")?),
        ];
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
        self.repo.commit(name, &files)?;
        Ok(())
    }

    pub(super) async fn run(&self, words: &str) -> Result<std::process::Output> {
        let command = words.split(' ').next().unwrap_or_default();
        let results = match command {
            "reconcile" | "suspend" | "resume" | "logs" => String::new(),
            _ => format!("--command-result-namespace {}", self.fixture.results),
        };
        let yes = if matches!(command, "diff" | "logs") {
            ""
        } else {
            "--yes"
        };
        self.fixture.gitops(&format!("{words} {yes} {results}")).await
    }

    /// Returns the value of a ConfigMap.
    pub(super) async fn value(&self, name: &str) -> Result<Option<String>> {
        let map = config_map(self.fixture.plane, &self.fixture.namespace, name).await?;
        Ok(map.and_then(|map| map.data).and_then(|mut data| data.remove("a")))
    }

    async fn results(&self) -> Result<usize> {
        let client = self.fixture.plane.client().await?;
        let secrets: Api<Secret> = Api::namespaced(client, &self.fixture.results);
        let listed = secrets.list_metadata(&ListParams::default()).await?;
        Ok(listed.items.len())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_handled_while_the_deployment_is_suspended() -> Result<()> {
    let real = Real::new("gitops-real").await?;
    let namespace = &real.fixture.namespace;
    real.fixture.deployment("shop", json!({"suspend": true})).await?;

    let diff = succeeded(&real.run("diff").await?)?;
    assert_eq!(diff, format!("\nNew objects:\n  {namespace}/ConfigMap/m\n"));
    assert_eq!((real.value("m").await?, real.results().await?), (None, 0));

    let deployed = succeeded(&real.run("deploy").await?)?;
    assert_eq!(deployed, diff);
    assert_eq!(real.value("m").await?.as_deref(), Some("1"));
    ensure!(real.results().await? > 0);
    assert_eq!(succeeded(&real.run("deploy").await?)?, "");
    let validated = real.run("validate").await?;
    succeeded(&validated)?;
    ensure!(
        stderr(&validated).contains("Validation succeeded"),
        "{}",
        stderr(&validated)
    );

    // Overrides hold for one request.
    let overridden = succeeded(&real.run("deploy -a a=7 -o json").await?)?;
    let overridden: serde_json::Value = serde_json::from_str(&overridden)?;
    assert_eq!(overridden["overridesPatch"], json!({"spec": {"args": {"a": 7}}}));
    assert_eq!(real.value("m").await?.as_deref(), Some("7"));
    let tried = succeeded(&real.run("deploy --dry-run").await?)?;
    ensure!(tried.contains("Changed objects:"), "{tried}");
    assert_eq!(real.value("m").await?.as_deref(), Some("7"));
    assert_eq!(real.fixture.live("shop").await?["spec"].get("args"), None);

    delete_config_map(real.fixture.plane, namespace, "m").await?;
    let missing = real.run("validate").await?;
    ensure!(
        stdout(&missing).contains(&format!("{namespace}/ConfigMap/m: object not found")),
        "{}",
        stdout(&missing)
    );
    ensure!(failed(&missing)?.contains("Validation failed"));
    succeeded(&real.run("deploy").await?)?;

    real.commit("other")?;
    let orphan = succeeded(&real.run("deploy").await?)?;
    ensure!(
        orphan.contains(&format!("Orphan objects:\n  {namespace}/ConfigMap/m")),
        "{orphan}"
    );
    let pruned = succeeded(&real.run("prune").await?)?;
    ensure!(
        pruned.contains(&format!("Deleted objects:\n  {namespace}/ConfigMap/m")),
        "{pruned}"
    );
    assert_eq!(
        (real.value("m").await?, real.value("other").await?.is_some()),
        (None, true)
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn suspension_reconciliation_and_logs_work_with_the_controller() -> Result<()> {
    let real = Real::new("gitops-suspend").await?;
    let namespace = &real.fixture.namespace;
    real.fixture.deployment("shop", json!({"suspend": true})).await?;
    succeeded(&real.run("reconcile").await?)?;
    assert_eq!(real.value("m").await?.as_deref(), Some("1"));
    succeeded(&real.run("resume").await?)?;
    assert_eq!(real.fixture.live("shop").await?["spec"]["suspend"], json!(false));
    succeeded(&real.run("suspend").await?)?;
    assert_eq!(real.fixture.live("shop").await?["spec"]["suspend"], json!(true));

    // A project that can't be rendered is an error of the command.
    real.repo.commit(
        "broken",
        &[("deploy/deployment.yaml", "deployments: [{path: nowhere}]\n")],
    )?;
    let message = failed(&real.run("reconcile").await?)?;
    ensure!(message.contains("nowhere"), "{message}");

    // The log of the controller, as its Pod would have it.
    let about = |entry: &serde_json::Value| entry["name"] == "shop" && entry["reconcileID"].is_string();
    real.controller
        .wait_log("a line about the object", TIMEOUT, about)
        .await?;
    let log = real.controller.log();
    let log: String = log
        .lines()
        .map(|line| format!("2026-01-01T00:00:00Z {line}\n"))
        .collect();
    let server = WebServer::start_tls(Authority::new(&["127.0.0.1"])?)?;
    server.page(
        &format!("/containerLogs/{namespace}/controller/manager"),
        Page::Content(log.into()),
    );
    logs::pod(&real.fixture, &server, namespace).await?;
    let printed = succeeded(
        &real
            .run(&format!("logs --controller-namespace {namespace}"))
            .await?,
    )?;
    ensure!(
        printed.starts_with(&format!("--- {namespace}/shop, reconciliation ")),
        "{printed}"
    );

    // The results go with the object.
    ensure!(real.results().await? > 0);
    let kind = "kluctldeployments.gitops.kluctl.io";
    real.fixture
        .plane
        .kubectl(&["delete", kind, "shop", "-n", namespace])
        .await?;
    eventually("the results to be deleted", TIMEOUT, || async {
        let left = real.results().await?;
        (left == 0)
            .then_some(())
            .with_context(|| format!("{left} are left"))
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_of_the_command_line_are_adopted_without_being_recreated() -> Result<()> {
    let real = Real::new("gitops-adopt").await?;
    let (namespace, plane) = (&real.fixture.namespace, real.fixture.plane);
    let results = format!("--command-result-namespace {}", real.fixture.results);
    for name in ["other", "m"] {
        let words = format!("deploy --yes -a name={name} {results}");
        succeeded(&real.fixture.run(&words).await?)?;
    }
    let uid = async |name: &str| {
        let map = config_map(plane, namespace, name).await?;
        anyhow::Ok(map.and_then(|map| map.metadata.uid))
    };
    let before = uid("m").await?;
    ensure!(before.is_some() && uid("other").await?.is_some());

    // Objects that the command line left are orphans, since the discriminator is the same.
    real.fixture
        .deployment("shop", json!({"prune": true, "delete": true, "suspend": true}))
        .await?;
    succeeded(&real.run("reconcile").await?)?;
    assert_eq!((uid("m").await?, uid("other").await?), (before.clone(), None));
    real.fixture
        .deployment("shop", json!({"prune": true, "delete": true, "args": {"a": 2}}))
        .await?;
    eventually("the change of an argument", TIMEOUT, || async {
        ensure!(real.value("m").await?.as_deref() == Some("2"));
        Ok(())
    })
    .await?;
    assert_eq!(uid("m").await?, before);
    plane
        .kubectl(&[
            "delete",
            "kluctldeployments.gitops.kluctl.io",
            "shop",
            "-n",
            namespace,
        ])
        .await?;
    assert_eq!(uid("m").await?, None);
    Ok(())
}

//! The commands for Kustomizations.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use e2e::cluster::{NAMESPACE, TIMEOUT, TestCluster};
use serde_json::json;
use testkit::{Repo, stack, wait_gone};

use super::{Client, programs};

/// Writes the directory that the Kustomization deploys to a folder of this machine.
fn write(folder: &Path, value: &str) -> Result<()> {
    let app = folder.join("app");
    fs::create_dir_all(&app)?;
    fs::write(app.join("map.yaml"), map(value))?;
    fs::write(app.join("workload.yaml"), workload())?;
    fs::write(app.join("secret.yaml"), secret())?;
    Ok(())
}

fn map(value: &str) -> String {
    let object = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "namespace": NAMESPACE},
        "data": {"value": value, "region": "${region}"},
    });
    object.to_string()
}

fn secret() -> String {
    let object = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "password", "namespace": NAMESPACE},
        "stringData": {"password": "s3cret"},
    });
    object.to_string()
}

fn workload() -> String {
    let labels = json!({"app": "web"});
    let container = json!({
        "name": "web", "image": "registry.example.com/web:1.0.0", "ports": [{"containerPort": 80}],
        "resources": {"requests": {"cpu": "100m"}},
        "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}},
    });
    // The namespace enforces the restricted Pod Security Standard.
    let security = json!({"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}});
    let object = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": NAMESPACE},
        "spec": {
            "replicas": 1, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"securityContext": security, "containers": [container]}},
        },
    });
    object.to_string()
}

fn push(repo: &Repo, value: &str) -> Result<String> {
    let change = repo.change(value).write("app/map.yaml", map(value));
    let change = change
        .write("app/workload.yaml", workload())
        .write("app/secret.yaml", secret());
    Ok(format!("main@sha1:{}", change.push()?))
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_use_kustomizations() -> Result<()> {
    crate::init();
    for program in programs("of Kustomizations")? {
        use_kustomizations(program).await?;
    }
    Ok(())
}

async fn use_kustomizations(program: PathBuf) -> Result<()> {
    let mut cluster = TestCluster::bare().await?;
    for name in ["source-controller", "kustomize-controller"] {
        cluster.start(name, &[]).await?;
    }
    let client = Client {
        program,
        cluster: &cluster,
    };
    let repo = cluster.git.repo("client")?;
    let first = push(&repo, "1")?;
    let create = format!(
        "create source git app --url {} --branch main --interval 1h",
        repo.url()
    );
    client.says(&create, &[&first]).await?;
    created_and_listed(&client, &first).await?;
    let second = push(&repo, "2")?;
    reconciled_and_suspended(&client, &second).await?;
    explained(&client, &second).await?;
    built_and_compared(&client).await?;
    failures_are_reported(&client).await?;
    client
        .says("delete kustomization app --silent", &["kustomization deleted"])
        .await?;
    wait_gone(&cluster.kustomizations(), "app", TIMEOUT).await?;
    let (succeeded, printed) = client.try_run("reconcile kustomization app").await?;
    ensure!(!succeeded && printed.contains("not found"), "{printed}");
    cluster.stop().await
}

/// Shortens the commit of a revision, as tables of flux do.
fn short(revision: &str) -> Result<&str> {
    revision.get(..18).context("a revision")
}

async fn created_and_listed(client: &Client<'_>, revision: &str) -> Result<()> {
    let account = stack::DEPLOYER;
    let create = format!(
        "create kustomization app --source GitRepository/app --path ./app --prune --wait --interval 1h --service-account {account}"
    );
    client
        .says(
            &create,
            &["Kustomization app is ready", "applied revision", revision],
        )
        .await?;
    let applied = format!("Applied revision: {}", short(revision)?);
    let row = [
        "REVISION",
        "SUSPENDED",
        "app",
        short(revision)?,
        "False",
        "True",
        &applied,
    ];
    client.says("get kustomizations", &row).await?;
    client
        .says("get ks app --status-selector ready=true", &["app"])
        .await?;
    client
        .says("get all", &["gitrepository/app", "kustomization/app", &applied])
        .await?;
    let region = json!({"spec": {"postBuild": {"substitute": {"region": "eu"}}}});
    client.cluster.patch_kustomization("app", &region).await?;
    client
        .says("reconcile kustomization app", &["applied revision", revision])
        .await
}

async fn reconciled_and_suspended(client: &Client<'_>, next: &str) -> Result<()> {
    let steps = [
        "annotating GitRepository app",
        "fetched revision",
        "annotating Kustomization app",
        "applied revision",
        next,
    ];
    client
        .says("reconcile kustomization app --with-source", &steps)
        .await?;
    client
        .says("suspend kustomization app", &["kustomization suspended"])
        .await?;
    client.says("get kustomizations app", &["True"]).await?;
    let (succeeded, printed) = client.try_run("reconcile kustomization app").await?;
    ensure!(!succeeded && printed.contains("suspended"), "{printed}");
    let resumed = ["Kustomization app reconciliation completed", next];
    client.says("resume kustomization app", &resumed).await
}

async fn explained(client: &Client<'_>, revision: &str) -> Result<()> {
    let objects = [
        "Kustomization/flux-system/app",
        "ConfigMap/flux-system/settings",
        "Secret/flux-system/password",
        "Deployment/flux-system/web",
    ];
    client.says("tree kustomization app", &objects).await?;
    let events = [
        "ReconciliationSucceeded",
        "ConfigMap/flux-system/settings created",
        "Deployment/flux-system/web created",
        "Reconciliation finished in",
    ];
    client.says("events --for Kustomization/app", &events).await?;
    let manifest = [
        "kind: Kustomization",
        "path: ./app",
        "prune: true",
        "wait: true",
        "serviceAccountName: deployer",
    ];
    client.says("export kustomization app", &manifest).await?;
    let trace = [
        "web",
        "Kustomization:",
        "app",
        "GitRepository:",
        revision,
        "Last reconciled at",
    ];
    client.says("trace deployment web", &trace).await?;
    client
        .says("debug kustomization app --show-vars", &["region"])
        .await?;
    client
        .says(
            "debug kustomization app --show-status",
            &["lastAppliedRevision", revision],
        )
        .await?;
    client
        .says(
            "debug kustomization app --show-history",
            &["ReconciliationSucceeded"],
        )
        .await?;
    client.says("stats", &["Kustomization"]).await
}

/// A directory that doesn't exist fails the commands that wait, and is named in tables, as are missing objects.
async fn failures_are_reported(client: &Client<'_>) -> Result<()> {
    let path = json!({"spec": {"path": "./nowhere"}});
    client.cluster.patch_kustomization("app", &path).await?;
    let command = "reconcile kustomization app --timeout 10s";
    let (succeeded, printed) = client.try_run(command).await?;
    ensure!(!succeeded, "{printed}");
    client
        .says("get kustomizations app", &["False", "nowhere"])
        .await?;
    let (succeeded, printed) = client.try_run("get kustomizations absent").await?;
    ensure!(!succeeded && printed.contains("'absent' not found"), "{printed}");
    let path = json!({"spec": {"path": "./app"}});
    client.cluster.patch_kustomization("app", &path).await?;
    client
        .says("reconcile kustomization app", &["applied revision"])
        .await
}

/// Compares folders of this machine with the cluster: the deployed one is equal, another one differs.
async fn built_and_compared(client: &Client<'_>) -> Result<()> {
    let folder = tempfile::tempdir()?;
    write(folder.path(), "2")?;
    let path = folder.path().join("app");
    let path = path.display();
    let built = [
        "kustomize.toolkit.fluxcd.io/name: app",
        "kustomize.toolkit.fluxcd.io/namespace: flux-system",
        "region: eu",
        "image: registry.example.com/web:1.0.0",
    ];
    client
        .says(&format!("build kustomization app --path {path}"), &built)
        .await?;
    let diff = format!("diff kustomization app --path {path} --progress-bar=false");
    let (succeeded, printed) = client.try_run(&diff).await?;
    ensure!(succeeded && !printed.contains("drifted"), "{printed}");
    write(folder.path(), "3")?;
    let (succeeded, printed) = client.try_run(&diff).await?;
    ensure!(
        !succeeded && printed.contains("ConfigMap/flux-system/settings drifted"),
        "{printed}"
    );
    ensure!(!printed.contains("Deployment/flux-system/web"), "{printed}");
    fs::remove_file(folder.path().join("app/secret.yaml"))?;
    let (_, printed) = client.try_run(&diff).await?;
    ensure!(
        printed.contains("Secret/flux-system/password deleted"),
        "{printed}"
    );
    Ok(())
}

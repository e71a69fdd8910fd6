//! Local sources through the controller, which reads them from the command line.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use tempfile::TempDir;
use testkit::{ControlPlane, Options, Registry, eventually, ports, registry::Login};

use super::{TIMEOUT, controller::Real, failed, install_crds, stderr, succeeded};
use crate::program::files;

fn map(real: &Real, name: &str, value: &str) -> String {
    let namespace = &real.fixture.namespace;
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: {namespace}}}\ndata: {{a: {value}}}\n"
    )
}

/// Returns a directory with the projects `one` and `two`, each of a ConfigMap.
fn local(real: &Real) -> TempDir {
    let (one, two) = (map(real, "one", "o1"), map(real, "two", "o2"));
    files(&[
        ("one/deployment.yaml", "deployments: [{path: app}]"),
        ("one/app/m.yaml", &one),
        ("one/app/secret.yaml", "not: [yaml"),
        ("one/.gitignore", "/app/secret.yaml\n"),
        ("two/deployment.yaml", "deployments: [{path: app}]"),
        ("two/app/m.yaml", &two),
    ])
}

/// Starts a controller that listens for local sources, with the project of the KluctlDeployment `shop`, and returns the port.
async fn started(prefix: &str) -> Result<(Real, u16)> {
    let port = ports::free_port()?;
    let flag = format!("--source-override-bind-address=127.0.0.1:{port}");
    let real = Real::with(prefix, &[&flag]).await?;
    Ok((real, port))
}

/// Commits a project that includes these two. The local project, which the port offers too, is the same.
fn including(real: &Real, items: &[String; 2]) -> Result<()> {
    let items = format!("deployments: [{}]", items.join(", "));
    let config = format!("discriminator: {}\n", real.fixture.namespace);
    let files = [
        ("deploy/deployment.yaml", items.as_str()),
        ("deploy/.kluctl.yaml", config.as_str()),
    ];
    for (path, text) in files {
        std::fs::write(real.fixture.dir.path().join(path), text)?;
    }
    real.repo.commit("including", &files)?;
    Ok(())
}

/// Deploys with these flags, and compares the values of both ConfigMaps.
async fn deploys(real: &Real, flags: &str, values: [&str; 2]) -> Result<()> {
    let name = format!("--name shop -n {}", real.fixture.namespace);
    succeeded(&real.run(&format!("deploy {name} {flags}")).await?)?;
    let found = (real.value("one").await?, real.value("two").await?);
    assert_eq!(
        found,
        (Some(values[0].to_owned()), Some(values[1].to_owned())),
        "{flags}"
    );
    Ok(())
}

/// Deploys without overrides, with overrides of the repositories, and of their group, each time followed by a deployment without.
async fn overrides_hold_once(real: &Real, port: u16, kind: &str, keys: [&str; 2], group: &str) -> Result<()> {
    let dir = local(real);
    let shown = |below: &str| dir.path().join(below).display().to_string();
    real.fixture
        .deployment("shop", json!({ "suspend": true }))
        .await?;
    let remote = ["v", "v"];
    deploys(real, "", remote).await?;
    let connection = format!(
        "--local-source-override-port {port} --controller-namespace {}",
        real.fixture.namespace
    );
    let single = format!(
        "--local-{kind}-override {}={} --local-{kind}-override {}={} {connection}",
        keys[0],
        shown("one"),
        keys[1],
        shown("two")
    );
    deploys(real, &single, ["o1", "o2"]).await?;
    deploys(real, "", remote).await?;
    let group = format!("--local-{kind}-group-override {group}={} {connection}", shown(""));
    deploys(real, &group, ["o1", "o2"]).await?;
    deploys(real, "", remote).await?;
    // Repositories that a group doesn't have are fetched.
    std::fs::remove_dir_all(dir.path().join("two"))?;
    deploys(real, &group, ["o1", "v"]).await
}

#[tokio::test(flavor = "multi_thread")]
async fn local_directories_replace_git_repositories_for_one_request() -> Result<()> {
    let (real, port) = started("gitops-local-git").await?;
    let mut items = Vec::new();
    let mut keys = Vec::new();
    for name in ["one", "two"] {
        let repo = real.server.repo(&format!("group/{name}"))?;
        let manifest = map(&real, name, "v");
        repo.commit(
            "1",
            &[
                ("deployment.yaml", "deployments: [{path: app}]"),
                ("app/m.yaml", &manifest),
            ],
        )?;
        items.push(format!("{{git: {{url: '{}'}}}}", repo.url()));
        let (_, key) = repo
            .url()
            .split_once("://")
            .map(|(a, b)| (a.to_owned(), b.to_owned()))
            .context("a URL")?;
        keys.push(key);
    }
    let [Some(one), Some(two)] = [items.pop(), items.pop()] else {
        anyhow::bail!("no items")
    };
    including(&real, &[two, one])?;
    let group = Path::new(&keys[0])
        .parent()
        .context("a folder")?
        .display()
        .to_string();
    let keys = [format!("git://{}", keys[0]), keys[1].clone()];
    overrides_hold_once(&real, port, "git", [&keys[0], &keys[1]], &group).await
}

#[tokio::test(flavor = "multi_thread")]
async fn local_directories_replace_oci_artifacts_for_one_request() -> Result<()> {
    let (real, port) = started("gitops-local-oci").await?;
    let registry = Registry::start(Login::Anonymous, None).await?;
    let mut items = Vec::new();
    for name in ["one", "two"] {
        let manifest = map(&real, name, "v");
        let dir = files(&[
            ("deployment.yaml", "deployments: [{path: app}]"),
            ("app/m.yaml", &manifest),
        ]);
        let url = format!("oci://{}/org/{name}", registry.host());
        let push = format!("oci push --url {url}:v1 --project-dir {}", dir.path().display());
        succeeded(&real.fixture.run(&push).await?)?;
        items.push(format!("{{oci: {{url: '{url}', ref: {{tag: v1}}}}}}"));
    }
    let items: [String; 2] = items.try_into().ok().context("two items")?;
    including(&real, &items)?;
    let host = registry.host();
    let keys = [format!("{host}/org/one"), format!("oci://{host}/org/two")];
    let group = format!("{host}/org");
    overrides_hold_once(&real, port, "oci", [&keys[0], &keys[1]], &group).await
}

#[tokio::test(flavor = "multi_thread")]
async fn local_project_replaces_its_repository_through_the_port() -> Result<()> {
    let (real, port) = started("gitops-local-own").await?;
    let namespace = real.fixture.namespace.clone();
    real.fixture
        .deployment("shop", json!({ "suspend": true }))
        .await?;
    succeeded(&real.run("deploy").await?)?;
    assert_eq!(real.value("m").await?.as_deref(), Some("1"));
    let config = real
        .fixture
        .read(".kluctl.yaml")?
        .replace("default: '1'", "default: '2'");
    std::fs::write(real.fixture.dir.path().join("deploy/.kluctl.yaml"), config)?;
    let connection = format!("--local-source-override-port {port} --controller-namespace {namespace}");
    let diff = succeeded(&real.run(&format!("diff {connection}")).await?)?;
    ensure!(diff.contains("Changed objects:"), "{diff}");
    assert_eq!(real.value("m").await?.as_deref(), Some("1"));
    succeeded(&real.run(&format!("deploy {connection}")).await?)?;
    assert_eq!(real.value("m").await?.as_deref(), Some("2"));

    // Without a connection nothing is requested.
    let dir = real.fixture.dir.path().join("deploy");
    let flags = format!("--local-git-override example.com/x={}", dir.display());
    let other = ports::free_port()?;
    let flags = format!("{flags} --local-source-override-port {other} --controller-namespace {namespace}");
    let message = failed(&real.run(&format!("deploy {flags}")).await?)?;
    ensure!(message.contains(&format!("local port {other}")), "{message}");
    Ok(())
}

/// Creates the Pod of the controller, whose ports lead to the test's controller, and waits until it is ready.
async fn pod(real: &Real) -> Result<()> {
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "controller", "namespace": real.fixture.namespace, "labels": {"control-plane": "kluctl-controller"}},
        "spec": {"containers": [
            {"name": "manager", "image": "weir", "ports": [{"name": "source-override", "containerPort": 8082}]}
        ]},
    });
    real.fixture.plane.apply(pod).await?;
    eventually("the Pod to be ready", TIMEOUT, || async {
        let ready = [
            "get",
            "pod",
            "controller",
            "-n",
            &real.fixture.namespace,
            "-o",
            "jsonpath={.status.conditions[?(@.type=='Ready')].status}",
        ];
        ensure!(real.fixture.plane.kubectl(&ready).await? == "True");
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn local_project_replaces_its_repository_through_the_cluster() -> Result<()> {
    let port = ports::free_port()?;
    let options = Options {
        forwarded_port: Some(port),
        ..Options::default()
    };
    let plane = ControlPlane::lent(options).await?;
    install_crds(plane.get()).await?;
    let flag = format!("--source-override-bind-address=127.0.0.1:{port}");
    let real = Real::within(plane.get(), "gitops-forward", &[&flag]).await?;
    let namespace = real.fixture.namespace.clone();
    real.fixture
        .deployment("shop", json!({ "suspend": true }))
        .await?;
    let config = real
        .fixture
        .read(".kluctl.yaml")?
        .replace("default: '1'", "default: '2'");
    std::fs::write(real.fixture.dir.path().join("deploy/.kluctl.yaml"), config)?;

    // Without a Pod that has the port, the repository is deployed, unless a flag names local sources.
    let place = format!("--controller-namespace {namespace}");
    let deployed = real.run(&format!("deploy {place}")).await?;
    succeeded(&deployed)?;
    let unread = "changes that are not committed";
    ensure!(stderr(&deployed).contains(unread), "{}", stderr(&deployed));
    assert_eq!(real.value("m").await?.as_deref(), Some("1"));
    let dir = real.fixture.dir.path().join("deploy");
    let named = format!("--local-git-override example.com/x={}", dir.display());
    let message = failed(&real.run(&format!("deploy {place} {named}")).await?)?;
    ensure!(message.contains("a port named source-override"), "{message}");

    pod(&real).await?;
    let diff = real.run(&format!("diff {place}")).await?;
    ensure!(
        succeeded(&diff)?.contains("Changed objects:"),
        "{}",
        stderr(&diff)
    );
    assert_eq!(real.value("m").await?.as_deref(), Some("1"));
    let deployed = real.run(&format!("deploy {place}")).await?;
    succeeded(&deployed)?;
    let message = stderr(&deployed);
    ensure!(message.contains("The controller reads git://"), "{message}");
    ensure!(
        message.contains("Deployed ") && message.contains(": 1 changed object"),
        "{message}"
    );
    assert_eq!(real.value("m").await?.as_deref(), Some("2"));
    let again = real.run(&format!("deploy {place}")).await?;
    ensure!(stderr(&again).contains(": no changes"), "{}", stderr(&again));
    let audit = plane.get().audit()?;
    ensure!(
        audit
            .iter()
            .any(|entry| entry.subresource == "portforward" && entry.code == 101)
    );

    // The port is closed.
    drop(real.controller);
    let message = failed(
        &real
            .fixture
            .gitops(&format!("deploy --yes {place} {named}"))
            .await?,
    )?;
    ensure!(
        message.contains(&format!(
            "the controller at port 8082 of Pod {namespace}/controller"
        )),
        "{message}"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn source_override_without_its_command_line_is_an_error_of_the_request() -> Result<()> {
    let (real, port) = started("gitops-local-gone").await?;
    let key = real.fixture.url.replacen("http", "git", 1);
    let url = format!("grpc+source-override://localhost:{port}/{}", "0".repeat(64));
    let sources = json!([{ "repoKey": key, "url": url }]);
    real.fixture
        .deployment("shop", json!({ "suspend": true, "sourceOverrides": sources }))
        .await?;
    let message = failed(&real.run("deploy").await?)?;
    ensure!(
        message.contains("the command line is not connected any more"),
        "{message}"
    );
    Ok(())
}

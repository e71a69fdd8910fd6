//! Local sources, step by step as in kluctl's end-to-end suite.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value as Json, json};
use testkit::{
    Registry,
    registry::{Login, PASSWORD, USER},
};

use super::{
    succeeded,
    suite::{Project, Suite},
};

/// Deploys a project that includes `include1` and `include2`, of which the second one is in a directory, with their local copies by
/// `single`, then with the copies in one folder by `group`, each time followed by a deployment without.
async fn local_copies_replace(
    project: &Project<'_>,
    single: impl Fn(&str, usize) -> String,
    group: impl Fn(&str) -> String,
) -> Result<()> {
    let namespace = &project.name;
    let map = |name: &str, value: &str| {
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}-cm, namespace: {namespace}}}\ndata: {{a: {value}}}\n"
        )
    };
    let copies = crate::program::files(&[
        ("include1/deployment.yml", "deployments: [{path: cm}]"),
        ("include1/cm/configmap.yml", &map("include1", "o1")),
        ("include2/subDir/deployment.yml", "deployments: [{path: cm}]"),
        ("include2/subDir/cm/configmap.yml", &map("include2", "o2")),
    ]);
    let values = async || -> Result<[Json; 2]> {
        Ok([
            project.data("include1-cm").await?["a"].clone(),
            project.data("include2-cm").await?["a"].clone(),
        ])
    };
    project.create("test", Json::Null).await?;
    succeeded(&project.gitops("deploy", "").await?)?;
    assert_eq!(values().await?, ["v", "v"]);
    project.change(json!({"suspend": true})).await?;
    project.reconcile().await?;
    let port = format!("--local-source-override-port {}", project.suite.port);
    let shown = |below: &str| copies.path().join(below).display().to_string();
    let singles = format!(
        "{} {}",
        single(&shown("include1"), 1),
        single(&shown("include2"), 2)
    );
    for flags in [singles, group(&shown(""))] {
        assert_eq!(
            project.counts("deploy", &format!("{flags} {port}")).await?,
            [0, 2, 0, 0],
            "{flags}"
        );
        assert_eq!(values().await?, ["o1", "o2"], "{flags}");
        succeeded(&project.gitops("deploy", "").await?)?;
        assert_eq!(values().await?, ["v", "v"]);
    }
    Ok(())
}

/// The project that the suite includes: one ConfigMap, with its values in the repository.
fn included(name: &str, namespace: &str, dir: &str) -> [(String, String); 2] {
    [
        (
            format!("{dir}deployment.yml"),
            "deployments: [{path: cm}]".to_owned(),
        ),
        (
            format!("{dir}cm/configmap.yml"),
            format!(
                "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}-cm, namespace: {namespace}}}\ndata: {{a: v}}\n"
            ),
        ),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn local_git_overrides_of_the_suite_reach_the_controller() -> Result<()> {
    let suite = Suite::start("suite-git").await?;
    let mut project = suite.project("suite-git-p").await?;
    project.words = format!("--controller-namespace {}", suite.system);
    project.targets.push("{name: test}".to_owned());
    let mut keys = Vec::new();
    for (name, dir) in [("include1", ""), ("include2", "subDir/")] {
        let repo = suite.server.repo(&format!("{}/repos/{name}", project.name))?;
        let files = included(name, &project.name, dir);
        let files = files
            .each_ref()
            .map(|(path, text)| (path.as_str(), text.as_str()));
        repo.commit("1", &files)?;
        let url = repo.url().trim_end_matches(".git").to_owned();
        let key = url.split_once("://").context("a URL")?.1.to_owned();
        let item = match dir {
            "" => json!({"git": {"url": url}}),
            _ => json!({"git": {"url": url, "subDir": "subDir"}}),
        };
        project.includes.push(item);
        keys.push(format!("git://{key}"));
    }
    project.push()?;
    let folder = keys[0].trim_end_matches("/include1").to_owned();
    local_copies_replace(
        &project,
        |dir, nth| format!("--local-git-override {}={dir}", keys[nth - 1]),
        |dir| format!("--local-git-group-override {folder}={dir}"),
    )
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn local_oci_overrides_of_the_suite_reach_the_controller() -> Result<()> {
    let suite = Suite::start("suite-oci").await?;
    let mut project = suite.project("suite-oci-p").await?;
    project.words = format!("--controller-namespace {}", suite.system);
    project.targets.push("{name: test}".to_owned());
    let registry = Registry::start(Login::Anonymous, None).await?;
    let host = registry.host();
    for (name, dir) in [("include1", ""), ("include2", "subDir/")] {
        let mut source = suite.project(&format!("suite-oci-{name}")).await?;
        source.files.extend(included(name, &project.name, dir));
        source.push()?;
        let url = format!("oci://{host}/org1/{name}");
        let again = format!("--project-dir {}", source.dir.path().display());
        succeeded(&source.weir(&format!("oci push --url {url} {again}")).await?)?;
        let item = match dir {
            "" => json!({"oci": {"url": url}}),
            _ => json!({"oci": {"url": url, "subDir": "subDir"}}),
        };
        project.includes.push(item);
    }
    project.push()?;
    local_copies_replace(
        &project,
        |dir, nth| format!("--local-oci-override {host}/org1/include{nth}={dir}"),
        |dir| format!("--local-oci-group-override {host}/org1={dir}"),
    )
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn oci_includes_of_the_suite_need_the_login_of_each_registry() -> Result<()> {
    let suite = Suite::start("suite-login").await?;
    let mut project = suite.project("suite-login-p").await?;
    project.targets.push("{name: test}".to_owned());
    let start = || Registry::start(Login::Basic, None);
    let registries = [start().await?, start().await?, start().await?, start().await?];
    let push = async |source: &Project<'_>, nth: usize| -> Result<String> {
        let host = registries[nth].host();
        let url = format!("oci://{host}/org{nth}/repo{nth}");
        let login = format!("--registry-creds {host}={USER}:{PASSWORD}");
        succeeded(&source.weir(&format!("oci push --url {url} {login}")).await?)?;
        Ok(url)
    };
    for (nth, dir) in [(1, ""), (2, "subDir/"), (3, "")] {
        let mut source = suite.project(&format!("suite-login-{nth}")).await?;
        source
            .files
            .extend(included(&format!("include{nth}"), &project.name, dir));
        source.push()?;
        source.commit_copy()?;
        let mut item = json!({"oci": {"url": push(&source, nth).await?}});
        if !dir.is_empty() {
            item["oci"]["subDir"] = json!("subDir");
        }
        project.includes.push(item);
    }
    project.push()?;
    let commit = project.commit_copy()?;
    let url = push(&project, 0).await?;
    project
        .create_from(json!({"oci": {"url": url}}), "test", Json::Null)
        .await?;
    let status = project.reconcile().await?;
    let error = status["lastPrepareError"].as_str().unwrap_or_default();
    ensure!(error.contains("401 Unauthorized"), "{status}");
    ensure!(
        status["observedCommit"].as_str().unwrap_or_default().is_empty(),
        "{status}"
    );
    assert_eq!(ready(&status), ("False", "PrepareFailed"));

    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login", "namespace": suite.namespace},
        "stringData": {"username": USER, "password": PASSWORD, "plain_http": "true"},
    });
    suite.plane.apply(secret).await?;
    let patterns = ["org0/repo0", "org1/repo1", "*/repo2", "org3/*"];
    let logins = registries.iter().zip(patterns).map(|(registry, pattern)| {
        json!({"registry": registry.host(), "repository": pattern, "secretRef": {"name": "login"}})
    });
    let logins: Vec<Json> = logins.collect();
    project.change(json!({"credentials": {"oci": logins}})).await?;
    let status = project.reconcile().await?;
    assert_eq!(status["observedCommit"], json!(commit), "{status}");
    assert_eq!(ready(&status).0, "True", "{status}");
    for nth in 1..=3 {
        assert_eq!(
            project.data(&format!("include{nth}-cm")).await?,
            json!({"a": "v"})
        );
    }
    Ok(())
}

/// Returns status and reason of Ready.
fn ready(status: &Json) -> (&str, &str) {
    let conditions = status["conditions"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let ready = conditions.iter().find(|one| one["type"] == "Ready");
    let field = |name: &str| ready.and_then(|ready| ready[name].as_str()).unwrap_or_default();
    (field("status"), field("reason"))
}

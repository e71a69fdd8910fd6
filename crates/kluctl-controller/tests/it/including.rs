//! Git repositories that a project includes, with the credentials of its GitRepository.

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use testkit::{GitServer, Repo, manifest, wait_for};

use crate::{
    fixture::{Fixture, TIMEOUT, config_map, grant_in, message_of},
    source::OfferedSource,
};

const USER: &str = "me";
const PASSWORD: &str = "s3cret";

/// A repository with a project of one ConfigMap, which needs a password.
fn private(server: &GitServer, value: &str) -> Result<Repo> {
    let repo = server.repo("base")?;
    repo.commit(
        "1",
        &files(value)
            .iter()
            .map(|(a, b)| (*a, b.as_str()))
            .collect::<Vec<_>>(),
    )?;
    repo.require_basic_auth(USER, PASSWORD);
    Ok(repo)
}

fn files(value: &str) -> [(&'static str, String); 2] {
    let deployment = "deployments:\n- path: app\n".to_owned();
    [
        ("deployment.yaml", deployment),
        ("app/a.yaml", config_map("a", value)),
    ]
}

impl Fixture {
    /// The files of a project that includes a repository.
    fn including(&self, url: &str) -> Vec<(String, String)> {
        let mut files = self.maps(&[]);
        files.retain(|(path, _)| path == ".kluctl.yaml");
        let text = format!(
            "overrideNamespace: {}\ndeployments:\n- git:\n    url: {url}\n",
            self.namespace
        );
        files.push(("deployment.yaml".to_owned(), text));
        files
    }

    /// Makes a GitRepository with a Secret in a namespace, which offers these files.
    async fn repository(
        &self,
        namespace: &str,
        url: &str,
        files: &[(String, String)],
    ) -> Result<OfferedSource> {
        let repository = manifest::git_repository(namespace, "shop", url);
        let mut repository = Value::from(repository.spec(json!({ "secretRef": { "name": "git" } })));
        repository["apiVersion"] = json!("source.toolkit.fluxcd.io/v1");
        self.plane.apply(repository.clone()).await?;
        let (api, _) = self.plane.api_for(repository).await?;
        let source = OfferedSource {
            api,
            name: "shop".to_owned(),
        };
        source.offer(files).await?;
        Ok(source)
    }

    async fn git_secret(&self, namespace: &str, password: &str) -> Result<()> {
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "git", "namespace": namespace },
            "stringData": { "username": USER, "password": password },
        });
        self.plane.apply(secret).await?;
        Ok(())
    }
}

#[tokio::test]
async fn included_repository_gets_the_credentials_of_its_server_and_is_followed() -> Result<()> {
    let fixture = Fixture::new("include", &[]).await?;
    let server = GitServer::start()?;
    let repo = private(&server, "1")?;
    let files_of_project = fixture.including(&repo.url());
    let own = format!("{}/shop", server.origin());
    fixture
        .repository(&fixture.namespace, &own, &files_of_project)
        .await?;
    fixture.deploy("shop", json!({ "interval": "1s" })).await?;
    // Without the Secret there are no credentials.
    let object = fixture.ready("shop", "False", "PrepareFailed").await?;
    ensure!(
        message_of(&object).contains("authentication"),
        "{}",
        message_of(&object)
    );
    fixture.git_secret(&fixture.namespace, PASSWORD).await?;
    fixture.holds("a", "1").await?;

    let (path, text) = ("app/a.yaml", config_map("a", "2"));
    let commit = repo.commit("2", &[(path, &text)])?;
    fixture.holds("a", "2").await?;
    let object = wait_for(
        &fixture.deployments(),
        "shop",
        "the new commit",
        TIMEOUT,
        |object| {
            let status = serde_json::to_value(&object.status).unwrap_or_default();
            status["involvedRepos"][0]["patterns"][0]["refs"]["HEAD"] == json!(commit)
        },
    )
    .await?;
    let status = serde_json::to_value(&object.status)?;
    assert_eq!(status["involvedRepos"][0]["url"], json!(repo.url()));
    ensure!(!status.to_string().contains(PASSWORD));

    fixture.git_secret(&fixture.namespace, "wr0ng").await?;
    let object = fixture.ready("shop", "False", "PrepareFailed").await?;
    ensure!(!message_of(&object).contains("wr0ng"), "{}", message_of(&object));
    Ok(())
}

#[tokio::test]
async fn included_repository_of_another_server_needs_a_flag_for_credentials() -> Result<()> {
    let (server, other) = (GitServer::start()?, GitServer::start()?);
    let repo = private(&other, "1")?;
    let own = format!("{}/shop", server.origin());
    for (hosts, expected) in [("example.com", false), ("example.com,127.0.0.1", true)] {
        let fixture = Fixture::new("hosts", &[&format!("--git-credentials-hosts={hosts}")]).await?;
        fixture.git_secret(&fixture.namespace, PASSWORD).await?;
        fixture
            .repository(&fixture.namespace, &own, &fixture.including(&repo.url()))
            .await?;
        fixture.deploy("shop", json!({})).await?;
        if expected {
            fixture.holds("a", "1").await?;
        } else {
            let object = fixture.ready("shop", "False", "PrepareFailed").await?;
            ensure!(
                message_of(&object).contains("--git-credentials-hosts"),
                "{}",
                message_of(&object)
            );
            let asked = repo.requests();
            ensure!(
                asked
                    .iter()
                    .all(|request| !format!("{request:?}").contains("Basic")),
                "{asked:?}"
            );
        }
    }
    Ok(())
}

#[tokio::test]
async fn credentials_of_another_namespace_need_the_rights_of_the_tenant() -> Result<()> {
    let fixture = Fixture::new("tenant", &[]).await?;
    let owner = fixture.plane.namespace("owner").await?;
    let server = GitServer::start()?;
    let repo = private(&server, "1")?;
    let own = format!("{}/shop", server.origin());
    fixture.git_secret(&owner, PASSWORD).await?;
    fixture
        .repository(&owner, &own, &fixture.including(&repo.url()))
        .await?;
    fixture
        .plane
        .service_account_kubeconfig(&fixture.namespace, "tenant")
        .await?;
    grant_in(fixture.plane, &fixture.namespace, (&fixture.namespace, "tenant")).await?;
    let spec = json!({
        "sourceRef": { "kind": "GitRepository", "name": "shop", "namespace": owner },
        "serviceAccountName": "tenant", "interval": "1s", "prune": false,
    });
    fixture.deploy("shop", spec).await?;
    let object = fixture.ready("shop", "False", "PrepareFailed").await?;
    ensure!(
        message_of(&object).contains("authentication"),
        "{}",
        message_of(&object)
    );

    grant_in(fixture.plane, &owner, (&fixture.namespace, "tenant")).await?;
    fixture.holds("a", "1").await?;
    Ok(())
}

#[tokio::test]
async fn repository_of_the_spec_is_fetched_and_followed() -> Result<()> {
    let fixture = Fixture::new("source", &[]).await?;
    let server = GitServer::start()?;
    let repo = server.repo("shop")?;
    let commit = |value: &str| {
        let files = fixture.maps(&[("a", value)]);
        let files = files
            .iter()
            .map(|(path, text)| (format!("deploy/{path}"), text.as_str()));
        let files: Vec<_> = files.collect();
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        repo.commit(value, &files)
    };
    let first = commit("1")?;
    repo.require_basic_auth(USER, PASSWORD);
    let source = json!({
        "url": repo.url(), "ref": { "branch": "main" }, "path": "deploy", "secretRef": { "name": "git" },
    });
    let spec = json!({ "sourceRef": null, "path": null, "source": source, "interval": "1s" });
    fixture.deploy("shop", spec).await?;
    let object = fixture.ready("shop", "False", "PrepareFailed").await?;
    ensure!(
        message_of(&object).contains("authentication"),
        "{}",
        message_of(&object)
    );
    fixture.git_secret(&fixture.namespace, PASSWORD).await?;
    fixture
        .deployed("shop", &format!("refs/heads/main/{first}"))
        .await?;
    fixture.holds("a", "1").await?;

    let second = commit("2")?;
    fixture
        .deployed("shop", &format!("refs/heads/main/{second}"))
        .await?;
    fixture.holds("a", "2").await?;

    fixture
        .edit("shop", json!({ "source": { "path": "nowhere" } }))
        .await?;
    let object = fixture.ready("shop", "False", "PrepareFailed").await?;
    assert_eq!(message_of(&object), "kluctlDeployment path not found: nowhere");
    fixture.edit("shop", json!({ "path": "deploy" })).await?;
    let object = fixture.ready("shop", "False", "InvalidSpec").await?;
    assert_eq!(
        message_of(&object),
        "path and source can't be specified at the same time"
    );
    fixture.holds("a", "2").await?;
    Ok(())
}

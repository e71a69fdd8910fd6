//! Sources and included sources of KluctlDeployments of gitops.kluctl.io, as the original's end-to-end suite uses them.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use testkit::{
    GitServer, Registry,
    archive::tar_gz,
    registry::{Login, PASSWORD, USER},
};

use crate::{
    fixture::config_map,
    gitops::{Gitops, ready_of},
};

const SUCCEEDED: &str = "ReconciliationSucceeded";
const FAILED: &str = "PrepareFailed";
const NO_DETAILS: &str = "prepare failed. Check status.lastPrepareError for details";

/// Returns a project as `oci push` packs it.
pub(crate) fn packed(files: &[(String, String)], dir: &str) -> Vec<u8> {
    let files: Vec<(String, &[u8])> = files
        .iter()
        .map(|(path, text)| (format!("{dir}{path}"), text.as_bytes()))
        .collect();
    let files: Vec<(&str, &[u8])> = files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
    tar_gz(&files)
}

/// Returns a project that includes these sources.
fn including(shop: &Gitops, items: &str) -> Vec<(String, String)> {
    let mut files = shop.fixture.maps(&[]);
    files.retain(|(path, _)| path == ".kluctl.yaml");
    let namespace = &shop.fixture.namespace;
    let text = format!("overrideNamespace: {namespace}\ndeployments:\n{items}");
    files.push(("deployment.yaml".to_owned(), text));
    files
}

/// Returns a project with one ConfigMap that others include.
fn included(name: &str, dir: &str) -> Vec<(String, String)> {
    [
        ("deployment.yaml", "deployments:\n- path: app\n".to_owned()),
        ("app/map.yaml", config_map(name, "1")),
    ]
    .map(|(path, text)| (format!("{dir}{path}"), text))
    .into()
}

#[tokio::test]
async fn path_of_a_git_source_selects_the_project() -> Result<()> {
    let shop = Gitops::original("gs-git").await?;
    let files = shop.fixture.maps(&[("a", "1")]);
    let files: Vec<_> = files
        .into_iter()
        .map(|(path, text)| (format!("subDir/{path}"), text))
        .collect();
    let commit = shop.push_files(&files, &[])?;
    shop.create("shop", json!({})).await?;
    let (reason, message, error) = shop.outcome("shop").await?;
    assert_eq!(
        (reason.as_str(), message.as_str()),
        (FAILED, NO_DETAILS),
        "{error}"
    );
    assert_eq!(error, "target test not existent in kluctl project config");
    let status = shop.ready("shop", FAILED).await?;
    assert_eq!(status.observed_commit, Some(commit.clone()));

    shop.change("shop", json!({ "source": { "git": { "path": "subDir" } } }))
        .await?;
    let status = shop.reconcile("shop").await?;
    assert_eq!(ready_of(&status).0, SUCCEEDED, "{status:?}");
    assert_eq!(status.observed_commit, Some(commit));
    let key = status.project_key.context("a key")?;
    assert_eq!(key.sub_dir.as_deref(), Some("subDir"));
    assert_eq!(shop.value("a").await?.as_deref(), Some("1"));
    Ok(())
}

#[tokio::test]
async fn path_of_an_oci_source_selects_the_project_and_its_commit_is_known() -> Result<()> {
    let shop = Gitops::original("gs-oci").await?;
    let registry = Registry::start(Login::Anonymous, None).await?;
    let commit = "3b18e512dba79e4c8300dd08aeb37f8e728b8dad";
    let archive = packed(&shop.fixture.maps(&[("a", "1")]), "subDir/");
    registry
        .push_project("org/repo", "latest", &archive, commit)
        .await?;
    let url = format!("oci://{}/org/repo", registry.host());
    shop.create("shop", json!({ "source": { "oci": { "url": url } } }))
        .await?;
    let (reason, message, error) = shop.outcome("shop").await?;
    assert_eq!(
        (reason.as_str(), message.as_str()),
        (FAILED, NO_DETAILS),
        "{error}"
    );
    assert_eq!(error, "target test not existent in kluctl project config");
    let status = shop.ready("shop", FAILED).await?;
    assert_eq!(status.observed_commit.as_deref(), Some(commit));

    shop.change("shop", json!({ "source": { "oci": { "path": "subDir" } } }))
        .await?;
    let status = shop.reconcile("shop").await?;
    assert_eq!(ready_of(&status).0, SUCCEEDED, "{status:?}");
    assert_eq!(status.observed_commit.as_deref(), Some(commit));
    let key = status.project_key.context("a key")?;
    ensure!(
        key.repo_key
            .as_deref()
            .is_some_and(|key| key.starts_with("oci://") && key.ends_with("/org/repo")),
        "{key:?}"
    );
    assert_eq!(shop.value("a").await?.as_deref(), Some("1"));

    // Tags and digests select artifacts.
    let archive = packed(&shop.fixture.maps(&[("a", "2")]), "subDir/");
    let digest = registry.push_project("org/repo", "v2", &archive, commit).await?;
    for (reference, value) in [
        (json!({ "tag": "v2" }), "2"),
        (json!({ "tag": "latest" }), "1"),
        (json!({ "tag": null, "digest": digest }), "2"),
    ] {
        shop.change("shop", json!({ "source": { "oci": { "ref": reference } } }))
            .await?;
        let status = shop.reconcile("shop").await?;
        assert_eq!(ready_of(&status).0, SUCCEEDED, "{status:?}");
        assert_eq!(shop.value("a").await?.as_deref(), Some(value), "{reference}");
    }
    Ok(())
}

#[tokio::test]
async fn included_git_repositories_get_the_credentials_of_their_host_and_path() -> Result<()> {
    let shop = Gitops::original("gs-include").await?;
    let (other, open) = (GitServer::start()?, GitServer::start()?);
    let (private, public) = (other.repo("org/private")?, open.repo("public")?);
    for (repo, name, dir) in [(&private, "b", ""), (&public, "c", "sub/")] {
        let files = included(name, dir);
        let files: Vec<(&str, &str)> = files
            .iter()
            .map(|(path, text)| (path.as_str(), text.as_str()))
            .collect();
        repo.commit("1", &files)?;
    }
    let plain = |url: String| url.trim_end_matches(".git").to_owned();
    let (first, second) = (plain(private.url()), plain(public.url()));
    let items = format!("- git: {first}\n- git: {{url: '{second}', subDir: sub}}\n");
    let commit = shop.push_files(&including(&shop, &items), &[])?;
    shop.repo.require_basic_auth("user1", "password1");
    private.require_basic_auth("user2", "password2");
    shop.create("shop", json!({})).await?;
    let status = shop.reconcile("shop").await?;
    // Others compare the whole text; the event has more of it.
    let required = "failed to clone git source: http transport: authentication required";
    assert_eq!(status.last_prepare_error.as_deref(), Some(required));
    ensure!(
        ready_of(&status) == (FAILED, NO_DETAILS) && status.observed_commit.is_none(),
        "{status:?}"
    );
    let (kind, event) = shop.fixture.told("shop", required).await?;
    ensure!(
        kind == "Warning" && event.ends_with("the server asks for credentials"),
        "{event}"
    );

    shop.secret("one", json!({ "username": "user1", "password": "password1" }))
        .await?;
    shop.secret("two", json!({ "username": "user2", "password": "password2" }))
        .await?;
    let host = |server: &GitServer| server.origin().replace("http://", "");
    let entry = |host: &str, path: Option<&str>, secret: &str| {
        let mut entry = json!({ "host": host, "secretRef": { "name": secret } });
        if let Some(path) = path {
            entry["path"] = json!(path);
        }
        entry
    };
    let own = entry(&host(&shop.server), None, "one");
    let any = entry("*", None, "two");
    for (path, works) in [("org/other", false), ("*/private", true), ("org/private", true)] {
        let list = [entry(&host(&other), Some(path), "two"), own.clone(), any.clone()];
        shop.change("shop", json!({ "credentials": { "git": list } }))
            .await?;
        let status = shop.reconcile("shop").await?;
        let error = status.last_prepare_error.clone().unwrap_or_default();
        assert_eq!(
            status.observed_commit.as_ref(),
            Some(&commit),
            "the root has its own: {error}"
        );
        if works {
            assert_eq!(ready_of(&status).0, SUCCEEDED, "{path}: {error}");
        } else {
            ensure!(
                error.contains("http transport: authentication required"),
                "{path}: {error}"
            );
            ensure!(shop.value("c").await?.is_none());
        }
    }
    ensure!(shop.value("b").await?.is_some() && shop.value("c").await?.is_some());
    let asked = open.requests();
    ensure!(
        asked.iter().all(|request| request.authorization.is_none()),
        "{asked:?}"
    );
    Ok(())
}

#[tokio::test]
async fn oci_sources_get_the_credentials_of_their_registry_and_repository() -> Result<()> {
    let shop = Gitops::original("gs-ocis").await?;
    let start = || Registry::start(Login::Basic, None);
    let registries = [start().await?, start().await?, start().await?, start().await?];
    let [root, first, second, third] = &registries;
    for (registry, name, dir) in [
        (first, "repo1", ""),
        (second, "repo2", "subDir/"),
        (third, "repo3", ""),
    ] {
        let org = name.replace("repo", "org");
        let archive = packed(&included(name, dir), "");
        registry
            .push_project(&format!("{org}/{name}"), "latest", &archive, "c0ffee")
            .await?;
    }
    let [_, one, two, three] = registries.each_ref().map(Registry::host);
    let items = format!(
        "- oci: {{url: 'oci://{one}/org1/repo1'}}\n- oci: {{url: 'oci://{two}/org2/repo2', subDir: subDir}}\n- oci: \
         {{url: 'oci://{three}/org3/repo3'}}\n"
    );
    let commit = "3b18e512dba79e4c8300dd08aeb37f8e728b8dad";
    let archive = packed(&including(&shop, &items), "");
    root.push_project("org0/repo0", "latest", &archive, commit)
        .await?;
    let url = format!("oci://{}/org0/repo0", root.host());
    shop.create("shop", json!({ "source": { "oci": { "url": url } } }))
        .await?;
    let status = shop.reconcile("shop").await?;
    let error = status.last_prepare_error.clone().unwrap_or_default();
    ensure!(
        error.contains("401 Unauthorized") && status.observed_commit.is_none(),
        "{error}"
    );
    assert_eq!(ready_of(&status), (FAILED, NO_DETAILS));

    shop.secret(
        "login",
        json!({ "username": USER, "password": PASSWORD, "plain_http": "true" }),
    )
    .await?;
    let list = |last: &str| -> Vec<Value> {
        let patterns = ["org0/repo0", "org1/repo1", "*/repo2", last];
        let both = registries.iter().zip(patterns);
        both.map(|(registry, pattern)| {
            json!({ "registry": registry.host(), "repository": pattern, "secretRef": { "name": "login" } })
        })
        .collect()
    };
    for (last, works) in [("org4/*", false), ("org3/*", true)] {
        shop.change("shop", json!({ "credentials": { "oci": list(last) } }))
            .await?;
        let status = shop.reconcile("shop").await?;
        let error = status.last_prepare_error.clone().unwrap_or_default();
        assert_eq!(status.observed_commit.as_deref(), Some(commit), "{error}");
        match works {
            true => assert_eq!(ready_of(&status).0, SUCCEEDED, "{error}"),
            false => ensure!(
                error.contains("401 Unauthorized") && error.contains("org3/repo3"),
                "{error}"
            ),
        }
    }
    for name in ["repo1", "repo2", "repo3"] {
        ensure!(shop.value(name).await?.is_some(), "{name}");
    }
    Ok(())
}

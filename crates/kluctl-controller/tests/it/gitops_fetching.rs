//! Requests to Git servers of KluctlDeployments of gitops.kluctl.io.

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use testkit::{Repo, git::Step};

use crate::{
    fixture::config_map,
    gitops::{Gitops, ready_of},
};

fn count(repo: &Repo, step: Step) -> usize {
    repo.requests()
        .iter()
        .filter(|request| request.step == step && request.status == Some(200))
        .count()
}

fn deployment(commit: &str) -> [(&'static str, String); 2] {
    [
        ("deployment.yaml", "deployments:\n- path: app\n".to_owned()),
        ("app/b.yaml", config_map("b", commit)),
    ]
}

fn push_included(repo: &Repo, value: &str) -> Result<String> {
    let files = deployment(value);
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
    repo.commit(value, &files)
}

#[tokio::test]
async fn commit_is_fetched_once_until_the_reference_moves() -> Result<()> {
    let shop = Gitops::new("gf-once").await?;
    let included = shop.server.repo("included")?;
    push_included(&included, "1")?;
    let including = format!(
        "overrideNamespace: {}\ndeployments:\n- git:\n    url: {}\n",
        shop.fixture.namespace,
        included.url()
    );
    let push = |comment: &str| {
        let files = shop.fixture.maps(&[]);
        let text = format!("{including}# {comment}\n");
        shop.push_files(&files, &[("deployment.yaml", &text)])
    };
    push("first")?;
    shop.create("shop", json!({})).await?;
    shop.ready("shop", "ReconciliationSucceeded").await?;
    // Another object of the same repository, which may be fetched with no credentials, too.
    shop.create("other", json!({ "dryRun": true, "validate": false }))
        .await?;
    shop.ready("other", "ReconciliationSucceeded").await?;
    let before = [&shop.repo, &included].map(|repo| count(repo, Step::LsRefs));
    for _ in 0..3 {
        shop.reconcile("shop").await?;
    }
    for (repo, before) in [&shop.repo, &included].into_iter().zip(before) {
        let (refs, fetches) = (count(repo, Step::LsRefs), count(repo, Step::Fetch));
        ensure!(
            refs >= before + 3,
            "the references are read each time: {before} {refs}"
        );
        ensure!(fetches == 1, "{fetches} fetches of one commit");
    }

    let commit = push("second")?;
    let status = shop.reconcile("shop").await?;
    ensure!(status.observed_commit == Some(commit), "{status:?}");
    let fetches = [&shop.repo, &included].map(|repo| count(repo, Step::Fetch));
    ensure!(fetches == [2, 1], "{fetches:?}");
    push_included(&included, "2")?;
    shop.reconcile("shop").await?;
    ensure!(
        shop.value("b").await?.as_deref() == Some("2"),
        "the new commit is deployed"
    );
    let fetches = [&shop.repo, &included].map(|repo| count(repo, Step::Fetch));
    ensure!(fetches == [2, 2], "{fetches:?}");
    Ok(())
}

#[tokio::test]
async fn cached_commit_needs_credentials_that_can_read_it() -> Result<()> {
    let shop = Gitops::new("gf-rights").await?;
    let commit = shop.push(&[("a", "1")])?;
    shop.repo.require_basic_auth("me", "s3cret");
    let secret = |password: &str| {
        json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": { "name": "git", "namespace": shop.fixture.namespace },
            "stringData": { "username": "me", "password": password },
        })
    };
    shop.fixture.plane.apply(secret("s3cret")).await?;
    let host = shop.repo.url();
    let host = host
        .trim_start_matches("http://")
        .split('/')
        .next()
        .unwrap_or_default()
        .to_owned();
    let credentials = json!({ "git": [{ "host": host, "secretRef": { "name": "git" } }] });
    let git = |reference: Value| json!({ "git": { "url": shop.repo.url(), "ref": reference } });
    shop.create("shop", json!({ "credentials": credentials })).await?;
    shop.ready("shop", "ReconciliationSucceeded").await?;
    shop.reconcile("shop").await?;
    let fetches = count(&shop.repo, Step::Fetch);
    ensure!(fetches == 1, "{fetches} fetches of one commit");

    // Neither a name nor the commit itself gives others the files.
    for (name, reference) in [
        ("by-name", json!({ "branch": "main" })),
        ("by-commit", json!({ "commit": commit })),
    ] {
        shop.create(name, json!({ "source": git(reference), "dryRun": true }))
            .await?;
        let status = shop.ready(name, "PrepareFailed").await?;
        let error = status.last_prepare_error.unwrap_or_default();
        ensure!(error.contains("authentication required"), "{name}: {error}");
    }
    // The same Secret has lost its rights.
    shop.fixture.plane.apply(secret("revoked")).await?;
    let status = shop.reconcile("shop").await?;
    let error = status.last_prepare_error.clone().unwrap_or_default();
    ensure!(
        ready_of(&status).0 == "PrepareFailed" && error.contains("authentication required"),
        "{status:?}"
    );
    shop.fixture.plane.apply(secret("s3cret")).await?;
    let status = shop.reconcile("shop").await?;
    ensure!(ready_of(&status).0 == "ReconciliationSucceeded", "{status:?}");
    ensure!(count(&shop.repo, Step::Fetch) == 1);
    Ok(())
}

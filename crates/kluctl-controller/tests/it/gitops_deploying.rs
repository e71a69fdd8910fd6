//! Full reconciliations of KluctlDeployments of gitops.kluctl.io.

use anyhow::{Context as _, Result, ensure};
use api::conditions;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};
use testkit::{eventually, wait_for, wait_gone};

use crate::{
    fixture::{TIMEOUT, grant_in},
    gitops::{Gitops, ready_of},
};

#[tokio::test]
async fn project_of_a_git_repository_is_deployed_and_follows_it() -> Result<()> {
    let shop = Gitops::new("gd-follow").await?;
    let commit = shop.push(&[("a", "1")])?;
    shop.create("shop", json!({})).await?;
    let status = shop.ready("shop", "ReconciliationSucceeded").await?;
    ensure!(
        ready_of(&status).1 == "deploy succeeded. 1 new objects. validate succeeded.",
        "{status:?}"
    );
    ensure!(status.conditions.len() == 1 && status.observed_commit == Some(commit));
    let key = status.project_key.clone().unwrap_or_default();
    ensure!(
        key.repo_key
            .is_some_and(|key| key.starts_with("git://127.0.0.1") && key.ends_with("/shop"))
    );
    let target = status.target_key.clone().unwrap_or_default();
    ensure!(target.target_name.as_deref() == Some("test") && !target.cluster_id.is_empty());
    ensure!(target.discriminator == Some(format!("{}-test", shop.fixture.namespace)));
    ensure!(status.last_drift_detection_result_message.as_deref() == Some("no drift"));
    let first = json!(status.last_deploy_result);
    ensure!(
        first["commandInfo"]["initiator"] == "KluctlDeployment" && first["newObjects"] == 1,
        "{first}"
    );
    ensure!(shop.value("a").await?.as_deref() == Some("1"));

    // Without a change nothing is deployed.
    let again = shop.reconcile("shop").await?;
    ensure!(json!(again.last_deploy_result) == first);
    let commit = shop.push(&[("a", "2")])?;
    let status = shop.reconcile("shop").await?;
    ensure!(status.observed_commit == Some(commit) && status.last_objects_hash != again.last_objects_hash);
    ensure!(shop.value("a").await?.as_deref() == Some("2"));
    Ok(())
}

#[tokio::test]
async fn errors_have_the_words_of_the_original_and_heal() -> Result<()> {
    let shop = Gitops::new("gd-errors").await?;
    let good = shop.fixture.maps(&[("a", "1")]);
    shop.push_files(&good, &[])?;
    shop.create("shop", json!({})).await?;
    shop.ready("shop", "ReconciliationSucceeded").await?;
    let broken: [(&str, &str, &str, &str); 4] = [
        (
            "app/a.yaml",
            "apiVersion: v1\nkind: ConfigMap\n  bad: [",
            "prepare failed with 1 errors.",
            "a.yaml",
        ),
        (".kluctl.yaml", "a: b\n", "prepare failed.", "unknown field \"a\""),
        (
            "deployment.yaml",
            "a: b\n",
            "prepare failed.",
            "unknown field \"a\"",
        ),
        (
            "app/a.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\nbad: 1\n",
            "",
            "",
        ),
    ];
    for (path, text, ready, error) in broken {
        shop.push_files(&good, &[(path, text)])?;
        let status = shop.reconcile("shop").await?;
        let last = status.last_prepare_error.clone().unwrap_or_default();
        if error.is_empty() {
            ensure!(ready_of(&status).0 == "DeployFailed", "{status:?}");
            ensure!(
                ready_of(&status).1.starts_with("deploy failed with 1 errors."),
                "{status:?}"
            );
            let errors = json!(status.last_deploy_result)["errors"].clone();
            ensure!(
                errors[0]["ref"]["name"] == "a" && errors[0]["message"].is_string(),
                "{errors}"
            );
        } else {
            ensure!(ready_of(&status).0 == "PrepareFailed", "{path}: {status:?}");
            let message = format!("{ready} Check status.lastPrepareError for details");
            ensure!(
                ready_of(&status).1 == message,
                "{path}: {:?} {last}",
                ready_of(&status)
            );
            ensure!(last.contains(error), "{path}: {last}");
        }
        shop.push_files(&good, &[])?;
        let status = shop.reconcile("shop").await?;
        ensure!(
            ready_of(&status).0 == "ReconciliationSucceeded" && status.last_prepare_error.is_none(),
            "{status:?}"
        );
    }
    for (change, back, error) in [
        (
            json!({ "target": "invalid" }),
            json!({ "target": "test" }),
            "target invalid not existent in kluctl project config",
        ),
        (
            json!({ "context": "invalid" }),
            json!({ "context": "default" }),
            "context \"invalid\" does not exist",
        ),
        (
            json!({ "source": { "git": { "path": "missing" } } }),
            json!({ "source": { "git": { "path": null } } }),
            "kluctlDeployment path not found: missing",
        ),
        (
            json!({ "source": { "git": { "ref": { "branch": "invalid" } } } }),
            json!({ "source": { "git": { "ref": null } } }),
            "ref refs/heads/invalid not found",
        ),
        (
            json!({ "source": { "git": { "url": format!("{}-missing", shop.repo.url()) } } }),
            json!({ "source": { "git": { "url": shop.repo.url() } } }),
            "failed to clone git source: repository not found",
        ),
        (
            json!({ "source": { "git": null } }),
            json!({ "source": { "git": { "url": shop.repo.url() } } }),
            "missing source spec",
        ),
        (
            json!({ "kubeConfig": { "secretRef": { "name": "none" } } }),
            json!({ "kubeConfig": null }),
            "unable to read KubeConfig secret",
        ),
        (
            json!({ "credentials": { "git": [{ "host": "x", "secretRef": { "name": "none" } }] } }),
            json!({ "credentials": null }),
            "failed to get secret 'none'",
        ),
    ] {
        shop.change("shop", change).await?;
        let status = shop.ready("shop", "PrepareFailed").await?;
        let last = status.last_prepare_error.unwrap_or_default();
        ensure!(last.contains(error), "{last}");
        shop.change("shop", back).await?;
        shop.ready("shop", "ReconciliationSucceeded").await?;
    }
    Ok(())
}

#[tokio::test]
async fn manual_deployment_waits_for_approval() -> Result<()> {
    let shop = Gitops::new("gd-manual").await?;
    shop.push(&[("a", "1")])?;
    shop.create("shop", json!({ "manual": true })).await?;
    let status = shop.ready("shop", "DeployFailed").await?;
    ensure!(ready_of(&status).1 == "deployment status unknown" && shop.value("a").await?.is_none());
    ensure!(
        status.last_drift_detection_result_message.as_deref() == Some("1 new"),
        "{status:?}"
    );
    shop.change("shop", json!({ "manualObjectsHash": status.last_objects_hash }))
        .await?;
    shop.ready("shop", "ReconciliationSucceeded").await?;
    ensure!(shop.value("a").await?.as_deref() == Some("1"));
    shop.push(&[("a", "2")])?;
    let status = shop.reconcile("shop").await?;
    ensure!(
        shop.value("a").await?.as_deref() == Some("1"),
        "a newer commit needs another approval"
    );
    ensure!(
        status.last_drift_detection_result_message.as_deref() == Some("1 chg"),
        "{status:?}"
    );
    Ok(())
}

#[tokio::test]
async fn drift_is_detected_and_corrected_by_the_deploy_interval_alone() -> Result<()> {
    let shop = Gitops::new("gd-drift").await?;
    shop.push(&[("a", "1")])?;
    shop.create("shop", json!({})).await?;
    shop.ready("shop", "ReconciliationSucceeded").await?;
    let change = Patch::Merge(json!({ "data": { "value": "changed" } }));
    let params = PatchParams {
        field_manager: Some("kubectl-edit".to_owned()),
        ..PatchParams::default()
    };
    shop.fixture.config_maps().patch("a", &params, &change).await?;
    let status = shop.reconcile("shop").await?;
    ensure!(
        status.last_drift_detection_result_message.as_deref() == Some("1 chg"),
        "{status:?}"
    );
    let drift = json!(status.last_drift_detection_result);
    ensure!(
        drift["objects"][0]["ref"]["name"] == "a" && drift["objects"][0]["changes"].is_array(),
        "{drift}"
    );
    ensure!(
        ready_of(&status).0 == "ReconciliationSucceeded"
            && shop.value("a").await?.as_deref() == Some("changed")
    );
    shop.change("shop", json!({ "deployInterval": "1s" })).await?;
    eventually("the drift to be corrected", TIMEOUT, || async {
        ensure!(shop.value("a").await?.as_deref() == Some("1"));
        Ok(())
    })
    .await
}

#[tokio::test]
async fn prune_and_delete_obey_their_fields() -> Result<()> {
    let shop = Gitops::new("gd-prune").await?;
    shop.push(&[("a", "1"), ("b", "1")])?;
    shop.create("shop", json!({})).await?;
    shop.ready("shop", "ReconciliationSucceeded").await?;
    shop.push(&[("a", "1")])?;
    let status = shop.reconcile("shop").await?;
    ensure!(
        shop.value("b").await?.is_some() && ready_of(&status).1.contains("1 orphan objects"),
        "{status:?}"
    );
    ensure!(
        status.last_drift_detection_result_message.as_deref() == Some("1 orp"),
        "{status:?}"
    );
    shop.change("shop", json!({ "prune": true })).await?;
    let status = shop.ready("shop", "ReconciliationSucceeded").await?;
    ensure!(shop.value("b").await?.is_none() && shop.value("a").await?.is_some());
    ensure!(ready_of(&status).1.contains("1 deleted objects"), "{status:?}");
    let api = shop.api();
    api.delete("shop", &DeleteParams::default()).await?;
    wait_gone(&api, "shop", TIMEOUT).await?;
    ensure!(shop.value("a").await?.is_some(), "spec.delete is off");

    shop.create("shop", json!({ "delete": true })).await?;
    shop.ready("shop", "ReconciliationSucceeded").await?;
    api.delete("shop", &DeleteParams::default()).await?;
    wait_gone(&api, "shop", TIMEOUT).await?;
    eventually("the object to be deleted", TIMEOUT, || async {
        ensure!(shop.value("a").await?.is_none());
        Ok(())
    })
    .await
}

#[tokio::test]
async fn prune_without_a_discriminator_fails_until_there_is_one() -> Result<()> {
    let shop = Gitops::new("gd-discriminator").await?;
    let files = shop.fixture.maps(&[("a", "1")]);
    shop.push_files(&files, &[(".kluctl.yaml", "targets:\n- name: test\n")])?;
    shop.create("shop", json!({ "prune": true })).await?;
    let status = shop.ready("shop", "DeployFailed").await?;
    let errors = json!(status.last_deploy_result)["errors"].to_string();
    ensure!(
        errors.contains("pruning without a discriminator is not supported"),
        "{errors}"
    );
    shop.push_files(&files, &[])?;
    let status = shop.reconcile("shop").await?;
    ensure!(ready_of(&status).0 == "ReconciliationSucceeded", "{status:?}");
    Ok(())
}

#[tokio::test]
async fn project_without_a_target_gets_the_default_context() -> Result<()> {
    let shop = Gitops::new("gd-notarget").await?;
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  value: '{{ target.name }}/{{ target.context }}'\n";
    let files = shop.fixture.maps(&[("a", "1")]);
    let config = format!("discriminator: {}\n", shop.fixture.namespace);
    shop.push_files(&files, &[(".kluctl.yaml", &config), ("app/a.yaml", map)])?;
    shop.create("shop", json!({ "target": null, "context": null }))
        .await?;
    shop.ready("shop", "ReconciliationSucceeded").await?;
    ensure!(shop.value("a").await?.as_deref() == Some("/default"));
    shop.push_files(&files, &[])?;
    let status = shop.reconcile("shop").await?;
    let error = status.last_prepare_error.unwrap_or_default();
    ensure!(
        error.contains("a target must be explicitly selected when targets are defined in the Kluctl project"),
        "{error}"
    );
    Ok(())
}

#[tokio::test]
async fn credentials_match_by_host_and_path() -> Result<()> {
    let shop = Gitops::new("gd-credentials").await?;
    let commit = shop.push(&[("a", "1")])?;
    shop.repo.require_basic_auth("me", "s3cret");
    shop.create("shop", json!({})).await?;
    let status = shop.ready("shop", "PrepareFailed").await?;
    let error = status.last_prepare_error.unwrap_or_default();
    ensure!(
        error.contains("http transport: authentication required") && status.observed_commit.is_none(),
        "{error}"
    );
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "git", "namespace": shop.fixture.namespace },
        "stringData": { "username": "me", "password": "s3cret" },
    });
    shop.fixture.plane.apply(secret).await?;
    let origin = shop.server.origin();
    let host = origin
        .split("://")
        .last()
        .unwrap_or_default()
        .trim_matches('/')
        .to_owned();
    let entry = |host: &str, path: Value| json!({ "credentials": { "git": [{ "host": host, "path": path, "secretRef": { "name": "git" } }] } });
    for (host, path) in [("*", Value::Null), (host.as_str(), json!("other*"))] {
        shop.change("shop", entry(host, path)).await?;
        let status = shop.ready("shop", "PrepareFailed").await?;
        ensure!(!format!("{status:?}").contains("s3cret"));
    }
    shop.change("shop", entry(&host, json!("sho*"))).await?;
    let status = shop.ready("shop", "ReconciliationSucceeded").await?;
    ensure!(status.observed_commit == Some(commit));
    Ok(())
}

#[tokio::test]
async fn successor_waits_until_the_legacy_object_gives_way() -> Result<()> {
    let shop = Gitops::new("gd-migration").await?;
    let files = shop.fixture.maps(&[("a", "1")]);
    shop.push_files(&files, &[])?;
    let source = shop.fixture.source("shop", &files).await?;
    let renames = json!({ "prune": true, "delete": true, "renameContexts": [], "context": "default" });
    shop.fixture.deploy("shop", renames).await?;
    shop.fixture
        .ready("shop", "True", "ReconciliationSucceeded")
        .await?;
    drop(source);
    let uid = shop.fixture.config_maps().get("a").await?.metadata.uid;
    shop.create("shop", json!({ "prune": true })).await?;
    shop.ready("shop", "ReconciliationSucceeded").await?;
    shop.fixture.remove("shop").await?;
    let status = shop.reconcile("shop").await?;
    ensure!(ready_of(&status).0 == "ReconciliationSucceeded", "{status:?}");
    ensure!(
        shop.fixture.config_maps().get("a").await?.metadata.uid == uid,
        "neither deleted nor created again"
    );
    Ok(())
}

#[tokio::test]
async fn suspended_object_does_nothing_but_says_so() -> Result<()> {
    let shop = Gitops::new("gd-suspend").await?;
    shop.push(&[("a", "1")])?;
    shop.create("shop", json!({ "suspend": true })).await?;
    let status = shop.ready("shop", "DeployFailed").await?;
    ensure!(ready_of(&status).1 == "deployment status unknown" && shop.value("a").await?.is_none());
    let status = shop.reconcile("shop").await?;
    ensure!(ready_of(&status).0 == "ReconciliationSucceeded" && shop.value("a").await?.is_some());
    let api = shop.api();
    let object = wait_for(&api, "shop", "the annotation to be removed", TIMEOUT, |object| {
        object
            .metadata
            .annotations
            .as_ref()
            .is_none_or(|all| !all.contains_key("kluctl.io/request-reconcile"))
    });
    ensure!(object.await?.spec.suspend);
    Ok(())
}

#[tokio::test]
async fn suspension_of_an_object_that_cannot_be_prepared_is_observed() -> Result<()> {
    let shop = Gitops::new("gd-suspend-failed").await?;
    shop.push_files(&[], &[("deployment.yaml", "deployments: {}")])?;
    shop.create("shop", json!({})).await?;
    let failed = shop.ready("shop", "PrepareFailed").await?;
    shop.change("shop", json!({ "suspend": true })).await?;
    let api = shop.api();
    let object = wait_for(&api, "shop", "the new generation in Ready", TIMEOUT, |object| {
        let ready = object
            .status
            .as_ref()
            .and_then(|status| conditions::get(&status.conditions, "Ready"));
        ready.is_some_and(|ready| ready.observed_generation == object.metadata.generation)
    });
    let status = object.await?.status.context("a status")?;
    ensure!(ready_of(&status) == ready_of(&failed) && status.last_prepare_error == failed.last_prepare_error);
    Ok(())
}

#[tokio::test]
async fn nothing_is_written_while_nothing_changes() -> Result<()> {
    let shop = Gitops::new("gd-idle").await?;
    shop.push(&[("a", "1")])?;
    shop.create("shop", json!({ "interval": "1s" })).await?;
    shop.ready("shop", "ReconciliationSucceeded").await?;
    let before = shop.repo.requests().len();
    eventually("a pass after the first", TIMEOUT, || async {
        ensure!(shop.repo.requests().len() > before);
        Ok(())
    })
    .await?;
    let first = shop.api().get("shop").await?;
    let before = shop.repo.requests().len();
    eventually("five more passes", TIMEOUT, || async {
        ensure!(shop.repo.requests().len() >= before + 5);
        Ok(())
    })
    .await?;
    let last = shop.api().get("shop").await?;
    let same = last.metadata.resource_version == first.metadata.resource_version;
    ensure!(same, "{} {}", json!(first.status), json!(last.status));
    Ok(())
}

#[tokio::test]
async fn account_with_rights_in_its_namespace_prunes_and_deletes() -> Result<()> {
    let shop = Gitops::new("gd-tenant").await?;
    let namespace = shop.fixture.namespace.clone();
    shop.fixture
        .plane
        .service_account_kubeconfig(&namespace, "tenant")
        .await?;
    grant_in(shop.fixture.plane, &namespace, (&namespace, "tenant")).await?;
    shop.push(&[("a", "1"), ("b", "1")])?;
    let spec = json!({ "serviceAccountName": "tenant", "prune": true, "delete": true });
    shop.create("shop", spec).await?;
    shop.ready("shop", "ReconciliationSucceeded").await?;
    shop.push(&[("a", "1")])?;
    let status = shop.reconcile("shop").await?;
    ensure!(
        ready_of(&status).1.contains("1 deleted objects") && shop.value("b").await?.is_none(),
        "{status:?}"
    );
    let inventory = json!(status.deployed_inventory)["inventory"].clone();
    ensure!(
        inventory == json!([{ "kind": "ConfigMap", "namespace": namespace }]),
        "{inventory}"
    );
    let api = shop.api();
    api.delete("shop", &DeleteParams::default()).await?;
    wait_gone(&api, "shop", TIMEOUT).await?;
    ensure!(shop.value("a").await?.is_none());
    Ok(())
}

//! The tests of the original's end-to-end suite for KluctlDeployments of gitops.kluctl.io, step by step, with types that refuse fields that
//! they don't know.

use anyhow::{Context as _, Result, bail, ensure};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use testkit::eventually;

use crate::{
    decoding::SUMMARY,
    fixture::TIMEOUT,
    gitops::ready_of,
    suite::{NAME, Suite},
};

const AGE: &str = include_str!("../../../secrets/fixtures/age.txt");
const FOR_AGE: &str = include_str!("../../../secrets/fixtures/secret.yaml");
const PGP: &str = include_str!("../../../secrets/fixtures/ecc.asc");
const FOR_PGP: &str = include_str!("../../../secrets/fixtures/ecc.yaml");

const PREPARE_FAILED: (&str, &str) = (
    "PrepareFailed",
    "prepare failed. Check status.lastPrepareError for details",
);

/// Returns a message about no object.
fn general(message: &str) -> Value {
    json!([{ "ref": { "kind": "", "name": "" }, "message": message }])
}

#[tokio::test]
async fn errors_of_files_and_specs_are_final_when_the_request_ends() -> Result<()> {
    let mut suite = Suite::new("gt-errors", &["target1"]).await?;
    suite.add_map("d1", "cm1", "data:\n  k1: v1\n");
    let good = suite.files.clone();
    let commit = suite.push("")?;
    suite.create(Some("target1"), json!({ "namespace": "n" })).await?;
    suite.reconciled(Some(&commit)).await?;

    let namespace = suite.fixture.namespace.clone();
    suite.write("d1/cm1.yaml", suite.map("cm1", "data_error:\n  k1: v1\n"));
    suite.push("")?;
    let status = suite.reconciled(None).await?;
    let message = format!(
        "failed to patch {namespace}/ConfigMap/cm1: failed to create typed patch object ({namespace}/cm1; /v1, \
         Kind=ConfigMap): .data_error: field not declared in schema"
    );
    let reference = json!({ "version": "v1", "kind": "ConfigMap", "name": "cm1", "namespace": namespace });
    let error = json!([{ "ref": reference, "message": message }]);
    let failed = ("DeployFailed", "deploy failed with 1 errors");
    suite.says(&status, failed, error, json!([])).await?;
    suite.files.clone_from(&good);
    suite.pushed().await?;

    let one = "prepare failed with 1 errors. Check status.lastPrepareError for details";
    let map = suite.map("cm1", "data:\n  k1: {\n");
    for (path, text, ready) in [
        ("d1/cm1.yaml", map.as_str(), ("PrepareFailed", one)),
        (".kluctl.yml", "a: b", PREPARE_FAILED),
        ("deployment.yml", "a: b", PREPARE_FAILED),
    ] {
        suite.write(path, text);
        suite.push("")?;
        let status = suite.reconciled(None).await?;
        suite.says_only(&status, ready).await?;
        suite.files.clone_from(&good);
        let status = suite.pushed().await?;
        assert_eq!(ready_of(&status).0, "ReconciliationSucceeded", "{path}");
    }

    let url = suite.repo.url();
    let commit = suite.repo.rev("main")?;
    for (change, back) in [
        (json!({ "target": "invalid" }), json!({ "target": "target1" })),
        (json!({ "context": "invalid" }), json!({ "context": "default" })),
        (
            json!({ "source": { "git": { "url": format!("{url}/invalid") } } }),
            json!({ "source": { "git": { "url": url } } }),
        ),
        (
            json!({ "source": { "git": { "ref": { "branch": "invalid" } } } }),
            json!({ "source": { "git": { "ref": null } } }),
        ),
    ] {
        suite.update(change.clone()).await?;
        let status = suite.reconciled(None).await?;
        suite
            .says_only(&status, PREPARE_FAILED)
            .await
            .context(change.to_string())?;
        suite.update(back).await?;
        suite.reconciled(Some(&commit)).await?;
    }
    Ok(())
}

#[tokio::test]
async fn prune_without_a_discriminator_is_one_error_until_there_is_one() -> Result<()> {
    let mut suite = Suite::new("gt-discriminator", &["target1"]).await?;
    suite.add_map("d1", "cm1", "data:\n  k1: v1\n");
    let good = suite.files.clone();
    let commit = suite.push("")?;
    suite.create(Some("target1"), Value::Null).await?;
    suite.reconciled(Some(&commit)).await?;
    suite.update(json!({ "prune": true })).await?;
    suite.write(".kluctl.yml", "targets:\n- name: target1\n");
    let status = suite.pushed().await?;
    let error = general("pruning without a discriminator is not supported");
    let warning = general("no discriminator configured. Orphan object detection will not work");
    let failed = ("DeployFailed", "deploy failed with 1 errors");
    suite.says(&status, failed, error, warning).await?;
    suite.files = good;
    let status = suite.pushed().await?;
    let succeeded = ("ReconciliationSucceeded", "deploy succeeded");
    suite.says_only(&status, succeeded).await
}

#[tokio::test]
async fn deployment_that_becomes_manual_waits_for_the_hash_of_the_status() -> Result<()> {
    let mut suite = Suite::new("gt-manual", &["target1"]).await?;
    suite.add_map("d1", "cm1", "");
    let commit = suite.push("")?;
    suite.create(Some("target1"), Value::Null).await?;
    suite.reconciled(Some(&commit)).await?;
    ensure!(suite.data("cm1").await?.is_some());

    suite.update(json!({ "manual": true })).await?;
    suite.reconciled(None).await?;
    suite.add_map("d2", "cm2", "");
    let status = suite.pushed().await?;
    ensure!(suite.data("cm2").await?.is_none(), "it is not approved");
    suite
        .update(json!({ "manualObjectsHash": status.last_objects_hash }))
        .await?;
    suite.reconciled(Some(&suite.repo.rev("main")?)).await?;
    ensure!(suite.data("cm2").await?.is_some());
    Ok(())
}

#[tokio::test]
async fn path_of_a_git_source_selects_the_project_at_the_next_request() -> Result<()> {
    let mut suite = Suite::new("gt-path", &["target1"]).await?;
    suite.add_map("d1", "cm1", "");
    let commit = suite.push("subDir/")?;
    suite.create(Some("target1"), Value::Null).await?;
    let status = suite.reconciled(Some(&commit)).await?;
    assert_eq!(ready_of(&status), PREPARE_FAILED);
    assert_eq!(
        status.last_prepare_error.as_deref(),
        Some("target target1 not existent in kluctl project config")
    );
    suite
        .update(json!({ "source": { "git": { "path": "subDir" } } }))
        .await?;
    let status = suite.reconciled(Some(&commit)).await?;
    assert_eq!(ready_of(&status).0, "ReconciliationSucceeded");

    // Validations are decoded, too.
    suite.update(json!({ "validate": true })).await?;
    let status = suite.reconciled(Some(&commit)).await?;
    ensure!(status.last_validate_result.is_some(), "{status:?}");
    Ok(())
}

#[tokio::test]
async fn deployment_without_a_target_needs_a_project_without_targets() -> Result<()> {
    let data = "data:\n  targetContext: '{{ target.context }}'\n  targetName: '{{ target.name }}'\n";
    let mut suite = Suite::new("gt-notarget", &[]).await?;
    suite.add_map("cm", "cm", data);
    let commit = suite.push("")?;
    suite.create(None, Value::Null).await?;
    suite.reconciled(Some(&commit)).await?;
    let expected = json!({ "targetName": "", "targetContext": "default" });
    assert_eq!(suite.data("cm").await?, Some(expected));

    let mut suite = Suite::new("gt-targets", &["target1"]).await?;
    suite.add_map("cm", "cm", data);
    let commit = suite.push("")?;
    suite.create(None, Value::Null).await?;
    let status = suite.reconciled(Some(&commit)).await?;
    assert_eq!(ready_of(&status), PREPARE_FAILED);
    let error = status.last_prepare_error.unwrap_or_default();
    let expected = "a target must be explicitly selected when targets are defined in the Kluctl project";
    ensure!(error.contains(expected), "{error}");
    Ok(())
}

#[tokio::test]
async fn object_is_not_written_again_after_its_drift_was_corrected() -> Result<()> {
    let mut suite = Suite::new("gt-manager", &["target1"]).await?;
    suite.add_map("d1", "cm1", "data:\n  k1: v1\n  k2: \"{{ args.k2 + 1 }}\"\n");
    let commit = suite.push("")?;
    suite
        .create(Some("target1"), json!({ "namespace": "n", "k2": 42 }))
        .await?;
    suite.reconciled(Some(&commit)).await?;
    suite.update(json!({ "deployInterval": "5s" })).await?;
    let mut map = suite.maps().get("cm1").await?;
    assert_eq!(json!(map.data), json!({ "k1": "v1", "k2": "43" }));

    // Each write has the version that was read after the one before: another write between them would be a conflict.
    for (more, expected) in [
        (None, json!({ "k1": "v1", "k2": "43" })),
        (Some(("k3", "v3")), json!({ "k1": "v1", "k2": "43", "k3": "v3" })),
    ] {
        let data = map.data.get_or_insert_default();
        data.insert("k1".to_owned(), "v2".to_owned());
        data.extend(more.map(|(key, value)| (key.to_owned(), value.to_owned())));
        let params = PostParams {
            field_manager: Some("kubectl".to_owned()),
            ..PostParams::default()
        };
        suite.maps().replace("cm1", &params, &map).await?;
        map = eventually("the change to be reverted", TIMEOUT, || async {
            let map = suite.maps().get("cm1").await?;
            ensure!(json!(map.data)["k1"] == "v1", "{:?}", map.data);
            Ok(map)
        })
        .await?;
        assert_eq!(json!(map.data), expected);
    }

    let take = async || -> Result<()> {
        let params = PatchParams {
            field_manager: Some("test-field-manager".to_owned()),
            ..PatchParams::default()
        };
        let change = Patch::Merge(json!({ "data": { "k1": "v2" } }));
        suite.maps().patch("cm1", &params, &change).await?;
        Ok(())
    };
    take().await?;
    for _ in 0..2 {
        suite.reconciled(None).await?;
    }
    assert_eq!(suite.data("cm1").await?.context("a map")?["k1"], "v2");
    suite.update(json!({ "forceApply": true })).await?;
    take().await?;
    eventually("the change to be reverted by force", TIMEOUT, || async {
        ensure!(suite.data("cm1").await?.context("a map")?["k1"] == "v1");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn what_is_pruned_and_deleted_is_gone_when_the_request_and_the_object_end() -> Result<()> {
    let mut suite = Suite::new("gt-prune", &["target1"]).await?;
    suite.add_map("d1", "cm1", "data:\n  k1: v1\n");
    suite.add_map("d2", "cm2", "data:\n  k1: v1\n");
    let commit = suite.push("")?;
    suite.create(Some("target1"), json!({ "namespace": "n" })).await?;
    suite.reconciled(Some(&commit)).await?;
    ensure!(suite.data("cm1").await?.is_some() && suite.data("cm2").await?.is_some());

    // Nobody asks for this commit.
    suite.items.pop();
    suite.write_items();
    let commit = suite.push("")?;
    eventually("the commit to be deployed", TIMEOUT, || async {
        let status = suite.api().get(NAME).await?.status.context("no status")?;
        let result = status.last_deploy_result.context("no result")?;
        SUMMARY.decode(&result)?;
        ensure!(result["gitInfo"]["commit"] == commit.as_str(), "{result}");
        Ok(())
    })
    .await?;
    ensure!(suite.data("cm1").await?.is_some() && suite.data("cm2").await?.is_some());
    suite.update(json!({ "prune": true })).await?;
    suite.reconciled(None).await?;
    ensure!(suite.data("cm1").await?.is_some() && suite.data("cm2").await?.is_none());

    for (delete, is_left) in [(false, true), (true, false)] {
        suite.update(json!({ "delete": delete })).await?;
        suite.reconciled(Some(&commit)).await?;
        ensure!(suite.data("cm1").await?.is_some());
        suite.api().delete(NAME, &DeleteParams::default()).await?;
        testkit::wait_gone(&suite.api(), NAME, TIMEOUT).await?;
        assert_eq!(suite.data("cm1").await?.is_some(), is_left);
        if is_left {
            suite.create(Some("target1"), Value::Null).await?;
        }
    }
    Ok(())
}

#[tokio::test]
async fn encrypted_variables_are_read_with_keys_of_age_and_pgp() -> Result<()> {
    let mut suite = Suite::new("gt-sops", &["test"]).await?;
    suite.add_map("cm", "cm", "data:\n  v1: \"{{ stringData.password }}\"\n");
    let deployment = suite.files["deployment.yml"].clone() + "vars:\n- file: encrypted-vars.yaml\n";
    suite.write("deployment.yml", deployment);
    suite.write("encrypted-vars.yaml", FOR_AGE);
    let commit = suite.push("")?;
    suite.create(Some("test"), Value::Null).await?;
    let status = suite.reconciled(Some(&commit)).await?;
    let ready = api::conditions::get(&status.conditions, "Ready").context("no Ready")?;
    assert_eq!(json!(ready.status), json!("False"));
    let error = status
        .reconcile_request_result
        .and_then(|result| result.command_error)
        .unwrap_or_default();
    ensure!(error.contains("cannot get sops data key"), "{error}");
    ensure!(suite.data("cm").await?.is_none());

    for (name, field, key, text) in [
        ("age", "identity.agekey", AGE, FOR_AGE),
        ("gpg", "identity.asc", PGP, FOR_PGP),
    ] {
        suite.write("encrypted-vars.yaml", text);
        suite.push("")?;
        let name = format!("sops-secrets-{name}");
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name, "namespace": suite.fixture.namespace },
            "stringData": { field: key },
        });
        suite.fixture.plane.apply(secret).await?;
        suite
            .update(json!({ "decryption": { "provider": "sops", "secretRef": { "name": name } } }))
            .await?;
        let status = suite.reconciled(None).await?;
        assert_eq!(ready_of(&status).0, "ReconciliationSucceeded", "{status:?}");
        let data = suite.data("cm").await?.context("a map")?;
        if data != json!({ "v1": "hunter2" }) {
            bail!("{data}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn definition_of_the_original_suffices_to_deploy_prune_and_delete() -> Result<()> {
    let mut suite = Suite::new("gt-definition", &["target1"]).await?;
    suite.add_map("d1", "cm1", "");
    suite.add_map("d2", "cm2", "");
    let commit = suite.push("")?;
    suite.create(Some("target1"), Value::Null).await?;
    suite.update(json!({ "prune": true, "delete": true })).await?;
    suite.reconciled(Some(&commit)).await?;
    suite.items.pop();
    suite.write_items();
    let status = suite.pushed().await?;
    ensure!(
        status.deployed_inventory.is_none(),
        "the definition has no such field"
    );
    let succeeded = ("ReconciliationSucceeded", "deploy succeeded. 1 deleted objects.");
    suite.says_only(&status, succeeded).await?;
    ensure!(suite.data("cm1").await?.is_some() && suite.data("cm2").await?.is_none());

    // A request needs no more than the suite's objects have.
    suite
        .patch(json!({ "metadata": { "annotations": { "kluctl.io/request-deploy": "{\"requestValue\":\"1\"}" } } }))
        .await?;
    eventually("the result of the request", TIMEOUT, || async {
        let status = suite.api().get(NAME).await?.status.context("no status")?;
        let result = status.deploy_request_result.context("no result")?;
        ensure!(
            result.end_time.is_some() && result.command_error.is_none(),
            "{result:?}"
        );
        Ok(())
    })
    .await?;
    suite.api().delete(NAME, &DeleteParams::default()).await?;
    testkit::wait_gone(&suite.api(), NAME, TIMEOUT).await?;
    ensure!(suite.data("cm1").await?.is_none());
    Ok(())
}

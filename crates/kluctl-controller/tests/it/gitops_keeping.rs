//! Field managers, encrypted variables, errors, requests and overrides of KluctlDeployments of gitops.kluctl.io, as the original's
//! end-to-end suite uses them.

use anyhow::{Context as _, Result, ensure};
use api::kluctl::gitops::{KluctlDeploymentStatus, ManualRequestResult};
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};
use testkit::eventually;

use crate::{
    fixture::TIMEOUT,
    gitops::{Gitops, ready_of},
};

const AGE: &str = include_str!("../../../secrets/fixtures/age.txt");
const FOR_AGE: &str = include_str!("../../../secrets/fixtures/secret.yaml");

impl Gitops {
    /// Writes a value of a ConfigMap as this field manager.
    async fn write(&self, name: &str, manager: &str, data: Value) -> Result<()> {
        let params = PatchParams {
            field_manager: Some(manager.to_owned()),
            ..PatchParams::default()
        };
        let change = Patch::Merge(json!({ "data": data }));
        self.fixture.config_maps().patch(name, &params, &change).await?;
        Ok(())
    }

    async fn data(&self, name: &str) -> Result<Value> {
        let map = self.fixture.config_maps().get_opt(name).await?;
        Ok(map.map_or(Value::Null, |map| json!(map.data)))
    }

    async fn becomes(&self, name: &str, expected: Value) -> Result<()> {
        eventually(&format!("{name} to be {expected}"), TIMEOUT, || async {
            let data = self.data(name).await?;
            ensure!(data == expected, "{data}");
            Ok(())
        })
        .await
    }

    pub(crate) async fn delete_map(&self, name: &str) -> Result<()> {
        self.fixture
            .config_maps()
            .delete(name, &DeleteParams::default())
            .await?;
        Ok(())
    }
}

/// Returns the numbers of new, changed, orphan and deleted objects.
fn changes(summary: Option<&Value>) -> [u64; 4] {
    ["newObjects", "changedObjects", "orphanObjects", "deletedObjects"].map(|field| {
        summary
            .and_then(|summary| summary[field].as_u64())
            .unwrap_or_default()
    })
}

/// Returns the changes of a request that succeeded.
fn changes_of(outcome: &(KluctlDeploymentStatus, ManualRequestResult), kind: &str) -> Result<[u64; 4]> {
    let (status, result) = outcome;
    ensure!(
        result.command_error.is_none() && result.result_id.is_some(),
        "{result:?}"
    );
    let summary = match kind {
        "diff" => &status.last_diff_result,
        _ => &status.last_deploy_result,
    };
    Ok(changes(summary.as_ref()))
}

#[tokio::test]
async fn changes_of_other_field_managers_stay_until_they_are_forced() -> Result<()> {
    let shop = Gitops::original("gk-manager").await?;
    let map =
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  k1: v1\n  k2: '{{ args.k2 + 1 }}'\n";
    shop.push_files(&shop.fixture.maps(&[("a", "1")]), &[("app/a.yaml", map)])?;
    shop.create("shop", json!({ "args": { "k2": 42 } })).await?;
    shop.reconcile("shop").await?;
    assert_eq!(shop.data("a").await?, json!({ "k1": "v1", "k2": "43" }));

    shop.change("shop", json!({ "deployInterval": "1s", "interval": "1s" }))
        .await?;
    shop.write("a", "kubectl", json!({ "k1": "v2" })).await?;
    shop.becomes("a", json!({ "k1": "v1", "k2": "43" })).await?;
    shop.write("a", "kubectl", json!({ "k1": "v2", "k3": "v3" }))
        .await?;
    let restored = json!({ "k1": "v1", "k2": "43", "k3": "v3" });
    shop.becomes("a", restored.clone()).await?;

    shop.write("a", "test-field-manager", json!({ "k1": "v2" }))
        .await?;
    // The request itself deploys nothing: the interval does.
    eventually("a warning about the conflict", TIMEOUT, || async {
        let status = shop.reconcile("shop").await?;
        let (reason, message) = ready_of(&status);
        ensure!(reason == "ReconciliationSucceeded", "{status:?}");
        ensure!(
            message.starts_with("deploy succeeded with 1 warnings."),
            "{message}"
        );
        Ok(())
    })
    .await?;
    assert_eq!(
        shop.data("a").await?,
        json!({ "k1": "v2", "k2": "43", "k3": "v3" })
    );

    shop.change("shop", json!({ "forceApply": true })).await?;
    shop.becomes("a", restored.clone()).await?;
    shop.write("a", "test-field-manager", json!({ "k1": "v2" }))
        .await?;
    shop.becomes("a", restored).await
}

#[tokio::test]
async fn encrypted_variables_need_the_key_of_a_secret() -> Result<()> {
    let shop = Gitops::original("gk-sops").await?;
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  value: '{{ stringData.password }}'\n";
    let files = shop.fixture.maps(&[("a", "1")]);
    let namespace = &shop.fixture.namespace;
    let deployment =
        format!("deployments:\n- path: app\noverrideNamespace: {namespace}\nvars:\n- file: secret.yaml\n");
    shop.push_files(
        &files,
        &[
            ("app/a.yaml", map),
            ("secret.yaml", FOR_AGE),
            ("deployment.yaml", &deployment),
        ],
    )?;
    shop.create("shop", json!({})).await?;
    let (status, result) = shop.request("shop", "reconcile", Value::Null).await?;
    assert_eq!(ready_of(&status).0, "PrepareFailed");
    let error = result.command_error.unwrap_or_default();
    ensure!(error.contains("cannot get sops data key"), "{error}");
    assert_eq!(shop.data("a").await?, Value::Null);

    shop.secret("keys", json!({ "identity.agekey": AGE })).await?;
    shop.change(
        "shop",
        json!({ "decryption": { "provider": "sops", "secretRef": { "name": "keys" } } }),
    )
    .await?;
    let status = shop.reconcile("shop").await?;
    assert_eq!(ready_of(&status).0, "ReconciliationSucceeded", "{status:?}");
    assert_eq!(shop.value("a").await?.as_deref(), Some("hunter2"));
    ensure!(!serde_json::to_string(&status)?.contains("hunter2"));
    Ok(())
}

#[tokio::test]
async fn kms_key_is_looked_for_with_the_role_of_a_service_account() -> Result<()> {
    let shop = Gitops::new("gk-kms").await?;
    let deployment = "deployments:\n- path: app\nvars:\n- file: secret.yaml\n";
    let kms = "sops:\n    kms:\n        - arn: arn:aws:kms:eu-central-1:1:key/k\n          enc: AAAA\n          \
               created_at: \"2026-01-01T00:00:00Z\"\n";
    let (content, metadata) = FOR_AGE.split_once("sops:\n").context("no metadata")?;
    let (_, rest) = metadata
        .split_once("    lastmodified")
        .context("no end of the keys")?;
    let encrypted = format!("{content}{kms}    lastmodified{rest}");
    shop.push_files(
        &shop.fixture.maps(&[("a", "1")]),
        &[("secret.yaml", &encrypted), ("deployment.yaml", deployment)],
    )?;
    let namespace = &shop.fixture.namespace;
    for (change, account) in [
        (
            json!({ "decryption": { "provider": "sops", "serviceAccount": "kms" } }),
            "kms",
        ),
        (
            json!({ "decryption": { "serviceAccount": null }, "serviceAccountName": "deployer" }),
            "deployer",
        ),
    ] {
        if account == "kms" {
            shop.create("shop", change).await?;
        } else {
            shop.change("shop", change).await?;
        }
        let status = shop.ready("shop", "PrepareFailed").await?;
        let error = status.last_prepare_error.unwrap_or_default();
        let expected = format!("service account {namespace}/{account}: ");
        ensure!(error.contains(&expected), "{error}");
    }
    Ok(())
}

#[tokio::test]
async fn errors_of_a_deployment_name_object_and_cause() -> Result<()> {
    let shop = Gitops::original("gk-errors").await?;
    let good = shop.fixture.maps(&[("a", "1")]);
    shop.push_files(&good, &[])?;
    shop.create("shop", json!({})).await?;
    shop.reconcile("shop").await?;
    let namespace = &shop.fixture.namespace;
    let bad = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata_error:\n  k1: v1\n";
    shop.push_files(&good, &[("app/a.yaml", bad)])?;
    let status = shop.reconcile("shop").await?;
    assert_eq!(ready_of(&status).0, "DeployFailed");
    ensure!(
        ready_of(&status).1.starts_with("deploy failed with 1 errors"),
        "{status:?}"
    );
    let result = status.last_deploy_result.context("a result")?;
    let message = format!(
        "failed to patch {namespace}/ConfigMap/a: failed to create typed patch object ({namespace}/a; /v1, \
         Kind=ConfigMap): .data_error: field not declared in schema"
    );
    let reference = json!({ "version": "v1", "kind": "ConfigMap", "name": "a", "namespace": namespace });
    assert_eq!(
        result["errors"],
        json!([{ "ref": reference, "message": message }])
    );
    ensure!(
        result["warnings"].as_array().is_none_or(Vec::is_empty),
        "{result}"
    );

    let broken = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  k1: {\n";
    for (path, text, what, expected) in [
        (
            "app/a.yaml",
            broken,
            " with 1 errors",
            "did not find expected node content in File: app/a.yaml",
        ),
        (".kluctl.yaml", "a: b", "", "unknown field \"a\""),
        ("deployment.yaml", "a: b", "", "unknown field \"a\""),
    ] {
        shop.push_files(&good, &[(path, text)])?;
        let (reason, message, error) = shop.outcome("shop").await?;
        assert_eq!(reason, "PrepareFailed");
        let ready = format!("prepare failed{what}. Check status.lastPrepareError for details");
        assert_eq!(message, ready, "{error}");
        ensure!(error.contains(expected), "{error}");
        // The last result stays.
        ensure!(
            shop.api()
                .get("shop")
                .await?
                .status
                .is_some_and(|status| status.last_deploy_result.is_some())
        );
    }

    // Without a discriminator, a prune has one error about no object.
    shop.push_files(&good, &[(".kluctl.yaml", "targets:\n- name: test\n")])?;
    shop.change("shop", json!({ "prune": true })).await?;
    let status = shop.reconcile("shop").await?;
    assert_eq!(ready_of(&status).0, "DeployFailed");
    ensure!(
        ready_of(&status).1.starts_with("deploy failed with 1 errors"),
        "{status:?}"
    );
    let result = status.last_deploy_result.context("a result")?;
    let messages = |list: &str| -> Vec<String> {
        let list = result[list].as_array().into_iter().flatten();
        list.map(|one| one["message"].as_str().unwrap_or_default().to_owned())
            .collect()
    };
    assert_eq!(
        messages("errors"),
        ["pruning without a discriminator is not supported"]
    );
    assert_eq!(
        messages("warnings"),
        ["no discriminator configured. Orphan object detection will not work"]
    );
    shop.push_files(&good, &[])?;
    let status = shop.reconcile("shop").await?;
    assert_eq!(ready_of(&status).0, "ReconciliationSucceeded", "{status:?}");
    ensure!(ready_of(&status).1.starts_with("deploy succeeded"), "{status:?}");
    Ok(())
}

#[tokio::test]
async fn requests_are_handled_while_suspended_and_nothing_else_is() -> Result<()> {
    let shop = Gitops::original("gk-requests").await?;
    shop.push(&[("a", "1")])?;
    shop.create("shop", json!({ "interval": "1s" })).await?;
    shop.reconcile("shop").await?;
    assert_eq!(shop.value("a").await?.as_deref(), Some("1"));
    shop.change("shop", json!({ "suspend": true, "deployInterval": "1s" }))
        .await?;
    shop.reconcile("shop").await?;

    let done = shop.request("shop", "diff", Value::Null).await?;
    assert_eq!(changes_of(&done, "diff")?, [0; 4]);
    shop.push(&[("a", "2"), ("b", "1")])?;
    let done = shop.request("shop", "diff", Value::Null).await?;
    assert_eq!(changes_of(&done, "diff")?, [1, 1, 0, 0]);
    assert_eq!(shop.value("a").await?.as_deref(), Some("1"));
    ensure!(shop.value("b").await?.is_none());
    for expected in [[1, 1, 0, 0], [0; 4]] {
        let done = shop.request("shop", "deploy", Value::Null).await?;
        assert_eq!(changes_of(&done, "deploy")?, expected);
        assert_eq!(shop.value("a").await?.as_deref(), Some("2"));
    }
    let done = shop.request("shop", "prune", Value::Null).await?;
    assert_eq!(changes_of(&done, "prune")?, [0; 4]);
    shop.push(&[("a", "2")])?;
    let done = shop.request("shop", "prune", Value::Null).await?;
    assert_eq!(changes_of(&done, "prune")?, [0, 0, 0, 1]);
    ensure!(shop.value("b").await?.is_none());

    let (status, result) = shop.request("shop", "validate", Value::Null).await?;
    ensure!(
        result.command_error.is_none() && result.result_id.is_some(),
        "{result:?}"
    );
    let errors = json!(status.last_validate_result)["errors"].clone();
    ensure!(errors.as_array().is_none_or(Vec::is_empty), "{errors}");
    shop.delete_map("a").await?;
    let (status, result) = shop.request("shop", "validate", Value::Null).await?;
    ensure!(
        result.command_error.is_some() && result.result_id.is_some(),
        "{result:?}"
    );
    let namespace = &shop.fixture.namespace;
    let reference = json!({ "version": "v1", "kind": "ConfigMap", "name": "a", "namespace": namespace });
    assert_eq!(
        json!(status.last_validate_result)["errors"],
        json!([{ "ref": reference, "message": "object not found" }])
    );

    shop.change("shop", json!({ "suspend": false })).await?;
    shop.becomes("a", json!({ "value": "2" })).await?;
    shop.delete_map("a").await?;
    shop.becomes("a", json!({ "value": "2" })).await?;

    // Suspended again, neither periods nor commits count.
    shop.change("shop", json!({ "suspend": true })).await?;
    let generation = shop.api().get("shop").await?.metadata.generation;
    testkit::wait_for(&shop.api(), "shop", "the suspension", TIMEOUT, |object| {
        object
            .status
            .as_ref()
            .and_then(|status| status.observed_generation)
            == generation
    })
    .await?;
    shop.delete_map("a").await?;
    shop.push(&[("a", "3")])?;
    let asked = shop.repo.requests().len();
    shop.create(
        "other",
        json!({ "interval": "1s", "retryInterval": "1s", "target": "none" }),
    )
    .await?;
    // Another object has five passes meanwhile.
    eventually("passes of another object", TIMEOUT, || async {
        ensure!(shop.repo.requests().len() >= asked + 5);
        Ok(())
    })
    .await?;
    ensure!(shop.value("a").await?.is_none());
    shop.reconcile("shop").await?;
    assert_eq!(shop.value("a").await?.as_deref(), Some("3"));
    Ok(())
}

#[tokio::test]
async fn overrides_of_every_kind_are_used_once() -> Result<()> {
    let shop = Gitops::original("gk-overrides").await?;
    let namespace = shop.fixture.namespace.clone();
    let config = format!(
        "discriminator: {namespace}-{{{{ target.name }}}}\ntargets:\n- name: test\n- name: target2\n  args: {{b: via_target}}\n"
    );
    let map = |k1: &str| {
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  k1: {k1}\n  k2: '{{{{ args.a }}}}'\n  k3: '{{{{ \
             get_var(\"args.b\", \"na\") }}}}'\n"
        )
    };
    let push = |k1: &str, others: &[&str]| {
        let items: String = others
            .iter()
            .map(|name| format!("- path: {name}\n  tags: [{name}]\n"))
            .collect();
        let deployment =
            format!("overrideNamespace: {namespace}\ndeployments:\n- path: app\n  tags: [d1]\n{items}");
        let maps: Vec<(String, String)> = others
            .iter()
            .map(|name| (format!("{name}/map.yaml"), crate::fixture::config_map(name, "1")))
            .collect();
        let mut files = shop.fixture.maps(&[("a", "1")]);
        files.extend(maps);
        let map = map(k1);
        shop.push_files(
            &files,
            &[
                ("app/a.yaml", &map),
                (".kluctl.yaml", &config),
                ("deployment.yaml", &deployment),
            ],
        )
    };
    push("v1", &[])?;
    shop.create("shop", json!({ "args": { "a": "v1" } })).await?;
    shop.reconcile("shop").await?;
    assert_eq!(
        shop.data("a").await?,
        json!({ "k1": "v1", "k2": "v1", "k3": "na" })
    );
    shop.change("shop", json!({ "suspend": true })).await?;
    shop.reconcile("shop").await?;
    let deploy = async |overrides: Value| -> Result<[u64; 4]> {
        changes_of(&shop.request("shop", "deploy", overrides).await?, "deploy")
    };

    push("v2", &["cm2"])?;
    assert_eq!(deploy(json!({ "dryRun": true })).await?, [1, 1, 0, 0]);
    ensure!(shop.data("a").await?["k1"] == "v1" && shop.value("cm2").await?.is_none());
    shop.change("shop", json!({ "dryRun": true })).await?;
    shop.reconcile("shop").await?;
    ensure!(shop.data("a").await?["k1"] == "v1");
    assert_eq!(deploy(json!({ "dryRun": false })).await?, [1, 1, 0, 0]);
    ensure!(shop.data("a").await?["k1"] == "v2" && shop.value("cm2").await?.is_some());
    shop.change("shop", json!({ "dryRun": false })).await?;
    shop.reconcile("shop").await?;

    assert_eq!(deploy(json!({ "args": { "a": "via_arg" } })).await?, [0, 1, 0, 0]);
    assert_eq!(shop.data("a").await?["k2"], "via_arg");
    assert_eq!(deploy(Value::Null).await?, [0, 1, 0, 0]);
    assert_eq!(shop.data("a").await?["k2"], "v1");

    push("v2", &[])?;
    shop.change("shop", json!({ "prune": true })).await?;
    shop.request("shop", "reconcile", json!({ "prune": false }))
        .await?;
    assert_eq!(deploy(json!({ "prune": false })).await?, [0, 0, 1, 0]);
    ensure!(shop.value("cm2").await?.is_some());
    shop.change("shop", json!({ "prune": false })).await?;
    shop.reconcile("shop").await?;
    assert_eq!(deploy(json!({ "prune": true })).await?, [0, 0, 0, 1]);
    ensure!(shop.value("cm2").await?.is_none());

    push("v3", &["cm3"])?;
    assert_eq!(deploy(json!({ "includeTags": ["d1"] })).await?, [0, 1, 0, 0]);
    ensure!(shop.value("cm3").await?.is_none());
    assert_eq!(deploy(json!({ "excludeTags": ["d1"] })).await?, [1, 0, 0, 0]);
    ensure!(shop.value("cm3").await?.is_some());

    deploy(Value::Null).await?;
    assert_eq!(shop.data("a").await?["k3"], "na");
    deploy(json!({ "target": "target2" })).await?;
    assert_eq!(shop.data("a").await?["k3"], "via_target");
    let labels = shop
        .fixture
        .config_maps()
        .get("a")
        .await?
        .metadata
        .labels
        .context("labels")?;
    assert_eq!(
        labels.get("kluctl.io/discriminator"),
        Some(&format!("{namespace}-target2"))
    );
    let spec = json!(shop.api().get("shop").await?.spec);
    assert_eq!(
        (&spec["target"], &spec["args"]),
        (&json!("test"), &json!({ "a": "v1" }))
    );
    Ok(())
}

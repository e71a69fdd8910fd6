//! Requests by annotation of KluctlDeployments of gitops.kluctl.io.

use anyhow::{Context as _, Result, ensure};
use api::kluctl::gitops::KluctlDeploymentStatus;
use k8s_openapi::api::{apps::v1::Deployment, core::v1::Secret};
use kube::{
    Api,
    api::{DeleteParams, ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};

use testkit::{eventually, wait_for};

use crate::{
    decoding,
    fixture::{TIMEOUT, config_map, project},
    gitops::{Gitops, ready_of},
    waiting::NEVER_READY,
};

#[tokio::test]
async fn requested_deployment_records_its_target_before_the_first_object() -> Result<()> {
    let shop = Gitops::new("gr-begun").await?;
    let files = project(&shop.fixture.namespace, &[("slow", NEVER_READY)]);
    shop.push_files(&files, &[])?;
    // Nothing but the request has written the status.
    shop.create("shop", json!({ "suspend": true, "timeout": "1h" }))
        .await?;
    let request = json!({ "requestValue": "1" }).to_string();
    let patch = json!({ "metadata": { "annotations": { "kluctl.io/request-deploy": request } } });
    shop.api()
        .patch("shop", &PatchParams::default(), &Patch::Merge(patch))
        .await?;
    shop.fixture.applied("slow").await?;
    let status = shop.api().get("shop").await?.status.unwrap_or_default();
    let target = status.target_key.unwrap_or_default();
    ensure!(status.last_deploy_result.is_none(), "the deployment is not over");
    ensure!(target.discriminator.is_some_and(|text| !text.is_empty()));

    // A removal finds its objects, although the deployment never ends.
    shop.change("shop", json!({ "suspend": false, "delete": true }))
        .await?;
    shop.api().delete("shop", &DeleteParams::default()).await?;
    let deployments: Api<Deployment> = Api::namespaced(shop.fixture.client.clone(), &shop.fixture.namespace);
    eventually("the object to be deleted", TIMEOUT, || async {
        ensure!(deployments.get_opt("slow").await?.is_none());
        Ok(())
    })
    .await
}

#[tokio::test]
async fn object_that_is_created_with_a_request_is_ready_after_a_full_pass() -> Result<()> {
    let shop = Gitops::new("gr-created").await?;
    shop.push(&[("a", "1")])?;
    let request = json!({ "requestValue": "1" }).to_string();
    let annotations = json!({ "kluctl.io/request-deploy": request });
    shop.create_with("shop", annotations, json!({ "validate": false }))
        .await?;
    // The fixture checks every status on the way: none is Ready before the generation is observed.
    let status = shop.ready("shop", "ReconciliationSucceeded").await?;
    let result = status.deploy_request_result.context("a result")?;
    assert_eq!(result.request.request_value, "1");
    ensure!(
        result.end_time.is_some() && result.command_error.is_none(),
        "{result:?}"
    );
    Ok(())
}

#[tokio::test]
async fn requests_of_a_suspended_object_are_handled() -> Result<()> {
    let shop = Gitops::new("gr-manual").await?;
    shop.push(&[("a", "1"), ("b", "1")])?;
    shop.create("shop", json!({ "suspend": true })).await?;
    let (status, result) = shop.request("shop", "diff", Value::Null).await?;
    ensure!(
        json!(status.last_diff_result)["newObjects"] == 2 && result.command_error.is_none(),
        "{result:?}"
    );
    ensure!(result.result_id.is_some() && !result.reconcile_id.is_empty());
    ensure!(shop.value("a").await?.is_none(), "a diff changes nothing");
    let (status, result) = shop.request("shop", "deploy", Value::Null).await?;
    ensure!(
        json!(status.last_deploy_result)["newObjects"] == 2 && result.command_error.is_none(),
        "{result:?}"
    );
    ensure!(shop.value("a").await?.as_deref() == Some("1"));
    let (status, result) = shop.request("shop", "deploy", Value::Null).await?;
    ensure!(
        json!(status.last_deploy_result)["newObjects"] == 0 && result.result_id.is_some(),
        "{result:?}"
    );
    let (status, _) = shop.request("shop", "prune", Value::Null).await?;
    ensure!(json!(status.last_deploy_result)["deletedObjects"] == 0);
    shop.push(&[("a", "1")])?;
    let (status, result) = shop.request("shop", "prune", Value::Null).await?;
    ensure!(
        json!(status.last_deploy_result)["deletedObjects"] == 1 && result.command_error.is_none(),
        "{result:?}"
    );
    ensure!(shop.value("b").await?.is_none());
    let (status, result) = shop.request("shop", "validate", Value::Null).await?;
    ensure!(
        json!(status.last_validate_result)["ready"] == true && result.command_error.is_none(),
        "{result:?}"
    );
    shop.fixture
        .config_maps()
        .delete("a", &DeleteParams::default())
        .await?;
    let (status, result) = shop.request("shop", "validate", Value::Null).await?;
    let errors = json!(status.last_validate_result)["errors"].to_string();
    ensure!(errors.contains("object not found"), "{errors}");
    ensure!(
        result.command_error.as_deref() == Some("validate failed with 1 errors."),
        "{result:?}"
    );

    let store: Api<Secret> = Api::namespaced(shop.fixture.client.clone(), "gr-manual-results");
    let stored = store
        .list(&ListParams::default().labels("kluctl.io/result=true"))
        .await?;
    ensure!(stored.items.iter().any(|secret| {
        secret
            .metadata
            .name
            .as_deref()
            .is_some_and(|name| name.starts_with("vr-"))
    }));
    let id = result.result_id.unwrap_or_default();
    let label = format!("kluctl.io/validate-result-id={id}");
    ensure!(
        store
            .list(&ListParams::default().labels(&label))
            .await?
            .items
            .len()
            == 1,
        "{id}"
    );
    Ok(())
}

#[tokio::test]
async fn overrides_are_used_once() -> Result<()> {
    let shop = Gitops::new("gr-overrides").await?;
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  value: '{{ args.k }}'\n";
    let config = format!(
        "discriminator: {}-{{{{ target.name }}}}\nargs:\n- name: k\n  default: d\ntargets:\n- name: test\n- name: other\n",
        shop.fixture.namespace
    );
    let files = shop.fixture.maps(&[("a", "1"), ("b", "1")]);
    shop.push_files(&files, &[("app/a.yaml", map), (".kluctl.yaml", &config)])?;
    shop.create("shop", json!({ "suspend": true, "args": { "k": "spec" } }))
        .await?;
    shop.request("shop", "deploy", json!({ "dryRun": true })).await?;
    ensure!(shop.value("a").await?.is_none());
    shop.request("shop", "deploy", Value::Null).await?;
    ensure!(shop.value("a").await?.as_deref() == Some("spec"));
    let (status, result) = shop
        .request("shop", "deploy", json!({ "args": { "k": "once" } }))
        .await?;
    ensure!(shop.value("a").await?.as_deref() == Some("once"), "{result:?}");
    let id = result.result_id.context("a result")?;
    ensure!(
        result.request.overrides_patch.is_some() && json!(status.last_deploy_result)["id"] == id.as_str()
    );
    decoding::decode_status(&json!(status))?;
    shop.request("shop", "deploy", Value::Null).await?;
    ensure!(
        shop.value("a").await?.as_deref() == Some("spec"),
        "the override is not kept"
    );
    let object = shop.api().get("shop").await?;
    ensure!(json!(object.spec.args) == json!({ "k": "spec" }));
    let (_, result) = shop
        .request("shop", "deploy", json!({ "target": "other" }))
        .await?;
    ensure!(result.command_error.is_none(), "{result:?}");
    let labels = shop
        .fixture
        .config_maps()
        .get("a")
        .await?
        .metadata
        .labels
        .unwrap_or_default();
    ensure!(
        labels.get("kluctl.io/discriminator") == Some(&format!("{}-other", shop.fixture.namespace)),
        "{labels:?}"
    );
    Ok(())
}

#[tokio::test]
async fn malformed_requests_are_refused() -> Result<()> {
    let shop = Gitops::new("gr-malformed").await?;
    shop.push(&[("a", "1")])?;
    shop.create("shop", json!({ "suspend": true })).await?;
    let annotate = async |text: Value| {
        let patch =
            Patch::Merge(json!({ "metadata": { "annotations": { "kluctl.io/request-deploy": text } } }));
        shop.api().patch("shop", &PatchParams::default(), &patch).await
    };
    shop.ready("shop", "DeployFailed").await?;
    annotate(json!("{\"overridesPatch\":{}}")).await?;
    let status = shop.ready("shop", "PrepareFailed").await?;
    let error = status.last_prepare_error.unwrap_or_default();
    ensure!(
        error == "missing requestValue in manual request annotation",
        "{error}"
    );
    annotate(json!(
        json!({ "requestValue": "1", "overridesPatch": { "metadata": { "labels": { "a": "b" } } } })
            .to_string()
    ))
    .await?;
    let api = shop.api();
    let refused = testkit::wait_for(&api, "shop", "the refusal", crate::fixture::TIMEOUT, |object| {
        let result = object
            .status
            .as_ref()
            .and_then(|status| status.deploy_request_result.as_ref());
        result.is_some_and(|result| {
            result.command_error.as_deref() == Some("override patch tried to modify non-spec fields")
        })
    });
    refused.await?;
    // A plain string is the value of a request, as releases before 2.22 wrote it.
    annotate(json!("2024-01-01T00:00:00Z")).await?;
    // Nothing was validated yet.
    let status = shop.ready("shop", "ValidateFailed").await?;
    ensure!(
        status
            .deploy_request_result
            .is_some_and(|result| result.request.request_value.starts_with("2024"))
    );
    ensure!(shop.value("a").await?.is_some());
    let (status, result) = shop
        .request(
            "shop",
            "deploy",
            json!({ "sourceOverrides": [{ "repoKey": "git://h/a", "url": "grpc+source-override://h:1" }] }),
        )
        .await?;
    let error = result.command_error.unwrap_or_default();
    ensure!(
        error.contains("spec.sourceOverrides: url must be grpc+source-override://HOST:PORT/ID"),
        "{error}"
    );
    ensure!(ready_of(&status).0 == "PrepareFailed");
    Ok(())
}

impl Gitops {
    /// Replaces the project by one that waits for an object before it applies the ConfigMap `late`.
    fn push_waiting(&self) -> Result<()> {
        let mut files = project(&self.fixture.namespace, &[("slow", NEVER_READY)]);
        for (path, text) in &mut files {
            if path == "deployment.yaml" {
                *text = text.replace("- path: app\n", "- path: app\n- barrier: true\n- path: late\n");
            }
        }
        let late = config_map("late", "1");
        let more = [
            ("late/kustomization.yaml", "resources:\n- late.yaml\n"),
            ("late/late.yaml", late.as_str()),
        ];
        self.push_files(&files, &more).map(drop)
    }

    /// Makes the object ready that the project waits for.
    async fn end_wait(&self) -> Result<()> {
        let deployments: Api<Deployment> =
            Api::namespaced(self.fixture.client.clone(), &self.fixture.namespace);
        let none = Patch::Merge(json!({ "spec": { "replicas": 0 } }));
        deployments.patch("slow", &PatchParams::default(), &none).await?;
        Ok(())
    }
}

/// Returns the errors of the last deployment.
fn errors_of(status: &KluctlDeploymentStatus) -> String {
    json!(status.last_deploy_result)["errors"].to_string()
}

#[tokio::test]
async fn requested_deployment_that_a_new_spec_interrupts_has_an_error() -> Result<()> {
    let shop = Gitops::new("gr-cut").await?;
    shop.push(&[("a", "1")])?;
    shop.create("shop", json!({ "validate": false, "timeout": "1h" }))
        .await?;
    shop.ready("shop", "ReconciliationSucceeded").await?;
    shop.change("shop", json!({ "suspend": true })).await?;
    shop.ready("shop", "ReconciliationSucceeded").await?;
    shop.push_waiting()?;
    let (done, changed) = futures::join!(shop.request("shop", "deploy", Value::Null), async {
        shop.fixture.applied("slow").await?;
        shop.change("shop", json!({ "args": { "unused": "1" } })).await
    });
    changed?;
    let (status, result) = done?;
    let (reason, message) = ready_of(&status);
    ensure!(
        result.command_error.as_deref() == Some("deploy failed with 1 errors.") && result.result_id.is_some(),
        "{result:?}"
    );
    ensure!(reason == "DeployFailed", "{reason} {message}");
    let errors = errors_of(&status);
    ensure!(errors.contains("something newer to deploy"), "{errors}");
    ensure!(shop.value("late").await?.is_none(), "it is behind the wait");

    // It is not forgotten once the object is looked at again.
    shop.change("shop", json!({ "suspend": false })).await?;
    shop.end_wait().await?;
    shop.ready("shop", "ReconciliationSucceeded").await?;
    ensure!(shop.value("late").await?.is_some());
    Ok(())
}

#[tokio::test]
async fn deployment_that_a_new_spec_interrupts_is_no_success_and_repeated() -> Result<()> {
    let shop = Gitops::new("gr-newer").await?;
    shop.push(&[("a", "1")])?;
    shop.create(
        "shop",
        json!({ "validate": false, "timeout": "1h", "interval": "1s" }),
    )
    .await?;
    let before = shop
        .ready("shop", "ReconciliationSucceeded")
        .await?
        .last_deploy_result;
    let drift = |status: &KluctlDeploymentStatus| status.last_drift_detection_result.clone();
    shop.push_waiting()?;
    shop.fixture.applied("slow").await?;
    let noted = drift(&shop.api().get("shop").await?.status.unwrap_or_default());
    shop.change("shop", json!({ "args": { "unused": "1" } })).await?;
    // The next pass waits for the same object.
    let found = wait_for(&shop.api(), "shop", "the result", TIMEOUT, |object| {
        let status = object.status.as_ref();
        status.is_some_and(|status| status.last_deploy_result != before)
    })
    .await?;
    let status = found.status.unwrap_or_default();
    let (reason, message) = ready_of(&status);
    ensure!(reason == "Progressing", "{reason} {message}");
    let errors = errors_of(&status);
    ensure!(errors.contains("something newer to deploy"), "{errors}");
    ensure!(status.last_objects_hash.is_none(), "{status:?}");
    ensure!(drift(&status) == noted, "{status:?}");
    ensure!(shop.value("late").await?.is_none());

    shop.end_wait().await?;
    shop.ready("shop", "ReconciliationSucceeded").await?;
    ensure!(shop.value("late").await?.is_some());
    Ok(())
}

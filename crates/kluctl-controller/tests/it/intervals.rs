//! Deployments that are due by their interval, and how the status notes them.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use api::kluctl::KluctlDeployment;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use testkit::wait_for;

use crate::{
    fixture::{Fixture, TIMEOUT, config_map},
    requests::of_passes,
    source::OfferedSource,
};

const SUCCEEDED: &str = "ReconciliationSucceeded";

/// The revision in the result of the last deployment.
fn deployed_revision(object: &KluctlDeployment) -> Option<&str> {
    let result = object.status.as_ref()?.last_deploy_result.as_ref()?;
    result.revision.as_deref()
}

/// The time of the last deployment, as the status has it.
fn deployed_at(object: &KluctlDeployment) -> Option<String> {
    let result = object.status.as_ref()?.last_deploy_result.as_ref()?;
    Some(json!(result.time).to_string())
}

impl Fixture {
    /// A source in the version and the form of early releases, which offers a project without a discriminator.
    async fn early_source(&self, name: &str, value: &str) -> Result<(OfferedSource, String)> {
        let source = self.source_in("v1beta2", name, &[]).await?;
        let map = config_map("a", value).replace(
            "  name: a\n",
            "  name: a\n  namespace: \"{{ args.namespace }}\"\n",
        );
        let files = [
            (".kluctl.yml", "targets:\n- name: target1\n".to_owned()),
            ("deployment.yml", "deployments:\n- path: d1\n".to_owned()),
            ("d1/kustomization.yml", "resources:\n- a.yml\n".to_owned()),
            ("d1/a.yml", map),
        ];
        let files = files.map(|(path, text)| (path.to_owned(), text));
        let revision = source.offer_in_root(&files).await?;
        Ok((source, revision))
    }

    /// Creates a deployment with all fields that the Go types of the original write, whether they were set or not.
    async fn create_as_in_go(&self, name: &str) -> Result<()> {
        let object = json!({
            "apiVersion": "flux.kluctl.io/v1alpha1", "kind": "KluctlDeployment",
            "metadata": { "name": name, "namespace": self.namespace, "creationTimestamp": null },
            "spec": {
                "sourceRef": { "kind": "GitRepository", "name": name, "namespace": self.namespace },
                "interval": "5s", "timeout": "30s", "deployOnChanges": false, "validate": false, "kubeConfig": null,
                "target": "target1", "args": { "namespace": self.namespace },
            },
            "status": {},
        });
        let (api, _) = self.plane.api_for(object.clone()).await?;
        let object: DynamicObject = serde_json::from_value(object)?;
        api.create(&PostParams::default(), &object).await?;
        Ok(())
    }

    /// Changes a ConfigMap as a field manager.
    async fn change_as(&self, manager: &str, data: Value) -> Result<ConfigMap> {
        let params = PatchParams {
            field_manager: Some(manager.to_owned()),
            ..PatchParams::default()
        };
        let patch = Patch::Merge(json!({ "data": data }));
        Ok(self.config_maps().patch("a", &params, &patch).await?)
    }

    /// Waits until the status has another time of the last deployment.
    async fn deployed_again(&self, name: &str) -> Result<KluctlDeployment> {
        let api = self.deployments();
        let before = deployed_at(&api.get(name).await?);
        wait_for(&api, name, "another deployment", TIMEOUT, |object| {
            deployed_at(object) != before
        })
        .await
    }

    /// Waits until this revision is the one that was deployed last.
    async fn deployed_last(&self, name: &str, revision: &str) -> Result<KluctlDeployment> {
        wait_for(&self.deployments(), name, revision, TIMEOUT, |object| {
            deployed_revision(object) == Some(revision)
        })
        .await
    }
}

#[tokio::test]
async fn fields_of_another_manager_stay_and_each_interval_notes_a_deployment() -> Result<()> {
    let fixture = Fixture::new("interval-held", &[]).await?;
    let (_source, revision) = fixture.early_source("shop", "1").await?;
    fixture.create_as_in_go("shop").await?;
    fixture.deployed_last("shop", &revision).await?;
    fixture.holds("a", "1").await?;

    fixture.change_as("kubectl", json!({ "value": "2" })).await?;
    fixture.holds("a", "1").await?;
    fixture
        .change_as("kubectl", json!({ "value": "2", "own": "kept" }))
        .await?;
    let map = fixture.holds("a", "1").await?;
    assert_eq!(map.data.unwrap_or_default()["own"], "kept");

    fixture
        .change_as("test-field-manager", json!({ "value": "2" }))
        .await?;
    for _ in 0..3 {
        fixture.deployed_again("shop").await?;
    }
    fixture.holds("a", "2").await?;

    fixture.edit("shop", json!({ "forceApply": true })).await?;
    fixture.holds("a", "1").await?;
    Ok(())
}

#[tokio::test]
async fn held_fields_are_noted_without_reading_or_telling_anything() -> Result<()> {
    let fixture = Fixture::new("interval-quiet", &[]).await?;
    fixture
        .running("shop", &[("a", "1")], json!({ "interval": "1s" }))
        .await?;
    fixture.change_as("operator", json!({ "value": "2" })).await?;
    for _ in 0..2 {
        fixture.deployed_again("shop").await?;
    }
    let told = fixture.events("shop").await?.len();
    let mark = fixture.plane.audit_mark();
    for _ in 0..3 {
        fixture.deployed_again("shop").await?;
    }
    // The object is read, and its status is written.
    let entries = of_passes(&fixture, mark)?;
    let others: Vec<_> = entries
        .iter()
        .filter(|entry| entry.resource != "kluctldeployments")
        .collect();
    ensure!(others.is_empty(), "{others:?}");
    assert_eq!(fixture.events("shop").await?.len(), told);

    // Drift of other fields is corrected all the same, and nothing is noted any more when the fields are back.
    fixture.change_as("kubectl", json!({ "value": "1" })).await?;
    crate::requests::without_requests(&fixture).await
}

#[tokio::test]
async fn deploy_interval_notes_each_deployment() -> Result<()> {
    let fixture = Fixture::new("interval-own", &[]).await?;
    fixture
        .running(
            "shop",
            &[("a", "1")],
            json!({ "interval": "1s", "deployInterval": "3s" }),
        )
        .await?;
    fixture.told("shop", "Reconciliation finished in ").await?;
    let told = fixture.events("shop").await?.len();
    let mut times = BTreeSet::new();
    for _ in 0..3 {
        let object = fixture.deployed_again("shop").await?;
        times.insert(deployed_at(&object).context("a deployment")?);
        let status = object.status.unwrap_or_default();
        assert_eq!(
            status.last_deploy_result.and_then(|result| result.revision),
            status.last_attempted_revision
        );
    }
    assert_eq!(times.len(), 3);
    assert_eq!(fixture.events("shop").await?.len(), told);
    fixture
        .config_maps()
        .delete("a", &kube::api::DeleteParams::default())
        .await?;
    fixture.holds("a", "1").await?;
    Ok(())
}

#[tokio::test]
async fn changes_are_deployed_and_pruned_at_the_interval_without_deploy_on_changes() -> Result<()> {
    let fixture = Fixture::new("interval-due", &[]).await?;
    let spec = json!({ "deployOnChanges": false, "interval": "5s", "prune": false });
    let source = fixture.running("shop", &[("a", "1"), ("b", "1")], spec).await?;
    // Nothing is left to apply, and the deployment is of the new revision all the same.
    let revision = source.offer(&fixture.maps(&[("a", "1")])).await?;
    fixture.deployed_last("shop", &revision).await?;
    ensure!(fixture.has("a").await? && fixture.has("b").await?);

    fixture.edit("shop", json!({ "prune": true })).await?;
    fixture.deployed_again("shop").await?;
    fixture.ready("shop", "True", SUCCEEDED).await?;
    ensure!(fixture.has("a").await? && !fixture.has("b").await?);

    let revision = source.offer(&fixture.maps(&[("a", "2"), ("c", "1")])).await?;
    fixture.deployed_last("shop", &revision).await?;
    fixture.holds("a", "2").await?;
    let revision = source.offer(&fixture.maps(&[("a", "2")])).await?;
    fixture.deployed_last("shop", &revision).await?;
    ensure!(!fixture.has("c").await?, "an orphan is left");
    Ok(())
}

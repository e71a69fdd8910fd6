//! Removal of deployments of releases that had no discriminator.

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::fixture::{Fixture, for_kind};

impl Fixture {
    /// Applies a ConfigMap as a field manager.
    async fn applied_by(&self, manager: &str, name: &str, labels: &Value) -> Result<ConfigMap> {
        let map = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": { "name": name, "labels": labels }, "data": { "value": "1" },
        });
        let params = PatchParams::apply(manager);
        Ok(self
            .config_maps()
            .patch(name, &params, &Patch::Apply(map))
            .await?)
    }

    /// Makes an object whose source is missing, with the status of an old controller that had deployed it.
    async fn deployed_long_ago(&self, name: &str, spec: Value, labels: &Value) -> Result<()> {
        let object = self
            .deployment(name, "no-such-source")
            .spec(for_kind())
            .spec(spec);
        self.plane.apply(object).await?;
        self.ready(name, "False", "ArtifactFailed").await?;
        let status = Patch::Merge(json!({ "status": { "commonLabels": labels } }));
        let deployments = self.deployments();
        deployments
            .patch_status(name, &PatchParams::default(), &status)
            .await?;
        // Later passes leave the labels.
        self.reconcile(name).await?;
        let status = deployments.get(name).await?.status.unwrap_or_default();
        ensure!(json!(status.common_labels) == *labels, "{status:?}");
        Ok(())
    }

    /// Returns which of these ConfigMaps exist.
    async fn existing(&self, names: &[&'static str]) -> Result<Vec<&'static str>> {
        let mut found = Vec::new();
        for &name in names {
            if self.has(name).await? {
                found.push(name);
            }
        }
        Ok(found)
    }
}

#[tokio::test]
async fn objects_of_releases_without_discriminators_are_removed_by_all_their_labels() -> Result<()> {
    let fixture = Fixture::new("labels", &[]).await?;
    // Labels are searched in the whole cluster, where other tests are, too.
    let labels = json!({ "example.com/app": fixture.namespace, "example.com/env": "test" });
    let with = |key: &str, value: &str| {
        let mut more = labels.clone();
        more[key] = json!(value);
        more
    };
    for (manager, name, labels) in [
        ("kluctl", "own", with("example.com/more", "1")),
        ("kluctl", "partly", with("example.com/env", "prod")),
        ("kluctl", "taken", with("kluctl.io/discriminator", "shop")),
        ("kubectl", "copied", labels.clone()),
    ] {
        fixture.applied_by(manager, name, &labels).await?;
    }
    let all = ["own", "partly", "taken", "copied"];
    let remove = json!({ "prune": true });
    fixture.deployed_long_ago("shop", remove.clone(), &labels).await?;
    let more = with("example.com/more", "1");
    fixture
        .deployed_long_ago("twin", json!({ "prune": false }), &more)
        .await?;
    fixture
        .deployed_long_ago("bare", remove.clone(), &json!({}))
        .await?;
    let odd = json!({ "example.com/app": fixture.namespace, "example.com/env": "" });
    fixture.deployed_long_ago("odd", remove.clone(), &odd).await?;

    // Nothing tells these apart from the objects of another one.
    fixture.remove("bare").await?;
    fixture.remove("odd").await?;
    fixture.told("odd", "not valid labels").await?;
    fixture.remove("shop").await?;
    fixture.told("shop", "also used by KluctlDeployment").await?;
    assert_eq!(fixture.existing(&all).await?, all);

    fixture.remove("twin").await?;
    assert_eq!(fixture.existing(&all).await?, all, "prune is off");
    fixture.deployed_long_ago("shop", remove, &labels).await?;
    fixture.remove("shop").await?;
    fixture
        .told("shop", "delete succeeded. 1 deleted objects.")
        .await?;
    assert_eq!(fixture.existing(&all).await?, all[1..]);
    Ok(())
}

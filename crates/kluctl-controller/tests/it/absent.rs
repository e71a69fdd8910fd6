//! Objects that a project deletes, which appear again while nothing else changes.

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    ResourceExt as _,
    api::{ObjectMeta, PostParams},
};
use serde_json::json;
use testkit::{eventually, wait_for, wait_gone};

use crate::{
    fixture::{Fixture, TIMEOUT, config_map, project},
    gitops::{Gitops, ready_of},
};

const SUCCEEDED: &str = "ReconciliationSucceeded";

/// Returns a project with an object that is marked for deletion, and another one in a delete list.
fn files(fixture: &Fixture) -> Vec<(String, String)> {
    let marked = config_map("marked", "1").replace(
        "metadata:\n",
        "metadata:\n  annotations:\n    kluctl.io/delete: \"true\"\n",
    );
    let mut files = project(
        &fixture.namespace,
        &[("marked", &marked), ("a", &config_map("a", "1"))],
    );
    let list = format!(
        "- deleteObjects:\n  - kind: ConfigMap\n    name: listed\n    namespace: {}\n",
        fixture.namespace
    );
    for (path, text) in &mut files {
        if path == "deployment.yaml" {
            *text = text.replace("deployments:\n", &format!("deployments:\n{list}"));
        }
    }
    files
}

impl Fixture {
    /// Creates a ConfigMap by hand, without the labels of a deployment.
    async fn appear(&self, name: &str) -> Result<ConfigMap> {
        let map = ConfigMap {
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                ..ObjectMeta::default()
            },
            ..ConfigMap::default()
        };
        Ok(self.config_maps().create(&PostParams::default(), &map).await?)
    }
}

#[tokio::test]
async fn objects_that_shall_be_absent_are_deleted_again_at_the_interval() -> Result<()> {
    let fixture = Fixture::new("absent", &[]).await?;
    fixture.source("shop", &files(&fixture)).await?;
    fixture.deploy("shop", json!({ "interval": "1s" })).await?;
    fixture.ready("shop", "True", SUCCEEDED).await?;
    for name in ["marked", "listed"] {
        fixture.more_passes(3.0).await?;
        let uid = fixture.appear(name).await?.uid();
        eventually("it to be deleted again", TIMEOUT, || async {
            let found = fixture.config_maps().get_opt(name).await?;
            ensure!(found.and_then(|map| map.uid()) != uid, "{name} is still there");
            Ok(())
        })
        .await?;
        fixture.ready("shop", "True", SUCCEEDED).await?;
    }
    Ok(())
}

#[tokio::test]
async fn objects_that_shall_be_absent_are_noticed_at_the_interval() -> Result<()> {
    let shop = Gitops::new("g-absent").await?;
    shop.push_files(&files(&shop.fixture), &[])?;
    shop.create("shop", json!({ "interval": "1s" })).await?;
    shop.ready("shop", SUCCEEDED).await?;
    shop.fixture.more_passes(3.0).await?;
    shop.fixture.appear("listed").await?;
    let api = shop.api();
    wait_for(&api, "shop", "drift", TIMEOUT, |object| {
        let drift = object
            .status
            .as_ref()
            .and_then(|status| status.last_drift_detection_result.as_ref());
        drift.is_some_and(|drift| drift.to_string().contains("\"listed\""))
    })
    .await?;
    shop.fixture
        .config_maps()
        .delete("listed", &kube::api::DeleteParams::default())
        .await?;
    shop.ready("shop", SUCCEEDED).await?;
    shop.fixture.more_passes(3.0).await?;
    shop.fixture.appear("marked").await?;
    let status = shop.ready("shop", "ValidateFailed").await?;
    ensure!(ready_of(&status).1.contains("validate failed"), "{status:?}");
    // Deployments at an interval delete it.
    shop.change("shop", json!({ "deployInterval": "1s" })).await?;
    wait_gone(&shop.fixture.config_maps(), "marked", TIMEOUT).await?;
    shop.ready("shop", SUCCEEDED).await?;
    Ok(())
}

//! Removal of a deployment, with or without its objects.

use anyhow::{Result, ensure};
use kube::api::DeleteParams;
use serde_json::json;
use testkit::{wait_for, wait_gone};

use crate::fixture::{Fixture, TIMEOUT, for_kind, message_of};

#[tokio::test]
async fn removal_deletes_or_keeps_objects_as_the_spec_says() -> Result<()> {
    let fixture = Fixture::new("remove", &[]).await?;
    let cases = [
        ("pruned", json!({ "prune": true }), false),
        ("deleted", json!({ "prune": false, "delete": true }), false),
        ("kept", json!({ "prune": true, "delete": false }), true),
        ("neither", json!({ "prune": false }), true),
        ("suspended", json!({ "prune": true, "delete": true }), true),
    ];
    for (name, spec, stays) in cases {
        // Each has a discriminator of its own.
        let files = [
            (
                ".kluctl.yaml",
                format!("discriminator: {}-{name}\n", fixture.namespace),
            ),
            (
                "deployment.yaml",
                format!(
                    "deployments:\n- path: app\noverrideNamespace: {}\n",
                    fixture.namespace
                ),
            ),
            ("app/kustomization.yaml", "resources:\n- map.yaml\n".to_owned()),
            ("app/map.yaml", crate::fixture::config_map(name, "1")),
        ];
        let files = files.map(|(path, text)| (path.to_owned(), text));
        fixture.source(name, &files).await?;
        fixture
            .plane
            .apply(fixture.deployment(name, name).spec(spec))
            .await?;
        fixture.ready(name, "True", "ReconciliationSucceeded").await?;
        if name == "suspended" {
            fixture.edit(name, json!({ "suspend": true })).await?;
        }
        fixture.remove(name).await?;
        let there = fixture
            .config_maps()
            .get_opt(name)
            .await?
            .is_some_and(|map| map.metadata.deletion_timestamp.is_none());
        ensure!(
            there == stays,
            "{name}: the object is {}",
            if there { "there" } else { "gone" }
        );
    }
    fixture
        .told("pruned", "delete succeeded. 1 deleted objects.")
        .await?;
    Ok(())
}

#[tokio::test]
async fn removal_retries_an_unreachable_cluster_until_suspended() -> Result<()> {
    let fixture = Fixture::new("lost", &[]).await?;
    let kubeconfig = fixture.account("remote").await?;
    fixture.store("value", &kubeconfig).await?;
    let remote = json!({ "kubeConfig": { "secretRef": { "name": "remote" } } });
    fixture.running("shop", &[("a", "1")], remote).await?;
    let server = fixture.plane.server().to_owned();
    fixture
        .store("value", &kubeconfig.replace(&server, "https://127.0.0.1:1"))
        .await?;
    fixture
        .deployments()
        .delete("shop", &DeleteParams::default())
        .await?;
    let object = wait_for(&fixture.deployments(), "shop", "a reason", TIMEOUT, |object| {
        message_of(object).starts_with("cannot delete what was deployed: ")
    })
    .await?;
    ensure!(
        message_of(&object).contains("suspend the object to give up now"),
        "{}",
        message_of(&object)
    );
    fixture.edit("shop", json!({ "suspend": true })).await?;
    wait_gone(&fixture.deployments(), "shop", TIMEOUT).await?;
    ensure!(fixture.has("a").await?);
    Ok(())
}

#[tokio::test]
async fn removal_of_an_undeployed_object_is_immediate() -> Result<()> {
    let fixture = Fixture::new("never", &[]).await?;
    fixture
        .plane
        .apply(fixture.deployment("shop", "no-such-source").spec(for_kind()))
        .await?;
    fixture.ready("shop", "False", "ArtifactFailed").await?;
    fixture.remove("shop").await
}

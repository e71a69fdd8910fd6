//! One object that the schema accepts and the type does not, beside objects that must not notice.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use serde_json::json;
use testkit::{manifest, wait_for};

use crate::fixture::{Fixture, TIMEOUT, for_kind, message_of};

/// Applies an object whose interval does not decode, and waits until it says so.
async fn poison(fixture: &Fixture) -> Result<Api<DynamicObject>> {
    let poison = manifest::kluctl_deployment(&fixture.namespace, "poison", "shop", ".")
        .spec(json!({ "interval": "99999999999999h", "dependsOn": [{ "name": "shop" }] }));
    let object = serde_json::Value::from(poison);
    let (api, _) = fixture.plane.api_for(object.clone()).await?;
    testkit::eventually("the object to be accepted", TIMEOUT, || async {
        fixture.plane.apply(object.clone()).await.map(drop)
    })
    .await?;
    wait_for(&api, "poison", "InvalidSpec", TIMEOUT, |object| {
        object.data.to_string().contains("InvalidSpec")
    })
    .await?;
    Ok(api)
}

#[tokio::test]
async fn undecodable_object_breaks_no_trigger_prune_or_removal_of_another() -> Result<()> {
    let fixture = Fixture::on(crate::fixture::loose_plane().await?, "poison", &[]).await?;
    let poison = poison(&fixture).await?;
    let source = fixture
        .running("shop", &[("a", "1"), ("b", "1")], json!({ "interval": "1h" }))
        .await?;

    // Nothing but the watch tells that there is a new revision, and its orphan is pruned.
    let revision = source.offer(&fixture.maps(&[("a", "2")])).await?;
    fixture.deployed("shop", &revision).await?;
    ensure!(fixture.has("a").await? && !fixture.has("b").await?);

    // A dependency that becomes ready wakes its dependents, too.
    let waiting = fixture
        .deployment("waiting", "shop")
        .spec(for_kind())
        .spec(json!({ "dependsOn": [{ "name": "shop" }], "dryRun": true, "interval": "1h" }));
    fixture.plane.apply(waiting).await?;
    fixture
        .ready("waiting", "True", "ReconciliationSucceeded")
        .await?;
    fixture.remove("waiting").await?;

    // Its status decides whether it shares a discriminator.
    let status = |discriminator: &str| Patch::Merge(json!({ "status": { "discriminator": discriminator } }));
    let own = format!("{}-test", fixture.namespace);
    let params = PatchParams::default();
    poison.patch_status("poison", &params, &status(&own)).await?;
    source.offer(&fixture.maps(&[("c", "1")])).await?;
    let object = fixture.ready("shop", "False", "DeployFailed").await?;
    let other = format!("KluctlDeployment {}/poison", fixture.namespace);
    ensure!(message_of(&object).contains(&other), "{}", message_of(&object));
    ensure!(fixture.has("a").await? && fixture.has("c").await?);

    poison.patch_status("poison", &params, &status("other")).await?;
    fixture.reconcile("shop").await?;
    fixture.ready("shop", "True", "ReconciliationSucceeded").await?;
    ensure!(!fixture.has("a").await?);
    fixture.remove("shop").await?;
    ensure!(!fixture.has("c").await?, "its objects were not deleted");
    Ok(())
}

#[tokio::test]
async fn undecodable_object_delays_none_of_49_others() -> Result<()> {
    const INTERVAL: Duration = Duration::from_secs(60);
    let fixture = Fixture::on(crate::fixture::loose_plane().await?, "fifty", &[]).await?;
    let source = fixture.source("shop", &fixture.maps(&[("a", "1")])).await?;
    poison(&fixture).await?;
    let names: Vec<String> = (0..49).map(|i| format!("shop-{i:02}")).collect();
    for name in &names {
        let deployment = fixture
            .deployment(name, "shop")
            .spec(for_kind())
            .spec(json!({ "interval": "60s", "dryRun": true, "prune": false }));
        fixture.plane.apply(deployment).await?;
    }
    for name in &names {
        fixture.ready(name, "True", "ReconciliationSucceeded").await?;
    }
    let revision = source.offer(&fixture.maps(&[("a", "2")])).await?;
    let offered = Instant::now();
    for name in &names {
        fixture.deployed(name, &revision).await?;
    }
    let took = offered.elapsed();
    ensure!(took < 2 * INTERVAL, "it took {took:?}");
    Ok(())
}

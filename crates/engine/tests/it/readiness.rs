//! Readiness, waiting and validation.

use std::time::Duration;

use anyhow::Result;
use engine::DeployOptions;
use serde_json::{Value as Json, json};

use crate::world::{Fixture, TIMEOUT};

fn workload(world: &Fixture, selector: Json) -> Json {
    world.object(
        "apps/v1",
        "Deployment",
        "web",
        json!({"spec": {
            "replicas": 2, "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"nodeSelector": selector,
                "containers": [{"name": "c", "image": "registry.example.com/app:1"}]}},
        }}),
    )
}

#[tokio::test]
async fn workloads_claims_and_load_balancers_become_ready() -> Result<()> {
    let world = Fixture::new("ready").await?;
    let mut rendered = world.rendered(vec![
        workload(&world, json!({})),
        world.object(
            "v1",
            "Service",
            "lb",
            json!({"spec": {"type": "LoadBalancer", "ports": [{"port": 80}]}}),
        ),
        world.object(
            "v1",
            "PersistentVolumeClaim",
            "data",
            json!({"spec": {"accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}}}}),
        ),
        world.object("v1", "ServiceAccount", "sa", json!({})),
    ]);
    let before = engine::validate(&world.cluster, &rendered).await?;
    assert_eq!(before.errors.len(), 4);
    assert!(
        before
            .errors
            .iter()
            .all(|error| error.message == "object not found"),
        "{:?}",
        before.errors
    );

    rendered.items[0].wait_readiness = true;
    let options = DeployOptions {
        readiness_timeout: TIMEOUT,
        ..DeployOptions::default()
    };
    let result = engine::deploy(&world.cluster, &rendered, &options).await?;
    assert!(result.errors.is_empty(), "{:?}", result.errors);
    let after = engine::validate(&world.cluster, &rendered).await?;
    assert!(after.ready && after.errors.is_empty(), "{after:?}");
    Ok(())
}

#[tokio::test]
async fn unready_objects_are_named() -> Result<()> {
    let world = Fixture::new("unready").await?;
    let mut pending = workload(&world, json!({"no-such": "node"}));
    pending["metadata"]["annotations"] = json!({"kluctl.io/wait-readiness": "true"});
    let rendered = world.items(vec![vec![pending], vec![world.config_map("next", json!({}))]]);
    let options = DeployOptions {
        readiness_timeout: Duration::from_secs(1),
        ..DeployOptions::default()
    };
    let result = engine::deploy(&world.cluster, &rendered, &options).await?;
    assert_eq!(result.errors.len(), 1, "{:?}", result.errors);
    let message = &result.errors[0].message;
    let expected = format!(
        "timed out while waiting for readiness of {}/Deployment/web: ",
        world.namespace
    );
    assert!(
        message.starts_with(&expected) && message.contains("readyReplicas"),
        "{message}"
    );
    assert!(
        world.live("next").await?.is_some(),
        "the next item is deployed nevertheless"
    );
    let validated = engine::validate(&world.cluster, &rendered).await?;
    assert!(!validated.ready);
    assert!(
        validated
            .failure()
            .unwrap_or_default()
            .starts_with("validate failed with 1 errors: "),
        "{validated:?}"
    );

    let no_wait = DeployOptions {
        no_wait: true,
        ..DeployOptions::default()
    };
    assert!(
        engine::deploy(&world.cluster, &rendered, &no_wait)
            .await?
            .errors
            .is_empty()
    );
    Ok(())
}

#[tokio::test]
async fn annotations_decide_readiness_without_a_status() -> Result<()> {
    let world = Fixture::new("is-ready").await?;
    let annotated = |name: &str, annotations: Json| {
        let mut object = world.config_map(name, json!({}));
        object["metadata"]["annotations"] = annotations;
        object
    };
    let rendered = world.rendered(vec![
        annotated(
            "bad",
            json!({"kluctl.io/is-ready": "false", "validate-result.kluctl.io/note": "look here"}),
        ),
        annotated(
            "ignored",
            json!({"kluctl.io/is-ready": "false", "kluctl.io/validate-ignore": "true"}),
        ),
    ]);
    world.deploy_well(&rendered).await?;
    let result = engine::validate(&world.cluster, &rendered).await?;
    assert_eq!(result.errors.len(), 1);
    assert_eq!(
        result.errors[0].message,
        "kluctl.io/is-ready annotation is set to false"
    );
    assert_eq!(result.results[0].1.message, "look here");
    Ok(())
}

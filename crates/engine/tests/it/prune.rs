//! Pruning and deleting.

use anyhow::Result;
use engine::RemoveOptions;
use engine::discriminator::Claim;
use results::CommandResult;
use serde_json::json;

use crate::world::{Fixture, TIMEOUT, deleted};

#[tokio::test]
async fn prune_deletes_own_objects_that_are_no_longer_rendered() -> Result<()> {
    let world = Fixture::new("prune").await?;
    let annotated = |name: &str, annotation: &str, value: &str| {
        let mut object = world.config_map(name, json!({}));
        object["metadata"]["annotations"] = json!({ annotation: value });
        object
    };
    let kept = vec![world.config_map("kept", json!({}))];
    let mut all = kept.clone();
    all.extend([
        world.config_map("gone", json!({})),
        world.object("v1", "Secret", "gone-too", json!({})),
        annotated("skipped", "kluctl.io/skip-delete", "true"),
        annotated("helm-kept", "helm.sh/resource-policy", "keep"),
        world.config_map("owned", json!({})),
    ]);
    world.deploy_well(&world.rendered(all)).await?;
    let uid = world.live("kept").await?.unwrap()["metadata"]["uid"].clone();
    let owner = json!({"metadata": {"ownerReferences": [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "kept", "uid": uid}]}});
    world.patch_as("operator", "configmap/owned", owner).await?;
    // Something that another tool made with a copy of our label.
    let mut foreign = world.config_map("foreign", json!({}));
    foreign["metadata"]["labels"] = json!({"kluctl.io/discriminator": world.namespace});
    world.plane.apply(foreign).await?;

    let rendered = world.rendered(kept);
    let deployed = world.deploy_well(&rendered).await?;
    assert_eq!(deployed.counts().orphans, 2);
    assert_eq!(world.prune(&rendered).await?, ["gone", "gone-too"]);
    for name in ["kept", "skipped", "helm-kept", "owned", "foreign"] {
        assert!(world.live(name).await?.is_some(), "{name}");
    }
    assert!(
        world.prune(&rendered).await?.is_empty(),
        "the second time there is nothing to do"
    );
    Ok(())
}

#[tokio::test]
async fn prune_dry_run_deletes_nothing() -> Result<()> {
    let world = Fixture::new("prune-dry").await?;
    let (a, b) = (world.config_map("a", json!({})), world.config_map("b", json!({})));
    world.deploy_well(&world.rendered(vec![a.clone(), b])).await?;
    let options = RemoveOptions {
        dry_run: true,
        ..RemoveOptions::default()
    };
    let result = engine::prune(&world.cluster, &world.rendered(vec![a]), &options).await?;
    assert_eq!(deleted(&result), ["b"]);
    assert!(world.live("b").await?.is_some());
    Ok(())
}

#[tokio::test]
async fn prune_refuses_an_unsafe_discriminator() -> Result<()> {
    let world = Fixture::new("discriminator").await?;
    let both = vec![world.config_map("a", json!({})), world.config_map("b", json!({}))];
    world.deploy_well(&world.rendered(both)).await?;
    let mut rendered = world.rendered(vec![world.config_map("a", json!({}))]);
    let claim = |owner: &str| Claim {
        owner: owner.to_owned(),
        cluster: "here".to_owned(),
        discriminator: world.namespace.clone(),
    };
    let (own, other) = (
        claim("KluctlDeployment x/mine"),
        claim("KluctlDeployment x/theirs"),
    );
    let others = [own.clone(), other];
    let options = RemoveOptions {
        claim: Some(&own),
        others: &others,
        ..RemoveOptions::default()
    };
    let error = engine::prune(&world.cluster, &rendered, &options)
        .await
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("also used by KluctlDeployment x/theirs"),
        "{error}"
    );
    let options = RemoveOptions {
        claim: Some(&own),
        others: &others,
        ..RemoveOptions::default()
    };
    assert!(
        engine::delete(&world.cluster, &world.namespace, &options)
            .await
            .is_err()
    );
    for (discriminator, expected) in [
        (None, "pruning without a discriminator is not supported"),
        (Some(""), "pruning without a discriminator is not supported"),
        (Some("not a label"), "is not a valid label value"),
    ] {
        rendered.target.discriminator = discriminator.map(str::to_owned);
        let error = engine::prune(&world.cluster, &rendered, &RemoveOptions::default())
            .await
            .unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
    let error = engine::delete(&world.cluster, "", &RemoveOptions::default())
        .await
        .unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("deletion without a discriminator is not supported"),
        "{error}"
    );
    assert!(world.live("b").await?.is_some());
    Ok(())
}

#[tokio::test]
async fn delete_removes_all_own_objects() -> Result<()> {
    let world = Fixture::new("delete").await?;
    let mut spared = world.config_map("spared", json!({}));
    spared["metadata"]["annotations"] = json!({"kluctl.io/skip-delete": "true"});
    world
        .deploy_well(&world.rendered(vec![world.config_map("a", json!({})), spared]))
        .await?;
    let delete = |dry_run| {
        let options = RemoveOptions {
            dry_run,
            wait: Some(TIMEOUT),
            ..RemoveOptions::default()
        };
        let (cluster, discriminator) = (world.cluster.clone(), world.namespace.clone());
        async move { engine::delete(&cluster, &discriminator, &options).await }
    };
    assert_eq!(deleted(&delete(true).await?), ["a"]);
    assert!(world.live("a").await?.is_some());
    let result: CommandResult = delete(false).await?;
    assert_eq!(result.message(), "delete succeeded. 1 deleted objects.");
    assert!(world.live("a").await?.is_none() && world.live("spared").await?.is_some());
    assert_eq!(deleted(&delete(false).await?), Vec::<String>::new());
    Ok(())
}

#[tokio::test]
async fn namespace_is_deleted_first_with_its_objects() -> Result<()> {
    let world = Fixture::new("prune-ns").await?;
    let other = format!("{}-own", world.namespace);
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": other}});
    let mut inside = world.config_map("inside", json!({}));
    inside["metadata"]["namespace"] = json!(other);
    let kept = world.config_map("kept", json!({}));
    world
        .deploy_well(&world.items(vec![vec![namespace], vec![inside.clone(), kept.clone()]]))
        .await?;

    let used = world.rendered(vec![inside, kept.clone()]);
    let result = engine::prune(&world.cluster, &used, &RemoveOptions::default()).await?;
    assert!(
        deleted(&result).is_empty(),
        "a namespace with rendered objects stays: {result:?}"
    );
    assert_eq!(result.warnings.len(), 1);

    let mark = world.plane.audit_mark();
    let gone = world.prune(&world.rendered(vec![kept])).await?;
    assert_eq!(gone, std::slice::from_ref(&other));
    assert!(world.plane.kubectl(&["get", "namespace", &other]).await.is_err());
    let deletes = world.plane.audit_since(mark)?;
    let ours = |entry: &&testkit::audit::Entry| {
        entry.verb == "delete"
            && entry.user_agent.starts_with("weir/")
            && (entry.name == other || entry.namespace == other)
    };
    let deletes: Vec<_> = deletes
        .iter()
        .filter(ours)
        .map(|entry| entry.resource.as_str())
        .collect();
    assert_eq!(deletes, ["namespaces"], "what is in it is not deleted one by one");
    Ok(())
}

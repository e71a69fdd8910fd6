//! Comparing without changing anything.

use anyhow::Result;
use engine::{AppliedVersions, CompareOptions, Comparison, DeployOptions};
use serde_json::json;

use crate::world::Fixture;

fn found(comparison: &Comparison) -> (Vec<&str>, Vec<&str>) {
    let names = |ids: &std::collections::HashSet<objects::ObjectId>| {
        let mut names: Vec<String> = ids.iter().map(|id| id.name.clone()).collect();
        names.sort();
        names.into_iter().map(|name| &*name.leak()).collect::<Vec<&str>>()
    };
    (names(&comparison.missing), names(&comparison.changed))
}

#[tokio::test]
async fn compare_finds_manual_changes_only() -> Result<()> {
    let world = Fixture::new("compare").await?;
    let deployment = world.object(
        "apps/v1",
        "Deployment",
        "web",
        json!({"spec": {
            "replicas": 0, "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [
                {"name": "c", "image": "i", "args": ["one", "two"], "resources": {"limits": {"cpu": 1}}}]}},
        }}),
    );
    let rendered = world.rendered(vec![
        world.config_map("a", json!({"key": "ours"})),
        world.config_map("b", json!({"key": "ours"})),
        world.config_map("c", json!({"key": "ours"})),
        world.object("v1", "Service", "s", json!({"spec": {"ports": [{"port": 80}]}})),
        deployment,
    ]);
    let compare = |versions: Option<AppliedVersions>| {
        let (cluster, rendered) = (world.cluster.clone(), rendered.clone());
        async move {
            let options = CompareOptions {
                kinds: None,
                versions: versions.as_ref(),
                orphans: false,
                ..CompareOptions::default()
            };
            engine::compare(&cluster, &rendered, options).await
        }
    };
    assert_eq!(found(&compare(None).await?).0, ["a", "b", "c", "s", "web"]);
    let deployed = world.deploy_well(&rendered).await?;
    let clean = compare(None).await?;
    assert!(clean.is_clean(), "{clean:?}");
    assert_eq!((deployed.versions.len(), clean.versions.len()), (5, 5));

    let mark = world.plane.audit_mark();
    assert!(compare(Some(clean.versions.clone())).await?.is_clean());
    let tried = world.plane.audit_since(mark)?;
    let tried = tried.iter().filter(|entry| {
        entry.verb == "patch" && entry.namespace == world.namespace && entry.resource == "configmaps"
    });
    assert_eq!(tried.count(), 0, "what was not changed since is not tried");

    world
        .patch_as("kubectl-edit", "configmap/b", json!({"data": {"key": "theirs"}}))
        .await?;
    world
        .plane
        .kubectl(&["delete", "configmap", "c", "-n", &world.namespace])
        .await?;
    // The order of arguments matters, though lists otherwise compare as sets.
    world
        .patch_as(
            "kubectl-edit",
            "deployment/web",
            json!({"spec": {"template": {"spec": {"containers": [
        {"name": "c", "image": "i", "args": ["two", "one"], "resources": {"limits": {"cpu": "1"}}}]}}}}),
        )
        .await?;
    for versions in [None, Some(clean.versions.clone())] {
        let drifted = compare(versions).await?;
        assert_eq!(found(&drifted), (vec!["c"], vec!["b", "web"]));
        assert_eq!(drifted.to_apply().len(), 3);
    }
    assert_eq!(
        world.data("b").await?["key"],
        "theirs",
        "comparing changes nothing"
    );

    let untouched = world.live("a").await?.unwrap()["metadata"]["resourceVersion"].clone();
    let mark = world.plane.audit_mark();
    let only = Some(compare(None).await?.to_apply());
    let result = engine::deploy(
        &world.cluster,
        &rendered,
        &DeployOptions {
            only,
            ..DeployOptions::default()
        },
    )
    .await?;
    assert_eq!(
        (result.counts().new, result.counts().changed),
        (1, 2),
        "{result:?}"
    );
    let written = world.plane.audit_since(mark)?;
    let written = written
        .iter()
        .filter(|entry| entry.verb == "patch" && !entry.uri.contains("dryRun"));
    assert!(
        written
            .clone()
            .all(|entry| entry.namespace != world.namespace || entry.name != "a")
    );
    assert!(compare(None).await?.is_clean());
    assert_eq!(
        world.live("a").await?.unwrap()["metadata"]["resourceVersion"],
        untouched
    );
    Ok(())
}

#[tokio::test]
async fn compare_finds_orphans_on_request() -> Result<()> {
    let world = Fixture::new("orphans").await?;
    let (a, b) = (world.config_map("a", json!({})), world.config_map("b", json!({})));
    world.deploy_well(&world.rendered(vec![a.clone(), b])).await?;
    let options = CompareOptions {
        kinds: None,
        orphans: true,
        ..CompareOptions::default()
    };
    let comparison = engine::compare(&world.cluster, &world.rendered(vec![a]), options).await?;
    let orphans: Vec<_> = comparison.orphans.iter().map(ToString::to_string).collect();
    assert_eq!(orphans, [format!("{}/ConfigMap/b", world.namespace)]);
    Ok(())
}

#[tokio::test]
async fn compare_reports_no_drift_for_fields_of_others() -> Result<()> {
    let world = Fixture::new("foreign-field").await?;
    let rendered = world.rendered(vec![world.config_map("a", json!({"key": "ours"}))]);
    world.deploy_well(&rendered).await?;
    world
        .patch_as("operator", "configmap/a", json!({"data": {"extra": "theirs"}}))
        .await?;
    let comparison = engine::compare(&world.cluster, &rendered, CompareOptions::default()).await?;
    assert!(comparison.is_clean(), "{comparison:?}");
    // A field that another manager took over is reported, not fought about.
    world
        .patch_as("operator", "configmap/a", json!({"data": {"key": "theirs"}}))
        .await?;
    let comparison = engine::compare(&world.cluster, &rendered, CompareOptions::default()).await?;
    assert_eq!(comparison.warnings.len(), 1, "{comparison:?}");
    Ok(())
}

//! Fields that others manage.

use anyhow::Result;
use engine::{CompareOptions, DeployOptions};
use serde_json::{Value as Json, json};

use crate::world::Fixture;

const LOST: &str = "Not updating field '.data.key' as we lost field ownership";

/// Deploys, changes the field as another manager, deploys again; returns the value and the warnings.
async fn contest(name: &str, manager: &str, annotations: Json, force: bool) -> Result<(Json, Vec<String>)> {
    let world = Fixture::new(name).await?;
    let mut object = world.config_map("c", json!({"key": "ours", "other": "ours"}));
    object["metadata"]["annotations"] = annotations;
    let rendered = world.rendered(vec![object]);
    world.deploy_well(&rendered).await?;
    world
        .patch_as(manager, "configmap/c", json!({"data": {"key": "theirs"}}))
        .await?;
    let options = DeployOptions {
        force_apply: force,
        ..DeployOptions::default()
    };
    let result = engine::deploy(&world.cluster, &rendered, &options).await?;
    anyhow::ensure!(result.errors.is_empty(), "{:?}", result.errors);
    let data = world.data("c").await?;
    assert_eq!(data["other"], "ours");
    Ok((
        data["key"].clone(),
        result
            .warnings
            .into_iter()
            .map(|warning| warning.message)
            .collect(),
    ))
}

#[tokio::test]
async fn deploy_reverts_manual_edits() -> Result<()> {
    for manager in ["kubectl-edit", "kubectl", "k9s", "rancher"] {
        assert_eq!(
            contest("by-hand", manager, json!({}), false).await?,
            (json!("ours"), vec![]),
            "{manager}"
        );
    }
    Ok(())
}

#[tokio::test]
async fn controllers_keep_their_fields_with_a_warning() -> Result<()> {
    let (value, warnings) = contest("foreign", "hpa-controller", json!({}), false).await?;
    assert_eq!(value, "theirs");
    assert_eq!(warnings.len(), 1);
    assert!(
        warnings[0].starts_with("conflict with \"hpa-controller\"") && warnings[0].ends_with(LOST),
        "{warnings:?}"
    );
    Ok(())
}

#[tokio::test]
async fn annotations_resolve_conflicts() -> Result<()> {
    for (name, value, expected) in [
        ("kluctl.io/force-apply", "true", "ours"),
        ("kluctl.io/force-apply-field", "data.key", "ours"),
        ("kluctl.io/force-apply-manager", "^oper", "ours"),
        ("kluctl.io/ignore-conflicts", "true", "theirs"),
        ("kluctl.io/ignore-conflicts-field-7", "data.key", "theirs"),
        ("kluctl.io/ignore-conflicts-manager", "operator", "theirs"),
    ] {
        let contested = contest("annotated", "operator", json!({name: value}), false).await?;
        assert_eq!(contested, (json!(expected), vec![]), "{name}: {value}");
    }
    let ignored = json!({"kluctl.io/ignore-conflicts": "true"});
    assert_eq!(
        contest("annotated", "kubectl-edit", ignored, false).await?,
        (json!("theirs"), vec![])
    );
    Ok(())
}

#[tokio::test]
async fn force_apply_wins_all_conflicts() -> Result<()> {
    assert_eq!(
        contest("forced", "operator", json!({}), true).await?,
        (json!("ours"), vec![])
    );
    Ok(())
}

#[tokio::test]
async fn autoscaler_keeps_replicas_of_a_deployment() -> Result<()> {
    let world = Fixture::new("hpa").await?;
    let rendered = world.rendered(vec![world.object("apps/v1", "Deployment", "web", json!({"spec": {
        "replicas": 1, "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
    }}))]);
    world.deploy_well(&rendered).await?;
    world
        .patch_as(
            "hpa-controller",
            "deployment/web",
            json!({"spec": {"replicas": 2}}),
        )
        .await?;
    let result = world.deploy_well(&rendered).await?;
    assert_eq!(result.warnings.len(), 1, "{:?}", result.warnings);
    assert!(
        result.warnings[0]
            .message
            .ends_with("Not updating field '.spec.replicas' as we lost field ownership")
    );
    // The field was given up, so the warning comes once, and a comparison finds nothing to do.
    let live = world
        .cluster
        .get(&world.reference("apps/v1", "Deployment", "web"))
        .await?
        .unwrap();
    assert_eq!(
        live.pointer(&["spec", "replicas"]).and_then(yaml::Value::as_i64),
        Some(2)
    );
    let comparison = engine::compare(&world.cluster, &rendered, CompareOptions::default()).await?;
    assert!(comparison.is_clean(), "{comparison:?}");
    Ok(())
}

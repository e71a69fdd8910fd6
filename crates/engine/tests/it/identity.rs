//! Impersonation of service accounts.

use anyhow::Result;
use cluster::access;
use engine::{DeployOptions, RemoveOptions};
use serde_json::json;

use crate::world::Fixture;

#[tokio::test]
async fn requests_impersonate_the_service_account() -> Result<()> {
    let world = Fixture::new("identity").await?;
    let rendered = world.rendered(vec![world.config_map("a", json!({}))]);
    let user = access::service_account(&world.namespace, "deployer");
    let tenant = world.cluster.impersonate(&user);

    let denied = engine::deploy(&tenant, &rendered, &DeployOptions::default()).await?;
    let message = denied.failure().unwrap_or_default();
    assert!(
        message.contains(&format!("User \"{user}\" cannot patch resource \"configmaps\"")),
        "{message}"
    );
    assert!(message.contains("serviceAccountName"), "{message}");
    assert!(world.live("a").await?.is_none());

    // With rights in its namespace alone it can deploy and prune there.
    let account = format!("--serviceaccount={}:deployer", world.namespace);
    world
        .plane
        .kubectl(&[
            "create",
            "rolebinding",
            "deployer",
            "-n",
            &world.namespace,
            "--clusterrole=admin",
            &account,
        ])
        .await?;
    let mark = world.plane.audit_mark();
    let both = world.rendered(vec![
        world.config_map("a", json!({})),
        world.config_map("b", json!({})),
    ]);
    let result = engine::deploy(&tenant, &both, &DeployOptions::default()).await?;
    assert!(result.errors.is_empty(), "{:?}", result.errors);
    assert!(
        result
            .warnings
            .iter()
            .any(|w| w.message.contains("permission error")),
        "{:?}",
        result.warnings
    );
    let pruned = engine::prune(&tenant, &rendered, &RemoveOptions::default()).await?;
    assert_eq!(pruned.counts().deleted, 1, "{pruned:?}");

    assert!(!pruned.completeness.is_complete());
    assert_eq!(
        pruned.message(),
        "prune incomplete. 1 deleted objects. 2 warnings.",
        "kinds that can't be listed may have objects"
    );

    let entries = world.plane.audit_since(mark)?;
    let (mine, others): (Vec<_>, Vec<_>) = entries
        .iter()
        .filter(|entry| {
            entry.namespace == world.namespace && matches!(entry.resource.as_str(), "configmaps" | "secrets")
        })
        .filter(|entry| entry.user_agent.starts_with("weir/"))
        .partition(|entry| entry.impersonated.as_deref() == Some(&user));
    assert!(
        mine.iter().any(|entry| entry.verb == "patch") && mine.iter().any(|entry| entry.verb == "delete")
    );
    assert!(others.is_empty(), "{others:?}");
    Ok(())
}

#[tokio::test]
async fn delete_with_rights_in_a_namespace_is_incomplete_without_the_last_result() -> Result<()> {
    let world = Fixture::new("identity-delete").await?;
    let account = format!("--serviceaccount={}:deployer", world.namespace);
    let namespace = world.namespace.as_str();
    let args = [
        "create",
        "rolebinding",
        "deployer",
        "-n",
        namespace,
        "--clusterrole=admin",
        &account,
    ];
    world.plane.kubectl(&args).await?;
    let tenant = world
        .cluster
        .impersonate(&access::service_account(namespace, "deployer"));
    let rendered = world.rendered(vec![world.config_map("a", json!({}))]);
    let deployed = engine::deploy(&tenant, &rendered, &DeployOptions::default()).await?;
    assert!(deployed.errors.is_empty(), "{:?}", deployed.errors);

    let result = engine::delete(&tenant, namespace, &RemoveOptions::default()).await?;
    assert!(
        !result.completeness.is_complete(),
        "nothing was found, because nothing could be listed"
    );
    assert!(
        result.message().starts_with("delete incomplete."),
        "{}",
        result.message()
    );
    assert!(world.live("a").await?.is_some());

    let raw = yaml::print::goyaml(&deployed.to_status(100_000));
    let previous = results::status_objects(&raw);
    let options = RemoveOptions {
        previous: previous.as_deref(),
        ..RemoveOptions::default()
    };
    let result = engine::delete(&tenant, namespace, &options).await?;
    assert!(result.completeness.is_complete(), "{:?}", result.completeness);
    assert_eq!(result.counts().deleted, 1);
    Ok(())
}

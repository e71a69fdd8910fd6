//! Several teams on one cluster: identities, other clusters, references, discriminators.

use anyhow::{Context as _, Result, ensure};
use kube::{ResourceExt, api::DeleteParams};
use serde_json::json;

use crate::world::{PATIENCE, World, message_of};

#[tokio::test]
async fn an_identity_without_rights_deploys_nothing() -> Result<()> {
    let world = World::new("denied", &["--default-service-account=powerless"]).await?;
    let mark = world.plane.audit_mark();
    world.source("shop", &world.maps(&[("a", "1")])).await?;
    world.deploy("shop", json!({})).await?;
    let object = world.ready("shop", "False", "AccessDenied").await?;
    let powerless = format!("system:serviceaccount:{}:powerless", world.namespace);
    ensure!(
        message_of(&object).contains(&powerless),
        "{}",
        message_of(&object)
    );
    ensure!(!world.has("a").await?);

    world.account("deployer").await?;
    world
        .edit("shop", json!({ "serviceAccountName": "deployer" }))
        .await?;
    world.ready("shop", "True", "ReconciliationSucceeded").await?;
    for entry in world
        .asked_since(mark)?
        .into_iter()
        .filter(|entry| entry.resource == "configmaps")
    {
        ensure!(
            entry.impersonated.is_some(),
            "under the controller's own identity: {entry:?}"
        );
    }
    Ok(())
}

#[tokio::test]
async fn references_to_other_namespaces_are_blocked() -> Result<()> {
    let world = World::new("blocked", &["--no-cross-namespace-refs"]).await?;
    let elsewhere = json!({ "sourceRef": { "namespace": "default" } });
    world.deploy("shop", elsewhere).await?;
    let object = world.ready("shop", "False", "AccessDenied").await?;
    assert_eq!(
        message_of(&object),
        "can't access 'GitRepository/default/shop', cross-namespace references have been blocked"
    );
    Ok(())
}

#[tokio::test]
async fn a_kubeconfig_leads_to_its_cluster_and_may_run_nothing() -> Result<()> {
    let world = World::new("remote", &[]).await?;
    world.source("shop", &world.maps(&[("a", "1")])).await?;
    let remote = json!({ "kubeConfig": { "secretRef": { "name": "remote" } } });
    world.deploy("shop", remote).await?;
    let object = world.ready("shop", "False", "PrepareFailed").await?;
    let named = format!("KubeConfig secret '{}/remote'", world.namespace);
    ensure!(message_of(&object).contains(&named), "{}", message_of(&object));

    let exec = "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts:\n- name: c\n  context: {cluster: c, user: u}\n\
                clusters:\n- name: c\n  cluster: {server: 'https://127.0.0.1:1'}\nusers:\n- name: u\n  user:\n    exec:\n      \
                {apiVersion: client.authentication.k8s.io/v1, command: touch, args: [/tmp/canary]}\n";
    world.store("value.yaml", exec).await?;
    let object = world.ready("shop", "False", "AccessDenied").await?;
    ensure!(message_of(&object).contains("exec"), "{}", message_of(&object));

    let kubeconfig = world.account("remote").await?;
    let mark = world.plane.audit_mark();
    world.store("value", &kubeconfig).await?;
    world.ready("shop", "True", "ReconciliationSucceeded").await?;
    ensure!(world.has("a").await?);
    let user = format!("system:serviceaccount:{}:remote", world.namespace);
    let entries = world.plane.audit_since(mark)?;
    let here = |entry: &&testkit::audit::Entry| entry.namespace == world.namespace && entry.name == "a";
    let wrote = entries
        .iter()
        .filter(here)
        .find(|entry| entry.is_write() && entry.resource == "configmaps");
    assert_eq!(wrote.context("nobody wrote")?.user, user);
    Ok(())
}

#[tokio::test]
async fn kubeconfig_with_insecure_tls_is_refused_unless_the_flag_allows_it() -> Result<()> {
    let insecure = |kubeconfig: &str| -> String {
        let verified = |line: &&str| line.contains("certificate-authority-data");
        let mut lines = kubeconfig.lines().map(str::to_owned).collect::<Vec<_>>();
        for line in &mut lines {
            if verified(&line.as_str()) {
                let indent = line.len() - line.trim_start().len();
                *line = format!("{}insecure-skip-tls-verify: true", " ".repeat(indent));
            }
        }
        lines.join("\n")
    };
    let remote = json!({ "kubeConfig": { "secretRef": { "name": "remote" } } });
    for (flags, status, reason) in [
        (&[][..], "False", "AccessDenied"),
        (
            &["--insecure-kubeconfig-tls"][..],
            "True",
            "ReconciliationSucceeded",
        ),
    ] {
        let world = World::new("insecure", flags).await?;
        let kubeconfig = insecure(&world.account("remote").await?);
        ensure!(
            kubeconfig.contains("insecure-skip-tls-verify"),
            "nothing was replaced"
        );
        world.store("value", &kubeconfig).await?;
        world.source("shop", &world.maps(&[("a", "1")])).await?;
        world.deploy("shop", remote.clone()).await?;
        let object = world.ready("shop", status, reason).await?;
        let refused = message_of(&object).contains("uses insecure-skip-tls-verify, which is not allowed");
        assert_eq!(refused, flags.is_empty(), "{}", message_of(&object));
    }
    Ok(())
}

#[tokio::test]
async fn a_discriminator_of_two_owners_deletes_nothing() -> Result<()> {
    let world = World::new("shared", &[]).await?;
    let source = world.running("first", &[("a", "1")], json!({})).await?;
    // The same target from another source, with other objects: to each, those of the other look like orphans.
    world.source("second", &world.maps(&[("b", "1")])).await?;
    world.deploy("second", json!({})).await?;
    let object = world.ready("second", "False", "DeployFailed").await?;
    let first = format!("KluctlDeployment {}/first", world.namespace);
    let message = message_of(&object);
    ensure!(
        message.starts_with("deploy: ok, prune: failed: ") && message.contains(&first),
        "{message}"
    );
    ensure!(world.has("a").await? && world.has("b").await?);

    let uid = world.config_maps().get("b").await?.uid();
    world.remove("first").await?;
    ensure!(
        world.config_maps().get("b").await?.uid() == uid,
        "what the other one deployed was deleted"
    );
    world.told("first", "nothing is deleted").await?;
    drop(source);

    // Now it is the only one, and what the first one left is its own to prune.
    world.reconcile("second").await?;
    world.ready("second", "True", "ReconciliationSucceeded").await?;
    ensure!(!world.has("a").await? && world.has("b").await?);
    Ok(())
}

#[tokio::test]
async fn the_discriminator_of_a_successor_by_another_name_deletes_nothing() -> Result<()> {
    let world = World::new("successor", &[]).await?;
    let source = world.running("shop", &[("a", "1")], json!({})).await?;
    let discriminator = format!("{}-test", world.namespace);
    let claim = json!({ "targetKey": { "targetName": "test", "discriminator": discriminator } });
    let successors = world.successor("new", claim).await?;
    source.offer(&world.maps(&[("b", "1")])).await?;
    let object = world.ready("shop", "False", "DeployFailed").await?;
    let other = format!("KluctlDeployment.gitops.kluctl.io {}/new", world.namespace);
    let message = message_of(&object);
    ensure!(
        message.starts_with("deploy: ok, prune: failed: ") && message.contains(&other),
        "{message}"
    );
    ensure!(world.has("a").await? && world.has("b").await?);

    successors.delete("new", &DeleteParams::default()).await?;
    testkit::wait_gone(&successors, "new", PATIENCE).await?;
    world.reconcile("shop").await?;
    world.ready("shop", "True", "ReconciliationSucceeded").await?;
    ensure!(!world.has("a").await? && world.has("b").await?);
    Ok(())
}

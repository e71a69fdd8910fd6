//! The demo's step for `gitops.kluctl.io`: its KluctlDeployment takes over what another one left, and fetches by itself.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use api::{conditions, kluctl::gitops::KluctlDeployment};
use k8s_openapi::api::apps::v1::Deployment;
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, ListParams},
};
use serde_json::json;
use testkit::{Repo, stack, wait_for, wait_gone};

use super::project;
use crate::cluster::{NAMESPACE, PATIENCE, TestCluster};

const NAME: &str = "shop-successor";
/// The discriminator and the namespace of the target `test`.
const TARGET: &str = "shop-test";

/// Lets a KluctlDeployment of `gitops.kluctl.io` take over the objects of the target `test`, and deletes it with them. The Secret
/// `shop-git` has the credentials of the repository.
///
/// # Errors
/// Returns an error if an object is recreated, or is left at the end.
pub(super) async fn takes_over(cluster: &TestCluster, repo: &Repo) -> Result<String> {
    let before = identities(cluster).await?;
    ensure!(!before.is_empty(), "nothing is there to be taken over");
    let url = repo.url();
    let host = url.split('/').nth(2).context("the URL has no host")?;
    let object = json!({
        "apiVersion": "gitops.kluctl.io/v1beta1",
        "kind": "KluctlDeployment",
        "metadata": {"name": NAME, "namespace": NAMESPACE},
        "spec": {
            "interval": "5s",
            "source": {"git": {"url": url, "ref": {"branch": "main"}}},
            "credentials": {"git": [{"host": host, "secretRef": {"name": "shop-git"}}]},
            "serviceAccountName": stack::DEPLOYER,
            "target": "test", "context": "default", "prune": true, "delete": true,
        },
    });
    cluster.plane.apply(object).await?;
    let deployments: Api<KluctlDeployment> = Api::namespaced(cluster.client.clone(), NAMESPACE);
    let ready = wait_for(&deployments, NAME, "Ready", PATIENCE, is_ready).await?;
    let after = identities(cluster).await?;
    ensure!(before == after, "before: {before:?}\nafter: {after:?}");
    deployments.delete(NAME, &DeleteParams::default()).await?;
    wait_gone(&deployments, NAME, PATIENCE).await?;
    testkit::eventually("the objects to be gone", PATIENCE, || async {
        let left = project::labelled(cluster, TARGET).await?;
        ensure!(left.is_empty(), "left: {}", left.join(", "));
        Ok(())
    })
    .await?;
    let conditions = ready.status.map(|status| status.conditions).unwrap_or_default();
    let message = conditions::get(&conditions, "Ready").map(|ready| ready.message.clone());
    Ok(format!(
        "the same {} Deployments; {}",
        after.len(),
        message.unwrap_or_default()
    ))
}

fn is_ready(object: &KluctlDeployment) -> bool {
    let status = object.status.as_ref();
    status.is_some_and(|status| conditions::is_true(&status.conditions, "Ready"))
}

/// Returns the UIDs of the Deployments of the target, by name.
async fn identities(cluster: &TestCluster) -> Result<BTreeMap<String, Option<String>>> {
    let workloads: Api<Deployment> = Api::namespaced(cluster.client.clone(), TARGET);
    let listed = workloads.list(&ListParams::default()).await?;
    Ok(listed
        .items
        .into_iter()
        .map(|object| (object.name_any(), object.uid()))
        .collect())
}

//! The Kustomization `flux-system`, which manages the controllers that reconcile it, and the definitions of its own kind.

use anyhow::{Context as _, Result, ensure};
use e2e::cluster::{NAMESPACE, TIMEOUT, TestCluster, inventory, root};
use k8s_openapi::{
    api::{apps::v1::Deployment, networking::v1::NetworkPolicy},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{Api, ResourceExt as _, api::DeleteParams};
use serde_json::{Value, json};
use testkit::{Repo, eventually, wait_gone};

const NAME: &str = "flux-system";
const OWN_KIND: &str = "kustomizations.kustomize.toolkit.fluxcd.io";
const PRUNED: &str = "allow-scraping";

/// Pushes the manifests of the controllers, with these patches.
fn push(repo: &Repo, patches: &Value) -> Result<String> {
    let overlay = json!({"resources": ["../../deploy/overlays/default"], "patches": patches});
    repo.change("The cluster")
        .copy_to(&root().join("deploy"), "deploy")?
        .copy_to(&root().join("crds"), "crds")?
        .write("clusters/main/kustomization.yaml", overlay.to_string())
        .push()
}

async fn definition(cluster: &TestCluster) -> Result<CustomResourceDefinition> {
    let definitions: Api<CustomResourceDefinition> = Api::all(cluster.client.clone());
    Ok(definitions.get(OWN_KIND).await?)
}

fn managers(object: &CustomResourceDefinition) -> Vec<&str> {
    let entries = object.metadata.managed_fields.iter().flatten();
    entries.filter_map(|entry| entry.manager.as_deref()).collect()
}

async fn arguments(cluster: &TestCluster) -> Result<Vec<String>> {
    let deployments: Api<Deployment> = Api::namespaced(cluster.client.clone(), NAMESPACE);
    let deployment = deployments.get("kustomize-controller").await?;
    let pod = deployment.spec.and_then(|spec| spec.template.spec);
    let container = pod.and_then(|pod| pod.containers.into_iter().next());
    container
        .and_then(|container| container.args)
        .context("no arguments")
}

#[tokio::test(flavor = "multi_thread")]
async fn flux_system_manages_its_own_controllers_and_definitions() -> Result<()> {
    crate::init();
    let mut cluster = TestCluster::bare().await?;
    for name in ["source-controller", "kustomize-controller"] {
        cluster.start(name, &[]).await?;
    }
    let before = definition(&cluster).await?;
    assert!(managers(&before).contains(&"kubectl"), "{:?}", managers(&before));
    let repo = cluster.git.repo(NAME)?;
    let first = push(&repo, &json!([]))?;
    cluster.apply_repository(NAME, &repo.url(), "1h").await?;
    // With variables, all objects but the definitions are substituted.
    let spec = json!({
        "interval": "1h", "path": "./clusters/main", "wait": true,
        "postBuild": {"substitute": {"cluster": "main"}},
    });
    cluster.apply_kustomization(NAME, NAME, spec).await?;
    let object = cluster.applied(NAME, &first).await?;
    let ids = inventory(&object);
    for id in [
        format!("_{OWN_KIND}_apiextensions.k8s.io_CustomResourceDefinition"),
        "_flux-system__Namespace".to_owned(),
        "flux-system_kustomize-controller_apps_Deployment".to_owned(),
        "flux-system_kustomize-controller-leader-election_rbac.authorization.k8s.io_Role".to_owned(),
        format!("flux-system_{PRUNED}_networking.k8s.io_NetworkPolicy"),
    ] {
        assert!(ids.contains(&id), "no {id} in {ids:#?}");
    }
    let after = definition(&cluster).await?;
    assert_eq!(after.uid(), before.uid());
    assert!(!managers(&after).contains(&"kubectl"), "{:?}", managers(&after));
    assert_eq!(
        after.annotations()["kustomize.toolkit.fluxcd.io/substitute"],
        "disabled"
    );
    let args = arguments(&cluster).await?;
    assert!(
        args.iter().any(|arg| arg.contains("$(RUNTIME_NAMESPACE)")),
        "{args:?}"
    );

    changes_follow(&cluster, &repo).await?;
    unchanged_pass_writes_nothing(&cluster).await?;
    suspended_one_leaves_the_controllers(&cluster).await?;
    cluster.stop().await
}

/// Changes the flags of a controller, and removes a policy.
async fn changes_follow(cluster: &TestCluster, repo: &Repo) -> Result<()> {
    let flag = json!([{"op": "add", "path": "/spec/template/spec/containers/0/args/-", "value": "--log-level=debug"}]);
    let removal = json!({
        "$patch": "delete", "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": PRUNED},
    });
    let patches = json!([
        {"target": {"kind": "Deployment", "name": "kustomize-controller"}, "patch": flag.to_string()},
        {"target": {"kind": "NetworkPolicy", "name": PRUNED}, "patch": removal.to_string()},
    ]);
    let commit = push(repo, &patches)?;
    cluster.announce(NAME).await?;
    cluster.applied(NAME, &commit).await?;
    let args = arguments(cluster).await?;
    ensure!(args.iter().any(|arg| arg == "--log-level=debug"), "{args:?}");
    let policies: Api<NetworkPolicy> = Api::namespaced(cluster.client.clone(), NAMESPACE);
    wait_gone(&policies, PRUNED, TIMEOUT).await
}

async fn unchanged_pass_writes_nothing(cluster: &TestCluster) -> Result<()> {
    let mark = cluster.plane.audit_mark();
    let request = json!({"metadata": {"annotations": {"reconcile.fluxcd.io/requestedAt": "unchanged"}}});
    cluster.patch_kustomization(NAME, &request).await?;
    eventually("the request to be handled", TIMEOUT, || async {
        let status = cluster
            .kustomizations()
            .get(NAME)
            .await?
            .status
            .unwrap_or_default();
        ensure!(
            status.last_handled_reconcile_at.as_deref() == Some("unchanged"),
            "{status:?}"
        );
        Ok(())
    })
    .await?;
    let user = format!("system:serviceaccount:{NAMESPACE}:kustomize-controller");
    let written = cluster.plane.audit_since(mark)?.into_iter().filter(|entry| {
        entry.user == user && entry.is_write() && !["leases", "events"].contains(&entry.resource.as_str())
    });
    let written: Vec<_> = written
        .filter(|entry| entry.resource != "kustomizations" && !entry.uri.contains("dryRun"))
        .collect();
    ensure!(written.is_empty(), "{written:#?}");
    Ok(())
}

async fn suspended_one_leaves_the_controllers(cluster: &TestCluster) -> Result<()> {
    cluster
        .patch_kustomization(NAME, &json!({"spec": {"suspend": true}}))
        .await?;
    cluster
        .kustomizations()
        .delete(NAME, &DeleteParams::default())
        .await?;
    wait_gone(&cluster.kustomizations(), NAME, TIMEOUT).await?;
    arguments(cluster).await?;
    let definition = definition(cluster).await?;
    ensure!(definition.metadata.deletion_timestamp.is_none(), "it is deleted");
    Ok(())
}

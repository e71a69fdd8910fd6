//! Objects that go from the original controllers to ours and back: no workload is written.
//!
//! The test stands in for an original that isn't built: it writes the objects under its field manager with its labels, and its status.

use std::{collections::BTreeMap, path::Path};

use anyhow::{Context as _, Result, ensure};
use api::annotation::RECONCILE_REQUESTED_AT;
use e2e::{
    cluster::{NAMESPACE, TIMEOUT, TestCluster, inventory},
    workloads,
};
use k8s_openapi::api::apps::v1::Deployment;
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};
use testkit::{Controller, Repo, flux_controllers::KUSTOMIZE, manifest, skipped, stack, wait_for};

const NAME: &str = "shop";
/// Namespace of the workloads.
const SHOP: &str = "shop";

fn map(name: &str, value: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": SHOP}, "data": {"value": value},
    })
}

fn web() -> Value {
    let labels = json!({"app": "web"});
    let container = json!({"name": "web", "image": "registry.example.com/web:1.0.0"});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": SHOP},
        "spec": {
            "replicas": 2, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    })
}

/// Merges labels and annotations into an object.
fn with_metadata(mut object: Value, metadata: &Value) -> Value {
    for (field, values) in metadata.as_object().into_iter().flatten() {
        object["metadata"][field] = values.clone();
    }
    object
}

/// Applies an object as an original does.
async fn apply_as(cluster: &TestCluster, manager: &str, object: &Value, force: bool) -> Result<()> {
    let (api, object) = cluster.plane.api_for(object.clone()).await?;
    let name = object.metadata.name.clone().context("no name")?;
    let mut params = PatchParams::apply(manager);
    params.force = force;
    api.patch(&name, &params, &Patch::Apply(&object)).await?;
    Ok(())
}

/// Waits until the workloads are at rest, and returns their UIDs and versions.
async fn at_rest(cluster: &TestCluster) -> Result<BTreeMap<String, String>> {
    let deployments: Api<Deployment> = Api::namespaced(cluster.client.clone(), SHOP);
    wait_for(&deployments, "web", "its Pods", TIMEOUT, |deployment| {
        let status = deployment.status.as_ref();
        let available = status.and_then(|status| status.available_replicas);
        let observed = status.and_then(|status| status.observed_generation);
        let is_progressed = status
            .and_then(|status| status.conditions.as_deref())
            .unwrap_or_default()
            .iter()
            .any(|one| one.reason.as_deref() == Some("NewReplicaSetAvailable"));
        available == Some(2) && observed == deployment.metadata.generation && is_progressed
    })
    .await?;
    workloads::identities(&cluster.plane, SHOP).await
}

/// Requests a pass over the Kustomization, and waits until it was made, and the object is ready.
async fn pass(cluster: &TestCluster, request: &str) -> Result<()> {
    let patch = json!({"metadata": {"annotations": {RECONCILE_REQUESTED_AT: request}}});
    cluster.patch_kustomization(NAME, &patch).await?;
    let what = format!("a pass for the request {request}");
    wait_for(&cluster.kustomizations(), NAME, &what, TIMEOUT, |object| {
        object.status.as_ref().is_some_and(|status| {
            status.last_handled_reconcile_at.as_deref() == Some(request)
                && status.observed_generation == object.metadata.generation
                && api::conditions::is_true(&status.conditions, "Ready")
        })
    })
    .await?;
    Ok(())
}

fn push(repo: &Repo, objects: &[(&str, Value)]) -> Result<String> {
    let change = repo.change("The shop").clear();
    let change = objects.iter().fold(change, |change, (name, object)| {
        change.write(&format!("app/{name}.yaml"), object.to_string())
    });
    change.push()
}

/// Leaves the objects as the kustomize-controller of Flux does after its last pass.
async fn leave_as_flux(cluster: &TestCluster, objects: &[(&str, Value)], commit: &str) -> Result<()> {
    for (_, object) in objects {
        apply_as(cluster, "kustomize-controller", &labelled(object), true).await?;
    }
    let finalizers = json!({"metadata": {"finalizers": ["finalizers.fluxcd.io"]}});
    cluster.patch_kustomization(NAME, &finalizers).await?;
    let revision = format!("main@sha1:{commit}");
    let condition = json!({
        "type": "Ready", "status": "True", "reason": "ReconciliationSucceeded", "observedGeneration": 1,
        "message": format!("Applied revision: {revision}"), "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    let entries = json!([
        {"id": format!("{SHOP}_gone__ConfigMap"), "v": "v1"},
        {"id": format!("{SHOP}_settings__ConfigMap"), "v": "v1"},
        {"id": format!("{SHOP}_web_apps_Deployment"), "v": "v1"},
    ]);
    let status = json!({"status": {
        "observedGeneration": 1, "conditions": [condition], "inventory": {"entries": entries},
        "lastAppliedRevision": revision, "lastAttemptedRevision": revision,
    }});
    let params = PatchParams {
        field_manager: Some("gotk-kustomize-controller".to_owned()),
        ..PatchParams::default()
    };
    cluster
        .kustomizations()
        .patch_status(NAME, &params, &Patch::Merge(&status))
        .await?;
    Ok(())
}

fn labelled(object: &Value) -> Value {
    let labels = json!({
        "kustomize.toolkit.fluxcd.io/name": NAME, "kustomize.toolkit.fluxcd.io/namespace": NAMESPACE,
    });
    with_metadata(object.clone(), &json!({"labels": labels}))
}

/// Lets the controller of Flux deploy, if it is given, and ends it.
async fn deploy_by_flux(
    cluster: &TestCluster,
    program: Option<&Path>,
    objects: &[(&str, Value)],
    commit: &str,
) -> Result<()> {
    let Some(program) = program else {
        return leave_as_flux(cluster, objects, commit).await;
    };
    let peer = KUSTOMIZE.start(program, &cluster.plane).await?;
    pass(cluster, "flux").await?;
    peer.terminate().await?;
    Ok(())
}

/// Lets the controller of Flux make another pass, or applies all again as it does.
async fn return_to_flux(
    cluster: &TestCluster,
    program: Option<&Path>,
    objects: &[(&str, Value)],
) -> Result<()> {
    let Some(program) = program else {
        for (_, object) in objects {
            // Without force, so that a field of another manager would be a conflict.
            apply_as(cluster, "kustomize-controller", &labelled(object), false).await?;
        }
        return Ok(());
    };
    let peer: Controller = KUSTOMIZE.start(program, &cluster.plane).await?;
    pass(cluster, "flux again").await?;
    peer.terminate().await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn kustomizations_of_flux_go_to_weir_and_back() -> Result<()> {
    crate::init();
    go_and_return(None).await?;
    match KUSTOMIZE.find()? {
        Some(program) => go_and_return(Some(&program)).await,
        None => {
            let reason = "it isn't built: run make flux-consumers";
            skipped::note(
                "Kustomizations between Weir and the kustomize-controller of Flux",
                reason,
            );
            Ok(())
        }
    }
}

async fn go_and_return(program: Option<&Path>) -> Result<()> {
    let mut cluster = TestCluster::bare().await?;
    cluster.start("source-controller", &[]).await?;
    cluster.plane.namespace_named(SHOP).await?;
    let repo = cluster.git.repo(NAME)?;
    let mut objects = vec![
        ("web", web()),
        ("settings", map("settings", "1")),
        ("gone", map("gone", "1")),
    ];
    let commit = push(&repo, &objects)?;
    cluster.apply_repository(NAME, &repo.url(), "1h").await?;
    cluster.fetched(NAME, &commit).await?;
    let spec = json!({"interval": "1h", "path": "./app", "wait": true});
    cluster.apply_kustomization(NAME, NAME, spec).await?;
    deploy_by_flux(&cluster, program, &objects, &commit).await?;
    let before = at_rest(&cluster).await?;

    cluster.start("kustomize-controller", &[]).await?;
    pass(&cluster, "weir").await?;
    assert_eq!(workloads::identities(&cluster.plane, SHOP).await?, before);
    // An object of Flux that the new commit lacks is pruned.
    objects.retain(|(name, _)| *name != "gone");
    let commit = push(&repo, &objects)?;
    cluster.announce(NAME).await?;
    let object = cluster.applied(NAME, &commit).await?;
    let mut ids = inventory(&object);
    ids.sort();
    assert_eq!(
        ids,
        [
            format!("{SHOP}_settings__ConfigMap"),
            format!("{SHOP}_web_apps_Deployment")
        ]
    );
    let mut expected = before.clone();
    expected.remove("ConfigMap/gone").context("it was not there")?;
    assert_eq!(workloads::identities(&cluster.plane, SHOP).await?, expected);
    cluster.controller("kustomize-controller")?.terminate().await?;

    return_to_flux(&cluster, program, &objects).await?;
    assert_eq!(workloads::identities(&cluster.plane, SHOP).await?, expected);
    cluster.controller("source-controller")?.terminate().await?;
    cluster.stop_plane()
}

/// Objects as kluctl 2.27 leaves them after the deployment of [`push_project`].
fn by_kluctl(object: &Value, item: &str) -> Value {
    let labels = json!({"kluctl.io/discriminator": "shop-only", "kluctl.io/tag-0": item});
    let annotations = json!({"kluctl.io/deployment-item-dir": item});
    with_metadata(
        object.clone(),
        &json!({"labels": labels, "annotations": annotations}),
    )
}

fn push_project(repo: &Repo, with_orphan: bool) -> Result<String> {
    let items = if with_orphan {
        "[{path: app}, {path: orphan}]"
    } else {
        "[{path: app}]"
    };
    let project = "discriminator: shop-{{ target.name }}\ntargets: [{name: only}]\n";
    repo.change("The shop")
        .clear()
        .write(".kluctl.yaml", project)
        .write("deployment.yaml", format!("deployments: {items}\n"))
        .write("app/web.yaml", web().to_string())
        .write("app/settings.yaml", map("settings", "1").to_string())
        .write("orphan/gone.yaml", map("gone", "1").to_string())
        .push()
}

#[tokio::test(flavor = "multi_thread")]
async fn deployments_of_kluctl_go_to_weir() -> Result<()> {
    crate::init();
    let mut cluster = TestCluster::bare().await?;
    cluster.start("source-controller", &[]).await?;
    cluster.plane.namespace_named(SHOP).await?;
    for (object, item) in [
        (web(), "app"),
        (map("settings", "1"), "app"),
        (map("gone", "1"), "orphan"),
    ] {
        apply_as(&cluster, "kluctl", &by_kluctl(&object, item), true).await?;
    }
    let before = at_rest(&cluster).await?;
    let repo = cluster.git.repo(NAME)?;
    let commit = push_project(&repo, true)?;
    cluster.apply_repository(NAME, &repo.url(), "1s").await?;
    let spec = json!({"target": "only", "path": ".", "interval": "1h"});
    cluster.apply_deployment(NAME, NAME, spec).await?;
    cluster.start("kluctl-controller", &[]).await?;
    cluster.ready(NAME, &commit).await?;
    assert_eq!(workloads::identities(&cluster.plane, SHOP).await?, before);

    let commit = push_project(&repo, false)?;
    cluster.ready(NAME, &commit).await?;
    let mut expected = before.clone();
    expected.remove("ConfigMap/gone").context("it was not there")?;
    assert_eq!(workloads::identities(&cluster.plane, SHOP).await?, expected);

    give_way(&cluster, &repo).await?;
    assert_eq!(workloads::identities(&cluster.plane, SHOP).await?, expected);
    cluster.stop().await
}

/// Lets a KluctlDeployment of `gitops.kluctl.io` of the same name take over, and deletes its predecessor.
async fn give_way(cluster: &TestCluster, repo: &Repo) -> Result<()> {
    let successor = manifest::Manifest::new("gitops.kluctl.io/v1beta1", "KluctlDeployment", NAMESPACE, NAME);
    let spec = json!({
        "interval": "1h", "target": "only", "context": "default", "prune": true,
        "source": {"git": {"url": repo.url(), "ref": {"branch": "main"}}}, "serviceAccountName": stack::DEPLOYER,
    });
    cluster.plane.apply(successor.spec(spec)).await?;
    let successors: Api<api::kluctl::gitops::KluctlDeployment> =
        Api::namespaced(cluster.client.clone(), NAMESPACE);
    wait_for(
        &successors,
        NAME,
        "the successor to be Ready",
        TIMEOUT,
        |object| {
            let status = object.status.as_ref();
            status.is_some_and(|status| api::conditions::is_true(&status.conditions, "Ready"))
        },
    )
    .await?;
    let predecessors = cluster.deployments();
    let predecessor = predecessors.get(NAME).await?.status.unwrap_or_default();
    ensure!(
        predecessor.ready_for_migration == Some(true),
        "its status.readyForMigration isn't true"
    );
    predecessors
        .delete(NAME, &kube::api::DeleteParams::default())
        .await?;
    testkit::wait_gone(&predecessors, NAME, TIMEOUT).await
}

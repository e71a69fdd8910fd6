//! The reference: the API server alone, which is given the same objects, statuses and events by a plain loop.

use std::time::{Duration, Instant};

use anyhow::Result;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::{
    Api,
    api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use super::{CONCURRENT_REQUESTS, Load, project};
use crate::cluster::{NAMESPACE, TestCluster};

/// The times of the reference.
#[derive(Debug)]
pub struct Reference {
    /// Time of creating all pairs with their objects, statuses and events.
    pub created: Duration,
    /// Time of changing them all.
    pub pushed: Duration,
}

/// Writes what a load makes the API server write, on a control plane without controllers.
///
/// # Errors
/// Returns an error if the API server refuses something.
pub(super) async fn measure(load: Load) -> Result<Reference> {
    let cluster = TestCluster::bare().await?;
    let begin = Instant::now();
    for_all(load, |index| create(&cluster, load, index)).await?;
    let created = begin.elapsed();
    let begin = Instant::now();
    for_all(load, |index| change(&cluster, load, index)).await?;
    let pushed = begin.elapsed();
    cluster.stop().await?;
    Ok(Reference { created, pushed })
}

/// Runs a step for all pairs, several at a time.
pub(super) async fn for_all<F>(load: Load, step: impl Fn(usize) -> F) -> Result<()>
where
    F: Future<Output = Result<()>>,
{
    stream::iter((0..load.pairs).map(step))
        .buffer_unordered(CONCURRENT_REQUESTS)
        .try_collect::<Vec<()>>()
        .await?;
    Ok(())
}

async fn create(cluster: &TestCluster, load: Load, index: usize) -> Result<()> {
    let name = project::name(index);
    cluster
        .apply_repository(&name, "http://git.invalid/x", "1h")
        .await?;
    let spec = json!({"interval": "1h", "target": "only"});
    cluster.apply_deployment(&name, &name, spec).await?;
    write(cluster, load, index, 1).await
}

async fn change(cluster: &TestCluster, load: Load, index: usize) -> Result<()> {
    let requested = json!({"metadata": {"annotations": {"reconcile.fluxcd.io/requestedAt": "2"}}});
    let source = of(
        cluster,
        "source.toolkit.fluxcd.io",
        "v1",
        "GitRepository",
        NAMESPACE,
    );
    let (name, params) = (project::name(index), PatchParams::default());
    source.patch(&name, &params, &Patch::Merge(&requested)).await?;
    write(cluster, load, index, 2).await
}

/// Writes the objects, and status and event of both resources.
async fn write(cluster: &TestCluster, load: Load, index: usize, value: u32) -> Result<()> {
    let name = project::name(index);
    let source = of(
        cluster,
        "source.toolkit.fluxcd.io",
        "v1",
        "GitRepository",
        NAMESPACE,
    );
    status(&source, &name, value).await?;
    event(cluster, "GitRepository", &name).await?;
    for object in project::objects(load, index, value) {
        let text = |pointer: &str| {
            let found = object.pointer(pointer).and_then(Value::as_str);
            found.unwrap_or_default().to_owned()
        };
        let (group, version) = match text("/apiVersion").split_once('/') {
            Some((group, version)) => (group.to_owned(), version.to_owned()),
            None => (String::new(), text("/apiVersion")),
        };
        let api = of(cluster, &group, &version, &text("/kind"), "default");
        let params = PatchParams::apply("reference").force();
        api.patch(&text("/metadata/name"), &params, &Patch::Apply(&object))
            .await?;
    }
    let deployment = of(
        cluster,
        "flux.kluctl.io",
        "v1alpha1",
        "KluctlDeployment",
        NAMESPACE,
    );
    status(&deployment, &name, value).await?;
    event(cluster, "KluctlDeployment", &name).await
}

async fn status(api: &Api<DynamicObject>, name: &str, value: u32) -> Result<()> {
    let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let condition = |kind: &str| {
        json!({"type": kind, "status": "True", "reason": "Succeeded", "message": format!("revision {value}"),
               "lastTransitionTime": now, "observedGeneration": 1})
    };
    let status = json!({"status": {
        "observedGeneration": 1,
        "conditions": [condition("Ready"), condition("ArtifactInStorage")],
    }});
    let params = PatchParams::default();
    api.patch_status(name, &params, &Patch::Merge(&status)).await?;
    Ok(())
}

async fn event(cluster: &TestCluster, kind: &str, name: &str) -> Result<()> {
    let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let event = json!({
        "apiVersion": "v1", "kind": "Event",
        "metadata": {"generateName": format!("{name}."), "namespace": NAMESPACE},
        "involvedObject": {"kind": kind, "name": name, "namespace": NAMESPACE},
        "reason": "Succeeded", "message": "what was done", "type": "Normal", "count": 1,
        "firstTimestamp": now, "lastTimestamp": now, "source": {"component": "reference"},
    });
    let events = of(cluster, "", "v1", "Event", NAMESPACE);
    let event: DynamicObject = serde_json::from_value(event)?;
    events.create(&PostParams::default(), &event).await?;
    Ok(())
}

fn of(cluster: &TestCluster, group: &str, version: &str, kind: &str, namespace: &str) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    Api::namespaced_with(cluster.client.clone(), namespace, &resource)
}

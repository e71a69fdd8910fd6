//! The reference: the API server alone, which is given the same objects, statuses and events by a plain loop.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::{
    Api, ResourceExt as _,
    api::{
        ApiResource, DynamicObject, GroupVersionKind, ListParams, ObjectMeta, Patch, PatchParams, PostParams,
    },
};
use serde_json::{Value, json};

use super::{CONCURRENT_REQUESTS, Load, Phase, phase::InProgress, project};
use crate::cluster::{NAMESPACE, TestCluster};

const SOURCE: [&str; 3] = ["source.toolkit.fluxcd.io", "v1", "GitRepository"];
const EVENT: [&str; 3] = ["", "v1", "Event"];

type Key = (String, String);

/// Statuses and Events that the controllers wrote in a phase. The reference writes the same.
#[derive(Debug, Default)]
pub(super) struct Written {
    statuses: BTreeMap<Key, Value>,
    events: BTreeMap<Key, Vec<DynamicObject>>,
    /// The UIDs of all Events until then.
    known: BTreeSet<String>,
}

impl Written {
    /// Reads statuses and events since the end of the phase before; in all, if there was none.
    pub(super) async fn since(before: &Self, cluster: &TestCluster, load: Load) -> Result<Self> {
        let mut written = Self::default();
        for kind in [SOURCE, load.deployer.kind()] {
            for object in listed(cluster, kind).await? {
                let status = object.data.get("status").cloned().unwrap_or_default();
                let key = (kind[2].to_owned(), object.name_any());
                written.statuses.insert(key, status);
            }
        }
        for event in listed(cluster, EVENT).await? {
            let uid = event.uid().unwrap_or_default();
            if let Some(key) = involved(&event).filter(|_| !before.known.contains(&uid)) {
                written.events.entry(key).or_default().push(event);
            }
            written.known.insert(uid);
        }
        Ok(written)
    }

    fn status(&self, key: &Key) -> Result<&Value> {
        let found = self.statuses.get(key);
        found.with_context(|| format!("{} {} had no status", key.0, key.1))
    }

    /// Returns the Events about an object, as new ones.
    fn events(&self, key: &Key) -> impl Iterator<Item = DynamicObject> {
        self.events
            .get(key)
            .into_iter()
            .flatten()
            .map(|event| DynamicObject {
                metadata: ObjectMeta {
                    generate_name: Some(format!("{}.", key.1)),
                    namespace: event.metadata.namespace.clone(),
                    annotations: event.metadata.annotations.clone(),
                    labels: event.metadata.labels.clone(),
                    ..ObjectMeta::default()
                },
                ..event.clone()
            })
    }
}

/// Returns the kind and name of the object that an Event is about.
fn involved(event: &DynamicObject) -> Option<Key> {
    let text = |pointer: &str| event.data.pointer(pointer)?.as_str().map(str::to_owned);
    Some((text("/involvedObject/kind")?, text("/involvedObject/name")?))
}

/// Creates all pairs with their objects, with the statuses and events that the controllers wrote.
pub(super) async fn create_all(cluster: &TestCluster, load: Load, written: &Written) -> Result<Phase> {
    let phase = InProgress::now(cluster)?;
    for_all(load.pairs, |index| create(cluster, load, index, written)).await?;
    phase.end(cluster)
}

/// Changes all pairs, with the statuses and events that the controllers wrote after a push.
pub(super) async fn push_all(
    cluster: &TestCluster,
    load: Load,
    number: u32,
    written: &Written,
) -> Result<Phase> {
    let phase = InProgress::now(cluster)?;
    for_all(load.pairs, |index| change(cluster, load, index, number, written)).await?;
    phase.end(cluster)
}

pub(super) async fn for_all<F>(count: usize, step: impl Fn(usize) -> F) -> Result<()>
where
    F: Future<Output = Result<()>>,
{
    stream::iter((0..count).map(step))
        .buffer_unordered(CONCURRENT_REQUESTS)
        .try_collect::<Vec<()>>()
        .await?;
    Ok(())
}

async fn create(cluster: &TestCluster, load: Load, index: usize, written: &Written) -> Result<()> {
    if index < load.sources() {
        let name = project::name(index);
        cluster
            .apply_repository(&name, "http://git.invalid/x", "1h")
            .await?;
        tell(cluster, SOURCE, &name, written).await?;
    }
    load.apply(cluster, index).await?;
    write(cluster, load, index, 1, written).await
}

async fn change(
    cluster: &TestCluster,
    load: Load,
    index: usize,
    number: u32,
    written: &Written,
) -> Result<()> {
    if index < load.sources() {
        let requested = project::announcement(number);
        let (name, params) = (project::name(index), PatchParams::default());
        let source = of(cluster, SOURCE, NAMESPACE);
        source.patch(&name, &params, &Patch::Merge(&requested)).await?;
        tell(cluster, SOURCE, &name, written).await?;
    }
    write(cluster, load, index, number + 1, written).await
}

/// Writes the objects of a deployment, its status and its Events.
async fn write(cluster: &TestCluster, load: Load, index: usize, value: u32, written: &Written) -> Result<()> {
    for object in &project::objects(load, index, value) {
        let text = |pointer: &str| {
            let found = object.pointer(pointer).and_then(Value::as_str);
            found.unwrap_or_default().to_owned()
        };
        let (group, version) = match text("/apiVersion").split_once('/') {
            Some((group, version)) => (group.to_owned(), version.to_owned()),
            None => (String::new(), text("/apiVersion")),
        };
        let api = of(cluster, [&group, &version, &text("/kind")], "default");
        let params = PatchParams::apply("reference").force();
        api.patch(&text("/metadata/name"), &params, &Patch::Apply(object))
            .await?;
    }
    tell(cluster, load.deployer.kind(), &project::name(index), written).await
}

async fn tell(cluster: &TestCluster, kind: [&str; 3], name: &str, written: &Written) -> Result<()> {
    let key = (kind[2].to_owned(), name.to_owned());
    let status = json!({"status": written.status(&key)?});
    of(cluster, kind, NAMESPACE)
        .patch_status(name, &PatchParams::default(), &Patch::Merge(&status))
        .await?;
    let events = of(cluster, EVENT, NAMESPACE);
    for event in written.events(&key) {
        events.create(&PostParams::default(), &event).await?;
    }
    Ok(())
}

fn of(cluster: &TestCluster, [group, version, kind]: [&str; 3], namespace: &str) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    Api::namespaced_with(cluster.client.clone(), namespace, &resource)
}

async fn listed(cluster: &TestCluster, kind: [&str; 3]) -> Result<Vec<DynamicObject>> {
    Ok(of(cluster, kind, NAMESPACE)
        .list(&ListParams::default())
        .await?
        .items)
}

//! The watches of the index: one for each kind, and the watches of the definitions of kinds.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use cluster::{Cluster, ResourceKind, Snapshot};
use futures::StreamExt as _;
use kube::{
    Api, Client,
    api::PartialObjectMeta,
    core::{ApiResource, DynamicObject, GroupVersionKind},
    runtime::watcher::{self, Event, watcher},
};
use runtime::{Context, ObjectKey, backoff::Backoff, triggers::Change, watch_backoff::WatchFailures};
use tokio::{sync::Notify, task::JoinSet, time};

use super::{
    Shared,
    state::{KindName, Labelled, State, WatchedKind},
};
use crate::objects::metadata_of;

/// Time after which the rights and the kinds are read again, whatever was seen.
const REFRESH: Duration = Duration::from_secs(600);
/// Times after a change of a definition at which the kinds are read again: a new kind is served a moment later.
const AFTER_CHANGE: [u64; 3] = [300, 2_000, 8_000];
/// Pauses after a watch broke off.
const PAUSES: Backoff = Backoff {
    min: Duration::from_secs(1),
    max: Duration::from_secs(60),
};
/// Time after which a watch lists all objects again, in case it missed something; it varies by a tenth.
const RELIST: Duration = Duration::from_secs(3600);
/// The definitions of kinds, whose changes add and remove kinds.
const DEFINITIONS: [(&str, &str, &str); 2] = [
    (
        "apiextensions.k8s.io",
        "CustomResourceDefinition",
        "customresourcedefinitions",
    ),
    ("apiregistration.k8s.io", "APIService", "apiservices"),
];

/// An object of any kind without its content.
type Metadata = PartialObjectMeta<DynamicObject>;

/// Runs all watches from the moment this process leads until its shutdown.
pub(super) async fn run(shared: Arc<Shared>, ctx: Context, cluster: Cluster) {
    if ctx.leader().await.is_err() {
        return;
    }
    let work = keep(shared, ctx.client().clone(), cluster);
    // Tasks end with the set that they are in.
    let _ = ctx.shutdown().run_until_cancelled(work).await;
}

async fn keep(shared: Arc<Shared>, client: Client, cluster: Cluster) {
    let mut tasks = JoinSet::new();
    let defined = Arc::new(Notify::new());
    let (mut watches_definitions, mut after_change) = (false, AFTER_CHANGE.len());
    let (mut may_watch, mut is_logged) = (false, false);
    loop {
        if after_change >= AFTER_CHANGE.len() {
            may_watch = may_watch_everything(&cluster).await;
            if !may_watch && !std::mem::replace(&mut is_logged, true) {
                tracing::info!(
                    "this account may not list and watch all kinds: passes that are due by their interval alone read their objects"
                );
            }
        }
        let kinds = match may_watch {
            true => cluster.recent_snapshot(Duration::from_millis(100)).await.ok(),
            false => None,
        };
        match kinds {
            Some(snapshot) => {
                if !watches_definitions {
                    watches_definitions = true;
                    for definition in DEFINITIONS {
                        tasks.spawn(watch_definitions(
                            client.clone(),
                            definition,
                            Arc::clone(&defined),
                        ));
                    }
                }
                begin_watches(&mut tasks, &shared, &client, &snapshot);
            }
            None => shared.update(State::turn_off),
        }
        let pause = AFTER_CHANGE
            .get(after_change)
            .map_or(REFRESH, |millis| Duration::from_millis(*millis));
        after_change = after_change.saturating_add(1);
        tokio::select! {
            () = time::sleep(pause) => {}
            () = defined.notified() => after_change = 0,
        }
        while tasks.try_join_next().is_some() {}
    }
}

/// Returns true if the controller itself may list and watch every kind.
async fn may_watch_everything(cluster: &Cluster) -> bool {
    let everything = ResourceKind {
        group: "*".to_owned(),
        version: "*".to_owned(),
        kind: "*".to_owned(),
        plural: "*".to_owned(),
        namespaced: false,
        listable: true,
        deletable: true,
        preferred: true,
        status: false,
    };
    for verb in ["list", "watch"] {
        if !cluster.may(verb, &everything, None).await.unwrap_or_default() {
            return false;
        }
    }
    true
}

/// Starts the watches of kinds that have none; watches of kinds that are no longer served end themselves.
fn begin_watches(tasks: &mut JoinSet<()>, shared: &Arc<Shared>, client: &Client, snapshot: &Snapshot) {
    // Kinds that can't be deleted are never deployed.
    let deployable = |kind: &&ResourceKind| kind.deletable && !kind.is_event();
    let kinds: Vec<(KindName, &ResourceKind)> = snapshot
        .listable()
        .filter(deployable)
        .map(|kind| (Arc::new((kind.group.clone(), kind.kind.clone())), kind))
        .collect();
    let served: HashSet<KindName> = kinds.iter().map(|(name, _)| Arc::clone(name)).collect();
    let mut new = Vec::new();
    shared.update(|state| new = state.serve(&served));
    for watched in new {
        let Some((_, kind)) = kinds.iter().find(|(name, _)| *name == watched.name) else {
            continue;
        };
        let api = metadata_of(client, kind);
        tasks.spawn(watch_kind(Arc::clone(shared), api, watched));
    }
}

/// Watches the metadata of the objects of a kind with the label, until the kind is no longer served.
async fn watch_kind(shared: Arc<Shared>, api: Api<Metadata>, kind: WatchedKind) {
    use watcher::Error as E;
    let mut failures = WatchFailures::new(PAUSES);
    loop {
        let config = watcher::Config::default().labels(&shared.labels.join(","));
        let mut events = watcher(api.clone(), config).boxed();
        let relist = time::sleep(varied(RELIST));
        tokio::pin!(relist);
        let error = loop {
            let event = tokio::select! {
                event = events.next() => event,
                () = &mut relist => break None,
            };
            match event {
                Some(Ok(event)) => {
                    // Each error is followed by a whole list, which says nothing about the watch after it.
                    if !matches!(event, Event::InitDone) {
                        failures.event(&event);
                    }
                    let change = change(event, &shared.labels);
                    let mut is_overfull = false;
                    shared.update(|state| {
                        state.apply(&kind, change);
                        is_overfull = state.is_overfull(&kind);
                    });
                    if is_overfull {
                        drop(events);
                        let kind = &kind.name.1;
                        tracing::info!(
                            kind,
                            "too many objects have the labels of owners: passes search this kind themselves"
                        );
                        relist.await;
                        break None;
                    }
                }
                Some(Err(error)) => break Some(error),
                None => break None,
            }
        };
        if !shared.state().has(&kind) {
            return;
        }
        if let Some(error) = error {
            tracing::debug!(kind = kind.name.1, error = %api::redact(&error.to_string()), "the watch of labelled objects broke off");
            let is_watched = !matches!(&error, E::InitialListFailed(error) | E::WatchStartFailed(error) if not_watchable(error))
                && !matches!(&error, E::WatchError(status) if status.code == 405);
            shared.update(|state| state.broke_off(&kind, is_watched));
            time::sleep(failures.error()).await;
        }
    }
}

/// Watches the definitions of kinds, and wakes whoever reads the kinds.
async fn watch_definitions(
    client: Client,
    (group, kind, plural): (&'static str, &'static str, &'static str),
    changed: Arc<Notify>,
) {
    let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, "v1", kind), plural);
    let api: Api<Metadata> = Api::all_with(client, &resource);
    let mut seen = HashMap::new();
    loop {
        let mut events = watcher(api.clone(), watcher::Config::default()).boxed();
        while let Some(Ok(event)) = events.next().await {
            // Their status, which says nothing of kinds, has no generation.
            let is_news = match event {
                Event::Init => false,
                Event::InitDone => true,
                Event::InitApply(object) => {
                    seen.insert(object.metadata.name, object.metadata.generation);
                    false
                }
                Event::Apply(object) => {
                    let generation = object.metadata.generation;
                    seen.insert(object.metadata.name, generation) != Some(generation)
                }
                Event::Delete(object) => seen.remove(&object.metadata.name).is_some(),
            };
            if is_news {
                changed.notify_one();
            }
        }
        time::sleep(varied(PAUSES.max)).await;
    }
}

/// Returns true if a kind can be listed and not watched.
fn not_watchable(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 405)
}

fn change(event: Event<Metadata>, names: &[String]) -> Change<Labelled> {
    let key = |object: &Metadata| {
        let metadata = &object.metadata;
        ObjectKey::new(
            metadata.namespace.clone().unwrap_or_default(),
            metadata.name.clone().unwrap_or_default(),
        )
    };
    match event {
        Event::Init => Change::ListStarted,
        Event::InitApply(object) | Event::Apply(object) => {
            let labels = object.metadata.labels.as_ref();
            let values: Option<Vec<&str>> = names
                .iter()
                .map(|name| labels?.get(name).map(String::as_str))
                .collect();
            let version = object.metadata.resource_version.as_deref();
            let labelled = Labelled {
                value: values.unwrap_or_default().join("/").into(),
                version: version.unwrap_or_default().into(),
            };
            Change::Exists(key(&object), labelled)
        }
        Event::Delete(object) => Change::Deleted(key(&object)),
        Event::InitDone => Change::ListDone,
    }
}

/// Returns a time that varies by a tenth, so that not all watches begin at once.
fn varied(time: Duration) -> Duration {
    time.mul_f64(0.9 + fastrand::f64() / 5.0)
}

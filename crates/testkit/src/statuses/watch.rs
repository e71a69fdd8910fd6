//! The watch of all kinds of a control plane, on a thread of its own: a test's thread may wait for a check when it ends.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

use anyhow::{Context as _, Result};
use futures::{StreamExt as _, future::join_all, pin_mut};
use http::{HeaderValue, header::USER_AGENT};
use k8s_openapi::{
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::{
    Api, Client, Config,
    api::{ApiResource, DynamicObject, ListParams},
    config::{KubeConfigOptions, Kubeconfig},
    core::{GroupVersionKind, PartialObjectMeta},
    runtime::{WatchStreamExt as _, watcher},
};
use parking_lot::Mutex;
use tokio::sync::{mpsc as requests, watch};

use super::tracker::Tracker;
use crate::{controlplane::audit::UNLOGGED, progress::say};

/// The groups of kinds whose statuses our controllers write.
const GROUPS: [&str; 5] = [
    api::group::SOURCE,
    api::group::NOTIFICATION,
    api::group::FLUX_KLUCTL,
    api::group::GITOPS_KLUCTL,
    // The group of the controller in the tests of the runtime.
    "weir.test",
];
/// Timeout of a request to the watch: a control plane may be gone.
const TIMEOUT: Duration = Duration::from_secs(20);

/// A request to the thread, which answers when it is done.
enum Request {
    /// Watch the kinds that there are now.
    Cover(mpsc::Sender<()>),
    /// Take everything that was written so far.
    CatchUp(mpsc::Sender<()>),
}

/// A running watch. It ends when it is dropped.
#[derive(Debug)]
pub(super) struct Watch {
    requests: requests::UnboundedSender<Request>,
    tracker: Arc<Mutex<Tracker>>,
}

impl Watch {
    pub(super) fn start(admin: &Path) -> Result<Self> {
        let (sender, receiver) = requests::unbounded_channel();
        let tracker = Arc::<Mutex<Tracker>>::default();
        let (admin, shared) = (admin.to_owned(), Arc::clone(&tracker));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        thread::Builder::new()
            .name("statuses".to_owned())
            .spawn(move || {
                if let Err(error) = runtime.block_on(run(admin, shared, receiver)) {
                    say(format_args!("can't watch statuses: {error:#}"));
                }
            })?;
        Ok(Self {
            requests: sender,
            tracker,
        })
    }

    /// Waits until all kinds are watched that there are.
    pub(super) fn cover(&self) {
        self.ask(Request::Cover);
    }

    /// Waits until everything is taken that was written so far.
    pub(super) fn catch_up(&self) {
        self.ask(Request::CatchUp);
    }

    /// Returns the broken rules in a namespace, or in all, and forgets them.
    pub(super) fn take(&self, namespace: Option<&str>) -> Vec<String> {
        self.tracker.lock().take(namespace)
    }

    fn ask(&self, request: impl FnOnce(mpsc::Sender<()>) -> Request) {
        let (done, wait) = mpsc::channel();
        // Without a control plane there are no further statuses.
        if self.requests.send(request(done)).is_ok() {
            let _ = wait.recv_timeout(TIMEOUT);
        }
    }
}

struct WatchedKind {
    api: Api<DynamicObject>,
    /// The newest version that was taken; `None` until all objects were.
    taken: watch::Receiver<Option<u64>>,
}

async fn run(
    admin: PathBuf,
    tracker: Arc<Mutex<Tracker>>,
    mut requests: requests::UnboundedReceiver<Request>,
) -> Result<()> {
    let mut config =
        Config::from_custom_kubeconfig(Kubeconfig::read_from(&admin)?, &KubeConfigOptions::default()).await?;
    config
        .headers
        .push((USER_AGENT, HeaderValue::from_static(UNLOGGED)));
    let client = Client::try_from(config)?;
    let mut kinds = Kinds {
        definitions: Api::all(client.clone()),
        client,
        tracker,
        watched: BTreeMap::new(),
    };
    let definitions = Api::<PartialObjectMeta<CustomResourceDefinition>>::all(kinds.client.clone());
    let changes = watcher(definitions, watcher::Config::default()).default_backoff();
    pin_mut!(changes);
    loop {
        tokio::select! {
            request = requests.recv() => match request {
                None => return Ok(()),
                Some(Request::Cover(done)) => {
                    kinds.cover_all().await;
                    let complete = kinds.watched.values().map(|kind| reached(kind, 0));
                    let _ = tokio::time::timeout(TIMEOUT / 2, join_all(complete)).await;
                    let _ = done.send(());
                }
                Some(Request::CatchUp(done)) => {
                    let caught_up = join_all(kinds.watched.values().map(caught_up));
                    let _ = tokio::time::timeout(TIMEOUT / 2, caught_up).await;
                    let _ = done.send(());
                }
            },
            change = changes.next() => if let Some(Ok(watcher::Event::Apply(definition))) = change {
                kinds.cover(&definition.metadata).await;
            },
        }
    }
}

/// The watched kinds by the name of the definition. Their schemas are large, so a definition is read once, and listed without them.
struct Kinds {
    client: Client,
    definitions: Api<CustomResourceDefinition>,
    tracker: Arc<Mutex<Tracker>>,
    watched: BTreeMap<String, WatchedKind>,
}

impl Kinds {
    async fn cover_all(&mut self) {
        let listed = self.definitions.list_metadata(&ListParams::default()).await;
        for definition in listed.map(|list| list.items).unwrap_or_default() {
            self.cover(&definition.metadata).await;
        }
    }

    /// Begins to watch a kind, unless it is watched or none of ours.
    async fn cover(&mut self, definition: &ObjectMeta) {
        let name = definition.name.as_deref().unwrap_or_default();
        let group = name.split_once('.').map_or("", |(_, group)| group);
        if !GROUPS.contains(&group) || self.watched.contains_key(name) {
            return;
        }
        let Ok(definition) = self.definitions.get(name).await else {
            return;
        };
        let spec = &definition.spec;
        let Some(version) = spec.versions.iter().find(|version| version.storage) else {
            return;
        };
        let gvk = GroupVersionKind::gvk(group, &version.name, &spec.names.kind);
        let resource = ApiResource::from_gvk_with_plural(&gvk, &spec.names.plural);
        let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &resource);
        let (sender, taken) = watch::channel(None);
        let tracker = Arc::clone(&self.tracker);
        tokio::spawn(follow(api.clone(), group.to_owned(), tracker, sender));
        self.watched.insert(name.to_owned(), WatchedKind { api, taken });
    }
}

/// Takes every state of the objects of a kind, for as long as the thread runs.
async fn follow(
    api: Api<DynamicObject>,
    group: String,
    tracker: Arc<Mutex<Tracker>>,
    taken: watch::Sender<Option<u64>>,
) {
    let events = watcher(api, watcher::Config::default()).default_backoff();
    pin_mut!(events);
    let mut known = Some(0);
    while let Some(event) = events.next().await {
        match event {
            Ok(watcher::Event::InitApply(object)) if taken.borrow().is_none() => {
                tracker.lock().know(&object);
                known = known.max(version(&object));
            }
            Ok(watcher::Event::InitDone) => taken.send_modify(|newest| *newest = (*newest).max(known)),
            Ok(
                watcher::Event::Apply(object)
                | watcher::Event::InitApply(object)
                | watcher::Event::Delete(object),
            ) => {
                tracker.lock().see(&group, &object);
                taken.send_modify(|newest| *newest = (*newest).max(version(&object)));
            }
            // The watcher tries again.
            Ok(watcher::Event::Init) | Err(_) => {}
        }
    }
}

fn version(object: &DynamicObject) -> Option<u64> {
    object.metadata.resource_version.as_deref()?.parse().ok()
}

/// Waits until the states of a kind up to a version are taken.
async fn reached(kind: &WatchedKind, version: u64) {
    let mut taken = kind.taken.clone();
    let _ = taken.wait_for(|taken| *taken >= Some(version)).await;
}

/// Waits until all objects of a kind are taken as they are now.
async fn caught_up(kind: &WatchedKind) -> Result<()> {
    let listed = kind.api.list(&ListParams::default()).await;
    let listed = listed.context("the control plane is gone")?;
    let newest = listed.items.iter().filter_map(version).max();
    reached(kind, newest.unwrap_or(0)).await;
    Ok(())
}

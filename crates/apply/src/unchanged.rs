//! Objects that equal their manifests: applying them would change nothing, so no request is sent.
//!
//! Webhooks and policies see an apply, too. Where one of them may change, refuse or warn of the object, it is applied in any case.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use cluster::{Admission, Cluster, ResourceKind};
use objects::{ObjectRef, fixup, meta, unchanged::is_unchanged};
use tokio::{
    sync::{Mutex, OnceCell},
    time::Instant,
};
use yaml::Value;

use crate::Session;

/// Maximum age of the state that was read at the start.
const MAX_AGE: Duration = Duration::from_secs(10);
/// The label that makes the API server warn of pods that a namespace should not have.
const WARN: &str = "pod-security.kubernetes.io/warn";

/// The inputs of the decision to leave an object alone.
#[derive(Debug)]
pub(crate) struct RunState {
    /// The webhooks and policies, which are read when the first object equals its manifest.
    admission: OnceCell<Arc<Admission>>,
    read: Instant,
    /// True if this run has changed anything since.
    changed: AtomicBool,
    /// For each checked namespace, true if the API server may warn of pods in it.
    namespaces: Mutex<HashMap<String, bool>>,
}

impl RunState {
    /// Starts a run; to be called before, or while, the live objects are read.
    pub(crate) fn start() -> Self {
        Self {
            admission: OnceCell::new(),
            read: Instant::now(),
            changed: AtomicBool::new(false),
            namespaces: Mutex::default(),
        }
    }

    /// Returns true if a webhook or a policy may see updates of objects of a kind, or if that can't be found out.
    async fn sees_updates(&self, cluster: &Cluster, kind: &ResourceKind) -> bool {
        let admission = self.admission.get_or_try_init(|| cluster.admission()).await;
        admission.map_or(true, |admission| admission.sees_updates(kind))
    }

    pub(crate) fn note_change(&self) {
        self.changed.store(true, Ordering::Relaxed);
    }

    /// Returns true if the state that was read at the start is still current.
    fn is_current(&self) -> bool {
        !self.changed.load(Ordering::Relaxed) && self.read.elapsed() < MAX_AGE
    }
}

/// Returns the live object, if applying the manifest would change nothing and no webhook or policy would see it. An object
/// that something of this run may have changed is read once more.
pub(crate) async fn find(
    session: &Session<'_>,
    manifest: &Value,
    reference: &ObjectRef,
) -> Option<Arc<Value>> {
    let live = session.live.get(reference)?;
    let pretended =
        session.is_pretended(reference.namespace.as_ref()) || session.is_pretended_gone(reference);
    if session.options.apply_unchanged || pretended || session.live.warned.contains(reference) {
        return None;
    }
    let manifest = fixup::apply(manifest, session.owner.repaired);
    if !is_unchanged(&manifest, &live, &session.owner.manager) {
        return None;
    }
    let (group, version, kind) = (&reference.group, &reference.version, &reference.kind);
    let kind = session.cluster.kind(group, version, kind).await.ok()?;
    if session.state.sees_updates(session.cluster, &kind).await || may_be_warned_of(session, reference).await
    {
        return None;
    }
    if session.state.is_current() {
        return Some(live);
    }
    // An object that can't be read is applied.
    let now = session.cluster.get(reference).await.ok()??;
    is_unchanged(&manifest, &now, &session.owner.manager).then(|| Arc::new(now))
}

/// Returns true if the API server may warn of the pods of an object, changed or not.
async fn may_be_warned_of(session: &Session<'_>, reference: &ObjectRef) -> bool {
    let Some(name) = reference.namespace.as_ref().filter(|_| has_pods(reference)) else {
        return false;
    };
    let mut known = session.state.namespaces.lock().await;
    let current = session.state.is_current();
    if let Some(warns) = known.get(name).filter(|_| current) {
        return *warns;
    }
    let namespace = ObjectRef {
        group: String::new(),
        version: "v1".to_owned(),
        kind: "Namespace".to_owned(),
        namespace: None,
        name: name.clone(),
    };
    let is_read = current && !session.live.is_assumed(&namespace);
    let warns = match session.live.get(&namespace).filter(|_| is_read) {
        Some(namespace) => warns(&namespace),
        None => match session.cluster.get(&namespace).await {
            Ok(namespace) => namespace.is_none_or(|namespace| warns(&namespace)),
            Err(_) => true,
        },
    };
    known.insert(name.clone(), warns);
    warns
}

fn warns(namespace: &Value) -> bool {
    meta::label(namespace, WARN).is_some_and(|level| level != "privileged")
}

fn has_pods(reference: &ObjectRef) -> bool {
    matches!(
        (reference.group.as_str(), reference.kind.as_str()),
        ("", "Pod" | "PodTemplate" | "ReplicationController")
            | ("apps", "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet")
            | ("batch", "Job" | "CronJob")
    )
}

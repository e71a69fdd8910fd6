//! Objects that are as rendered already: applying them would change nothing, so they are left as they are.
//!
//! What an apply changes is told by the live object alone, but an apply does more: webhooks and policies look at it. Where
//! somebody may look, change, refuse or warn, the object is applied whatever it is like.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use cluster::{Admission, Cluster};
use objects::{ObjectRef, fixup, meta, orphans::MANAGER, settled::is_settled};
use tokio::{sync::Mutex, time::Instant};
use yaml::Value;

use super::{DeployOptions, Run};

/// How long what was read at the beginning counts as what is there.
const FRESH: Duration = Duration::from_secs(10);
/// The label by which the API server warns of pods that a namespace should not have.
const WARN: &str = "pod-security.kubernetes.io/warn";

/// What is known for telling whether an object may be left as it is.
#[derive(Debug)]
pub(super) struct Settled {
    admission: Admission,
    read: Instant,
    /// Whether this deployment has changed anything since.
    changed: AtomicBool,
    /// The namespaces that were looked at, and whether the API server may warn of pods in them.
    namespaces: Mutex<HashMap<String, bool>>,
}

impl Settled {
    /// To be begun before the live objects are read.
    pub(super) async fn begin(cluster: &Cluster, options: &DeployOptions) -> Result<Self, cluster::Error> {
        let read = Instant::now();
        let admission = match applies_all(options) {
            true => Admission::default(),
            false => cluster.admission().await?,
        };
        Ok(Self {
            admission,
            read,
            changed: AtomicBool::new(false),
            namespaces: Mutex::default(),
        })
    }

    pub(super) fn note_change(&self) {
        self.changed.store(true, Ordering::Relaxed);
    }

    /// Whether what was read at the beginning still counts.
    fn is_fresh(&self) -> bool {
        !self.changed.load(Ordering::Relaxed) && self.read.elapsed() < FRESH
    }
}

/// Whether everything is applied. Who names objects knows already that they are not as rendered.
fn applies_all(options: &DeployOptions) -> bool {
    options.force_apply || options.only.is_some()
}

/// The live object, when applying the manifest would change nothing and nobody looks at it. An object that something of this
/// deployment may have changed is read once more.
pub(super) async fn as_it_is(run: &Run<'_>, manifest: &Value, reference: &ObjectRef) -> Option<Arc<Value>> {
    let live = run.live.rendered.get(reference)?;
    let pretended = run.is_pretended(reference.namespace.as_ref()) || run.is_pretended_gone(reference);
    if applies_all(run.options) || pretended || run.live.warned.contains(reference) {
        return None;
    }
    let manifest = fixup::apply(manifest);
    if !is_settled(&manifest, live, MANAGER) {
        return None;
    }
    let (group, version, kind) = (&reference.group, &reference.version, &reference.kind);
    let kind = run.cluster.kind(group, version, kind).await.ok()?;
    if run.settled.admission.sees_updates(&kind) || may_be_warned_of(run, reference).await {
        return None;
    }
    if run.settled.is_fresh() {
        return Some(Arc::clone(live));
    }
    // Whoever can't read it applies it.
    let now = run.cluster.get(reference).await.ok()??;
    is_settled(&manifest, &now, MANAGER).then(|| Arc::new(now))
}

/// Whether an object has pods that the API server may warn of, changed or not.
async fn may_be_warned_of(run: &Run<'_>, reference: &ObjectRef) -> bool {
    let Some(name) = reference.namespace.as_ref().filter(|_| has_pods(reference)) else {
        return false;
    };
    let mut known = run.settled.namespaces.lock().await;
    let fresh = run.settled.is_fresh();
    if let Some(warns) = known.get(name).filter(|_| fresh) {
        return *warns;
    }
    let namespace = ObjectRef {
        group: String::new(),
        version: "v1".to_owned(),
        kind: "Namespace".to_owned(),
        namespace: None,
        name: name.clone(),
    };
    let warns = match run.live.rendered.get(&namespace).filter(|_| fresh) {
        Some(namespace) => warns(namespace),
        None => match run.cluster.get(&namespace).await {
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

/// Whether objects of a kind describe pods.
fn has_pods(reference: &ObjectRef) -> bool {
    matches!(
        (reference.group.as_str(), reference.kind.as_str()),
        ("", "Pod" | "PodTemplate" | "ReplicationController")
            | ("apps", "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet")
            | ("batch", "Job" | "CronJob")
    )
}

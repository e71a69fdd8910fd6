//! The index of all objects on the controller's own cluster that carry the labels of an owner, whatever their values. The value of several
//! labels are their values, joined by slashes, in the order of the names.
//!
//! One watch of metadata for each kind answers for all deployments which kinds have objects of one of them, instead of a list of each
//! kind for each. The watches have the rights of the controller, so the answer is only a hint where to look: the objects that a deployment
//! reports and deletes, it lists live with its own rights. Without the right to watch everything, and while a watch is broken or
//! not begun, there is no answer, and the caller lists every kind.

mod names;
mod state;
mod watching;

use std::{sync::Arc, time::Duration};

use cluster::Cluster;
use parking_lot::{Mutex, MutexGuard};
use runtime::{Context, ObjectKey};
use tokio::sync::Notify;

pub use names::ObjectNames;
use state::State;

/// Longest wait for the first lists after the start of the process.
const FIRST_LISTS: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelledObject {
    /// API group, empty for the core group.
    pub group: String,
    /// Name of the kind, as in `ConfigMap`.
    pub kind: String,
    /// Namespace, empty for objects of the cluster, and name.
    pub key: ObjectKey,
    /// The resourceVersion that its watch saw last.
    pub version: String,
}

/// The index of the objects that carry the labels. Clones are the same index.
#[derive(Debug, Clone)]
pub struct LabelIndex(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// The names of the labels, all of which an object must carry.
    labels: Vec<String>,
    state: Mutex<State>,
    /// Wakes those who wait for the first lists.
    changed: Notify,
}

impl LabelIndex {
    /// Starts the watches as soon as this process leads, until its shutdown. `cluster` is the cluster of the controller.
    #[must_use]
    pub fn start(ctx: &Context, cluster: Cluster, labels: &[&str]) -> Self {
        let index = Self(Arc::new(Shared {
            labels: labels.iter().map(|&label| label.to_owned()).collect(),
            state: Mutex::default(),
            changed: Notify::new(),
        }));
        tokio::spawn(watching::run(Arc::clone(&index.0), ctx.clone(), cluster));
        index
    }

    /// Returns the objects whose label has this value; `None` if some may be unknown, or there are more than 20,000. At the start of the process it waits for the
    /// first lists, for 10 seconds at most.
    pub async fn objects(&self, value: &str) -> Option<Vec<LabelledObject>> {
        let synced = async {
            loop {
                let changed = self.0.changed.notified();
                if !self.0.state().is_starting() {
                    return;
                }
                changed.await;
            }
        };
        // Later there is an answer or none.
        let _ = tokio::time::timeout(FIRST_LISTS, synced).await;
        self.known(value)
    }

    /// Returns the same without waiting.
    #[must_use]
    pub fn known(&self, value: &str) -> Option<Vec<LabelledObject>> {
        self.0.state().objects(value)
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Changes the state, and wakes those who wait for it.
    fn update(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state());
        self.changed.notify_waiters();
    }
}

//! Remembers failing objects of Alerts that ask for notices of recovery or a threshold, as annotations of the Alert, which all replicas
//! and their successors read.
//!
//! A change counts at once in this process, and is written in the background. The watch of Alerts brings it to the other replicas.

use std::{collections::HashMap, sync::Arc, time::Duration};

use api::{Event, Time, notification::Alert};
use kube::{
    Api, Client, ResourceExt as _,
    api::{Patch, PatchParams},
};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest as _, Sha256};
use tokio_util::task::TaskTracker;

use crate::{event::object_name, journal::Ticket, name::NAME};

/// Prefix of the annotations that name failing objects; a hash of the object follows.
const PREFIX: &str = "failing.weir.io/";
/// Maximum number of failing objects of an Alert; events of others are sent as without extensions.
const OBJECTS: usize = 64;
/// Maximum number of changes that the watch has not confirmed.
const CHANGES: usize = 4096;
/// Age in seconds at which a failure is evicted for another: its object is probably gone.
const FORGOTTEN: i64 = 30 * 24 * 3600;
/// Maximum number of counted events that are remembered.
const COUNTED: usize = 8;
const WRITE: Duration = Duration::from_secs(10);
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// The failures of an object since its last success.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Failing {
    pub(crate) object: String,
    pub(crate) failures: u32,
    pub(crate) since: Time,
    /// Tags of the last counted events, the newest last: they are received again after a restart.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) counted: Vec<String>,
}

/// A failure in relation to the threshold of an Alert.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failure {
    Below,
    Reached,
    Beyond,
    /// The object can't be remembered.
    Unknown,
}

impl Failure {
    /// Returns true if the failure is sent; `repeated` if the same event was received a short time ago.
    pub(crate) fn is_sent(self, repeated: bool) -> bool {
        match self {
            Self::Below => false,
            Self::Reached => true,
            Self::Beyond | Self::Unknown => !repeated,
        }
    }
}

type Id = (String, String);

#[derive(Debug)]
struct Change {
    state: Option<Failing>,
    writing: bool,
    written: Option<u64>,
    tickets: Vec<Arc<Ticket>>,
}

/// Reason of a write that failed for good.
#[derive(Debug, PartialEq, Eq)]
enum NotWritten {
    Gone,
    /// The API server refuses the write.
    Refused,
    Retry,
}

pub(crate) struct Failures {
    client: Client,
    changes: Mutex<HashMap<Id, Change>>,
    tasks: TaskTracker,
}

impl Failures {
    /// Starts with the annotations of Alerts; `client` writes in every replica, without the lease.
    pub(crate) fn new(client: Client) -> Self {
        Self {
            client,
            changes: Mutex::default(),
            tasks: TaskTracker::new(),
        }
    }

    pub(crate) fn fail(
        self: &Arc<Self>,
        alert: &Alert,
        event: &Event,
        threshold: u32,
        ticket: &Arc<Ticket>,
    ) -> Failure {
        let id = id(alert, event);
        let mut changes = self.changes.lock();
        let past = current(&mut changes, alert, &id);
        let (failure, state) = after_failure(past.as_ref(), threshold, event, ticket.tag());
        let Some(state) = state else {
            return failure;
        };
        if past.is_none() && !self.ensure_capacity(&mut changes, alert) {
            return Failure::Unknown;
        }
        self.put(&mut changes, alert, id, Some(state), Some(ticket));
        failure
    }

    /// Records the success of an object, and returns its earlier failures.
    pub(crate) fn succeed(
        self: &Arc<Self>,
        alert: &Alert,
        event: &Event,
        ticket: &Arc<Ticket>,
    ) -> Option<Failing> {
        let id = id(alert, event);
        let mut changes = self.changes.lock();
        let past = current(&mut changes, alert, &id)?;
        self.put(&mut changes, alert, id, None, Some(ticket));
        Some(past)
    }

    pub(crate) fn of(&self, alert: &Alert, event: &Event) -> Option<Failing> {
        current(&mut self.changes.lock(), alert, &id(alert, event))
    }

    pub(crate) async fn drain(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Returns true if one more object of an Alert can be remembered, after evicting an old one if necessary.
    fn ensure_capacity(self: &Arc<Self>, changes: &mut HashMap<Id, Change>, alert: &Alert) -> bool {
        if changes.len() >= CHANGES {
            changes.retain(|_, change| change.writing);
        }
        if changes.len() >= CHANGES {
            return false;
        }
        let uid = alert.uid().unwrap_or_default();
        let known = annotations(alert).filter(|(key, _)| {
            let change = changes.get(&(uid.clone(), (*key).to_owned()));
            change.is_none_or(|change| change.state.is_some())
        });
        let known = known
            .map(|(key, failing)| (key.to_owned(), failing))
            .collect::<Vec<_>>();
        let new = changes.iter().filter(|((owner, key), change)| {
            *owner == uid && change.state.is_some() && !known.iter().any(|(known, _)| known == key)
        });
        if known.len() + new.count() < OBJECTS {
            return true;
        }
        let before = runtime::now().0.as_second().saturating_sub(FORGOTTEN);
        let old = known.into_iter().find(|(_, failing)| {
            failing
                .as_ref()
                .is_none_or(|failing| failing.since.0.as_second() < before)
        });
        let Some((key, _)) = old else {
            return false;
        };
        self.put(changes, alert, (uid, key), None, None);
        true
    }

    fn put(
        self: &Arc<Self>,
        changes: &mut HashMap<Id, Change>,
        alert: &Alert,
        id: Id,
        state: Option<Failing>,
        ticket: Option<&Arc<Ticket>>,
    ) {
        let change = changes.entry(id.clone()).or_insert_with(|| Change {
            state: None,
            writing: false,
            written: None,
            tickets: Vec::new(),
        });
        change.state = state;
        change.written = None;
        if let Some(ticket) = ticket {
            ticket.hold();
            change.tickets.push(Arc::clone(ticket));
        }
        if !std::mem::replace(&mut change.writing, true) {
            let (namespace, name) = (alert.namespace().unwrap_or_default(), alert.name_any());
            let this = Arc::clone(self);
            self.tasks
                .spawn(async move { this.write(&namespace, &name, &id).await });
        }
    }

    async fn write(&self, namespace: &str, name: &str, id: &Id) {
        let alerts = Api::<Alert>::namespaced(self.client.clone(), namespace);
        let mut pause = FIRST_PAUSE;
        loop {
            let Some(state) = self.changes.lock().get(id).map(|change| change.state.clone()) else {
                return;
            };
            let written = send(&alerts, name, id, state.as_ref()).await;
            if written == Err(NotWritten::Retry) {
                tracing::info!(alert = name, namespace, "cannot write the failing objects yet");
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
                continue;
            }
            let mut changes = self.changes.lock();
            let Some(change) = changes.get_mut(id) else {
                return;
            };
            if change.state != state && written.is_ok() {
                continue;
            }
            change.writing = false;
            change.written = written.as_ref().ok().copied().flatten();
            let tickets = std::mem::take(&mut change.tickets);
            if written == Err(NotWritten::Refused) {
                tracing::error!(
                    alert = name,
                    namespace,
                    "cannot write the failing objects: other replicas and later processes don't know them"
                );
            }
            if written == Err(NotWritten::Gone) {
                changes.remove(id);
            }
            drop(changes);
            tickets.iter().for_each(|ticket| ticket.release());
            return;
        }
    }
}

/// Writes the annotation of an object, and returns the resourceVersion of the Alert if it is a number.
async fn send(
    alerts: &Api<Alert>,
    name: &str,
    (uid, key): &Id,
    state: Option<&Failing>,
) -> Result<Option<u64>, NotWritten> {
    let value = state.and_then(|state| serde_json::to_string(state).ok());
    // The UID prevents a write to an Alert that was created anew.
    let patch = json!({"metadata": {"uid": uid, "annotations": {key: value}}});
    let params = PatchParams {
        field_manager: Some(NAME.to_owned()),
        ..PatchParams::default()
    };
    let patch = Patch::Merge(patch);
    match tokio::time::timeout(WRITE, alerts.patch_metadata(name, &params, &patch)).await {
        Ok(Ok(object)) => Ok(object.resource_version().and_then(|version| version.parse().ok())),
        Ok(Err(kube::Error::Api(status))) => Err(match status.code {
            404 | 422 => NotWritten::Gone,
            409 if status.message.to_ascii_lowercase().contains("uid") => NotWritten::Gone,
            409 | 429 | 500.. => NotWritten::Retry,
            _ => NotWritten::Refused,
        }),
        Ok(Err(_)) | Err(_) => Err(NotWritten::Retry),
    }
}

fn id(alert: &Alert, event: &Event) -> Id {
    let object = object_name(event);
    let hash = Sha256::digest(format!("{}/{object}", event.group()));
    let hash = hash.get(..16).map(hex::encode).unwrap_or_default();
    (alert.uid().unwrap_or_default(), format!("{PREFIX}{hash}"))
}

/// Returns the failing objects in the annotations of an Alert; `None` for a malformed one.
fn annotations(alert: &Alert) -> impl Iterator<Item = (&str, Option<Failing>)> {
    let ours = alert
        .annotations()
        .iter()
        .filter(|(key, _)| key.starts_with(PREFIX));
    ours.map(|(key, text)| (key.as_str(), serde_json::from_str(text).ok()))
}

/// Returns the failures of an object: from the last change, unless the Alert was read after its write.
fn current(changes: &mut HashMap<Id, Change>, alert: &Alert, id: &Id) -> Option<Failing> {
    let version = alert
        .resource_version()
        .and_then(|version| version.parse::<u64>().ok());
    match changes.get(id) {
        Some(change) if change.written.is_some() && version >= change.written => {
            changes.remove(id);
        }
        Some(change) => return change.state.clone(),
        None => {}
    }
    let text = alert.annotations().get(&id.1)?;
    serde_json::from_str(text).ok()
}

/// Classifies a failure, and returns the new state if it changes. Pure apart from the clock.
fn after_failure(
    past: Option<&Failing>,
    threshold: u32,
    event: &Event,
    tag: u64,
) -> (Failure, Option<Failing>) {
    let before = past.map_or(0, |past| past.failures);
    let tag = format!("{tag:016x}");
    let mut counted = past.map(|past| past.counted.clone()).unwrap_or_default();
    if counted.contains(&tag) {
        let reached = before >= threshold && counted.last() == Some(&tag);
        let failure = if reached { Failure::Reached } else { Failure::Below };
        return (failure, None);
    }
    if before >= threshold {
        return (Failure::Beyond, None);
    }
    let failures = before.saturating_add(1);
    counted.push(tag);
    counted.drain(..counted.len().saturating_sub(COUNTED));
    let state = Failing {
        object: runtime::bounded_text(&object_name(event)).into_owned(),
        failures,
        since: past.map_or_else(runtime::now, |past| past.since.clone()),
        counted,
    };
    let failure = if failures == threshold {
        Failure::Reached
    } else {
        Failure::Below
    };
    (failure, Some(state))
}

#[cfg(test)]
mod tests;

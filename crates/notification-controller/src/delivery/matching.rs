//! From an event to the Alerts that send it, with the failures of its object that they remember.

use std::{
    collections::{BTreeMap, BTreeSet},
    hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher},
    sync::Arc,
};

use api::{Event, notification::Alert};
use futures::future::join_all;
use kube::ResourceExt as _;
use runtime::ObjectKey;
use tokio::sync::{Mutex, MutexGuard, OnceCell};

use super::{
    notice::Notice,
    selection::{Candidate, Labels, Selection},
};
use crate::{
    accepted::Accepted,
    event::{self, Meaning, object_name},
    extensions::Extensions,
    failures::Failures,
    store::Store,
};

/// Maximum number of objects that are matched at the same time, if an Alert remembers their failures.
const LOCKS: usize = 64;

pub(super) struct Matching {
    store: Store,
    selection: Selection,
    failures: Arc<Failures>,
    locks: ObjectLocks,
}

impl Matching {
    pub(super) fn new(store: Store, selection: Selection, failures: Failures) -> Self {
        Self {
            store,
            selection,
            failures: Arc::new(failures),
            locks: ObjectLocks::default(),
        }
    }

    /// Calls `notify` for each Alert that sends an event, and returns their number.
    pub(super) async fn notices(
        &self,
        accepted: &Accepted,
        notify: impl Fn(&Arc<Alert>, &Notice) + Send + Sync,
    ) -> usize {
        let mut groups: BTreeMap<String, Vec<Arc<Alert>>> = BTreeMap::new();
        for alert in self.store.alerts(&accepted.event.involved_object) {
            groups
                .entry(alert.namespace().unwrap_or_default())
                .or_default()
                .push(alert);
        }
        let labels = OnceCell::new();
        let (notify, labels) = (&notify, &labels);
        // The Alerts of one namespace wait for none of another.
        let groups = groups.iter().map(|(namespace, alerts)| async move {
            self.group_notices(namespace, alerts, labels, accepted, notify)
                .await
        });
        join_all(groups).await.into_iter().sum()
    }

    /// Calls `notify` for each Alert of a namespace that sends an event, and returns their number.
    async fn group_notices(
        &self,
        namespace: &str,
        alerts: &[Arc<Alert>],
        labels: &Labels,
        accepted: &Accepted,
        notify: &(impl Fn(&Arc<Alert>, &Notice) + Send + Sync),
    ) -> usize {
        let _lock = self.locks.lock(namespace, alerts, &accepted.event).await;
        let passing = self.selection.passing(alerts, &accepted.event).await;
        let mut matched = 0;
        for (alert, passes) in alerts.iter().zip(passing) {
            let candidate = Candidate {
                alert,
                passes,
                labels,
            };
            if let Some(notice) = self.notice(&candidate, accepted).await {
                matched += 1;
                notify(alert, &notice);
            }
        }
        matched
    }

    async fn notice(&self, candidate: &Candidate<'_>, accepted: &Accepted) -> Option<Notice> {
        let alert = candidate.alert;
        let (event, extensions) = (&accepted.event, Extensions::of(alert));
        let repeated = event::is_repeated(event);
        match event::meaning(event) {
            Meaning::Failure if extensions.tracks() => {
                if !self.selection.is_for(candidate, event).await {
                    return None;
                }
                let failure = self
                    .failures
                    .fail(alert, event, extensions.threshold, &accepted.ticket);
                return failure.is_sent(repeated).then_some(Notice::Event);
            }
            // The expressions of the Alert select failures: the success after one has another message.
            Meaning::Success if extensions.tracks() && self.selection.names(alert, event) => {
                let past = self.failures.succeed(alert, event, &accepted.ticket);
                if let Some(past) = past
                    && extensions.recovery
                    && past.failures >= extensions.threshold
                {
                    return Some(Notice::Recovery(past.since));
                }
            }
            _ => {}
        }
        (!repeated && self.selection.is_for(candidate, event).await).then_some(Notice::Event)
    }

    /// Returns true if an Alert counts a repeated event, or waits for it.
    pub(super) fn awaits_repetition(&self, event: &Event) -> bool {
        let meaning = event::meaning(event);
        meaning != Meaning::Neither
            && self.store.alerts(&event.involved_object).iter().any(|alert| {
                let extensions = Extensions::of(alert);
                if !extensions.tracks() || !self.selection.names(alert, event) {
                    return false;
                }
                let failing = self.failures.of(alert, event);
                match meaning {
                    Meaning::Failure => failing.is_none_or(|past| past.failures < extensions.threshold),
                    _ => failing.is_some(),
                }
            })
    }

    /// Returns the Providers of the Alerts that may send an event.
    pub(super) fn providers(&self, event: &Event) -> BTreeSet<ObjectKey> {
        let alerts = self.store.alerts(&event.involved_object);
        let named = alerts.iter().filter(|alert| self.selection.names(alert, event));
        named
            .map(|alert| {
                let namespace = alert.namespace().unwrap_or_default();
                ObjectKey::new(namespace, &alert.spec.provider_ref.name)
            })
            .collect()
    }

    pub(super) async fn drain(&self) {
        self.failures.drain().await;
    }
}

/// Keeps the events of an object in order, where its failures and its success are remembered.
struct ObjectLocks(Vec<Mutex<()>>);

impl Default for ObjectLocks {
    fn default() -> Self {
        Self(std::iter::repeat_with(Mutex::default).take(LOCKS).collect())
    }
}

impl ObjectLocks {
    /// Waits for the earlier events of the object, if one of the Alerts of a namespace remembers failures.
    async fn lock(
        &self,
        namespace: &str,
        alerts: &[Arc<Alert>],
        event: &Event,
    ) -> Option<MutexGuard<'_, ()>> {
        if !alerts.iter().any(|alert| Extensions::of(alert).tracks()) {
            return None;
        }
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one((namespace, object_name(event)));
        let at = usize::try_from(hash % LOCKS as u64).unwrap_or_default();
        Some(self.0.get(at)?.lock().await)
    }
}

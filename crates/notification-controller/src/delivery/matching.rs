//! From an event to the Alerts that send it, with the failures of its object that they remember.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use api::{Event, notification::Alert};
use futures::future::join_all;
use kube::ResourceExt as _;
use limits::KeyedPermits;
use runtime::ObjectKey;
use tokio::sync::{OnceCell, OwnedSemaphorePermit};

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
            locks: ObjectLocks::new(1),
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
        // Before the expressions: an event whose expressions take longer must not be counted after a later one.
        let _lock = lock(&self.locks, namespace, alerts, &accepted.event).await;
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

/// Permits to match events, one for the namespace of the Alerts and the object of the event.
type ObjectLocks = KeyedPermits<(String, String)>;

/// Waits for the earlier events of the object, if one of the Alerts of a namespace remembers failures: its failures and its success count in
/// their order.
async fn lock(
    locks: &ObjectLocks,
    namespace: &str,
    alerts: &[Arc<Alert>],
    event: &Event,
) -> Option<OwnedSemaphorePermit> {
    if !alerts.iter().any(|alert| Extensions::of(alert).tracks()) {
        return None;
    }
    locks.acquire((namespace.to_owned(), object_name(event))).await
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use serde_json::json;

    use super::*;

    fn alert(annotations: &serde_json::Value) -> Arc<Alert> {
        let alert = serde_json::from_value(json!({
            "apiVersion": "notification.toolkit.fluxcd.io/v1beta3", "kind": "Alert",
            "metadata": {"name": "alert", "namespace": "team", "annotations": annotations},
            "spec": {"providerRef": {"name": "p"}, "eventSources": [{"kind": "GitRepository", "name": "*"}]},
        }));
        Arc::new(alert.unwrap())
    }

    fn event(object: usize) -> Event {
        serde_json::from_value(json!({
            "involvedObject": {"kind": "GitRepository", "name": format!("o{object}"), "namespace": "team"},
            "message": "m", "reason": "r", "reportingController": "c",
        }))
        .unwrap()
    }

    #[test]
    fn objects_whose_matching_takes_long_delay_no_other_object() {
        let locks = ObjectLocks::new(1);
        let alerts = [alert(&json!({"weir.io/failure-threshold": "3"}))];
        let take = |namespace, object| {
            lock(&locks, namespace, &alerts, &event(object))
                .now_or_never()
                .flatten()
        };
        let held: Vec<_> = (0..1000).map(|object| take("team", object)).collect();
        assert!(held.iter().all(Option::is_some));
        assert!(take("other", 0).is_some(), "Alerts of another namespace");
        let waiting = event(0);
        let mut waiting = std::pin::pin!(lock(&locks, "team", &alerts, &waiting));
        assert!(
            waiting.as_mut().now_or_never().is_none(),
            "events of one object are in order"
        );
        drop(held);
        assert!(waiting.now_or_never().flatten().is_some());
        assert_eq!(locks.keys(), 0);
    }

    #[test]
    fn alerts_that_remember_nothing_take_no_lock() {
        let locks = ObjectLocks::new(1);
        let alerts = [alert(&json!({}))];
        assert!(matches!(
            lock(&locks, "team", &alerts, &event(0)).now_or_never(),
            Some(None)
        ));
    }
}

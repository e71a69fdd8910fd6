//! The extensions of Alerts, applied between the event and its deliveries.

use std::{
    collections::BTreeMap,
    hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher},
    sync::Arc,
};

use api::{Event, Reason, Time, notification::Alert};
use runtime::ObjectKey;
use tokio::sync::{Mutex, MutexGuard};

use super::{Candidate, Delivery, Dispatcher, digest::Collected};
use crate::{
    alerts,
    event::{self, Meaning},
    extensions::{self, Extensions},
    failures::object_name,
    providers::Takes,
    server::Accepted,
    template,
};

/// Maximum number of objects that are matched at the same time, if an Alert remembers their failures.
const LOCKS: usize = 64;

/// Keeps the events of an object in order, where its failures and its success are remembered.
pub(super) struct ObjectLocks(Vec<Mutex<()>>);

impl Default for ObjectLocks {
    fn default() -> Self {
        Self(std::iter::repeat_with(Mutex::default).take(LOCKS).collect())
    }
}

impl ObjectLocks {
    /// Waits for the earlier events of the object, if one of the Alerts remembers failures.
    pub(super) async fn lock(&self, alerts: &[Arc<Alert>], event: &Event) -> Option<MutexGuard<'_, ()>> {
        if !alerts.iter().any(|alert| Extensions::of(alert).tracks()) {
            return None;
        }
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(object_name(event));
        let at = usize::try_from(hash % LOCKS as u64).unwrap_or_default();
        Some(self.0.get(at)?.lock().await)
    }
}

/// The form in which an Alert sends an event.
#[derive(Debug, Clone)]
pub(super) enum Notice {
    Event,
    /// The event as the end of failures since a time.
    Recovery(Time),
}

impl Notice {
    /// Returns the event in this form, for a type of provider.
    pub(super) fn event(&self, event: &Arc<Event>, takes: Takes) -> Arc<Event> {
        match self {
            Self::Event => Arc::clone(event),
            Self::Recovery(since) => Arc::new(event::recovered(event, since, takes)),
        }
    }
}

impl Dispatcher {
    /// Returns the notice of an event for an Alert, if it sends one.
    pub(super) async fn notice(&self, candidate: &Candidate<'_>, accepted: &Accepted) -> Option<Notice> {
        let alert = candidate.alert;
        let (event, extensions) = (&accepted.event, Extensions::of(alert));
        let repeated = event::is_repeated(event);
        match event::meaning(event) {
            Meaning::Failure if extensions.tracks() => {
                if !self.is_for(candidate, accepted).await {
                    return None;
                }
                let failure = self
                    .failures
                    .fail(alert, event, extensions.threshold, &accepted.ticket);
                return failure.is_sent(repeated).then_some(Notice::Event);
            }
            // The expressions of the Alert select failures: the success after one has another message.
            Meaning::Success
                if extensions.tracks() && alerts::names(alert, event, self.own_namespace_only) =>
            {
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
        (!repeated && self.is_for(candidate, accepted).await).then_some(Notice::Event)
    }

    /// Returns true if an Alert counts a repeated event, or waits for it.
    pub(super) fn awaits_repetition(&self, event: &Event) -> bool {
        let meaning = event::meaning(event);
        meaning != Meaning::Neither
            && self.store.alerts(&event.involved_object).iter().any(|alert| {
                let extensions = Extensions::of(alert);
                if !extensions.tracks() || !alerts::names(alert, event, self.own_namespace_only) {
                    return false;
                }
                let failing = self.failures.of(alert, event);
                match meaning {
                    Meaning::Failure => failing.is_none_or(|past| past.failures < extensions.threshold),
                    _ => failing.is_some(),
                }
            })
    }

    /// Delivers a notice of an event, or adds it to the digest of its Alert.
    pub(super) fn notify(self: &Arc<Self>, alert: &Arc<Alert>, notice: &Notice, accepted: &Arc<Accepted>) {
        let Some((provider, kind)) = self.target(alert, &accepted.event) else {
            return;
        };
        let event = notice.event(&accepted.event, kind.takes);
        if !event::is_taken(&event, kind.takes) {
            tracing::debug!(
                provider = alert.spec.provider_ref.name,
                "the type of the provider does not take the event"
            );
            return;
        }
        if let Some(interval) = Extensions::of(alert).digest_for(kind.takes) {
            let this = Arc::clone(self);
            let send = async move |alert| this.deliver_digest(&alert);
            self.digests.add(alert, interval, &event, &accepted.ticket, send);
            return;
        }
        let delivery = Delivery {
            alert: Arc::clone(alert),
            provider,
            kind,
            event,
            notice: Some(notice.clone()),
            tickets: vec![Arc::clone(&accepted.ticket)],
            _accepted: Some(Arc::clone(accepted)),
            _read: None,
        };
        if accepted.ticket.has_ended(delivery.number()) {
            return;
        }
        accepted.ticket.hold();
        self.deliver_later(delivery);
    }

    /// Replaces the message of an event by the template of an Alert. If that fails, the message is unchanged.
    pub(super) async fn write_message(&self, alert: &Alert, event: &mut Event) {
        let Some(text) = extensions::message_template(alert) else {
            return;
        };
        match template::render(text, alert, event).await {
            Ok(message) => event.message = message,
            Err(error) => {
                let message = format!(
                    "the message about {} was sent as it is: {error}",
                    object_name(event)
                );
                self.warn(alert, Reason::InvalidConfig, message, BTreeMap::new());
            }
        }
    }

    /// Delivers the digest of an Alert, with the Alert and its Provider as they are now.
    fn deliver_digest(self: &Arc<Self>, alert: &ObjectKey) {
        let Some(collected) = self.digests.take(alert) else {
            return;
        };
        let alert = self.store.alert(alert).filter(|alert| !alert.spec.suspend);
        let delivery = alert.and_then(|alert| self.digest(alert, &collected));
        match delivery {
            Some(delivery) => self.deliver_later(delivery),
            None => collected.tickets.iter().for_each(|ticket| ticket.release()),
        }
    }

    fn digest(&self, alert: Arc<Alert>, collected: &Collected) -> Option<Delivery> {
        let event = Arc::new(collected.event(&alert));
        let (provider, kind) = self.target(&alert, &event)?;
        event::is_taken(&event, kind.takes).then(|| Delivery {
            alert,
            provider,
            kind,
            event,
            notice: None,
            tickets: collected.tickets.clone(),
            _accepted: None,
            _read: None,
        })
    }
}

//! From an accepted event to its deliveries: which alerts, which providers, one lane a provider.
//!
//! A slow provider fills its own lane only. Deliveries that wait long are read back from the journal.

mod clients;
mod config;
mod digest;
mod extended;
mod health;
mod identity;
mod jobs;
mod lanes;
mod nats;
mod send;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use api::{
    Event, Fault, Reason,
    notification::{Alert, Provider, ProviderSpec},
};
use futures::{Stream, StreamExt};
use kube::{Client, ResourceExt};
use runtime::{Context, EventDraft, ObjectKey, Recorder, Severity};
use tokio::sync::{OnceCell, OwnedSemaphorePermit, Semaphore};

use crate::{
    Error, Flags,
    alerts::{
        self, Verdict,
        expressions::Matcher,
        labels::{LabelReader, LabelsError},
    },
    event::{self, Combined},
    extensions,
    failures::{Failures, object_name},
    journal::{self, Ticket},
    metrics::{DeliveryOutcome, Metrics},
    providers::{self, AlertName, ProviderType, status_id},
    server::{Accepted, Deliveries},
    store::Store,
};
use clients::Clients;
use digest::Digests;
use extended::{Notice, ObjectLocks};
pub(crate) use health::Health;
pub(crate) use identity::Identities;
use jobs::Job;
use lanes::{LanePermit, Lanes};

/// Events that are matched at the same time: matching may wait for the labels of an object.
const MATCHING: usize = 8;
/// Default timeout of a delivery, retries included.
const TIMEOUT: Duration = Duration::from_secs(15);
const LONGEST: Duration = Duration::from_secs(300);

pub(crate) struct Dispatcher {
    failures: Arc<Failures>,
    identities: Identities,
    digests: Digests,
    locks: ObjectLocks,
    client: Client,
    recorder: Recorder,
    store: Store,
    labels: LabelReader,
    expressions: Matcher,
    clients: Clients,
    lanes: Lanes<Job>,
    /// Bytes of the events that were read back from the journal.
    memory: Arc<Semaphore>,
    health: Health,
    metrics: Metrics,
    own_namespace_only: bool,
}

/// Maximum bytes of all events that were read back from the journal.
const READ_BYTES: usize = 8 * 1024 * 1024;
/// Maximum number of pauses of its provider that a delivery waits for.
const PAUSES: usize = 3;

struct Candidate<'a> {
    alert: &'a Alert,
    passes: bool,
    /// The labels of the object, read when the first alert of the event needs them.
    labels: &'a OnceCell<Result<BTreeMap<String, String>, LabelsError>>,
}

/// One event for one provider.
struct Delivery {
    alert: Arc<Alert>,
    provider: Arc<Provider>,
    kind: ProviderType,
    event: Arc<Event>,
    /// The form of its only event; `None` for a digest.
    notice: Option<Notice>,
    /// Its accepted events, which stay in the journal until it ends.
    tickets: Vec<Arc<Ticket>>,
    /// The share of the memory for waiting events.
    _accepted: Option<Arc<Accepted>>,
    _read: Option<OwnedSemaphorePermit>,
}

impl Dispatcher {
    /// `client` writes in every replica, without the lease.
    pub(crate) fn new(
        ctx: &Context,
        flags: &Flags,
        store: Store,
        metrics: Metrics,
        client: Client,
        identities: Identities,
    ) -> Self {
        let addresses = flags.delivery_addresses(ctx);
        Self {
            failures: Arc::new(Failures::new(client)),
            identities,
            digests: Digests::default(),
            locks: ObjectLocks::default(),
            client: ctx.client().clone(),
            recorder: ctx.recorder().clone(),
            store,
            labels: LabelReader::new(ctx.client().clone()),
            expressions: Matcher::default(),
            clients: Clients::new(addresses),
            lanes: Lanes::new(journal::FULL),
            memory: Arc::new(Semaphore::new(READ_BYTES)),
            health: Health::default(),
            metrics,
            own_namespace_only: ctx.flags().no_cross_namespace_refs,
        }
    }

    pub(crate) fn health(&self) -> &Health {
        &self.health
    }

    /// Dispatches events until there are no more.
    pub(crate) async fn run(self: Arc<Self>, accepted: impl Stream<Item = Accepted> + Send) {
        accepted
            .for_each_concurrent(MATCHING, |accepted| self.dispatch(Arc::new(accepted)))
            .await;
    }

    /// Sends the collected digests, and waits for the deliveries in flight.
    pub(crate) async fn drain(&self) {
        self.digests.drain().await;
        tokio::join!(self.lanes.drain(), self.failures.drain());
    }

    /// Returns the fault of the first field of a Provider that is unsupported or invalid.
    pub(crate) fn refused(&self, spec: &ProviderSpec) -> Option<Fault> {
        providers::refused(spec).or_else(|| self.identities.refused(spec))
    }

    /// Checks that deliveries to a provider can work, without sending one.
    /// Fails when its Secrets, certificates or address are invalid, or its type needs a key that is missing.
    pub(crate) async fn examine(&self, provider: &Provider) -> Result<(), Error> {
        let loaded = config::load(&self.client, &self.identities, provider).await?;
        let addresses = providers::check(&providers::find(&provider.spec.type_)?, &loaded.config)?;
        clients::check(self.clients.addresses(), &loaded.route)?;
        for address in addresses {
            self.clients.check(address.expose())?;
        }
        Ok(())
    }

    async fn dispatch(self: &Arc<Self>, accepted: Arc<Accepted>) {
        let mut matched = 0;
        let alerts = self.store.alerts(&accepted.event.involved_object);
        let _lock = self.locks.lock(&alerts, &accepted.event).await;
        let passing = self.passing(&alerts, &accepted.event).await;
        let labels = OnceCell::new();
        for (alert, passes) in alerts.iter().zip(passing) {
            let candidate = Candidate {
                alert,
                passes,
                labels: &labels,
            };
            if let Some(notice) = self.notice(&candidate, &accepted).await {
                matched += 1;
                self.notify(alert, &notice, &accepted);
            }
        }
        let object = &accepted.event.involved_object;
        let (kind, namespace, name) = (
            object.kind.as_deref(),
            object.namespace.as_deref(),
            object.name.as_deref(),
        );
        if matched == 0 {
            tracing::debug!(
                kind,
                namespace,
                name,
                "discarding event, no alerts found for the involved object"
            );
        } else {
            tracing::info!(kind, namespace, name, alerts = matched, "dispatching event");
        }
        accepted.ticket.release();
    }

    /// Returns for each alert if an event is for it, apart from labels.
    async fn passing(&self, alerts: &[Arc<Alert>], event: &Event) -> Vec<bool> {
        let is_candidate =
            |alert: &Arc<Alert>| alerts::verdict(alert, event, self.own_namespace_only) != Verdict::No;
        let mut passing: Vec<_> = alerts.iter().map(is_candidate).collect();
        // Expressions cost the most, so that they come last.
        let chosen = alerts.iter().zip(&passing).filter(|(_, passes)| **passes);
        let chosen: Vec<_> = chosen.map(|(alert, _)| Arc::clone(alert)).collect();
        let mut matches = self
            .expressions
            .matches(&chosen, &event.message)
            .await
            .into_iter();
        for passes in &mut passing {
            *passes = *passes && matches.next().unwrap_or_default();
        }
        passing
    }

    async fn is_for(&self, candidate: &Candidate<'_>, accepted: &Accepted) -> bool {
        let (alert, object) = (candidate.alert, &accepted.event.involved_object);
        let wanted = match alerts::verdict(alert, &accepted.event, self.own_namespace_only) {
            Verdict::IfLabels(wanted) if candidate.passes => wanted,
            Verdict::Yes => return candidate.passes,
            Verdict::No | Verdict::IfLabels(_) => return false,
        };
        match candidate.labels.get_or_init(|| self.labels.labels(object)).await {
            Ok(labels) => wanted
                .iter()
                .any(|wanted| wanted.iter().all(|(key, value)| labels.get(key) == Some(value))),
            Err(why) => {
                let object = object_name(&accepted.event);
                let message = format!("cannot read the labels of {object}: {why}");
                self.warn(alert, Reason::SourceFetchFailed, message, BTreeMap::new());
                false
            }
        }
    }

    /// Returns the Provider of an alert for an event, or `None` if there is nothing to deliver.
    fn target(&self, alert: &Alert, event: &Event) -> Option<(Arc<Provider>, ProviderType)> {
        let own = alert.namespace().unwrap_or_default();
        let failed = |why: &str| {
            let message = format!("failed to send notification for {}: {why}", object_name(event));
            self.warn(
                alert,
                Reason::NotificationDispatchFailed,
                message,
                BTreeMap::new(),
            );
        };
        let name = &alert.spec.provider_ref.name;
        let Some(provider) = self.store.provider(&own, name) else {
            failed(&format!("Provider '{name}' not found in namespace '{own}'"));
            return None;
        };
        if provider.spec.suspend {
            return None;
        }
        if let Some(fault) = self.refused(&provider.spec) {
            failed(&format!("Provider '{name}': {}", fault.message));
            return None;
        }
        let kind = providers::find(&provider.spec.type_).ok()?;
        Some((provider, kind))
    }

    /// Delivers once; `None` if the provider can't be used now, and the delivery can wait until it can.
    async fn deliver(&self, delivery: &Delivery, permit: &LanePermit) -> Option<DeliveryOutcome> {
        let mut combined = event::combine(&delivery.event, &delivery.alert.spec);
        self.tell_conflicts(delivery, &combined);
        if extensions::asks_for_commits(&delivery.alert) {
            event::add_commit(&mut combined.event, &delivery.event);
        }
        self.write_message(&delivery.alert, &mut combined.event).await;
        let result = self.send_unless_paused(delivery, &combined, permit).await;
        self.report(delivery, result.as_ref().err());
        let outcome = match result {
            Ok(()) => DeliveryOutcome::Sent,
            Err(error) => {
                let waits = error.is_outage() && delivery.can_wait() && !permit.is_last();
                self.tell_failure(delivery, &error, waits);
                if waits {
                    return None;
                }
                DeliveryOutcome::Failed
            }
        };
        self.metrics.notification(delivery.kind.name, outcome);
        Some(outcome)
    }

    /// Records the result of a delivery for the conditions of its Provider and Alert.
    fn report(&self, delivery: &Delivery, error: Option<&Error>) {
        let alert = delivery.alert.as_ref();
        let alert = ObjectKey::new(alert.namespace().unwrap_or_default(), alert.name_any());
        self.health.report(delivery.lane(), alert, error);
    }

    fn tell_failure(&self, delivery: &Delivery, error: &Error, waits: bool) {
        let (provider, object) = (delivery.provider.name_any(), object_name(&delivery.event));
        let later = if waits {
            "; it waits, and is sent again"
        } else {
            ""
        };
        let message =
            format!("failed to send notification for {object}: Provider '{provider}': {error}{later}");
        let reason = Reason::NotificationDispatchFailed;
        self.recorder.record(
            delivery.provider.as_ref(),
            EventDraft {
                severity: Severity::Error,
                reason,
                message: message.clone(),
                metadata: BTreeMap::new(),
            },
        );
        self.warn(&delivery.alert, reason, message, BTreeMap::new());
    }

    /// Sends when the provider wants no pause, and again after a pause that it asked for.
    async fn send_unless_paused(
        &self,
        delivery: &Delivery,
        combined: &Combined,
        permit: &LanePermit,
    ) -> Result<(), Error> {
        for _ in 0..PAUSES {
            permit.wait().await;
            match self.send(delivery, combined, permit).await {
                Err(Error::Status(429 | 503)) if permit.is_paused() => {}
                result => return result,
            }
        }
        permit.wait().await;
        self.send(delivery, combined, permit).await
    }

    async fn send(&self, delivery: &Delivery, combined: &Combined, permit: &LanePermit) -> Result<(), Error> {
        let timeout = delivery
            .provider
            .spec
            .timeout
            .map_or(TIMEOUT, |timeout| timeout.as_duration());
        let timeout = timeout.clamp(Duration::from_millis(100), LONGEST);
        let sending = async {
            let mut loaded = config::load(&self.client, &self.identities, &delivery.provider).await?;
            loaded.config.alert = AlertName {
                namespace: delivery.alert.namespace().unwrap_or_default(),
                name: delivery.alert.name_any(),
                uid: delivery.alert.uid().unwrap_or_default(),
            };
            loaded.config.status_id =
                status_id::evaluate(&combined.event, &delivery.alert, &delivery.provider)?;
            let steps = (delivery.kind.steps)(&combined.event, &loaded.config)?;
            let transport = send::Transport::new(&self.clients, loaded.route, permit)?;
            let sent = send::follow(&transport, steps, tokio::time::Instant::now() + timeout).await;
            if let (Err(Error::Status(401 | 403)), Some(key)) = (&sent, loaded.identity) {
                self.identities.forget(&key);
            }
            sent
        };
        // The error of the last attempt is more precise than "no answer": give it a moment to end.
        let limit = timeout + Duration::from_millis(200);
        tokio::time::timeout(limit, sending)
            .await
            .unwrap_or(Err(Error::TimedOut(timeout.as_secs())))
    }

    fn tell_conflicts(&self, delivery: &Delivery, combined: &Combined) {
        if combined.conflicts.is_empty() {
            return;
        }
        let keys: Vec<_> = combined.conflicts.keys().map(String::as_str).collect();
        let message = format!(
            "metadata keys come from several places, the last has precedence: {}",
            keys.join(", ")
        );
        self.warn(
            &delivery.alert,
            Reason::MetadataAppendFailed,
            message,
            combined.conflicts.clone(),
        );
    }

    /// Reports a failure in the log and as an event on the alert.
    fn warn(&self, alert: &Alert, reason: Reason, message: String, metadata: BTreeMap<String, String>) {
        let (name, namespace) = (alert.name_any(), alert.namespace());
        tracing::error!(
            alert = name,
            namespace,
            reason = reason.as_str(),
            error = message,
            "notification failed"
        );
        self.recorder.record(
            alert,
            EventDraft {
                severity: Severity::Error,
                reason,
                message,
                metadata,
            },
        );
    }
}

impl Deliveries for Dispatcher {
    fn wants_repetition(&self, event: &Event) -> bool {
        self.awaits_repetition(event)
    }

    fn admits(&self, event: &Event) -> bool {
        self.admits_event(event)
    }
}

//! From an accepted event to its deliveries. An event passes the modules in this order, each once:
//!
//! ```text
//! matching (selection, failures) -> routes (Provider) -> digest | queue (lanes) -> restore -> message -> sender (settings, steps, send) -> reports
//! ```
//! A slow provider fills its own lane only. Deliveries that wait long are read back from the journal.

mod attempt;
mod clients;
mod digest;
mod health;
mod identity;
mod job;
mod lanes;
mod matching;
mod memory;
mod message;
mod nats;
mod notice;
mod queue;
mod reports;
mod restore;
mod routes;
mod secrets;
mod selection;
mod send;
mod sender;
mod settings;
mod steps;

use std::sync::Arc;

use api::{Event, notification::Alert};
use futures::{Stream, StreamExt};
use kube::Client;
use runtime::{Context, ObjectKey};

use crate::{
    accepted::{Accepted, Deliveries},
    event,
    extensions::Extensions,
    failures::Failures,
    flags::Flags,
    metrics::Metrics,
    store::Store,
};
use digest::{Collected, Digests};
use job::Delivery;
use matching::Matching;
use notice::Notice;
use queue::Queue;
use restore::Restorer;
use selection::Selection;

pub(crate) use identity::Identities;
pub(crate) use reports::Reports;
pub(crate) use routes::Routes;
pub(crate) use sender::Sender;

/// Maximum number of events that are matched at the same time: matching may wait for the labels of an object, or for expressions of one
/// namespace. Namespaces share the events that wait.
const MATCHING: usize = 1024;

pub(crate) struct Dispatcher {
    store: Store,
    matching: Matching,
    routes: Arc<Routes>,
    digests: Digests,
    queue: Arc<Queue>,
}

impl Dispatcher {
    /// `client` writes in every replica, without the lease.
    pub(crate) fn new(
        ctx: &Context,
        flags: &Flags,
        store: Store,
        metrics: Metrics,
        client: Client,
    ) -> anyhow::Result<Self> {
        let addresses = flags.delivery_addresses(ctx);
        let accounts = flags.service_accounts()?;
        let reports = Arc::new(Reports::new(ctx.recorder().clone(), metrics));
        let routes = Routes::new(store.clone(), Arc::clone(&reports), accounts.of_objects);
        let routes = Arc::new(routes);
        let identities = Identities::new(client.clone(), addresses.clone(), accounts, flags.token_bounds());
        let sender = Sender::new(ctx.client().clone(), addresses, identities);
        let own_namespace_only = ctx.flags().no_cross_namespace_refs;
        let selection = Selection::new(ctx.client().clone(), Arc::clone(&reports), own_namespace_only);
        Ok(Self {
            matching: Matching::new(store.clone(), selection, Failures::new(client)),
            digests: Digests::default(),
            queue: Arc::new(Queue::new(
                Restorer::new(store.clone(), Arc::clone(&routes), Arc::clone(&reports)),
                Arc::new(sender),
                reports,
            )),
            routes,
            store,
        })
    }

    pub(crate) fn reports(&self) -> &Arc<Reports> {
        self.queue.reports()
    }

    pub(crate) fn routes(&self) -> &Arc<Routes> {
        &self.routes
    }

    pub(crate) fn sender(&self) -> &Arc<Sender> {
        self.queue.sender()
    }

    pub(crate) async fn run(self: Arc<Self>, accepted: impl Stream<Item = Accepted> + Send) {
        accepted
            .for_each_concurrent(MATCHING, |accepted| self.dispatch(Arc::new(accepted)))
            .await;
    }

    /// Sends the collected digests, and waits for the deliveries in flight.
    pub(crate) async fn drain(&self) {
        self.digests.drain().await;
        tokio::join!(self.queue.drain(), self.matching.drain());
    }

    async fn dispatch(self: &Arc<Self>, accepted: Arc<Accepted>) {
        let notify = |alert: &Arc<Alert>, notice: &Notice| self.notify(alert, notice, &accepted);
        let matched = self.matching.notices(&accepted, notify).await;
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
        accepted.matched();
        accepted.ticket.release();
    }

    /// Delivers a notice of an event, or adds it to the digest of its Alert.
    fn notify(self: &Arc<Self>, alert: &Arc<Alert>, notice: &Notice, accepted: &Arc<Accepted>) {
        let Some((provider, kind)) = self.routes.target(alert, &accepted.event) else {
            return;
        };
        let event = notice.event(&accepted.event, kind.rules.takes);
        if !event::is_taken(&event, kind.rules.takes) {
            tracing::debug!(
                provider = alert.spec.provider_ref.name,
                "the type of the provider does not take the event"
            );
            return;
        }
        if let Some(interval) = Extensions::of(alert).digest_for(kind.rules.takes) {
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
            _restored: None,
        };
        if accepted.ticket.has_ended(delivery.number()) {
            return;
        }
        accepted.ticket.hold();
        self.queue.add(delivery);
    }

    fn deliver_digest(&self, alert: &ObjectKey) {
        let Some(collected) = self.digests.take(alert) else {
            return;
        };
        let alert = self.store.alert(alert).filter(|alert| !alert.spec.suspend);
        let delivery = alert.and_then(|alert| self.digest(alert, &collected));
        match delivery {
            Some(delivery) => self.queue.add(delivery),
            None => collected.tickets.iter().for_each(|ticket| ticket.release()),
        }
    }

    fn digest(&self, alert: Arc<Alert>, collected: &Collected) -> Option<Delivery> {
        let event = Arc::new(collected.event(&alert));
        let (provider, kind) = self.routes.target(&alert, &event)?;
        event::is_taken(&event, kind.rules.takes).then(|| Delivery {
            alert,
            provider,
            kind,
            event,
            notice: None,
            tickets: collected.tickets.clone(),
            _accepted: None,
            _restored: None,
        })
    }
}

impl Deliveries for Dispatcher {
    fn wants_repetition(&self, event: &Event) -> bool {
        self.matching.awaits_repetition(event)
    }

    fn admits(&self, event: &Event) -> bool {
        self.queue.is_calm() || self.queue.admits(event, &self.matching.providers(event))
    }
}

//! Turns the events that controllers post into webhooks and chat messages.
//!
//! ```text
//! POST event -> server (senders, body, duplicates) -> journal -> delivery (matching -> routes -> queue -> message -> sender -> reports) -> provider
//! ```
//! An event is in the journal before it is accepted, and until its deliveries have ended; events that wait for a provider are read back from there.
//! The server never waits for a delivery. Dropped events are counted. Matching and payloads are pure; the address, the credentials and the
//! responses of a provider never reach a log, an event or a status.

mod accepted;
pub mod alerts;
mod body;
#[cfg(test)]
mod bounds;
pub mod delivery;
mod error;
mod event;
mod extensions;
mod failures;
mod flags;
#[cfg(test)]
mod fuzz;
mod journal;
mod kinds;
mod log_limit;
mod metrics;
mod name;
pub mod providers;
mod receivers;
mod senders;
mod served;
mod server;
mod store;
mod template;

use std::{sync::Arc, time::Duration};

use anyhow::Context as _;
use futures::StreamExt as _;
use runtime::{Context, RunOptions, WriteGate, run_kind};
use tokio::task::JoinHandle;

pub use error::Error;
pub use flags::Flags;
pub use name::NAME;

use crate::{
    delivery::Dispatcher,
    journal::Journal,
    kinds::{Alerts, Providers, Receivers},
    metrics::{HttpMetrics, Metrics},
    server::Server,
    store::Store,
};

/// Time for deliveries to finish after the shutdown starts.
const DRAIN: Duration = Duration::from_millis(4500);

/// The types of Receivers, as `spec.type` names them.
#[must_use]
pub fn receiver_types() -> Vec<&'static str> {
    receivers::ALL.iter().map(|kind| kind.name).collect()
}

async fn serve_webhooks(
    ctx: &Context,
    flags: &Flags,
    index: &receivers::Index,
) -> anyhow::Result<(JoinHandle<()>, JoinHandle<()>)> {
    let addresses = flags.delivery_addresses(ctx);
    // Every replica annotates objects: its own client writes without the lease.
    let client = runtime::client::build(ctx.config(), WriteGate::open(), ctx.metrics().clone())?;
    let metrics = HttpMetrics::register(ctx.metrics().registry(), "receiver", "/hook/")?;
    let keys = receivers::Keys::new(addresses)?;
    let server = receivers::Server::new(ctx, client, index.clone(), keys, &flags.gcr_keys_url, metrics);
    let listener = runtime::http::listen(&flags.receiver_addr).await?;
    let server = server.start(listener, ctx.shutdown().clone());
    Ok((
        server,
        tokio::spawn(receivers::follow(ctx.clone(), index.clone())),
    ))
}

/// Runs the controller until shutdown, then sends the accepted events.
/// Fails when a flag is invalid, the metrics cannot be registered, or the address for events cannot be bound.
pub async fn run(ctx: Context, flags: Flags) -> anyhow::Result<()> {
    runtime::flags::report_idle(&flags.idle());
    flags.check()?;
    let metrics = Metrics::register(ctx.metrics().registry())?;
    let store = Store::default();
    // Every replica remembers failing objects and creates tokens: its own client writes without the lease.
    let client = runtime::client::build(ctx.config(), WriteGate::open(), ctx.metrics().clone())?;
    let dispatcher = Dispatcher::new(&ctx, &flags, store.clone(), metrics.clone(), client)?;
    let dispatcher = Arc::new(dispatcher);
    let (journal, left) = Journal::open(flags.journal_path.as_deref(), metrics.pending.clone())
        .context("--journal-path cannot be used")?;
    let deliveries = Arc::clone(&dispatcher);
    let server = Server::new(&ctx, &flags, metrics, Arc::clone(&journal), deliveries);
    let listener = runtime::http::listen(&flags.events_addr).await?;
    let index = receivers::Index::default();
    let (webhooks, followed) = serve_webhooks(&ctx, &flags, &index).await?;
    let left = server.left(left, store.clone());
    let (server, accepted) = server.start(listener, ctx.shutdown().clone());
    let work = tokio::spawn(Arc::clone(&dispatcher).run(left.chain(accepted)));
    let options = |triggers| RunOptions {
        concurrency: 4,
        triggers,
        ..RunOptions::default()
    };
    let reports = Arc::clone(dispatcher.reports());
    let asked = Arc::clone(&reports);
    let asked = move |alert| asked.health().request_alert(alert);
    let watched = tokio::spawn(store::follow(ctx.clone(), store.clone(), asked));
    let (of_providers, of_alerts) = reports.health().changes().context("the results are taken")?;
    let alerts = Alerts::new(store, Arc::clone(&reports), ctx.flags().no_cross_namespace_refs);
    let providers = Providers::new(
        Arc::clone(dispatcher.routes()),
        Arc::clone(dispatcher.sender()),
        reports,
    );
    let mut receiver_triggers = vec![index.collisions()];
    if flags.watches_secrets() {
        let secrets = receivers::secret_triggers(&ctx, index.clone(), flags.config_selector());
        receiver_triggers.push(secrets);
    }
    tokio::try_join!(
        run_kind(&ctx, alerts, options(vec![of_alerts.boxed()])),
        run_kind(&ctx, providers, options(vec![of_providers.boxed()])),
        run_kind(
            &ctx,
            Receivers::new(ctx.client().clone(), index),
            options(receiver_triggers)
        )
    )?;
    // A standby gets here only when it is shut down, too.
    ctx.shutdown().cancelled().await;
    server.await?;
    webhooks.await?;
    followed.abort();
    if tokio::time::timeout(DRAIN, async { (work.await, dispatcher.drain().await) })
        .await
        .is_err()
    {
        tracing::info!("some notifications were not sent before the end");
    }
    journal.flush().await;
    watched.abort();
    Ok(())
}

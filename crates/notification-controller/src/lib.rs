//! Turns the events that controllers post into webhooks and chat messages.
//!
//! ```text
//! POST event -> senders (who posts) -> server (limits, duplicates) -> journal -> queue -> alerts (match) -> lane of the provider -> payload -> delivery
//! ```
//! An event is in the journal before it is accepted, and until its deliveries have ended. The server never waits for a delivery. What finds no place in a queue is counted. Matching and payloads are pure; the
//! address, the credentials and the answer of a provider never reach a log, an event or a status.

pub mod alerts;
pub mod delivery;
mod error;
mod event;
mod flags;
#[cfg(test)]
mod fuzz;
mod journal;
mod kinds;
mod metrics;
pub mod providers;
mod senders;
mod server;
mod store;

use std::{sync::Arc, time::Duration};

use anyhow::Context as _;
use futures::StreamExt as _;
use runtime::{Context, RunOptions, Trigger, run_kind};

pub use error::Error;
pub use flags::Flags;

use crate::{
    delivery::Dispatcher,
    journal::Journal,
    kinds::{Alerts, Providers},
    metrics::Metrics,
    server::Server,
    store::Store,
};

/// Name of the controller.
pub const NAME: &str = "notification-controller";
/// The time that deliveries get to finish after shutdown begins.
const DRAIN: Duration = Duration::from_millis(4500);

/// Runs the controller until shutdown, then sends the events that it has accepted.
///
/// # Errors
/// Fails when a flag is invalid, the metrics cannot be registered, or the address for events cannot be bound.
pub async fn run(ctx: Context, flags: Flags) -> anyhow::Result<()> {
    runtime::flags::report_idle(&flags.idle());
    flags.check()?;
    let metrics = Metrics::register(ctx.metrics().registry())?;
    let store = Store::default();
    let dispatcher = Arc::new(Dispatcher::new(&ctx, &flags, store.clone(), metrics.clone()));
    let (journal, left) =
        Journal::open(flags.journal_path.as_deref()).context("--journal-path cannot be used")?;
    let server = Server::new(&ctx, &flags, metrics, Arc::clone(&journal));
    let listener = runtime::http::listen(&flags.events_addr).await?;
    let left = server.left(left, store.clone());
    let (server, accepted) = server.start(listener, ctx.shutdown().clone());
    let work = tokio::spawn(Arc::clone(&dispatcher).run(left.chain(accepted)));
    let options = |changes: futures::channel::mpsc::Receiver<Trigger>| RunOptions {
        concurrency: 4,
        triggers: vec![changes.boxed()],
        ..RunOptions::default()
    };
    let watched = tokio::spawn(store::follow(ctx.clone(), store.clone()));
    let (of_providers, of_alerts) = dispatcher.health().changes().context("the results are taken")?;
    let alerts = Alerts::new(
        store,
        Arc::clone(&dispatcher),
        ctx.flags().no_cross_namespace_refs,
    );
    let providers = Providers::new(Arc::clone(&dispatcher));
    tokio::try_join!(
        run_kind(&ctx, alerts, options(of_alerts)),
        run_kind(&ctx, providers, options(of_providers))
    )?;
    // A standby gets here only when it is told to end, too.
    ctx.shutdown().cancelled().await;
    server.await?;
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

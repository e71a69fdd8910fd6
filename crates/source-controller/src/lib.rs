//! The source-controller: follows sources, and serves what they hold as artifacts.
//!
//! Only the leader has a storage: it opens it, removes what belongs to no object any more, serves it, and reconciles.

pub mod flags;
pub mod kinds;
mod sweep;

use std::{sync::Arc, time::Duration};

use anyhow::Context as _;
use artifact::{Storage, server};
use axum::{Router, extract::Request};
use clap::Parser;
use runtime::{CommonFlags, Context, EventsFlags, RunOptions, Spec, http, run_kind};

pub use flags::Flags;
use kinds::git_repository;

/// Name of the controller.
pub const NAME: &str = "source-controller";

/// Passes at the same time. Most of a pass is waiting for a server, and one that hangs must not take the place of
/// those that answer.
const CONCURRENCY: u16 = 64;

/// Consumers come in crowds, and their downloads may take a while.
const SERVING: http::Limits = http::Limits {
    connections: 512,
    header_bytes: 16 << 10,
    header_time: Duration::from_secs(15),
    lifetime: Duration::from_secs(30 * 60),
    grace: Duration::from_secs(5),
};

/// The command line.
#[derive(Debug, Parser)]
#[command(name = NAME, about = "Follows sources and serves them as artifacts", version)]
pub struct Cli {
    /// The flags that every controller has.
    #[command(flatten)]
    pub common: CommonFlags,
    /// Where events go.
    #[command(flatten)]
    pub events: EventsFlags,
    /// The flags of this controller alone.
    #[command(flatten)]
    pub own: Flags,
}

/// What makes this controller different from the others.
#[must_use]
pub fn spec(events: &EventsFlags) -> Spec {
    Spec {
        name: NAME,
        lease: "source-controller-leader-election",
        events_addr: events.events_addr.clone(),
        standby_records: false,
    }
}

/// Runs the controller until it is told to end.
///
/// # Errors
/// When the storage cannot be opened or served.
pub async fn run(ctx: Context, flags: Flags) -> anyhow::Result<()> {
    runtime::flags::report_idle(&flags.idle(ctx.flags()));
    if ctx.leader().await.is_err() {
        return Ok(());
    }
    let storage = Storage::open(&flags.storage_path, &flags.advertised(), flags.retention())?;
    let storage = Arc::new(storage);
    sweep::sweep(&ctx, &storage).await;
    let scratch = runtime::scratch::directory(&std::env::temp_dir(), NAME)
        .context("failed to prepare the temporary directory")?;
    let listener = http::listen(&flags.storage_addr).await?;
    tracing::info!(address = %listener.local_addr()?, advertised = flags.advertised(), "serving artifacts");
    let router = router(Arc::clone(&storage));
    let serving = tokio::spawn(http::serve(listener, router, SERVING, ctx.shutdown().clone()));
    let controller = git_repository::Controller::new(git_repository::Parts {
        client: ctx.client().clone(),
        storage,
        scratch,
        style: flags.revision_format.into(),
        algorithm: flags.artifact_digest_algo,
    });
    let options = RunOptions {
        concurrency: CONCURRENCY,
        ..RunOptions::default()
    };
    run_kind(&ctx, controller, options).await?;
    serving.await.context("the server of artifacts broke down")
}

/// What the storage answers, whatever the path.
fn router(storage: Arc<Storage>) -> Router {
    Router::new().fallback(move |request: Request| server::answer(Arc::clone(&storage), request))
}

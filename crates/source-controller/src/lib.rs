//! The source-controller: fetches sources, and serves them as artifacts.
//!
//! Only the leader has a storage: it opens it, removes the artifacts of deleted objects, serves it, and reconciles. Everything
//! but resolving, fetching and packing is the same for all kinds: [`SourceKind`] is what a kind adds.

mod blocking;
mod builder;
mod certificates;
pub mod flags;
mod identity;
mod kinds;
mod permits;
mod plan;
mod proxy;
mod reconciler;
mod secrets;
mod single_flight;
mod source_kind;
mod status;
mod stored;
mod sweep;
mod wake;

use std::{sync::Arc, time::Duration};

use anyhow::Context as _;
use artifact::{Storage, server};
use axum::{Router, extract::Request};
use clap::Parser;
use futures::future::try_join_all;
use runtime::{CommonFlags, Context, EventsFlags, Spec, http, secret};

use builder::Builder;
pub use flags::Flags;
use identity::Identities;
use reconciler::Shared;
pub use source_kind::SourceKind;

/// Name of the controller.
pub const NAME: &str = "source-controller";

/// Limits of the artifact server: many consumers download at the same time, and a download may take long.
const SERVING: http::Limits = http::Limits {
    connections: 512,
    header_bytes: 16 << 10,
    header_time: Duration::from_secs(15),
    lifetime: Duration::from_secs(30 * 60),
    grace: Duration::from_secs(5),
};

/// Command-line arguments of the controller.
#[derive(Debug, Parser)]
#[command(name = NAME, about = "Follows sources and serves them as artifacts", version)]
pub struct Cli {
    /// The flags that every controller has.
    #[command(flatten)]
    pub common: CommonFlags,
    /// Flags for the destination of events.
    #[command(flatten)]
    pub events: EventsFlags,
    /// The flags of this controller alone.
    #[command(flatten)]
    pub own: Flags,
}

/// Returns the name, lease and events of this controller.
#[must_use]
pub fn spec(events: &EventsFlags) -> Spec {
    Spec {
        name: NAME,
        lease: "source-controller-leader-election",
        events: events.clone(),
        standby_records: false,
    }
}

/// Runs the controller until its shutdown.
///
/// # Errors
/// Fails when the storage cannot be opened or served.
pub async fn run(ctx: Context, flags: Flags) -> anyhow::Result<()> {
    let (ssh, unknown) = flags.ssh_algorithms()?;
    let accounts = flags.service_accounts(ctx.flags())?;
    runtime::flags::report_idle(&flags.idle(ctx.flags()));
    if !unknown.is_empty() {
        tracing::warn!(
            algorithms = unknown.join(","),
            "algorithms of SSH that are not supported are left out"
        );
    }
    if ctx.leader().await.is_err() {
        return Ok(());
    }
    let storage = Storage::open(&flags.storage_path, &flags.advertised(), flags.retention())?;
    let storage = Arc::new(storage.with_quotas(flags.quotas()));
    sweep::sweep(&ctx, &storage).await;
    let scratch = runtime::scratch::directory(&std::env::temp_dir(), NAME)
        .context("failed to prepare the temporary directory")?;
    let listener = http::listen(&flags.storage_addr).await?;
    tracing::info!(address = %listener.local_addr()?, advertised = flags.advertised(), "serving artifacts");
    let router = router(Arc::clone(&storage));
    let serving = tokio::spawn(http::serve(listener, router, SERVING, ctx.shutdown().clone()));
    // Sources of clouds without a Secret are read as the controller itself.
    let ambient = cloud::Ambient::new(std::env::vars()).with_instance();
    let identities = Identities::new(ctx.addresses().clone(), ambient, accounts, flags.token_bounds());
    let shared = Arc::new(Shared {
        client: ctx.client().clone(),
        builder: Builder::new(Arc::clone(&storage), scratch.clone(), flags.artifact_digest_algo),
        storage,
        style: flags.revision_format.into(),
        ssh,
        identities: Arc::new(identities),
        trusted_root: flags.trusted_root()?.map(Arc::new),
        helm: flags.helm_limits(),
        scratch,
    });
    let kinds = kinds::ALL.iter();
    try_join_all(kinds.map(|kind| (kind.run)(ctx.clone(), Arc::clone(&shared)))).await?;
    serving.await.context("the artifact server ended")
}

/// Returns the router of the artifact server.
fn router(storage: Arc<Storage>) -> Router {
    Router::new().fallback(move |request: Request| server::answer(Arc::clone(&storage), request))
}

//! The source-controller: fetches sources, and serves them as artifacts.
//!
//! Each process serves its storage or the shared store from its start. Only the leader reconciles: it claims the storage, removes the
//! artifacts of deleted objects, and stores new ones. `standby` says which of the others are ready. All kinds share everything but
//! resolving, fetching and packing, which a `SourceKind` does.

mod blocking;
mod builder;
mod certificates;
mod consumers;
pub mod flags;
mod identity;
mod kinds;
mod permits;
mod plan;
mod proxy;
mod reconciler;
mod secrets;
mod server;
mod shared_store;
mod source_kind;
mod standby;
mod status;
mod stored;
mod sweep;
mod temp_files;
mod wake;

use std::sync::Arc;

use anyhow::Context as _;
use artifact::Storage;
use clap::Parser;
use futures::future::try_join_all;
use net::AddressPolicy;
use runtime::{CommonFlags, Context, EventsFlags, Spec, tokens::TokenReviews};
use tokio::task::{JoinHandle, spawn_blocking};

use builder::Builder;
use consumers::{ConsumerCheck, DownloadMetrics};
pub use flags::Flags;
use identity::Identities;
use reconciler::Shared;
use server::Files;
use shared_store::SharedStore;

pub const NAME: &str = "source-controller";

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

#[must_use]
pub fn spec(events: &EventsFlags) -> Spec {
    Spec {
        name: NAME,
        lease: "source-controller-leader-election",
        events: events.clone(),
        standby_records: false,
    }
}

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
    // Sources of clouds without a Secret are read as the controller itself, and so is the shared store.
    let ambient = cloud::Ambient::new(std::env::vars()).with_instance();
    let settings = flags.shared_store.settings()?;
    let shared_store = settings.map(|settings| {
        let context = bucket::Context {
            addresses: AddressPolicy::unrestricted(),
            ambient: ambient.clone(),
        };
        Arc::new(SharedStore::new(settings, context, flags.artifact_retention_ttl))
    });
    let users = flags.consumers.users(&ctx.flags().runtime_namespace)?;
    let downloads = DownloadMetrics::register(ctx.metrics().registry())?;
    let consumers = users.map(|users| {
        let reviews = TokenReviews::new(ctx.client().clone(), users);
        ConsumerCheck::new(reviews, flags.consumers.is_enforced(), downloads)
    });
    let storage = Storage::open(&flags.storage_path, &flags.advertised(), flags.retention())?;
    let storage = Arc::new(storage.with_quotas(flags.quotas()));
    let files = Files::new(Arc::clone(&storage), shared_store.clone(), consumers);
    let server = server::start(&ctx, &flags, files).await?;
    let led = standby::wait(&ctx, &storage, shared_store.is_some()).await;
    if led.is_err() {
        return finished(server).await;
    }
    let claimed = Arc::clone(&storage);
    spawn_blocking(move || claimed.claim()).await?;
    sweep::sweep(&ctx, &storage).await;
    let scratch = runtime::scratch::directory(&std::env::temp_dir(), NAME)
        .context("failed to prepare the temporary directory")?;
    let identities = Identities::new(ctx.addresses().clone(), ambient, accounts, flags.token_bounds());
    let shared = Arc::new(Shared {
        client: ctx.client().clone(),
        builder: Builder::new(Arc::clone(&storage), scratch.clone(), flags.artifact_digest_algo),
        storage,
        shared_store,
        style: flags.revision_format.into(),
        ssh,
        identities: Arc::new(identities),
        trusted_root: flags.trusted_root()?.map(Arc::new),
        helm: flags.helm_limits(),
        scratch,
        disk: limits::ByteBudget::new(flags.temporary_bytes()),
    });
    let kinds = kinds::ALL.iter();
    try_join_all(kinds.map(|kind| (kind.run)(ctx.clone(), Arc::clone(&shared)))).await?;
    finished(server).await
}

async fn finished(server: JoinHandle<()>) -> anyhow::Result<()> {
    server.await.context("the artifact server ended")
}

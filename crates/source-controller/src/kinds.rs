//! The kinds of sources: a module for each, which implements [`SourceKind`], and a line in [`ALL`].

mod bucket;
mod git_repository;
mod helm_chart;
mod helm_repository;
mod oci_repository;

use std::{collections::HashSet, sync::Arc};

use artifact::Key;
use futures::future::BoxFuture;
use kube::Client;
use runtime::{Context, RunOptions, run_kind};

#[cfg(test)]
pub(crate) use self::{
    bucket::Buckets, git_repository::GitRepositories, helm_chart::HelmCharts,
    helm_repository::HelmRepositories, oci_repository::OciRepositories,
};
use crate::{
    reconciler::{Shared, SourceReconciler},
    source_kind::{KindSettings, SourceKind},
    sweep,
};

pub(crate) const ALL: &[Registration] = &[
    Registration::of::<git_repository::GitRepositories>(),
    Registration::of::<oci_repository::OciRepositories>(),
    Registration::of::<bucket::Buckets>(),
    Registration::of::<helm_repository::HelmRepositories>(),
    Registration::of::<helm_chart::HelmCharts>(),
];

/// Concurrent passes of a kind. A pass mostly waits for a server, and one that hangs must not block others.
const CONCURRENCY: u16 = 64;
/// Concurrent passes of a namespace, with waiting ones. More would not fetch sooner, since only a few fetches of a namespace run at the
/// same time, but a thousand objects that are due at a start would all hold their memory.
const MOST_OF_NAMESPACE: usize = 128;

pub(crate) struct Registration {
    pub(crate) directory: &'static str,
    pub(crate) keys: fn(Client) -> BoxFuture<'static, Result<HashSet<Key>, kube::Error>>,
    pub(crate) run: fn(Context, Arc<Shared>) -> BoxFuture<'static, Result<(), runtime::Error>>,
}

impl Registration {
    const fn of<K: SourceKind>() -> Self {
        Self {
            directory: K::DIRECTORY,
            keys: |client| Box::pin(sweep::keys::<K>(client)),
            run: |ctx, shared| Box::pin(run::<K>(ctx, shared)),
        }
    }
}

async fn run<K: SourceKind>(ctx: Context, shared: Arc<Shared>) -> Result<(), runtime::Error> {
    let kind = K::new(KindSettings {
        client: shared.client.clone(),
        storage: Arc::clone(&shared.storage),
        requeue_dependency: ctx.flags().requeue_dependency,
        addresses: ctx.addresses().clone(),
        ssh: shared.ssh.clone(),
        identities: Arc::clone(&shared.identities),
        trusted_root: shared.trusted_root.clone(),
        helm: shared.helm,
        scratch: shared.scratch.clone(),
        disk: shared.disk.clone(),
        processors: shared.builder.processors().clone(),
    });
    let options = RunOptions {
        concurrency: CONCURRENCY,
        most_of_namespace: MOST_OF_NAMESPACE,
        triggers: kind.triggers(&ctx),
        ..RunOptions::default()
    };
    run_kind(&ctx, SourceReconciler::new(kind, shared), options).await
}

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod tests;

//! Deletes stored results of KluctlDeployments (`gitops.kluctl.io`) when they go.

use std::collections::HashSet;

use cluster::Cluster;
use deployer::OwnClusterId;
use futures::{StreamExt as _, stream};
use results::{OrphanedResults, ResultStore};
use runtime::{Context, ObjectKey};
use tokio::sync::mpsc;

use crate::flags::ResultFlags;

const PARALLEL: usize = 8;

/// Reports KluctlDeployments that are gone. Cheap to clone.
#[derive(Debug, Clone)]
pub struct GoneObjects(mpsc::UnboundedSender<ObjectKey>);

impl GoneObjects {
    /// Deletes the results of an object, once it is really gone. Returns at once.
    pub fn send(&self, key: &ObjectKey) {
        // The process may be ending.
        let _ = self.0.send(key.clone());
    }
}

#[derive(Debug)]
pub struct ResultCleaner {
    orphaned: OrphanedResults,
    cluster_id: OwnClusterId,
    gone: mpsc::UnboundedReceiver<ObjectKey>,
}

impl ResultCleaner {
    #[must_use]
    pub fn new(ctx: &Context, flags: &ResultFlags) -> (GoneObjects, Self) {
        let (sender, gone) = mpsc::unbounded_channel();
        let cluster = Cluster::new(ctx.client().clone()).until(ctx.shutdown().clone());
        let store = ResultStore::new(cluster.clone(), &flags.command_result_namespace, flags.keep());
        let cleaner = Self {
            cluster_id: OwnClusterId::new(cluster.clone()),
            orphaned: OrphanedResults::new(cluster, store, ctx.flags().watch_namespace()),
            gone,
        };
        (GoneObjects(sender), cleaner)
    }

    /// The results in the namespace of the flags. Its clones know when the results without a group were adopted.
    #[must_use]
    pub fn store(&self) -> &ResultStore {
        self.orphaned.store()
    }

    pub(crate) fn cluster_id(&self) -> &OwnClusterId {
        &self.cluster_id
    }

    /// Deletes older results once the process leads, then the results of each object that goes, until the process ends.
    pub async fn run(mut self, ctx: Context) {
        if ctx.leader().await.is_err() {
            return;
        }
        self.report(self.orphaned.delete_all(self.cluster_id.read()).await);
        self.adopt().await;
        let shutdown = ctx.shutdown().clone();
        while let Some(Some(first)) = shutdown.run_until_cancelled(self.gone.recv()).await {
            let mut keys = HashSet::from([first]);
            while let Ok(more) = self.gone.try_recv() {
                keys.insert(more);
            }
            let mut deletions = stream::iter(keys)
                .map(|key| self.delete(key))
                .buffer_unordered(PARALLEL);
            while let Some(deleted) = deletions.next().await {
                self.report(deleted);
            }
        }
    }

    /// Adds the labels to results of the original, once, so that nothing needs to list them again.
    async fn adopt(&self) {
        match self.store().adopt().await {
            Ok(0) | Err(results::Error::Cancelled) => {}
            Ok(results) => tracing::info!(results, "labelled stored results with their project and target"),
            // Writes and deletions find them without the labels, too.
            Err(error) => tracing::debug!(%error, "cannot label stored results"),
        }
    }

    fn report(&self, deleted: Result<usize, results::Error>) {
        match deleted {
            Ok(0) => {}
            Ok(results) => tracing::info!(results, "deleted results of KluctlDeployments that are gone"),
            Err(results::Error::Cancelled) => {}
            Err(error) => tracing::warn!(%error, "cannot delete results of KluctlDeployments that are gone"),
        }
    }

    async fn delete(&self, key: ObjectKey) -> Result<usize, results::Error> {
        if !self.orphaned.is_own(&key.namespace) {
            return Ok(0);
        }
        let deployment = results::KluctlDeployment {
            name: key.name,
            namespace: key.namespace,
            cluster_id: self.cluster_id.read().await?.unwrap_or_default(),
        };
        self.orphaned.delete_of(&deployment).await
    }
}

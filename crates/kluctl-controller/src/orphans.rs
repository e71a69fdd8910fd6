//! Deletes stored results of KluctlDeployments (`gitops.kluctl.io`) when they go.

use cluster::Cluster;
use deployer::OwnClusterId;
use futures::{StreamExt as _, channel::mpsc};
use results::{OrphanedResults, ResultStore};
use runtime::{Context, ObjectKey};

use crate::flags::ResultFlags;

/// Reports KluctlDeployments that are gone. Cheap to clone.
#[derive(Debug, Clone)]
pub struct GoneObjects(mpsc::UnboundedSender<(String, String)>);

impl GoneObjects {
    /// Deletes the results of an object, once it is really gone. Returns at once.
    pub fn send(&self, key: &ObjectKey) {
        // The process may be ending.
        let _ = self.0.unbounded_send((key.namespace.clone(), key.name.clone()));
    }
}

#[derive(Debug)]
pub struct ResultCleaner {
    orphaned: OrphanedResults,
    cluster_id: OwnClusterId,
    gone: mpsc::UnboundedReceiver<(String, String)>,
}

impl ResultCleaner {
    #[must_use]
    pub fn new(ctx: &Context, flags: &ResultFlags) -> (GoneObjects, Self) {
        let (sender, gone) = mpsc::unbounded();
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
    pub async fn run(self, ctx: Context) {
        if ctx.leader().await.is_err() {
            return;
        }
        let gone = self.gone.take_until(ctx.shutdown().clone().cancelled_owned());
        let cluster_id = || self.cluster_id.read();
        self.orphaned.run(gone, cluster_id).await;
    }
}

//! Deletes stored results of KluctlDeployments (`gitops.kluctl.io`) that are gone.
//!
//! Results may have come here with the Secrets of another cluster, whose objects are unknown: those that name another cluster stay.
//! A controller without the right to read the ID of its cluster stores results without one, and deletes those only.

use std::collections::HashSet;

use cluster::{Cluster, Detail, ResourceKind};
use deployer::OwnClusterId;
use futures::{StreamExt as _, stream};
use objects::{ObjectRef, meta};
use results::{ResultStore, StoredResult};
use runtime::{Context, ObjectKey};
use tokio::sync::mpsc;

use crate::flags::ResultFlags;

/// API group and version of the objects.
const GROUP: (&str, &str) = ("gitops.kluctl.io", "v1beta1");
/// Kind of the objects.
const KIND: &str = "KluctlDeployment";
/// Number of objects whose results are deleted at the same time.
const PARALLEL: usize = 8;
/// Maximum number of KluctlDeployments that are listed; with more of them, nothing is deleted.
const MOST: usize = 100_000;

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

/// The deletion of the results of objects that are gone.
#[derive(Debug)]
pub struct OrphanedResults {
    cluster: Cluster,
    cluster_id: OwnClusterId,
    store: ResultStore,
    /// The only namespace whose KluctlDeployments are this controller's; `None` for all.
    namespace: Option<String>,
    gone: mpsc::UnboundedReceiver<ObjectKey>,
}

impl OrphanedResults {
    /// Creates the deletion for the results in the namespace of the flags.
    #[must_use]
    pub fn new(ctx: &Context, flags: &ResultFlags) -> (GoneObjects, Self) {
        let (sender, gone) = mpsc::unbounded_channel();
        let cluster = Cluster::new(ctx.client().clone()).until(ctx.shutdown().clone());
        let store = ResultStore::new(cluster.clone(), &flags.command_result_namespace, flags.keep());
        let orphaned = Self {
            cluster_id: OwnClusterId::new(cluster.clone()),
            cluster,
            store,
            namespace: ctx.flags().watch_namespace().map(str::to_owned),
            gone,
        };
        (GoneObjects(sender), orphaned)
    }

    /// The results in the namespace of the flags. Its clones know when the results without a group were adopted.
    #[must_use]
    pub fn store(&self) -> &ResultStore {
        &self.store
    }

    /// The identity of the cluster, for all that shows it.
    pub(crate) fn cluster_id(&self) -> &OwnClusterId {
        &self.cluster_id
    }

    /// Deletes older results once the process leads, then the results of each object that goes, until the process ends.
    pub async fn run(mut self, ctx: Context) {
        if ctx.leader().await.is_err() {
            return;
        }
        self.report(self.delete_left_behind().await);
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
        match self.store.adopt().await {
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

    /// Deletes the results of an object unless there is one again, and returns their number.
    async fn delete(&self, key: ObjectKey) -> Result<usize, results::Error> {
        if !self.is_own(&key) {
            return Ok(0);
        }
        let deployment = results::KluctlDeployment {
            name: key.name,
            namespace: key.namespace,
            cluster_id: self.cluster_id.read().await?.unwrap_or_default(),
        };
        // Results first: an object that is created in between is read.
        let results = self.store.of_deployment(&deployment).await?;
        if results.is_empty() || self.may_exist(&deployment).await? {
            return Ok(0);
        }
        self.store.delete_all(&results).await
    }

    /// Returns true unless the API server says that there is no such object.
    async fn may_exist(&self, deployment: &results::KluctlDeployment) -> Result<bool, results::Error> {
        // The answer about an object is the same if there is no such kind.
        if self.kind().await?.is_none() {
            return Ok(true);
        }
        let object = ObjectRef {
            group: GROUP.0.to_owned(),
            version: GROUP.1.to_owned(),
            kind: KIND.to_owned(),
            namespace: Some(deployment.namespace.clone()),
            name: deployment.name.clone(),
        };
        match self.cluster.get(&object).await {
            Err(error) if error.is_forbidden() => Ok(true),
            found => Ok(found?.is_some()),
        }
    }

    /// Deletes the results of all objects that are gone, and returns their number.
    async fn delete_left_behind(&self) -> Result<usize, results::Error> {
        // Results first: an object that is created in between is listed.
        let mut results = self.store.of_deployments().await?;
        results.retain(|result| key(result).is_some_and(|key| self.is_own(&key)));
        if results.is_empty() {
            return Ok(0);
        }
        let own = self.cluster_id.read().await?;
        results.retain(|result| {
            let deployment = result.deployment();
            deployment.is_some_and(|deployment| may_be_of(own.as_deref(), &deployment.cluster_id))
        });
        let Some(live) = self.live().await? else {
            return Ok(0);
        };
        results.retain(|result| key(result).is_some_and(|key| !live.contains(&key)));
        self.store.delete_all(&results).await
    }

    /// Returns true if the objects of the namespace are this controller's.
    fn is_own(&self, key: &ObjectKey) -> bool {
        self.namespace.as_ref().is_none_or(|own| *own == key.namespace)
    }

    /// Returns the kind; `None` if the API server doesn't serve it.
    async fn kind(&self) -> Result<Option<ResourceKind>, results::Error> {
        match self.cluster.kind(GROUP.0, GROUP.1, KIND).await {
            Err(cluster::Error::NoMatch { .. }) => Ok(None),
            other => Ok(Some(other?)),
        }
    }

    /// Lists all objects; `None` if it is unknown which there are.
    async fn live(&self) -> Result<Option<HashSet<ObjectKey>>, results::Error> {
        let Some(kind) = self.kind().await? else {
            return Ok(None);
        };
        let namespace = self.namespace.as_deref();
        let listed = self
            .cluster
            .list_selected(&kind, namespace, "", Detail::Metadata, MOST)
            .await;
        let listed = match listed {
            Err(error) if error.is_forbidden() || error.is_not_found() => return Ok(None),
            other => other?,
        };
        let keys = listed.iter().map(|object| {
            let text = |name: &str| meta::text(object, name).unwrap_or_default();
            ObjectKey::new(text("namespace"), text("name"))
        });
        Ok(Some(keys.collect()))
    }
}

/// Returns true if a result with the ID of a cluster is of an object of this one; `own` is its ID, if that is known. Results are stored
/// in the cluster of their controller, so that one without an ID is of a controller of this cluster that could not read it. Pure.
fn may_be_of(own: Option<&str>, id: &str) -> bool {
    id.is_empty() || own == Some(id)
}

fn key(result: &StoredResult) -> Option<ObjectKey> {
    let deployment = result.deployment()?;
    Some(ObjectKey::new(deployment.namespace, deployment.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_another_cluster_are_of_none_of_its_objects() {
        for (own, id, expected) in [
            (Some("a"), "a", true),
            (Some("a"), "b", false),
            (Some("a"), "", true),
            (None, "", true),
            (None, "a", false),
        ] {
            assert_eq!(may_be_of(own, id), expected, "{own:?} {id:?}");
        }
    }
}

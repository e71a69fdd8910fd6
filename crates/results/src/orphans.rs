//! The deletion of stored results of KluctlDeployments (`gitops.kluctl.io`) that are gone.
//!
//! Results may have come here with the Secrets of another cluster, whose objects are unknown: those that name another cluster stay.
//! A controller without the right to read the ID of its cluster stores results without one, and deletes those only.

use std::{collections::HashSet, future::Future};

use cluster::{Cluster, Detail, ResourceKind};
use futures::{Stream, StreamExt as _, stream};
use objects::{ObjectRef, meta};

use crate::{Error, KluctlDeployment, ResultStore, StoredResult};

/// API group, version and kind of the objects.
const KIND: [&str; 3] = ["gitops.kluctl.io", "v1beta1", "KluctlDeployment"];
/// Maximum number of KluctlDeployments that are listed; with more of them, nothing is deleted.
const MOST: usize = 100_000;
/// Maximum number of objects whose results are deleted at the same time.
const PARALLEL: usize = 8;
/// Maximum number of reported objects that are taken together, each once.
const BATCH: usize = 1000;

/// Deletes the results of objects that are gone.
#[derive(Debug)]
pub struct OrphanedResults {
    cluster: Cluster,
    store: ResultStore,
    /// The only namespace whose KluctlDeployments are its controller's; `None` for all.
    namespace: Option<String>,
}

impl OrphanedResults {
    /// Creates the deletion for the objects of a cluster, all or those in one namespace.
    #[must_use]
    pub fn new(cluster: Cluster, store: ResultStore, namespace: Option<&str>) -> Self {
        Self {
            cluster,
            store,
            namespace: namespace.map(str::to_owned),
        }
    }

    /// Returns the store whose results are deleted.
    #[must_use]
    pub fn store(&self) -> &ResultStore {
        &self.store
    }

    /// Returns true if the objects of the namespace are its controller's.
    #[must_use]
    pub fn is_own(&self, namespace: &str) -> bool {
        self.namespace.as_ref().is_none_or(|own| own == namespace)
    }

    /// Deletes older results of objects that are gone, labels the results of the original, and then deletes the results of each object, by
    /// namespace and name, that `gone` reports. Ends with the stream. Failures are logged.
    pub async fn run<C, F>(&self, gone: impl Stream<Item = (String, String)>, cluster_id: C)
    where
        C: Fn() -> F,
        F: Future<Output = Result<Option<String>, cluster::Error>>,
    {
        report(self.delete_all(cluster_id()).await);
        self.adopt().await;
        let mut batches = std::pin::pin!(gone.ready_chunks(BATCH));
        while let Some(batch) = batches.next().await {
            let keys: HashSet<(String, String)> = batch.into_iter().collect();
            let own = keys.into_iter().filter(|(namespace, _)| self.is_own(namespace));
            let deletions = stream::iter(own).map(async |(namespace, name)| {
                let deployment = KluctlDeployment {
                    name,
                    namespace,
                    cluster_id: cluster_id().await?.unwrap_or_default(),
                };
                self.delete_of(&deployment).await
            });
            let mut deletions = std::pin::pin!(deletions.buffer_unordered(PARALLEL));
            while let Some(deleted) = deletions.next().await {
                report(deleted);
            }
        }
    }

    /// Adds the labels to results of the original, once, so that nothing needs to list them again.
    async fn adopt(&self) {
        match self.store.adopt().await {
            Ok(0) | Err(Error::Cancelled) => {}
            Ok(results) => tracing::info!(results, "labelled stored results with their project and target"),
            // Writes and deletions find them without the labels, too.
            Err(error) => tracing::debug!(%error, "cannot label stored results"),
        }
    }

    /// Deletes the results of an object unless there is one again, and returns their number.
    ///
    /// # Errors
    /// If a request fails.
    pub async fn delete_of(&self, deployment: &KluctlDeployment) -> Result<usize, Error> {
        // Results first: an object that is created in between is read.
        let results = self.store.of_deployment(deployment).await?;
        if results.is_empty() || self.may_exist(deployment).await? {
            return Ok(0);
        }
        self.store.delete_all(&results).await
    }

    /// Returns true unless the API server says that there is no such object.
    async fn may_exist(&self, deployment: &KluctlDeployment) -> Result<bool, Error> {
        // The answer about an object is the same if there is no such kind.
        if self.kind().await?.is_none() {
            return Ok(true);
        }
        let [group, version, kind] = KIND.map(str::to_owned);
        let object = ObjectRef {
            group,
            version,
            kind,
            namespace: Some(deployment.namespace.clone()),
            name: deployment.name.clone(),
        };
        match self.cluster.get(&object).await {
            Err(error) if error.is_forbidden() => Ok(true),
            found => Ok(found?.is_some()),
        }
    }

    /// Deletes the results of all objects that are gone, and returns their number. `cluster_id` reads the ID of the cluster, if there is
    /// any such result; `None` if it must not be read.
    ///
    /// # Errors
    /// If a request fails.
    pub async fn delete_all(
        &self,
        cluster_id: impl Future<Output = Result<Option<String>, cluster::Error>>,
    ) -> Result<usize, Error> {
        // Results first: an object that is created in between is listed.
        let mut results = self.store.of_deployments().await?;
        results.retain(|result| key(result).is_some_and(|(namespace, _)| self.is_own(&namespace)));
        if results.is_empty() {
            return Ok(0);
        }
        let own = cluster_id.await?;
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

    /// Returns the kind; `None` if the API server doesn't serve it.
    async fn kind(&self) -> Result<Option<ResourceKind>, Error> {
        let [group, version, kind] = KIND;
        match self.cluster.kind(group, version, kind).await {
            Err(cluster::Error::NoMatch { .. }) => Ok(None),
            other => Ok(Some(other?)),
        }
    }

    /// Lists namespaces and names of all objects; `None` if it is unknown which there are.
    async fn live(&self) -> Result<Option<HashSet<(String, String)>>, Error> {
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
            let text = |name: &str| meta::text(object, name).unwrap_or_default().to_owned();
            (text("namespace"), text("name"))
        });
        Ok(Some(keys.collect()))
    }
}

fn report(deleted: Result<usize, Error>) {
    match deleted {
        Ok(0) | Err(Error::Cancelled) => {}
        Ok(results) => tracing::info!(results, "deleted results of KluctlDeployments that are gone"),
        Err(error) => tracing::warn!(%error, "cannot delete results of KluctlDeployments that are gone"),
    }
}

/// Returns true if a result with the ID of a cluster is of an object of this one; `own` is its ID, if that is known. Results are stored
/// in the cluster of their controller, so that one without an ID is of a controller of this cluster that could not read it. Pure.
fn may_be_of(own: Option<&str>, id: &str) -> bool {
    id.is_empty() || own == Some(id)
}

fn key(result: &StoredResult) -> Option<(String, String)> {
    let deployment = result.deployment()?;
    Some((deployment.namespace, deployment.name))
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

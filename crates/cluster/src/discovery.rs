//! Discovery: reads the kinds that a cluster serves.

use std::{sync::Arc, time::Duration};

use kube::core::discovery::v2::APIGroupDiscoveryList;

use crate::{
    AnswerLimit, Cluster, Error,
    connection::send::{Answer, Call},
    legacy,
    snapshot::{Discovered, GroupVersion, ResourceKind, Scope, Snapshot},
};

/// Accepted content types: aggregated discovery, which is one document for all groups.
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
                          application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";

/// Maximum size of the names of all kinds of a server, in bytes: they are cached as long as the connection.
const NAMES: usize = 2 << 20;

impl Cluster {
    pub async fn snapshot(&self) -> Result<Arc<Snapshot>, Error> {
        match self.discovery().current() {
            Some(snapshot) => Ok(snapshot),
            None => self.refresh(None).await,
        }
    }

    pub async fn recent_snapshot(&self, age: Duration) -> Result<Arc<Snapshot>, Error> {
        let snapshot = self.snapshot().await?;
        if snapshot.is_older_than(age) {
            self.refresh(Some(&snapshot)).await
        } else {
            Ok(snapshot)
        }
    }

    /// Reads a new snapshot, unless another task did so since `seen`.
    pub async fn refresh(&self, seen: Option<&Arc<Snapshot>>) -> Result<Arc<Snapshot>, Error> {
        let _one_at_a_time = self.locked(&self.discovery().refreshing).await;
        if let Some(current) = self.discovery().current()
            && seen.is_none_or(|seen| !Arc::ptr_eq(seen, &current))
        {
            return Ok(current);
        }
        let snapshot = Arc::new(Snapshot::new(self.discover().await?));
        self.discovery().set(Arc::clone(&snapshot));
        Ok(snapshot)
    }

    /// Returns a kind in a version. For an unknown kind, discovery is read again.
    ///
    /// # Errors
    /// Fails when the cluster does not serve it ([`Error::NoMatch`]), or the API server can't be reached.
    pub async fn kind(&self, group: &str, version: &str, kind: &str) -> Result<ResourceKind, Error> {
        let mut snapshot = self.snapshot().await?;
        if snapshot.find(group, version, kind).is_none() && snapshot.is_older_than(Duration::from_millis(200))
        {
            snapshot = self.refresh(Some(&snapshot)).await?;
        }
        snapshot
            .find(group, version, kind)
            .cloned()
            .ok_or_else(|| Error::NoMatch {
                kind: kind.to_owned(),
                api_version: if group.is_empty() {
                    version.to_owned()
                } else {
                    format!("{group}/{version}")
                },
            })
    }

    /// Returns the scope of a kind; `None` if the cluster does not serve it.
    pub async fn scope(&self, group: &str, kind: &str) -> Result<Option<Scope>, Error> {
        let snapshot = self.snapshot().await?;
        if let Some(scope) = snapshot.scope(group, kind) {
            return Ok(Some(scope));
        }
        if !snapshot.is_older_than(Duration::from_secs(2)) {
            return Ok(None);
        }
        Ok(self.refresh(Some(&snapshot)).await?.scope(group, kind))
    }

    /// Returns the preferred versions of the kinds in a group, with a name, or both. If there is none, discovery is read again.
    pub async fn kinds(&self, group: Option<&str>, kind: Option<&str>) -> Result<Vec<ResourceKind>, Error> {
        let snapshot = self.snapshot().await?;
        let found = snapshot.matching(group, kind);
        if !found.is_empty() || !snapshot.is_older_than(Duration::from_millis(200)) {
            return Ok(found);
        }
        Ok(self.refresh(Some(&snapshot)).await?.matching(group, kind))
    }

    async fn discover(&self) -> Result<Discovered, Error> {
        let mut found = Discovered::default();
        for root in ["/api", "/apis"] {
            let call = Call {
                accept: AGGREGATED,
                ..Call::get(root.to_owned())
            };
            let answer = self.send("discovery", &call).await?.success(None)?;
            match serde_json::from_slice::<APIGroupDiscoveryList>(&answer.body) {
                Ok(list) if answer.is_kind("APIGroupDiscoveryList") => found.add_aggregated(list),
                _ => self.discover_legacy(root, &answer, &mut found).await?,
            }
            self.check_size(&found)?;
        }
        Ok(found)
    }

    fn check_size(&self, found: &Discovered) -> Result<(), Error> {
        match found.bytes() > NAMES {
            true => Err(self.too_large("discovery", AnswerLimit::Kinds(NAMES))),
            false => Ok(()),
        }
    }

    async fn discover_legacy(
        &self,
        root: &str,
        answer: &Answer,
        found: &mut Discovered,
    ) -> Result<(), Error> {
        for served in legacy::versions(root, &answer.value("discovery")?) {
            let answer = self.send("discovery", &Call::get(served.url.clone())).await?;
            // A group whose API server is down must not hide the others.
            self.check_size(found)?;
            match answer.success(None) {
                Ok(answer) => found
                    .kinds
                    .extend(legacy::kinds(&served, &answer.value("discovery")?)),
                Err(_) => found.stale.push(GroupVersion {
                    group: served.group,
                    version: served.version,
                }),
            }
        }
        Ok(())
    }
}

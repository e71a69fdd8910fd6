//! The identities of the cluster of the controller, and of those that are deployed to.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use cluster::{Cluster, Error};
use runtime::ObjectKey;
use tokio::sync::Mutex;

use crate::ClusterIdentity;

const DENIED_FOR: Duration = Duration::from_secs(600);

#[derive(Debug, Default)]
enum Known {
    #[default]
    Nothing,
    Id(String),
    /// The controller had no right to read it at this time.
    Denied(Instant),
}

impl Known {
    /// Returns the answer to a question about the identity; `None` if the API server has to be asked.
    fn answer(&self, now: Instant) -> Option<Option<String>> {
        match self {
            Self::Id(id) => Some(Some(id.clone())),
            Self::Denied(then) if now.saturating_duration_since(*then) < DENIED_FOR => Some(None),
            Self::Denied(_) | Self::Nothing => None,
        }
    }
}

#[derive(Debug, Clone)]
pub struct OwnClusterId {
    cluster: Cluster,
    known: Arc<Mutex<Known>>,
}

impl OwnClusterId {
    #[must_use]
    pub fn new(cluster: Cluster) -> Self {
        Self {
            cluster,
            known: Arc::default(),
        }
    }

    /// Returns the identity; `None` without the right to read it, as in a controller for one namespace. Then the API server is not asked
    /// again for ten minutes.
    ///
    /// # Errors
    /// Fails when the API server can't be reached.
    pub async fn read(&self) -> Result<Option<String>, Error> {
        let mut known = self.known.lock().await;
        if let Some(answer) = known.answer(Instant::now()) {
            return Ok(answer);
        }
        match self.cluster.id().await {
            Ok(id) => {
                *known = Known::Id(id.clone());
                Ok(Some(id))
            }
            Err(error) if error.is_forbidden() => {
                tracing::info!(%error, "no rights to read the identity of the cluster: results and statuses are without it");
                *known = Known::Denied(Instant::now());
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

#[derive(Debug)]
struct Denial {
    /// Generation of the object that deploys to it.
    generation: Option<i64>,
    /// The connection, which another version of the kubeconfig replaces.
    connection: Arc<ClusterIdentity>,
    at: Instant,
}

/// The denials to read the identities of remote clusters, by the objects that deploy to them: other objects may have other rights.
#[derive(Debug, Default)]
pub struct RemoteDenials(parking_lot::Mutex<HashMap<ObjectKey, Denial>>);

impl RemoteDenials {
    /// Returns the identity of the remote cluster of an object; `None` without the right to read it. Then the API server is not asked again
    /// for ten minutes, unless the object or its kubeconfig changes.
    ///
    /// # Errors
    /// Fails when the API server can't be reached.
    pub async fn read(
        &self,
        (key, generation): (&ObjectKey, Option<i64>),
        cluster: &Cluster,
        connection: &Arc<ClusterIdentity>,
    ) -> Result<Option<String>, Error> {
        if self.is_denied(key, generation, connection, Instant::now()) {
            return Ok(None);
        }
        match cluster.id().await {
            Err(error) if error.is_forbidden() => {
                tracing::info!(%error, "no rights to read the identity of the remote cluster: results and statuses are without it");
                let denial = Denial {
                    generation,
                    connection: Arc::clone(connection),
                    at: Instant::now(),
                };
                self.0.lock().insert(key.clone(), denial);
                Ok(None)
            }
            read => read.map(Some),
        }
    }

    pub fn forget(&self, key: &ObjectKey) {
        self.0.lock().remove(key);
    }

    fn is_denied(
        &self,
        key: &ObjectKey,
        generation: Option<i64>,
        connection: &Arc<ClusterIdentity>,
        now: Instant,
    ) -> bool {
        self.0.lock().get(key).is_some_and(|denial| {
            denial.generation == generation
                && Arc::ptr_eq(&denial.connection, connection)
                && now.saturating_duration_since(denial.at) < DENIED_FOR
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn denial_is_remembered_for_a_while_and_an_identity_for_good() {
        let start = Instant::now();
        let later = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(Known::Nothing.answer(start), None);
        let id = Known::Id("a".to_owned());
        assert_eq!(id.answer(later(100_000)), Some(Some("a".to_owned())));
        let denied = Known::Denied(start);
        assert_eq!(denied.answer(later(599)), Some(None));
        assert_eq!(denied.answer(later(600)), None);
    }
}

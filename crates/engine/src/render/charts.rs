//! The cluster, the time and the randomness that Helm charts of a project see.

use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use cluster::Cluster;
use kluctl::{CallbackError, Charts, ClusterView, Moment};
use objects::ObjectRef;
use yaml::Value;

use super::blocking::BlockingContext;
use crate::Error;

/// Maximum age of discovery data: charts ask for kinds that an operator may have installed moments ago.
const KINDS_AGE: Duration = Duration::from_secs(10);
const MAX_LISTED: usize = 5_000;

pub fn moment() -> Result<Moment, Error> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).map_err(|error| Error::Randomness(error.to_string()))?;
    let seconds = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    Ok(Moment::new(seconds, now.subsec_nanos(), seed))
}

/// Sets the moment and, if there is one, the cluster that charts see, unless they are set already.
pub(crate) fn equip(
    charts: &mut Charts,
    cluster: Option<&Cluster>,
    blocking: &BlockingContext,
) -> Result<(), Error> {
    if charts.moment.is_none() {
        charts.moment = Some(Arc::new(moment()?));
    }
    if let (None, Some(cluster)) = (&charts.cluster, cluster) {
        charts.cluster = Some(Arc::new(ClusterLookup {
            cluster: cluster.clone(),
            blocking: blocking.clone(),
        }));
    }
    Ok(())
}

struct ClusterLookup {
    cluster: Cluster,
    blocking: BlockingContext,
}

impl ClusterView for ClusterLookup {
    fn version(&self) -> Result<String, CallbackError> {
        let version = self.blocking.unnoted().block_on(self.cluster.version())?;
        version.map_err(CallbackError::from_display)
    }

    fn api_versions(&self) -> Result<Vec<String>, CallbackError> {
        let snapshot = self.cluster.recent_snapshot(KINDS_AGE);
        self.blocking
            .unnoted()
            .block_on(snapshot)?
            .map(|snapshot| snapshot.api_versions())
            .map_err(CallbackError::from_display)
    }

    fn lookup(
        &self,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Value>, CallbackError> {
        self.blocking
            .block_on(lookup(&self.cluster, api_version, kind, namespace, name))?
    }
}

async fn lookup(
    cluster: &Cluster,
    api_version: &str,
    kind: &str,
    namespace: &str,
    name: &str,
) -> Result<Option<Value>, CallbackError> {
    let (group, version) = objects::split_api_version(api_version);
    let found = cluster.kind(group, version, kind).await.map_err(|error| {
        CallbackError::new(format!("unable to get apiresource from unstructured: {error}"))
    })?;
    let namespace = Some(namespace).filter(|namespace| found.namespaced && !namespace.is_empty());
    if name.is_empty() {
        return match cluster.list(&found, namespace, MAX_LISTED).await {
            Ok(list) => Ok(Some(list)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(CallbackError::from_display(error)),
        };
    }
    if found.namespaced && namespace.is_none() {
        return Err(CallbackError::new(
            "an empty namespace may not be set when a resource name is provided",
        ));
    }
    let reference = ObjectRef {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: kind.to_owned(),
        namespace: namespace.map(str::to_owned),
        name: name.to_owned(),
    };
    cluster.get(&reference).await.map_err(CallbackError::from_display)
}

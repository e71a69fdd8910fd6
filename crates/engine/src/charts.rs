//! What Helm charts of a project see of the world: the cluster, the time, and randomness.

use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use cluster::Cluster;
use kluctl::{Charts, ClusterView, Moment};
use objects::ObjectRef;
use yaml::Value;

use crate::{Error, waiting::Waiting};

/// How old the list of kinds may be: charts ask for kinds that an operator brought a moment ago.
const KINDS_AGE: Duration = Duration::from_secs(10);
/// How many objects a chart may list at once.
const MAX_LISTED: usize = 5_000;

/// The time, and randomness of the operating system.
///
/// # Errors
/// When there is none.
pub fn moment() -> Result<Moment, Error> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).map_err(|error| Error::Randomness(error.to_string()))?;
    let seconds = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    Ok(Moment::new(seconds, now.subsec_nanos(), seed))
}

/// Gives charts a moment, and this cluster if there is one, unless they have them.
pub(crate) fn equip(charts: &mut Charts, cluster: Option<&Cluster>, waiting: &Waiting) -> Result<(), Error> {
    if charts.moment.is_none() {
        charts.moment = Some(Arc::new(moment()?));
    }
    if let (None, Some(cluster)) = (&charts.cluster, cluster) {
        charts.cluster = Some(Arc::new(View {
            cluster: cluster.clone(),
            waiting: waiting.clone(),
        }));
    }
    Ok(())
}

/// A cluster under the identity that deploys. It is asked from the thread of a render, which waits for the answers.
struct View {
    cluster: Cluster,
    waiting: Waiting,
}

impl ClusterView for View {
    fn version(&self) -> Result<String, String> {
        let version = self.waiting.on(self.cluster.version())?;
        version.map_err(|error| error.to_string())
    }

    fn api_versions(&self) -> Result<Vec<String>, String> {
        let snapshot = self.cluster.recent_snapshot(KINDS_AGE);
        self.waiting
            .on(snapshot)?
            .map(|snapshot| snapshot.api_versions())
            .map_err(|error| error.to_string())
    }

    fn lookup(
        &self,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Value>, String> {
        self.waiting
            .on(look_up(&self.cluster, api_version, kind, namespace, name))?
    }
}

async fn look_up(
    cluster: &Cluster,
    api_version: &str,
    kind: &str,
    namespace: &str,
    name: &str,
) -> Result<Option<Value>, String> {
    let (group, version) = objects::split_api_version(api_version);
    let found = cluster
        .kind(group, version, kind)
        .await
        .map_err(|error| format!("unable to get apiresource from unstructured: {error}"))?;
    let namespace = Some(namespace).filter(|namespace| found.namespaced && !namespace.is_empty());
    if name.is_empty() {
        return match cluster.list(&found, namespace, MAX_LISTED).await {
            Ok(list) => Ok(Some(list)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error.to_string()),
        };
    }
    if found.namespaced && namespace.is_none() {
        return Err("an empty namespace may not be set when a resource name is provided".to_owned());
    }
    let reference = ObjectRef {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: kind.to_owned(),
        namespace: namespace.map(str::to_owned),
        name: name.to_owned(),
    };
    cluster.get(&reference).await.map_err(|error| error.to_string())
}

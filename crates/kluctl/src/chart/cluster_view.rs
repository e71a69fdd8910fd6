//! The time, the cluster and the puller that Helm charts of a project use.

use std::{
    cell::OnceCell,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};

use helm::{
    functions::{Environment, Moment},
    template::FunctionError,
};
use tree::{Budget, Tree};
use yaml::Value;

use super::ChartSource;
use crate::CallbackError;

/// By the templates of one chart.
const MAX_LOOKUPS: u32 = 1_000;

/// The cluster for charts. It is asked only when a project has charts.
pub trait ClusterView: Send + Sync {
    /// Returns the version of Kubernetes, such as `v1.33.0`.
    fn version(&self) -> Result<String, CallbackError>;

    /// Returns the served `group/version` and `group/version/Kind`.
    fn api_versions(&self) -> Result<Vec<String>, CallbackError>;

    /// Returns an object, or without a name the list of all; `None` if missing. Without a namespace, all are searched.
    fn lookup(
        &self,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Value>, CallbackError>;
}

/// Pulls charts that are not in the project.
pub trait PullChart: Send + Sync {
    /// Returns the files of a chart, with `Chart.yaml` at the root. Error messages hold no secret.
    fn pull(&self, source: &ChartSource, budget: &Budget) -> Result<Arc<dyn Tree>, CallbackError>;

    /// Announces to the user that [`crate::Sources`] will fetch a chart. Does nothing by default.
    fn announce(&self, source: &ChartSource) {
        let _ = source;
    }
}

/// Inputs of Helm charts other than their files and values.
#[derive(Clone, Default)]
pub struct Charts {
    /// The time, and a seed of randomness. Without it, charts are refused.
    pub moment: Option<Arc<Moment>>,
    /// The version of Kubernetes that charts see instead of the cluster's; v1.36.0 without both, v1.20.0 with Helm 3.
    pub kube_version: Option<String>,
    /// Without a cluster, `lookup` finds nothing, and charts see Helm's default capabilities.
    pub cluster: Option<Arc<dyn ClusterView>>,
    /// Pulls charts that have `skipPrePull`. If absent, they are refused.
    pub pull: Option<Arc<dyn PullChart>>,
}

impl fmt::Debug for Charts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Charts")
            .field("kube_version", &self.kube_version)
            .finish_non_exhaustive()
    }
}

/// Capabilities of the cluster, shared by all charts of a render.
#[derive(Debug, Clone, Default)]
pub(super) struct Capabilities {
    pub(super) kube_version: Option<String>,
    /// `None` without a cluster.
    pub(super) api_versions: Option<Vec<String>>,
}

impl Charts {
    /// Returns the capabilities, and asks the cluster at the first call.
    pub(super) fn capabilities<'a>(
        &self,
        known: &'a OnceCell<Capabilities>,
    ) -> Result<&'a Capabilities, CallbackError> {
        if let Some(known) = known.get() {
            return Ok(known);
        }
        let asked = Capabilities {
            kube_version: match (&self.kube_version, &self.cluster) {
                (None, Some(cluster)) => Some(cluster.version()?),
                (version, _) => version.clone(),
            },
            api_versions: self
                .cluster
                .as_ref()
                .map(|cluster| cluster.api_versions())
                .transpose()?,
        };
        Ok(known.get_or_init(|| asked))
    }
}

pub(super) struct ChartEnvironment<'a> {
    moment: &'a Moment,
    cluster: Option<&'a dyn ClusterView>,
    lookups: AtomicU32,
}

impl<'a> ChartEnvironment<'a> {
    pub(super) fn new(moment: &'a Moment, charts: &'a Charts) -> Self {
        Self {
            moment,
            cluster: charts.cluster.as_deref(),
            lookups: AtomicU32::new(0),
        }
    }
}

impl Environment for ChartEnvironment<'_> {
    fn now(&self) -> (i64, u32) {
        self.moment.now()
    }

    fn fill(&self, bytes: &mut [u8]) {
        self.moment.fill(bytes);
    }

    fn lookup(
        &self,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
    ) -> Result<helm::Value, FunctionError> {
        let nothing = || helm::Value::dict::<&str>([]);
        let Some(cluster) = self.cluster else {
            return Ok(nothing());
        };
        if self.lookups.fetch_add(1, Ordering::Relaxed) >= MAX_LOOKUPS {
            return Err(format!("a chart may look up {MAX_LOOKUPS} things, not more").into());
        }
        let found = cluster
            .lookup(api_version, kind, namespace, name)
            .map_err(|error| error.to_string())?;
        Ok(found.map_or_else(nothing, |found| helm::Value::from_object(&found)))
    }
}

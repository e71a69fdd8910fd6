//! Requests for a render.

use std::sync::Arc;

use helm::functions::Environment as _;
use jiff::Timestamp;
use jinja::{Environment, History};
use tree::TreePath;
use yaml::Map;

use crate::{Charts, Decrypt, FixedImage, Inclusion, Sources, VarsSources};

/// A request for a render: target, arguments and callbacks.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// Relative to the root of the tree.
    pub project_dir: TreePath,
    /// Relative to the root of the tree; default `.kluctl.yaml` in the directory of the project.
    pub project_file: Option<TreePath>,
    pub target: Option<String>,
    /// The name that templates of the deployment see as `target.name`.
    pub target_name_override: Option<String>,
    /// The kube context to use instead of the target's.
    pub context_override: Option<String>,
    /// Overrides the target's discriminator.
    pub discriminator: Option<String>,
    pub contexts: Contexts,
    /// True if a target's context must exist. False if no cluster is used: then contexts are not checked.
    pub needs_context: bool,
    /// They win over the project's own.
    pub args: Map,
    /// Later ones win, and all win over the project's own.
    pub images: Vec<FixedImage>,
    pub inclusion: Inclusion,
    /// Fills [`crate::Rendered::files`].
    pub keep_files: bool,
    pub charts: Charts,
    /// If absent, encrypted files are refused.
    pub decrypt: Option<Arc<dyn Decrypt>>,
    /// Fetches included projects from Git repositories and registries. If absent, such includes are refused.
    pub sources: Option<Arc<dyn Sources>>,
    /// Reads variables that don't come from files. If absent, such sources are refused.
    pub vars: Option<Arc<dyn VarsSources>>,
    /// Git history of the project's files. If absent, templates that use it fail.
    pub history: Option<Arc<dyn History>>,
}

impl Request {
    /// Returns the time for templates: the same moment as for charts.
    pub(crate) fn environment(&self) -> Environment {
        let history = self.history.clone();
        let Some(moment) = &self.charts.moment else {
            return Environment {
                history,
                ..Environment::default()
            };
        };
        let (seconds, nanos) = moment.now();
        let mut seed = [0; 8];
        moment.fill(&mut seed);
        Environment {
            now: Timestamp::new(seconds, i32::try_from(nanos).unwrap_or_default()).ok(),
            seed: Some(u64::from_le_bytes(seed)),
            history,
        }
    }
}

/// The contexts of a kubeconfig. An empty list means that no cluster is used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Contexts {
    pub current: Option<String>,
    pub names: Vec<String>,
}

//! What a caller asks for.

use tree::TreePath;
use yaml::Map;

use crate::Charts;

/// What to render, and for whom.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// The directory of the project, relative to the root of the tree.
    pub project_dir: TreePath,
    /// The target; projects without targets need none.
    pub target: Option<String>,
    /// The name that templates of the deployment see as `target.name`.
    pub target_name_override: Option<String>,
    /// The kube context to use in place of the target's.
    pub context_override: Option<String>,
    /// The kube contexts that exist.
    pub contexts: Contexts,
    /// Arguments from outside; they win over the project's own.
    pub args: Map,
    /// What Helm charts are told of the world outside.
    pub charts: Charts,
}

/// The contexts of a kubeconfig. None at all means that there is no cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Contexts {
    /// The context that counts when nobody asks for one.
    pub current: Option<String>,
    /// All that can be asked for.
    pub names: Vec<String>,
}

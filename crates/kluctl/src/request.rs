//! What a caller asks for.

use std::sync::Arc;

use helm::functions::Environment as _;
use jiff::Timestamp;
use jinja::{History, Surroundings};
use tree::TreePath;
use yaml::Map;

use crate::{Charts, Decrypt, FixedImage, Inclusion, Sources, VarsSources};

/// What to render, and for whom.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// The directory of the project, relative to the root of the tree.
    pub project_dir: TreePath,
    /// The project file, relative to the root of the tree, when it isn't `.kluctl.yaml` in the directory of the project.
    pub project_file: Option<TreePath>,
    /// The target; projects without targets need none.
    pub target: Option<String>,
    /// The name that templates of the deployment see as `target.name`.
    pub target_name_override: Option<String>,
    /// The kube context to use in place of the target's.
    pub context_override: Option<String>,
    /// What marks the objects, in place of what the target says.
    pub discriminator: Option<String>,
    /// The kube contexts that exist.
    pub contexts: Contexts,
    /// Arguments from outside; they win over the project's own.
    pub args: Map,
    /// Images that are used in place of others; later ones win, and all win over the project's own.
    pub images: Vec<FixedImage>,
    /// Which items are rendered.
    pub inclusion: Inclusion,
    /// Whether [`crate::Rendered::files`] is filled.
    pub keep_files: bool,
    /// What Helm charts are told of the inputs outside.
    pub charts: Charts,
    /// Who decrypts files. Without it, encrypted files are refused.
    pub decrypt: Option<Arc<dyn Decrypt>>,
    /// Who fetches projects from Git repositories and registries. Without it, they are refused.
    pub sources: Option<Arc<dyn Sources>>,
    /// Who reads variables from elsewhere. Without it, they are refused.
    pub vars: Option<Arc<dyn VarsSources>>,
    /// Who knows the commits of the project's files. Without it, templates that ask for them fail.
    pub history: Option<Arc<dyn History>>,
}

impl Request {
    /// What templates are told of the inputs: the same moment as charts.
    pub(crate) fn surroundings(&self) -> Surroundings {
        let history = self.history.clone();
        let Some(moment) = &self.charts.moment else {
            return Surroundings {
                history,
                ..Surroundings::default()
            };
        };
        let (seconds, nanos) = moment.now();
        let mut seed = [0; 8];
        moment.fill(&mut seed);
        Surroundings {
            now: Timestamp::new(seconds, i32::try_from(nanos).unwrap_or_default()).ok(),
            seed: Some(u64::from_le_bytes(seed)),
            history,
        }
    }
}

/// The contexts of a kubeconfig. None at all means that there is no cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Contexts {
    /// The context that counts when nobody asks for one.
    pub current: Option<String>,
    /// All that can be asked for.
    pub names: Vec<String>,
}

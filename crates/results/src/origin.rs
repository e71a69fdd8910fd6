//! The origin of a result: initiator, project, target, cluster.

use yaml::{Map, Value};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Initiator {
    CommandLine,
    #[default]
    KluctlDeployment,
}

impl Initiator {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::CommandLine => "CommandLine",
            Self::KluctlDeployment => "KluctlDeployment",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProjectKey {
    /// Its repository, as in `git://host/path`; empty if it is in none.
    pub repo_key: String,
    pub sub_dir: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GitInfo {
    pub url: String,
    /// The branch, unless it is a tag.
    pub branch: String,
    pub tag: String,
    pub sub_dir: String,
    pub commit: String,
    pub dirty: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KluctlDeployment {
    pub name: String,
    pub namespace: String,
    pub cluster_id: String,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Origin {
    pub id: String,
    pub reconcile_id: String,
    pub initiator: Initiator,
    pub project: ProjectKey,
    pub git: Option<GitInfo>,
    pub deployment: Option<KluctlDeployment>,
    /// One-time overrides of the request, as a patch.
    pub overrides_patch: Option<Value>,
    /// The UID of the namespace `kube-system`.
    pub cluster_id: String,
    /// The target in the form that templates see; at least with its name.
    pub target: Map,
    /// Target name that templates saw instead of the target's own.
    pub target_name_override: String,
    /// Context that replaces the target's.
    pub context_override: String,
    pub args: Map,
    pub images: Vec<Value>,
    pub tree: Option<Value>,
    pub objects_hash: String,
    pub requested_images: Vec<Value>,
}

impl Origin {
    pub(crate) fn target_name(&self) -> &str {
        self.target.get_str("name").unwrap_or_default()
    }
}

//! The origin of a result: initiator, project, target, cluster.

use kluctl::Target;
use yaml::{Map, Value};

/// The initiator of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Initiator {
    /// A user of the command line.
    CommandLine,
    /// A controller.
    #[default]
    KluctlDeployment,
}

impl Initiator {
    /// Returns the word in results.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::CommandLine => "CommandLine",
            Self::KluctlDeployment => "KluctlDeployment",
        }
    }
}

/// The identity of a project.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProjectKey {
    /// Its repository, as in `git://host/path`; empty if it is in none.
    pub repo_key: String,
    /// Its directory in the repository.
    pub sub_dir: String,
}

/// State of the project's Git checkout.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GitInfo {
    /// The URL, without credentials.
    pub url: String,
    /// The branch, unless it is a tag.
    pub branch: String,
    /// The tag; empty if there is none.
    pub tag: String,
    /// The directory in the repository.
    pub sub_dir: String,
    /// The hash of the commit.
    pub commit: String,
    /// True if files differ from the commit.
    pub dirty: bool,
}

/// The resource that a controller works for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KluctlDeployment {
    /// Name of the resource.
    pub name: String,
    /// Namespace of the resource.
    pub namespace: String,
    /// Identity of the cluster that it is in.
    pub cluster_id: String,
}

/// The origin of a result.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Origin {
    /// The identity of the result.
    pub id: String,
    /// The identity of the pass of a controller.
    pub reconcile_id: String,
    /// The initiator of the operation.
    pub initiator: Initiator,
    /// The identity of the project.
    pub project: ProjectKey,
    /// State of its Git checkout.
    pub git: Option<GitInfo>,
    /// The resource that a controller works for.
    pub deployment: Option<KluctlDeployment>,
    /// One-time overrides of the request, as a patch.
    pub overrides_patch: Option<Value>,
    /// The UID of the namespace `kube-system`.
    pub cluster_id: String,
    /// The target of the operation.
    pub target: Target,
    /// Target name that templates saw instead of the target's own.
    pub target_name_override: String,
    /// The context that was asked for in place of the target's.
    pub context_override: String,
    /// The arguments from outside.
    pub args: Map,
    /// The images from outside.
    pub images: Vec<Value>,
    /// The project as it was rendered.
    pub tree: Option<Value>,
    /// A checksum of what was rendered.
    pub objects_hash: String,
    /// The images that templates asked for.
    pub requested_images: Vec<Value>,
}

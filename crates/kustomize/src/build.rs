//! The build of a directory, from its kustomization to the printed objects.

use std::sync::Arc;

use tree::{Budget, Tree, TreePath};
use yaml::Value;

use crate::{Error, Options, Warning};

/// An object, and where it comes from.
#[derive(Debug, Clone, PartialEq)]
pub struct Built {
    /// The object.
    pub object: Value,
    /// The file that it was read from, or whose kustomization has it made.
    pub file: Arc<TreePath>,
    /// The line where it begins.
    pub line: u32,
}

/// What a build gives.
#[derive(Debug, Clone, Default)]
pub struct Build {
    /// The objects, in order.
    pub objects: Vec<Built>,
    /// What else is to be said.
    pub warnings: Vec<Warning>,
}

impl Build {
    /// The objects as kustomize prints them.
    #[must_use]
    pub fn to_yaml(&self) -> String {
        yaml::print::all(
            self.objects.iter().map(|built| &built.object),
            yaml::print::goyaml,
        )
    }
}

/// Builds a directory.
///
/// # Errors
/// When the kustomization or what it names is wrong, or the budget ends.
pub fn build(
    _tree: &dyn Tree,
    _dir: &TreePath,
    _options: &Options<'_>,
    _budget: &Budget,
) -> Result<Build, Error> {
    Err(Error::new(crate::Step::Load, "stub"))
}

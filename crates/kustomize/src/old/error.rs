//! Why a build failed, told with file and line.

use tree::{Exceeded, PathError, TreeError, TreePath};

/// Why a directory could not be built.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The directory is no kustomization.
    #[error("{0}: has no kustomization.yaml, kustomization.yml or Kustomization")]
    NoKustomization(TreePath),
    /// Only one name may be used.
    #[error("{0}: has more than one of kustomization.yaml, kustomization.yml and Kustomization: keep one")]
    ManyKustomizations(TreePath),
    /// The file holds nothing.
    #[error("{0}: is empty")]
    Empty(TreePath),
    /// A known field that isn't obeyed.
    #[error("{file}:{line}: the field {field} of a kustomization is not supported yet: remove it")]
    Unsupported {
        /// The kustomization.
        file: TreePath,
        /// The line of the field.
        line: u32,
        /// Its name.
        field: String,
    },
    /// No such field exists.
    #[error("{file}:{line}: unknown field {field:?} in a kustomization")]
    UnknownField {
        /// The kustomization.
        file: TreePath,
        /// The line of the field.
        line: u32,
        /// Its name.
        field: String,
    },
    /// A field or object that is not what it must be.
    #[error("{file}:{line}: {problem}")]
    Invalid {
        /// The file.
        file: TreePath,
        /// The line.
        line: u32,
        /// What is wrong.
        problem: String,
    },
    /// Nothing is fetched during a build.
    #[error(
        "{file}:{line}: the remote resource {resource:?} is not supported yet: copy it into the repository"
    )]
    Remote {
        /// The kustomization.
        file: TreePath,
        /// The line of the field.
        line: u32,
        /// The address, as written.
        resource: String,
    },
    /// A path that can't be followed.
    #[error("{file}:{line}: {source}")]
    Path {
        /// The kustomization.
        file: TreePath,
        /// The line of the field.
        line: u32,
        /// What is wrong with it.
        source: PathError,
    },
    /// A listed resource doesn't exist.
    #[error("{file}:{line}: the resource {resource:?} is neither a file nor a directory")]
    Missing {
        /// The kustomization.
        file: TreePath,
        /// The line of the field.
        line: u32,
        /// The path, as written.
        resource: String,
    },
    /// A directory that leads back to itself.
    #[error("{file}:{line}: cycle detected: {dir} contains a directory that is being built")]
    Cycle {
        /// The kustomization.
        file: TreePath,
        /// The line of the field.
        line: u32,
        /// The directory.
        dir: TreePath,
    },
    /// A file that is no YAML.
    #[error("{file}: {source}")]
    Yaml {
        /// The file.
        file: TreePath,
        /// Where and why.
        source: yaml::Error,
    },
    /// Two objects of one identity.
    #[error("{file}:{line}: may not add resource with an already registered id: {id}")]
    Duplicate {
        /// The file of the second.
        file: TreePath,
        /// Its line.
        line: u32,
        /// The identity.
        id: String,
    },
    /// Two objects that the namespace makes equal.
    #[error("{file}: namespace transformation produces ID conflict: {id}")]
    NamespaceConflict {
        /// The kustomization.
        file: TreePath,
        /// The identity.
        id: String,
    },
    /// A reference that fits several objects.
    #[error("{file}:{line}: found multiple possible referrals for {name:?}: give its namespace")]
    Ambiguous {
        /// The file of the referrer.
        file: TreePath,
        /// Its line.
        line: u32,
        /// The name that it refers to.
        name: String,
    },
    /// A limit was reached.
    #[error("building {dir}: {source}")]
    Budget {
        /// The directory.
        dir: TreePath,
        /// The limit.
        source: Exceeded,
    },
    /// A file could not be read.
    #[error(transparent)]
    Tree(#[from] TreeError),
}

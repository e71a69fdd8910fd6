//! The options of a build, and its callbacks.

use std::{fmt, sync::Arc};

use bytes::Bytes;
use tree::{Budget, Tree, TreePath};

/// The files that a kustomization may name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LoadRestriction {
    /// Files in and below its own directory.
    #[default]
    RootOnly,
    None,
}

/// The order of a build's objects, unless its kustomization has `sortOptions`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SortOrder {
    #[default]
    Accumulated,
    /// Sorted by kind, as the command line does.
    Legacy,
}

/// The effect of `openapi.path` on the built-in schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OpenApi {
    /// As on the command line.
    #[default]
    Replace,
    /// As in Flux.
    Add,
}

/// A version of kustomize whose behaviour is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Profile {
    #[default]
    V5_8_1,
    V5_8_3,
}

impl Profile {
    /// Returns the version in the form of the label `app.kubernetes.io/managed-by`, such as `v5.8.1`.
    #[must_use]
    pub fn version(self) -> &'static str {
        match self {
            Self::V5_8_1 => "v5.8.1",
            Self::V5_8_3 => "v5.8.3",
        }
    }
}

/// The failure of a [`Fetch`] or [`InflateChart`]: the reason, which becomes part of the error of the build.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct CallbackError {
    reason: String,
}

impl CallbackError {
    /// The reason must not contain secrets.
    pub fn new(reason: impl fmt::Display) -> Self {
        Self {
            reason: reason.to_string(),
        }
    }
}

impl From<String> for CallbackError {
    fn from(reason: String) -> Self {
        Self { reason }
    }
}

/// A directory of a fetched repository, and the files of the whole repository.
#[derive(Clone)]
pub struct Fetched {
    pub tree: Arc<dyn Tree>,
    pub dir: TreePath,
}

/// Fetches remote repositories and files. Without it, remote entries are refused by name. Errors become part of the build's
/// error and must not contain secrets.
pub trait Fetch: Send + Sync {
    fn repository(
        &self,
        repository: &crate::remote::Repository,
        budget: &Budget,
    ) -> Result<Fetched, CallbackError>;

    /// Fetches a file by its http or https URL.
    fn file(&self, url: &str, budget: &Budget) -> Result<Bytes, CallbackError>;
}

/// A Helm chart to be inflated: an entry of `helmCharts` with the `helmGlobals`, paths relative to the kustomization.
#[derive(Debug, Clone)]
pub struct Chart {
    /// The fields of the entry as kustomize documents them, with `chartHome` and `configHome` of the globals.
    pub config: yaml::Value,
}

/// Inflates Helm charts. Without it, `helmCharts` are refused by name.
pub trait InflateChart: Send + Sync {
    /// Renders a chart to manifests in YAML; `dir` of `tree` is the directory of the kustomization. The error becomes part
    /// of the build's error and must not contain secrets.
    fn inflate(
        &self,
        chart: &Chart,
        tree: &dyn Tree,
        dir: &TreePath,
        budget: &Budget,
    ) -> Result<String, CallbackError>;
}

/// The options of a build. Defaults as for the command `kustomize build`.
#[derive(Clone, Copy, Default)]
pub struct Options<'a> {
    /// Default: in and below its own directory.
    pub load_restriction: LoadRestriction,
    pub order: SortOrder,
    /// Default: `openapi.path` replaces the built-in schema.
    pub openapi: OpenApi,
    /// Default: 5.8.1.
    pub profile: Profile,
    /// Labels every object with `app.kubernetes.io/managed-by`.
    pub managed_by_label: bool,
    /// Fetches remote entries; if unset, they are refused.
    pub fetch: Option<&'a dyn Fetch>,
    /// Inflates Helm charts; if unset, they are refused.
    pub helm: Option<&'a dyn InflateChart>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    pub file: TreePath,
    /// The message, in the words of kustomize.
    pub text: String,
}

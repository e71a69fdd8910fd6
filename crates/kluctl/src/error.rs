//! Errors of rendering a project, with file and line.

use tree::{Exceeded, TreeError, TreePath};

use crate::decrypt::NO_DECRYPTION;

/// Maximum number of errors that are reported together.
pub(crate) const MAX_ERRORS: usize = 10;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{file}: {source}")]
    Yaml { file: TreePath, source: yaml::Error },
    /// A value of the wrong type or form.
    #[error("{file}:{line}: {problem}")]
    Invalid {
        file: TreePath,
        /// Of the rendered file, if it is a template.
        line: u32,
        problem: String,
    },
    /// A known field that isn't supported.
    #[error("{file}:{line}: {field} is not supported yet: remove it")]
    Unsupported {
        file: TreePath,
        line: u32,
        /// The path of the field, or the feature.
        field: String,
    },
    #[error("{file}:{line}: unknown field {field:?}")]
    UnknownField {
        file: TreePath,
        line: u32,
        field: String,
    },
    #[error("failed rendering {what}: {source}")]
    Template {
        /// The rendered file or expression.
        what: String,
        source: jinja::Error,
    },
    #[error("target {name} not existent in kluctl project config{because}")]
    UnknownTarget { name: String, because: String },
    #[error("a target must be explicitly selected when targets are defined in the Kluctl project")]
    NoTargetSelected,
    #[error("required argument {0} not set")]
    MissingArgument(String),
    #[error("context {0:?} does not exist")]
    UnknownContext(String),
    #[error("{file}:{line}: deployment directory does not exist: {dir}{because}")]
    MissingDirectory {
        file: TreePath,
        line: u32,
        dir: String,
        because: &'static str,
    },
    #[error("{file}:{line}: {dir} does not exist or is not a directory{because}")]
    MissingInclude {
        file: TreePath,
        line: u32,
        dir: String,
        because: &'static str,
    },
    /// A project whose `deployment.yaml` can't be used.
    #[error("failed to load deployment.yml of {dir}: {source}")]
    Load { dir: TreePath, source: Box<Error> },
    #[error("{0}")]
    NoDeployment(String),
    #[error("failed to load vars from {path}: {source}")]
    VarsFile {
        /// As written.
        path: String,
        source: jinja::Error,
    },
    #[error("building kustomize objects for {dir} failed: {source}")]
    Kustomize { dir: TreePath, source: kustomize::Error },
    #[error("rendering helm chart {name} for release {release} has failed: {source}")]
    Chart {
        name: String,
        release: String,
        source: Box<Error>,
    },
    #[error(transparent)]
    Helm(#[from] helm::Error),
    /// A chart with neither a pre-pulled version nor `skipPrePull`.
    #[error(
        "Helm Chart {0} has not been pre-pulled, which is not allowed when skipPrePull is not enabled. Run 'weir helm-pull' \
         to pre-pull all Helm Charts"
    )]
    NotPulled(String),
    /// A chart that was pre-pulled in another version.
    #[error(
        "pre-pulled Helm Chart {name} need to be pulled (call 'weir helm-pull'). Desired version is {wanted} while \
         pre-pulled version is {found}"
    )]
    OtherChartVersion {
        name: String,
        /// The version in `helm-chart.yaml`.
        wanted: String,
        /// The pulled version.
        found: String,
    },
    /// A chart with `skipPrePull` in a render without a chart puller.
    #[error(
        "Helm Chart {0} has skipPrePull, and charts are not pulled here: remove skipPrePull, pull the chart with 'weir \
         helm-pull', and add it to the repository"
    )]
    NoChartPuller(String),
    #[error("pulling Helm Chart {name}: {problem}")]
    Pull { name: String, problem: CallbackError },
    #[error("asking the cluster for its version and its kinds: {0}")]
    Capabilities(CallbackError),
    /// A chart in a render without a clock and randomness.
    #[error("Helm charts need the time and randomness, and this render has none")]
    NoMoment,
    /// A kustomization that omits the objects of the chart next to it.
    #[error("{file} does not include the rendered helm chart: {output}")]
    ChartNotListed {
        file: TreePath,
        /// The path that it must list.
        output: String,
    },
    /// An invalid address of a Helm chart.
    #[error("{address:?} is not a valid URL of a Helm chart: {problem}")]
    ChartAddress {
        /// Redacted.
        address: String,
        problem: &'static str,
    },
    #[error("failed to decrypt {file}: {problem}")]
    Decrypt { file: TreePath, problem: CallbackError },
    /// An encrypted file in a render without decryption.
    #[error("{0}: {NO_DECRYPTION}")]
    NoDecryption(TreePath),
    #[error("failed to fetch {address}: {problem}")]
    Fetch {
        /// Redacted.
        address: String,
        problem: CallbackError,
    },
    /// An error in another source.
    #[error("{from}: {source}")]
    Included { from: String, source: Box<Error> },
    /// An image that templates request and no list names.
    #[error("failed to find fixed image for {0}")]
    NoImage(String),
    /// An image of `images.get_image()` after other text, or a second one in a string.
    #[error(
        "postprocessing kustomize objects for {dir} failed: {object}: {field}: a string may hold one image of images.get_image(), \
         at its beginning"
    )]
    MisplacedImage {
        dir: String,
        object: String,
        field: String,
    },
    #[error("{0}")]
    Object(String),
    /// A cluster that a target names and no project describes.
    #[error("{0}")]
    Cluster(String),
    #[error("{operation}: {source}")]
    Budget {
        /// The interrupted step.
        operation: String,
        source: Exceeded,
    },
    #[error(transparent)]
    Tree(#[from] TreeError),
    #[error("can't start a thread for rendering: {0}")]
    Thread(#[from] std::io::Error),
    #[error("{} errors: {}", .0.len(), .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Many(Vec<Error>),
}

impl Error {
    /// Returns the limit or cancellation that ended the render; `None` if the project is invalid.
    #[must_use]
    pub fn exceeded(&self) -> Option<&Exceeded> {
        match self {
            Self::Budget { source, .. } => Some(source),
            Self::Yaml { source, .. } => source.exceeded(),
            Self::Template {
                source: jinja::Error::Budget { source, .. },
                ..
            }
            | Self::VarsFile {
                source: jinja::Error::Budget { source, .. },
                ..
            } => Some(source),
            Self::Kustomize { source, .. } => source.exceeded(),
            Self::Load { source, .. } | Self::Chart { source, .. } | Self::Included { source, .. } => {
                source.exceeded()
            }
            Self::Helm(helm::Error::Exceeded(source) | helm::Error::ExceededIn { limit: source, .. }) => {
                Some(source)
            }
            Self::Many(errors) => errors.iter().find_map(Self::exceeded),
            _ => None,
        }
    }
}

impl Error {
    /// Replaces an error about a sensitive string by one that doesn't quote it. `tell` gets the line, if known, and a
    /// description.
    pub(crate) fn veiled(self, tell: impl FnOnce(Option<u32>, String) -> Self) -> Self {
        if self.exceeded().is_some() {
            return self;
        }
        let (line, what) = match &self {
            Self::Yaml { source, .. } => (source.position.map(|at| at.line), "is not valid YAML"),
            Self::Template { source, .. } => {
                let line = match source {
                    jinja::Error::Template(failure) => u32::try_from(failure.line).ok(),
                    _ => None,
                };
                (line, "holds templates that can't be rendered")
            }
            _ => return self,
        };
        tell(line, format!("{what} (its content is sensitive and not shown)"))
    }
}

/// Returns no error, the only one, or all of them as one list.
pub(crate) fn many(errors: Vec<Error>) -> Result<(), Error> {
    let mut flat = Vec::with_capacity(errors.len());
    for error in errors {
        match error {
            Error::Many(several) => flat.extend(several),
            one => flat.push(one),
        }
    }
    let mut errors = flat;
    match errors.len() {
        0 => Ok(()),
        1 => Err(errors.remove(0)),
        _ => Err(Error::Many(errors)),
    }
}

/// A failure of a callback of the embedding program: fetching, decrypting, pulling charts, asking the cluster. Its message
/// is printed to users unchanged, so it must name the object and hold no secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CallbackError(String);

impl CallbackError {
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }

    #[must_use]
    pub fn from_display(error: impl std::fmt::Display) -> Self {
        Self(error.to_string())
    }
}

/// An argument of the command line, such as `--arg` or `--fixed-image`, that is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ArgumentError(String);

impl ArgumentError {
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

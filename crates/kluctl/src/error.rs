//! Errors of rendering a project, with file and line.

use tree::{Exceeded, TreeError, TreePath};

use crate::decrypt::NO_DECRYPTION;

/// Errors of rendering a project.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file that is not valid YAML.
    #[error("{file}: {source}")]
    Yaml {
        /// The file.
        file: TreePath,
        /// The position and the reason.
        source: yaml::Error,
    },
    /// A value that is not what it must be.
    #[error("{file}:{line}: {problem}")]
    Invalid {
        /// The file.
        file: TreePath,
        /// The line, of the rendered text when the file is a template.
        line: u32,
        /// Description of the problem.
        problem: String,
    },
    /// A known field that isn't obeyed.
    #[error("{file}:{line}: {field} is not supported yet: remove it")]
    Unsupported {
        /// The file.
        file: TreePath,
        /// The line, of the rendered text when the file is a template.
        line: u32,
        /// The path of the field, or what else is used.
        field: String,
    },
    /// A field that is unknown.
    #[error("{file}:{line}: unknown field {field:?}")]
    UnknownField {
        /// The file.
        file: TreePath,
        /// The line, of the rendered text when the file is a template.
        line: u32,
        /// The path of the field.
        field: String,
    },
    /// A template that failed.
    #[error("failed rendering {what}: {source}")]
    Template {
        /// The rendered file or expression.
        what: String,
        /// The position and the reason.
        source: jinja::Error,
    },
    /// A target that is unknown, or that failed to load.
    #[error("target {name} not existent in kluctl project config{because}")]
    UnknownTarget {
        /// The name.
        name: String,
        /// The reason why the target failed to load.
        because: String,
    },
    /// Projects with targets need one.
    #[error("a target must be explicitly selected when targets are defined in the Kluctl project")]
    NoTargetSelected,
    /// An argument without a value.
    #[error("required argument {0} not set")]
    MissingArgument(String),
    /// A kube context that isn't there.
    #[error("context {0:?} does not exist")]
    UnknownContext(String),
    /// The directory of an item isn't there.
    #[error("{file}:{line}: deployment directory does not exist: {dir}{because}")]
    MissingDirectory {
        /// The file that names it.
        file: TreePath,
        /// The line.
        line: u32,
        /// The directory, as written.
        dir: String,
        /// Further explanation.
        because: &'static str,
    },
    /// An included directory isn't there.
    #[error("{file}:{line}: {dir} does not exist or is not a directory{because}")]
    MissingInclude {
        /// The file that names it.
        file: TreePath,
        /// The line.
        line: u32,
        /// The directory, as written.
        dir: String,
        /// Further explanation.
        because: &'static str,
    },
    /// A project whose `deployment.yaml` can't be used.
    #[error("failed to load deployment.yml of {dir}: {source}")]
    Load {
        /// The directory of the project.
        dir: TreePath,
        /// The reason.
        source: Box<Error>,
    },
    /// An included directory without a deployment project.
    #[error("{0}")]
    NoDeployment(String),
    /// Variables that could not be loaded.
    #[error("failed to load vars from {path}: {source}")]
    VarsFile {
        /// The file, as written.
        path: String,
        /// The reason.
        source: jinja::Error,
    },
    /// An item that could not be built.
    #[error("building kustomize objects for {dir} failed: {source}")]
    Kustomize {
        /// The item.
        dir: TreePath,
        /// The position and the reason.
        source: kustomize::Error,
    },
    /// A Helm chart that could not be rendered.
    #[error("rendering helm chart {name} for release {release} has failed: {source}")]
    Chart {
        /// The chart.
        name: String,
        /// The release.
        release: String,
        /// The reason.
        source: Box<Error>,
    },
    /// An error of rendering a chart.
    #[error(transparent)]
    Helm(#[from] helm::Error),
    /// A chart that is not among those that were pulled before.
    #[error(
        "Helm Chart {0} has not been pre-pulled, which is not allowed when skipPrePull is not enabled. Run 'weir helm-pull' \
         to pre-pull all Helm Charts"
    )]
    NotPulled(String),
    /// A chart that was pulled before in another version.
    #[error(
        "pre-pulled Helm Chart {name} need to be pulled (call 'weir helm-pull'). Desired version is {wanted} while \
         pre-pulled version is {found}"
    )]
    OtherChartVersion {
        /// The chart.
        name: String,
        /// The version in `helm-chart.yaml`.
        wanted: String,
        /// The version that was pulled.
        found: String,
    },
    /// A chart with `skipPrePull` in a render without a chart puller.
    #[error(
        "Helm Chart {0} has skipPrePull, and charts are not pulled here: remove skipPrePull, pull the chart with 'weir \
         helm-pull', and add it to the repository"
    )]
    NoChartPuller(String),
    /// A chart that could not be pulled.
    #[error("pulling Helm Chart {name}: {problem}")]
    Pull {
        /// The chart.
        name: String,
        /// The reason.
        problem: CallbackError,
    },
    /// The cluster could not be asked what charts may use.
    #[error("asking the cluster for its version and its kinds: {0}")]
    Capabilities(CallbackError),
    /// A chart in a render without a clock and randomness.
    #[error("Helm charts need the time and randomness, and this render has none")]
    NoMoment,
    /// A kustomization that leaves out the objects of the chart beside it.
    #[error("{file} does not include the rendered helm chart: {output}")]
    ChartNotListed {
        /// The kustomization.
        file: TreePath,
        /// The path that it must list.
        output: String,
    },
    /// An address of a Helm chart that can't be one.
    #[error("{address:?} is not a valid URL of a Helm chart: {problem}")]
    ChartAddress {
        /// The address, without what may be secret.
        address: String,
        /// Description of the problem.
        problem: &'static str,
    },
    /// An encrypted file that could not be decrypted.
    #[error("failed to decrypt {file}: {problem}")]
    Decrypt {
        /// The file.
        file: TreePath,
        /// The reason.
        problem: CallbackError,
    },
    /// An encrypted file in a render without decryption.
    #[error("{0}: {NO_DECRYPTION}")]
    NoDecryption(TreePath),
    /// A source that could not be fetched.
    #[error("failed to fetch {address}: {problem}")]
    Fetch {
        /// Its address, without what may be secret.
        address: String,
        /// The reason.
        problem: CallbackError,
    },
    /// An error in another source.
    #[error("{from}: {source}")]
    Included {
        /// The source.
        from: String,
        /// The error.
        source: Box<Error>,
    },
    /// An image that templates ask for and no list names.
    #[error("failed to find fixed image for {0}")]
    NoImage(String),
    /// An image of `images.get_image()` behind other text, or a second one in a string.
    #[error(
        "postprocessing kustomize objects for {dir} failed: {object}: {field}: a string may hold one image of images.get_image(), \
         at its beginning"
    )]
    MisplacedImage {
        /// The directory of the item.
        dir: String,
        /// The object.
        object: String,
        /// The path of the field.
        field: String,
    },
    /// A manifest that is not a Kubernetes object.
    #[error("{0}")]
    Object(String),
    /// A cluster that a target names and no project describes.
    #[error("{0}")]
    Cluster(String),
    /// A limit was reached.
    #[error("{place}: {source}")]
    Budget {
        /// The step that was interrupted.
        place: String,
        /// The limit.
        source: Exceeded,
    },
    /// A file could not be read.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// The operating system refused a thread.
    #[error("can't start a thread for rendering: {0}")]
    Thread(#[from] std::io::Error),
    /// Several things went wrong.
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
    /// Replaces an error about a sensitive string by one that doesn't quote it. `tell` gets the line, if known, and a description.
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

/// A failure of a callback that the embedding program provides: fetching, decrypting, pulling charts, asking the cluster.
///
/// Its message is shown to users as it is, so it must name the object and hold no secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CallbackError(String);

impl CallbackError {
    /// Creates an error with a message for users.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }

    /// Creates an error with the message of another error.
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
    /// Creates an error with a message for users.
    #[must_use]
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

//! The error of a build.

use std::fmt;

use tree::{Exceeded, PathError, TreeError, TreePath};

use crate::remote::redacted;

/// The step of a build that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Reading a kustomization.
    Kustomization,
    /// Following an entry of resources, components or a list of files.
    Load,
    /// Reading an object.
    Resource,
    /// Joining the objects of several places.
    Accumulate,
    /// Generating an object.
    Generator,
    /// A patch.
    Patch,
    /// A transformer that isn't a patch.
    Transformer,
    /// Following the new names of objects.
    Reference,
    /// A replacement.
    Replacement,
    /// A var.
    Var,
    /// The configuration of a generator, transformer or validator.
    Plugin,
    /// Custom schemas and definitions.
    Schema,
    /// Inflating a Helm chart.
    Helm,
    /// Sorting and printing.
    Output,
}

/// The error of a directory that could not be built. The messages contain kustomize's own messages for the same problem.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A step failed.
    #[error("{problem}")]
    Failed {
        /// The step.
        step: Step,
        /// The problem and its object.
        problem: String,
    },
    /// An error with its context.
    #[error("{context}: {source}")]
    In {
        /// The work that failed.
        context: String,
        /// The error.
        source: Box<Error>,
    },
    /// An error with its position.
    #[error("{file}:{line}: {source}")]
    At {
        /// The file.
        file: TreePath,
        /// The line.
        line: u32,
        /// The error at this position.
        source: Box<Error>,
    },
    /// A file is not valid YAML.
    #[error(
        "MalformedYAMLError: yaml: {} in File: {file}",
        source.go_words(yaml::GoYaml::V3)
    )]
    Yaml {
        /// The file.
        file: TreePath,
        /// The error of the YAML reader.
        source: yaml::Error,
    },
    /// An entry is remote, and [`crate::Options::fetch`] is unset.
    #[error("the remote resource {resource:?} is not fetched here: copy it into the repository")]
    Remote {
        /// The address, without secrets.
        resource: String,
    },
    /// A path that can't be followed.
    #[error(transparent)]
    Path(#[from] PathError),
    /// A file could not be read.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// A limit was reached, or the work was cancelled.
    #[error("building {dir}: {source}")]
    Budget {
        /// The directory.
        dir: TreePath,
        /// The limit.
        source: Exceeded,
    },
}

impl Error {
    /// Makes the error of a step.
    pub(crate) fn new(step: Step, problem: impl fmt::Display) -> Self {
        Self::Failed {
            step,
            problem: redacted(&problem.to_string()),
        }
    }

    /// Makes the error of a malformed YAML file, with its position in front: the original's message doesn't always have the
    /// true line.
    pub(crate) fn malformed(file: &TreePath, source: yaml::Error) -> Self {
        let line = source.position.map_or(1, |at| at.line);
        let file = file.clone();
        Self::At {
            file: file.clone(),
            line,
            source: Box::new(Self::Yaml { file, source }),
        }
    }

    /// Adds a context to the error.
    #[must_use]
    pub(crate) fn context(self, context: impl fmt::Display) -> Self {
        // A limit stays what it is: callers look for it.
        if self.exceeded().is_some() {
            return self;
        }
        Self::In {
            context: redacted(&context.to_string()),
            source: Box::new(self),
        }
    }

    /// Adds a position to the error, unless it has one.
    #[must_use]
    pub(crate) fn at(self, file: &TreePath, line: u32) -> Self {
        if self.exceeded().is_some() || self.place().is_some() {
            return self;
        }
        Self::At {
            file: file.clone(),
            line,
            source: Box::new(self),
        }
    }

    /// Returns the file and line of the problem, if they are known.
    #[must_use]
    pub fn place(&self) -> Option<(&TreePath, u32)> {
        match self {
            Self::At { file, line, .. } => Some((file, *line)),
            Self::Yaml { file, source } => Some((file, source.position.map_or(1, |at| at.line))),
            Self::In { source, .. } => source.place(),
            _ => None,
        }
    }

    /// Returns the limit that was reached, if that is the reason.
    #[must_use]
    pub fn exceeded(&self) -> Option<&Exceeded> {
        match self {
            Self::Budget { source, .. } => Some(source),
            Self::Yaml { source, .. } => source.exceeded(),
            Self::In { source, .. } | Self::At { source, .. } => source.exceeded(),
            _ => None,
        }
    }

    /// Returns true if a file was not valid YAML.
    pub(crate) fn is_malformed_yaml(&self) -> bool {
        match self {
            Self::Yaml { .. } => true,
            Self::In { source, .. } | Self::At { source, .. } => source.is_malformed_yaml(),
            _ => false,
        }
    }
}

/// Adds contexts to errors.
pub(crate) trait Context<T> {
    /// Adds a context to the error.
    fn context<D: fmt::Display>(self, context: impl FnOnce() -> D) -> Result<T, Error>;
}

impl<T> Context<T> for Result<T, Error> {
    fn context<D: fmt::Display>(self, context: impl FnOnce() -> D) -> Result<T, Error> {
        self.map_err(|error| error.context(context()))
    }
}

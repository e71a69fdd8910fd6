//! The error of a build.

use std::fmt;

use tree::{Exceeded, PathError, TreeError, TreePath};

use crate::remote::redact_message;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    Kustomization,
    /// An entry of resources, components or a list of files.
    Load,
    Resource,
    /// Joining the objects of several files and directories.
    Accumulate,
    Generator,
    Patch,
    /// A transformer other than a patch.
    Transformer,
    /// Updating references to renamed objects.
    Reference,
    Replacement,
    Var,
    /// The configuration of a generator, transformer or validator.
    Plugin,
    /// Custom schemas and definitions.
    Schema,
    Helm,
    /// Sorting and printing.
    Output,
}

/// The error of a directory that could not be built. The messages contain kustomize's own messages for the same problem.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{problem}")]
    Failed {
        step: Step,
        /// Names the object.
        problem: String,
    },
    /// An error with its context.
    #[error("{context}: {source}")]
    In { context: String, source: Box<Error> },
    #[error("{file}:{line}: {source}")]
    At {
        file: TreePath,
        line: u32,
        source: Box<Error>,
    },
    /// A file that is not valid YAML.
    #[error(
        "MalformedYAMLError: yaml: {} in File: {file}",
        source.go_words(yaml::GoYaml::V3)
    )]
    Yaml { file: TreePath, source: yaml::Error },
    #[error("the remote resource {resource:?} is not fetched here: copy it into the repository")]
    Remote {
        /// Redacted.
        resource: String,
    },
    #[error(transparent)]
    Path(#[from] PathError),
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// A limit was reached, or the build was cancelled.
    #[error("building {dir}: {source}")]
    Budget { dir: TreePath, source: Exceeded },
}

impl Error {
    pub(crate) fn new(step: Step, problem: impl fmt::Display) -> Self {
        Self::Failed {
            step,
            problem: redact_message(&problem.to_string()),
        }
    }

    /// Makes the error of a malformed YAML file, with its position in front: the original's message doesn't always have the
    /// right line.
    pub(crate) fn malformed(file: &TreePath, source: yaml::Error) -> Self {
        let line = source.position.map_or(1, |at| at.line);
        let file = file.clone();
        Self::At {
            file: file.clone(),
            line,
            source: Box::new(Self::Yaml { file, source }),
        }
    }

    #[must_use]
    pub(crate) fn context(self, context: impl fmt::Display) -> Self {
        // Callers search for limits.
        if self.exceeded().is_some() {
            return self;
        }
        Self::In {
            context: redact_message(&context.to_string()),
            source: Box::new(self),
        }
    }

    /// Adds a position, unless the error has one.
    #[must_use]
    pub(crate) fn at(self, file: &TreePath, line: u32) -> Self {
        if self.exceeded().is_some() || self.position().is_some() {
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
    pub fn position(&self) -> Option<(&TreePath, u32)> {
        match self {
            Self::At { file, line, .. } => Some((file, *line)),
            Self::Yaml { file, source } => Some((file, source.position.map_or(1, |at| at.line))),
            Self::In { source, .. } => source.position(),
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

pub(crate) trait Context<T> {
    fn context<D: fmt::Display>(self, context: impl FnOnce() -> D) -> Result<T, Error>;
}

impl<T> Context<T> for Result<T, Error> {
    fn context<D: fmt::Display>(self, context: impl FnOnce() -> D) -> Result<T, Error> {
        self.map_err(|error| error.context(context()))
    }
}

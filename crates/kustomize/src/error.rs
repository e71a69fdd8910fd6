//! Why a build failed.

use std::fmt;

use tree::{Exceeded, PathError, TreeError, TreePath};

use crate::remote::redacted;

/// What was being done when a build failed.
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

/// Why a directory could not be built. The texts hold the words that kustomize says in the same case.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A step failed.
    #[error("{problem}")]
    Failed {
        /// The step.
        step: Step,
        /// What is wrong, and with what.
        problem: String,
    },
    /// Something was being done when another error came.
    #[error("{context}: {source}")]
    In {
        /// What was being done.
        context: String,
        /// The error.
        source: Box<Error>,
    },
    /// Where something is wrong.
    #[error("{file}:{line}: {source}")]
    At {
        /// The file.
        file: TreePath,
        /// The line.
        line: u32,
        /// What is wrong.
        source: Box<Error>,
    },
    /// A file is no YAML.
    #[error(
        "MalformedYAMLError: yaml: {} in File: {file}",
        source.go_words(yaml::GoYaml::V3)
    )]
    Yaml {
        /// The file.
        file: TreePath,
        /// Where and why.
        source: yaml::Error,
    },
    /// An entry names something on another machine, and nothing may be fetched.
    #[error("the remote resource {resource:?} is not fetched here: copy it into the repository")]
    Remote {
        /// The address, without what may be secret in it.
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
    /// The failure of a step.
    pub(crate) fn new(step: Step, problem: impl fmt::Display) -> Self {
        Self::Failed {
            step,
            problem: redacted(&problem.to_string()),
        }
    }

    /// What a file is that is no YAML, with the place in front: the original's words don't always have the true line.
    pub(crate) fn malformed(file: &TreePath, source: yaml::Error) -> Self {
        let line = source.position.map_or(1, |at| at.line);
        let file = file.clone();
        Self::At {
            file: file.clone(),
            line,
            source: Box::new(Self::Yaml { file, source }),
        }
    }

    /// This error, with what was being done in front.
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

    /// This error, with the place of its cause in front; a place that it already has stays the only one.
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

    /// File and line of what is wrong, where they are known.
    #[must_use]
    pub fn place(&self) -> Option<(&TreePath, u32)> {
        match self {
            Self::At { file, line, .. } => Some((file, *line)),
            Self::Yaml { file, source } => Some((file, source.position.map_or(1, |at| at.line))),
            Self::In { source, .. } => source.place(),
            _ => None,
        }
    }

    /// The limit that was reached, when that is the reason.
    #[must_use]
    pub fn exceeded(&self) -> Option<&Exceeded> {
        match self {
            Self::Budget { source, .. } => Some(source),
            Self::Yaml { source, .. } => source.exceeded(),
            Self::In { source, .. } | Self::At { source, .. } => source.exceeded(),
            _ => None,
        }
    }

    /// Whether the text of a file was no YAML.
    pub(crate) fn is_malformed_yaml(&self) -> bool {
        match self {
            Self::Yaml { .. } => true,
            Self::In { source, .. } | Self::At { source, .. } => source.is_malformed_yaml(),
            _ => false,
        }
    }
}

/// Adds what was being done to errors.
pub(crate) trait Context<T> {
    /// With what was being done in front.
    fn context<D: fmt::Display>(self, context: impl FnOnce() -> D) -> Result<T, Error>;
}

impl<T> Context<T> for Result<T, Error> {
    fn context<D: fmt::Display>(self, context: impl FnOnce() -> D) -> Result<T, Error> {
        self.map_err(|error| error.context(context()))
    }
}

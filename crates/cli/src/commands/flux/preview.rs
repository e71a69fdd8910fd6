//! Commands that preview manifests on the local disk: they build and compare, and change nothing.

pub(crate) mod build;
mod builder;
mod compare;
mod configs;
pub(crate) mod diff;
mod flags;
mod manifest_builder;
mod mask;
pub(crate) mod offline;
mod report;
mod repository;
mod subject;
mod trial;

use std::process::ExitCode;

/// A failure with an exit code of its own.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Failure {
    pub(crate) code: u8,
    pub(crate) message: String,
}

impl Failure {
    /// Returns the failure of a comparison that found differences.
    fn differs() -> Self {
        Self {
            code: 1,
            message: "identified at least one change, exiting with non-zero exit code".to_owned(),
        }
    }

    /// Returns the exit code of an error.
    pub(crate) fn exit_code(error: &anyhow::Error) -> ExitCode {
        error
            .downcast_ref::<Self>()
            .map_or(ExitCode::FAILURE, |failure| ExitCode::from(failure.code))
    }
}

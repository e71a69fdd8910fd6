//! The words of conditions and events.

use api::{Artifact, Reason, condition_type as types};

use super::resolve::Resolve;

/// Reasons and messages of a kind. Pure.
pub(crate) trait Words: Resolve {
    /// Reason of Ready=True in the words of 2021 ([`Style::Legacy`](api::revision::Style::Legacy)).
    const LEGACY_READY: Reason;

    /// Returns reason and message of Ready=True.
    fn ready(_: &Self::Resolved, revision: &str) -> (Reason, String) {
        (
            Reason::Succeeded,
            format!("stored artifact for revision '{revision}'"),
        )
    }

    /// Returns reason and message of ArtifactOutdated.
    fn outdated(_: &Self::Object, _: &Self::Resolved, revision: &str) -> (Reason, String) {
        (Reason::NewRevision, format!("new upstream revision '{revision}'"))
    }

    /// Returns the reason of the event for a new artifact, or for the end of a failure, for kinds that have their own.
    fn event_reason(_: &Self::Resolved) -> Option<Reason> {
        None
    }

    /// Returns the message of the event for a new artifact, or for the end of a failure. `description` is from
    /// [`Details`](super::Details), if something was fetched.
    fn event_message(resolved: &Self::Resolved, artifact: &Artifact, description: Option<&str>) -> String;

    /// Returns the condition types for a failure, beside Ready.
    fn failure_conditions(reason: Reason) -> &'static [&'static str] {
        failure_conditions(reason)
    }
}

/// Returns the condition types for a failure with a common reason, beside Ready.
pub(crate) const fn failure_conditions(reason: Reason) -> &'static [&'static str] {
    match reason {
        Reason::URLInvalid
        | Reason::AuthenticationFailed
        | Reason::GitOperationFailed
        | Reason::EmptyGitRepository
        | Reason::OCIArtifactPullFailed
        | Reason::OCIArtifactLayerOperationFailed
        | Reason::ReadOperationFailed
        | Reason::InvalidProviderConfiguration
        | Reason::BucketOperationFailed
        | Reason::InvalidSTSConfiguration
        | Reason::FeatureGateDisabled
        | Reason::Timeout => &[types::FETCH_FAILED],
        Reason::VerificationError => &[types::SOURCE_VERIFIED],
        Reason::StorageOperationFailed
        | Reason::DirectoryCreationFailed
        | Reason::ArchiveOperationFailed
        | Reason::GarbageCollectionFailed => &[types::STORAGE_OPERATION_FAILED],
        _ => &[],
    }
}

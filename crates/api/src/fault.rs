//! Faults: failed reconciliations, as conditions, events and metrics report them.

use std::{fmt, time::Duration};

/// The class of a fault: it decides about the next attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Only a change of the object helps: it is not retried, Stalled=True.
    Stall,
    /// Something else must happen first: retry after a fixed delay.
    Wait(Duration),
    /// The next attempt may succeed: retry with exponential backoff.
    Retry,
    /// An error of this program (a caught panic): retry with exponential backoff, and count it.
    Bug,
}

macro_rules! reasons {
    (@text $name:ident) => { stringify!($name) };
    (@text $name:ident $text:literal) => { $text };
    ($($(#[$doc:meta])* $name:ident $(= $text:literal)?),+ $(,)?) => {
        /// The reason of a condition or an event, and the label of a metric. The names are those of the original
        /// controllers, if these have one.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Reason { $($(#[$doc])* $name),+ }

        impl Reason {
            /// Returns the name that clients see.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => reasons!(@text $name $($text)?)),+ }
            }

            /// Returns the reason with the name that clients see; `None` if there is no such reason.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                $(if name == Self::$name.as_str() { return Some(Self::$name); })+
                None
            }
        }
    };
}

reasons! {
    /// The reconciliation succeeded.
    Succeeded,
    /// The reconciliation is running.
    Progressing,
    /// The reconciliation is retried after a failure.
    ProgressingWithRetry,
    /// The object was suspended before a reconciliation ended.
    Suspended,
    /// The object does not decode, or one of its values is invalid.
    InvalidSpec,
    /// A field is set that is not supported.
    UnsupportedField,
    /// A panic was caught.
    InternalError,
    /// The reconciliation exceeded its timeout.
    Timeout,
    /// A reference to another namespace is blocked, or the identity lacks the right.
    AccessDenied,
    /// A new artifact was stored.
    NewArtifact,
    /// A new upstream revision was seen.
    NewRevision,
    /// The URL of a source is invalid.
    URLInvalid,
    /// Credentials are missing, malformed or refused.
    AuthenticationFailed,
    /// A request to the Git server failed.
    GitOperationFailed,
    /// The Git repository is empty: it has no commit.
    EmptyGitRepository,
    /// An OCI artifact could not be found or downloaded.
    OCIArtifactPullFailed,
    /// The layer of an OCI artifact is missing or could not be unpacked.
    OCIArtifactLayerOperationFailed,
    /// Something could not be read, such as the tags of an OCI repository.
    ReadOperationFailed,
    /// Signatures are missing or not by a trusted key.
    VerificationError,
    /// The provider of credentials is not set up.
    InvalidProviderConfiguration,
    /// An object that is included is missing.
    NotFound,
    /// An object that is included has no artifact.
    NoArtifact,
    /// An included artifact could not be copied.
    CopyFailure,
    /// The tag is to be verified, but the reference is no tag.
    InvalidVerificationMode,
    /// The tag is to be verified, but it is not signed.
    InvalidGitObject,
    /// The signature of the tag could not be verified.
    InvalidTagSignature,
    /// The signature of the commit could not be verified.
    InvalidCommitSignature,
    /// A request to the storage service of a bucket failed.
    BucketOperationFailed,
    /// The token service of a bucket doesn't fit its provider.
    InvalidSTSConfiguration,
    /// A field needs a feature gate that is off.
    FeatureGateDisabled,
    /// A directory of the storage could not be created.
    DirectoryCreationFailed,
    /// The artifact could not be packed or stored.
    ArchiveOperationFailed,
    /// A stored artifact does not have its digest.
    ArtifactVerificationFailed,
    /// The ignore rules of a source are invalid.
    SourceIgnoreError,
    /// Superseded artifacts were removed.
    GarbageCollectionSucceeded,
    /// Superseded artifacts could not be removed.
    GarbageCollectionFailed,
    /// The storage of artifacts could not be written.
    StorageOperationFailed,
    /// The source is missing, not ready, or its artifact is unusable.
    ArtifactFailed,
    /// A dependency is missing, not ready, or not up to date.
    DependencyNotReady,
    /// Loading or rendering the project failed.
    PrepareFailed,
    /// The project rendered no objects: nothing is deployed or pruned.
    EmptyRender,
    /// An object of the same name in the legacy group has not given way yet.
    WaitingForLegacyMigration,
    /// Deploying or pruning failed.
    DeployFailed,
    /// Deleting orphans failed (prune).
    PruneFailed,
    /// The objects are deployed, but not ready.
    ValidateFailed,
    /// The objects are deployed and ready.
    ReconciliationSucceeded,
    /// The regular expressions of an alert are invalid.
    InvalidConfig,
    /// The token of a Receiver could not be read.
    TokenNotFound,
    /// A CEL expression is invalid.
    InvalidCELExpression,
    /// The fields of a Receiver contradict each other.
    ValidationFailed,
    /// The labels that an alert selects objects by could not be read.
    SourceFetchFailed,
    /// A notification could not be rendered or delivered.
    NotificationDispatchFailed,
    /// Several places set the same key of the metadata of an event.
    MetadataAppendFailed,
    /// A Git repository was fetched, in releases of 2021.
    GitOperationSucceed,
    /// A bucket was fetched, in releases of 2021.
    BucketOperationSucceed,
    /// The index of a Helm repository can't be read.
    IndexationFailed,
    /// The reason of Ready=True of a HelmRepository in 2021.
    IndexationSucceed,
    /// A chart was stored as it is.
    ChartPullSucceeded,
    /// A chart was packaged and stored.
    ChartPackageSucceeded,
    /// A newer chart was found than is stored.
    NewChart,
    /// The source of a chart is missing.
    SourceUnavailable,
    /// Charts are not made of sources of this kind.
    UnsupportedSourceKind,
    /// The source of a chart has no artifact.
    NoSourceArtifact,
    /// There is no such chart, or no version of it that fits.
    InvalidChartReference,
    /// A chart could not be downloaded.
    ChartPullError,
    /// The version of a chart could not be changed.
    MetadataPatchError,
    /// The values of a chart could not be merged.
    ValuesFilesError,
    /// A chart that another one depends on could not be added.
    DependencyBuildError,
    /// A chart could not be packaged.
    ChartPackageError,
    /// The signatures of a chart are missing or not by a trusted key.
    ChartVerificationError,
    /// Informational events of releases of 2021.
    Info = "info",
    /// Error events of releases of 2021.
    Error = "error",
    /// An operation failed that has no reason of its own.
    Failed,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A failed reconciliation: the class, the reason, and a message that tells the user what to do. The message is made of
/// types that cannot show a secret ([`crate::SafeUrl`], [`crate::Secret`]).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Decides about the next attempt.
    pub class: Class,
    /// Reason for conditions and events.
    pub reason: Reason,
    /// Message for users: the object, the cause, and the remedy.
    pub message: String,
}

impl Fault {
    /// Creates a fault that only a change of the object heals.
    pub fn stall(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            class: Class::Stall,
            reason,
            message: message.into(),
        }
    }

    /// Creates a fault that is retried after `delay`.
    pub fn wait(delay: Duration, reason: Reason, message: impl Into<String>) -> Self {
        Self {
            class: Class::Wait(delay),
            reason,
            message: message.into(),
        }
    }

    /// Creates a fault that is retried with exponential backoff.
    pub fn retry(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            class: Class::Retry,
            reason,
            message: message.into(),
        }
    }

    /// Creates the fault of a field that is not supported. `path` is its path in the object, `value` its (shortened) value.
    pub fn unsupported(path: &str, value: &str) -> Self {
        Self::stall(
            Reason::UnsupportedField,
            format!("{path}: {value} is not supported yet: remove the field"),
        )
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Fault {}

impl From<Reason> for String {
    fn from(reason: Reason) -> Self {
        reason.as_str().to_owned()
    }
}

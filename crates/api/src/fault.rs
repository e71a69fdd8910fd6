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
        /// Reason of a condition or an event, and label of a metric. Reasons of the original controllers have the same names.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Reason { $($(#[$doc])* $name),+ }

        impl Reason {
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => reasons!(@text $name $($text)?)),+ }
            }

            /// Returns the reason with the name that clients see; `None` if it is unknown.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                $(if name == Self::$name.as_str() { return Some(Self::$name); })+
                None
            }
        }
    };
}

reasons! {
    Succeeded,
    Progressing,
    /// The reconciliation is retried after a failure.
    ProgressingWithRetry,
    /// The object was suspended before a reconciliation ended.
    Suspended,
    /// The object does not decode, or one of its values is invalid.
    InvalidSpec,
    /// A field is set that is not supported.
    UnsupportedField,
    InternalError,
    /// The process ended repeatedly in passes of the object.
    ControllerCrashed,
    /// The reconciliation exceeded its timeout.
    Timeout,
    /// A reference to another namespace is blocked, or the identity lacks the right.
    AccessDenied,
    /// A new artifact was stored.
    NewArtifact,
    NewRevision,
    URLInvalid,
    /// Credentials are missing, malformed or refused.
    AuthenticationFailed,
    GitOperationFailed,
    /// The Git repository is empty: it has no commit.
    EmptyGitRepository,
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
    NoArtifact,
    /// An included artifact could not be copied.
    CopyFailure,
    InvalidVerificationMode,
    /// The tag is to be verified, but it is not signed.
    InvalidGitObject,
    InvalidTagSignature,
    InvalidCommitSignature,
    /// A request to the storage service of a bucket failed.
    BucketOperationFailed,
    /// The token service of a bucket doesn't fit its provider.
    InvalidSTSConfiguration,
    /// A field needs a feature gate that is off.
    FeatureGateDisabled,
    DirectoryCreationFailed,
    ArchiveOperationFailed,
    ArtifactVerificationFailed,
    FilesLeftOut,
    SourceIgnoreError,
    GarbageCollectionSucceeded,
    GarbageCollectionFailed,
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
    DeployFailed,
    PruneFailed,
    ValidateFailed,
    /// The objects are deployed and ready.
    ReconciliationSucceeded,
    /// Objects could not be applied.
    ReconciliationFailed,
    /// Applied objects did not become ready.
    HealthCheckFailed,
    /// Health checks ended early, because there is something newer to apply.
    HealthCheckCanceled,
    BuildFailed,
    /// The regular expressions of an alert are invalid.
    InvalidConfig,
    /// The token of a Receiver could not be read.
    TokenNotFound,
    /// A CEL expression is invalid.
    InvalidCELExpression,
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
    IndexationFailed,
    /// The reason of Ready=True of a HelmRepository in 2021.
    IndexationSucceed,
    /// A chart was stored unchanged.
    ChartPullSucceeded,
    /// A chart was packaged and stored.
    ChartPackageSucceeded,
    /// A newer chart was found than the stored one.
    NewChart,
    /// The source of a chart is missing.
    SourceUnavailable,
    /// Charts are not made of sources of this kind.
    UnsupportedSourceKind,
    /// The source of a chart has no artifact.
    NoSourceArtifact,
    InvalidChartReference,
    ChartPullError,
    MetadataPatchError,
    ValuesFilesError,
    DependencyBuildError,
    ChartPackageError,
    /// The signatures of a chart are missing or not by a trusted key.
    ChartVerificationError,
    /// Informational events of releases of 2021.
    Info = "info",
    /// Error events of releases of 2021.
    Error = "error",
    /// A failed operation without a reason of its own.
    Failed,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A failed reconciliation: the class, the reason, and a message that tells the user what to do. The message is made of types that
/// cannot show a secret ([`crate::SafeUrl`], [`crate::Secret`]).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    pub class: Class,
    pub reason: Reason,
    pub message: String,
}

impl Fault {
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

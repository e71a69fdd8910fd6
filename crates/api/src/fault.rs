//! What went wrong, in the words of conditions, events and metrics.

use std::{fmt, time::Duration};

/// What the scheduler does after a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Only a change of the object helps: no retry, Stalled=True.
    Stall,
    /// Something else must happen first: look again after a fixed time.
    Wait(Duration),
    /// It may work next time: retry with exponential backoff.
    Retry,
    /// Our own mistake (a caught panic): retry with backoff, count it.
    Bug,
}

macro_rules! reasons {
    (@text $name:ident) => { stringify!($name) };
    (@text $name:ident $text:literal) => { $text };
    ($($(#[$doc:meta])* $name:ident $(= $text:literal)?),+ $(,)?) => {
        /// The reason of a condition, of an event, and the label of a metric. The names are upstream's wherever
        /// upstream has one.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Reason { $($(#[$doc])* $name),+ }

        impl Reason {
            /// The name that clients see.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => reasons!(@text $name $($text)?)),+ }
            }
        }
    };
}

reasons! {
    /// All is well.
    Succeeded,
    /// Work is going on.
    Progressing,
    /// Work goes on after a failure.
    ProgressingWithRetry,
    /// The object does not decode, or a value in it is invalid.
    InvalidSpec,
    /// A field is set that this version does not obey.
    UnsupportedField,
    /// A caught panic.
    InternalError,
    /// The pass took longer than its timeout.
    Timeout,
    /// A reference to another namespace, or an identity without the right to do it.
    AccessDenied,
    /// A new artifact was stored.
    NewArtifact,
    /// A new upstream revision was seen.
    NewRevision,
    /// The URL of a source is unusable.
    URLInvalid,
    /// Credentials are missing, malformed or refused.
    AuthenticationFailed,
    /// Talking to the Git server failed.
    GitOperationFailed,
    /// The Git repository has no commit.
    EmptyGitRepository,
    /// A directory of the storage could not be made.
    DirectoryCreationFailed,
    /// The artifact could not be packed or stored.
    ArchiveOperationFailed,
    /// A stored artifact is not what its digest says.
    ArtifactVerificationFailed,
    /// The ignore rules of a source are broken.
    SourceIgnoreError,
    /// Superseded artifacts were removed.
    GarbageCollectionSucceeded,
    /// Superseded artifacts could not be removed.
    GarbageCollectionFailed,
    /// The storage could not be written.
    StorageOperationFailed,
    /// The source is missing, not ready, or its artifact can't be used.
    ArtifactFailed,
    /// A dependency is not ready.
    DependencyNotReady,
    /// Loading or rendering failed.
    PrepareFailed,
    /// A render without objects: nothing is deployed or pruned.
    EmptyRender,
    /// Deploying (or pruning) failed.
    DeployFailed,
    /// Pruning failed.
    PruneFailed,
    /// Deployed, but not healthy.
    ValidateFailed,
    /// Deployed and healthy.
    ReconciliationSucceeded,
    /// The regular expressions of an alert are broken.
    InvalidConfig,
    /// The labels of an object that an alert selects by could not be read.
    SourceFetchFailed,
    /// A notification could not be made or delivered.
    NotificationDispatchFailed,
    /// The same key of an event's metadata comes from several places.
    MetadataAppendFailed,
    /// A Git repository was fetched, as sources of 2021 said it.
    GitOperationSucceed,
    /// Good news, as events of 2021 said it.
    Info = "info",
    /// Bad news, as events of 2021 said it.
    Error = "error",
    /// Something failed that has no better name.
    Failed,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A failed pass: how to go on, why in one word, and why in a sentence that tells the user what to do. The message is
/// made of types that cannot carry a secret ([`crate`]'s `SafeUrl`, `Secret`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// How to go on.
    pub class: Class,
    /// Why, in one word.
    pub reason: Reason,
    /// Why, in a sentence.
    pub message: String,
}

impl Fault {
    /// Only a change of the object helps.
    pub fn stall(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            class: Class::Stall,
            reason,
            message: message.into(),
        }
    }

    /// Look again after `delay`.
    pub fn wait(delay: Duration, reason: Reason, message: impl Into<String>) -> Self {
        Self {
            class: Class::Wait(delay),
            reason,
            message: message.into(),
        }
    }

    /// Retry with exponential backoff.
    pub fn retry(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            class: Class::Retry,
            reason,
            message: message.into(),
        }
    }

    /// A field that is set but not obeyed; `path` is its path in the object, `value` its value in short.
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

//! The object of a source: its type, its spec and its references.

use std::{fmt::Debug, time::Duration};

use api::{Fault, GoDuration};
use kube::core::{NamespaceResourceScope, object::HasStatus};
use serde::{Serialize, de::DeserializeOwned};

use super::{
    secrets::{Named, SecretRole},
    status::{CommonStatus, SourceStatus},
};

/// The object of a kind of source. Pure.
pub(crate) trait SourceObject: Send + Sync + Sized + 'static {
    type Object: kube::Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + HasStatus<Status = Self::Status>
        + Clone
        + Debug
        + DeserializeOwned
        + Serialize
        + Send
        + Sync
        + 'static;
    type Status: CommonStatus
        + Serialize
        + DeserializeOwned
        + Clone
        + Debug
        + Default
        + PartialEq
        + Send
        + Sync
        + 'static;

    /// Name of the kind in paths of the storage: the kind in lower case.
    const DIRECTORY: &'static str;

    /// Returns true if there is nothing to fetch for an object: others use its spec alone. It gets neither status nor finalizer.
    fn is_static(_: &Self::Object) -> bool {
        false
    }

    /// Returns the fields of the spec that all kinds have.
    fn spec(object: &Self::Object) -> SourceSpec<'_>;

    /// Refuses invalid and unsupported fields, with a stalling fault that names field and value.
    fn validate(object: &Self::Object) -> Result<(), Fault>;

    /// Returns the Secrets that the spec names, in the order in which they are read.
    fn secrets(object: &Self::Object) -> Named<'_>;

    /// Returns the fault of a Secret or service account that can't be read, in the words of the kind.
    fn secret_failure(_: &Self::Object, _: SecretRole, fault: Fault) -> Fault {
        fault
    }

    /// Returns the fields of the object's status that all kinds have; defaults if it has none.
    fn past(object: &Self::Object) -> SourceStatus {
        object.status().map(CommonStatus::common).unwrap_or_default()
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct SourceSpec<'a> {
    /// Interval of looking for changes.
    pub(crate) interval: Duration,
    /// Timeout of resolving, and of fetching.
    pub(crate) timeout: Duration,
    pub(crate) suspend: bool,
    /// Lines as in `.gitignore`; replace the default excludes.
    pub(crate) ignore: Option<&'a str>,
}

const TIMEOUT: Duration = Duration::from_secs(60);

/// Returns the timeout for the server of a source from its spec: default 60 seconds, at least 1 ms.
pub(crate) fn timeout(given: Option<GoDuration>) -> Duration {
    let given = given.map(GoDuration::as_duration);
    given.unwrap_or(TIMEOUT).max(Duration::from_millis(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeout_defaults_to_a_minute_and_is_never_unlimited() {
        assert_eq!(timeout(None), Duration::from_secs(60));
        let negative = Some(GoDuration::from_secs(-1));
        assert_eq!(timeout(negative), Duration::from_millis(1));
        assert_eq!(timeout(Some(GoDuration::from_secs(5))), Duration::from_secs(5));
    }
}

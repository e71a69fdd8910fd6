//! The newest states in which sources were read.

use std::collections::HashMap;

use parking_lot::Mutex;
use runtime::ObjectKey;

use crate::SourceId;

/// A source that was read in an older state than before.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "the API server returned resourceVersion {found} after {newest}: nothing is deployed until it returns a current state; if its data was \
     restored from a backup, restart this controller"
)]
pub(crate) struct Outdated {
    found: u64,
    newest: u64,
}

/// The newest resourceVersion of the source of each object. An API server that lags behind another would let an old revision be
/// deployed over a newer one, whose objects would be pruned.
#[derive(Debug, Default)]
pub(crate) struct SeenSources(Mutex<HashMap<ObjectKey, (SourceId, u64)>>);

impl SeenSources {
    /// Remembers the version in which the source of an object was read; one that is not a number isn't compared.
    ///
    /// # Errors
    /// If it is older than one before.
    pub(crate) fn check(
        &self,
        object: &ObjectKey,
        source: &SourceId,
        version: Option<&str>,
    ) -> Result<(), Outdated> {
        let Some(found) = version.and_then(|version| version.parse().ok()) else {
            return Ok(());
        };
        let mut seen = self.0.lock();
        match seen.get(object) {
            Some((known, newest)) if known == source && found < *newest => Err(Outdated {
                found,
                newest: *newest,
            }),
            _ => {
                seen.insert(object.clone(), (source.clone(), found));
                Ok(())
            }
        }
    }

    pub(crate) fn forget(&self, object: &ObjectKey) {
        self.0.lock().remove(object);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SourceKind;

    #[test]
    fn older_state_of_the_same_source_is_refused() {
        let (seen, object) = (SeenSources::default(), ObjectKey::new("apps", "shop"));
        let source = |name| SourceId {
            kind: SourceKind::GitRepository,
            key: ObjectKey::new("apps", name),
        };
        let check = |name, version| seen.check(&object, &source(name), version);
        assert_eq!(check("a", Some("7")), Ok(()));
        assert_eq!(check("a", Some("7")), Ok(()));
        assert_eq!(check("a", Some("10")), Ok(()));
        assert_eq!(check("a", Some("9")), Err(Outdated { found: 9, newest: 10 }));
        assert_eq!(check("a", None), Ok(()));
        assert_eq!(check("a", Some("9")), Err(Outdated { found: 9, newest: 10 }));
        // Another source has a history of its own.
        assert_eq!(check("b", Some("3")), Ok(()));
        seen.forget(&object);
        assert_eq!(check("b", Some("2")), Ok(()));
    }
}

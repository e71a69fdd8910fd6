//! The result of the last delivery of each Provider and Alert, for their conditions.

use futures::channel::mpsc;
use limits::TenantCache;
use parking_lot::Mutex;
use runtime::{ObjectKey, Trigger};

use crate::error::Error;

/// Maximum number of objects of a kind whose result is cached.
const OBJECTS: usize = 4096;
/// Maximum number of requested passes; further results wait for the next regular pass.
const REQUESTS: usize = 256;

#[derive(Debug)]
struct Kind {
    last: Mutex<TenantCache<ObjectKey, Option<String>>>,
    changed: Mutex<(mpsc::Sender<Trigger>, Option<mpsc::Receiver<Trigger>>)>,
}

impl Default for Kind {
    fn default() -> Self {
        let (sender, receiver) = mpsc::channel(REQUESTS);
        Self {
            last: Mutex::new(TenantCache::new(OBJECTS)),
            changed: Mutex::new((sender, Some(receiver))),
        }
    }
}

impl Kind {
    fn report(&self, key: ObjectKey, error: Option<&Error>) {
        let error = error.map(ToString::to_string);
        {
            let mut last = self.last.lock();
            if last.get(&key) == Some(&error) {
                return;
            }
            last.insert(&key.namespace, key.clone(), error, 1);
        }
        let mut changed = self.changed.lock();
        let _ = changed.0.try_send(key.into());
    }

    fn last(&self, key: &ObjectKey) -> Option<Result<(), String>> {
        let mut last = self.last.lock();
        last.get(key).map(|error| error.clone().map_or(Ok(()), Err))
    }

    fn changes(&self) -> Option<mpsc::Receiver<Trigger>> {
        let mut changed = self.changed.lock();
        changed.1.take()
    }
}

/// Last results of Providers and Alerts. A pass is requested when a result changes, not for each delivery.
#[derive(Debug, Default)]
pub(crate) struct Health {
    providers: Kind,
    alerts: Kind,
}

impl Health {
    pub(super) fn report(&self, provider: ObjectKey, alert: ObjectKey, error: Option<&Error>) {
        self.providers.report(provider, error);
        self.alerts.report(alert, error);
    }

    pub(crate) fn provider(&self, key: &ObjectKey) -> Option<Result<(), String>> {
        self.providers.last(key)
    }

    pub(crate) fn alert(&self, key: &ObjectKey) -> Option<Result<(), String>> {
        self.alerts.last(key)
    }

    pub(crate) fn request_alert(&self, key: ObjectKey) {
        let mut changed = self.alerts.changed.lock();
        let _ = changed.0.try_send(key.into());
    }

    /// Returns the Providers and the Alerts whose result changes; `None` after the first call.
    pub(crate) fn changes(&self) -> Option<(mpsc::Receiver<Trigger>, mpsc::Receiver<Trigger>)> {
        self.providers.changes().zip(self.alerts.changes())
    }
}

#[cfg(test)]
mod tests {
    use futures::{FutureExt as _, StreamExt as _};

    use super::*;

    #[test]
    fn results_of_one_namespace_displace_none_of_another() {
        let kind = Kind::default();
        let own = ObjectKey::new("apps", "p");
        kind.report(own.clone(), None);
        for number in 0..OBJECTS + 50 {
            kind.report(ObjectKey::new("greedy", number.to_string()), None);
        }
        assert_eq!(kind.last.lock().size(), OBJECTS);
        assert_eq!(kind.last(&own), Some(Ok(())));
    }

    #[test]
    fn pass_is_requested_when_a_result_changes() {
        let health = Health::default();
        let (mut providers, _alerts) = health.changes().unwrap();
        let key = || ObjectKey::new("ns", "p");
        let mut requested = |error: Option<&Error>| {
            health.report(key(), ObjectKey::new("ns", "a"), error);
            providers.next().now_or_never().flatten().is_some()
        };
        assert!(requested(None) && !requested(None));
        assert!(requested(Some(&Error::Status(500))) && !requested(Some(&Error::Status(500))));
        assert!(requested(Some(&Error::Status(403))));
        assert_eq!(health.provider(&key()), Some(Err(Error::Status(403).to_string())));
        assert!(requested(None));
        assert_eq!(health.provider(&key()), Some(Ok(())));
        assert_eq!(health.alert(&key()), None);
    }
}

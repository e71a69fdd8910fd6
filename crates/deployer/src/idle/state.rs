//! State of objects that this process keeps between passes: times that are not part of a status, and hashes that save
//! requests. Losing it costs one comparison.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::{Duration, Instant},
};

use apply::AppliedVersions;
use objects::ObjectId;
use parking_lot::Mutex;
use runtime::ObjectKey;

/// Times since actions of this process that are not part of the status.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ages {
    /// Time since the cluster was last compared with the rendered objects.
    pub since_compared: Option<Duration>,
    pub since_validated: Option<Duration>,
}

/// Time after which a deployment searches every kind again; it varies by a tenth.
const SWEEP: Duration = Duration::from_secs(24 * 3600);

/// The knowledge of this process about the last deployment of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LastDeployment {
    /// It ended, and this process knows all its objects.
    Known(KnownDeployment),
    /// This process did not make it, or a search of every kind is due.
    Unknown,
    /// It broke off or had errors.
    BrokeOff,
}

impl LastDeployment {
    /// Returns the deployment if it is known.
    pub fn known(&self) -> Option<&KnownDeployment> {
        match self {
            Self::Known(known) => Some(known),
            Self::Unknown | Self::BrokeOff => None,
        }
    }
}

/// The last deployment of an object, which this process made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownDeployment {
    /// Time of the next search of every kind.
    sweep: Instant,
    /// The objects that it applied, in the versions in which it left them.
    pub objects: Arc<AppliedVersions>,
}

#[derive(Debug, Default)]
struct Entry {
    compared: Option<Instant>,
    validated: Option<Instant>,
    removing: Option<Instant>,
    orphans: Option<Instant>,
    seen: AppliedVersions,
    /// Objects with fields that other managers hold.
    contested: HashSet<ObjectId>,
    /// Time of the next search of every kind, if the last deployment of this process is known to the end.
    sweep: Option<Instant>,
    /// True from the beginning of a deployment until it ended without errors.
    is_deploying: bool,
}

impl Entry {
    /// Returns the last deployment, if a search of every kind is not due.
    fn known(&self) -> Option<KnownDeployment> {
        let sweep = self.sweep.filter(|sweep| *sweep > Instant::now())?;
        let objects = Arc::new(self.seen.clone());
        (!objects.is_empty()).then_some(KnownDeployment { sweep, objects })
    }
}

/// Returns the time of the next search of every kind after one that ends now.
fn next_sweep() -> Instant {
    Instant::now() + SWEEP.mul_f64(0.9 + fastrand::f64() / 5.0)
}

#[derive(Debug, Default)]
pub struct DeploymentStates(Mutex<HashMap<ObjectKey, Entry>>);

impl DeploymentStates {
    /// Returns the ages of the last comparison and validation.
    pub fn ages(&self, key: &ObjectKey) -> Ages {
        let entries = self.0.lock();
        let entry = entries.get(key);
        Ages {
            since_compared: entry.and_then(|entry| entry.compared).map(|then| then.elapsed()),
            since_validated: entry.and_then(|entry| entry.validated).map(|then| then.elapsed()),
        }
    }

    pub fn compared(&self, key: &ObjectKey, seen: AppliedVersions) {
        let mut entries = self.0.lock();
        let entry = entries.entry(key.clone()).or_default();
        entry.compared = Some(Instant::now());
        entry.seen = seen;
    }

    pub fn validated(&self, key: &ObjectKey) {
        self.0.lock().entry(key.clone()).or_default().validated = Some(Instant::now());
    }

    pub fn orphans_age(&self, key: &ObjectKey) -> Option<Duration> {
        self.0.lock().get(key)?.orphans.map(|then| then.elapsed())
    }

    pub fn searched_orphans(&self, key: &ObjectKey) {
        self.0.lock().entry(key.clone()).or_default().orphans = Some(Instant::now());
    }

    pub fn contested(&self, key: &ObjectKey) -> HashSet<ObjectId> {
        self.0
            .lock()
            .get(key)
            .map(|entry| entry.contested.clone())
            .unwrap_or_default()
    }

    pub fn note_contested(&self, key: &ObjectKey, contested: HashSet<ObjectId>) {
        self.0.lock().entry(key.clone()).or_default().contested = contested;
    }

    /// Takes the hashes of the last comparison; they come back with the next one.
    pub fn take_seen(&self, key: &ObjectKey) -> AppliedVersions {
        self.0
            .lock()
            .get_mut(key)
            .map(|entry| std::mem::take(&mut entry.seen))
            .unwrap_or_default()
    }

    /// Notes that a deployment begins, and returns the knowledge of the one before: should this one break off, the next one searches every
    /// kind.
    pub fn begin_deployment(&self, key: &ObjectKey) -> LastDeployment {
        let mut entries = self.0.lock();
        let entry = entries.entry(key.clone()).or_default();
        if std::mem::replace(&mut entry.is_deploying, true) {
            return LastDeployment::BrokeOff;
        }
        let known = entry.known();
        entry.sweep = None;
        known.map_or(LastDeployment::Unknown, LastDeployment::Known)
    }

    /// Returns the knowledge of the last deployment, while nothing is deployed.
    pub fn last_deployment(&self, key: &ObjectKey) -> LastDeployment {
        match self.0.lock().get(key) {
            None => LastDeployment::Unknown,
            Some(entry) if entry.is_deploying => LastDeployment::BrokeOff,
            Some(entry) => entry
                .known()
                .map_or(LastDeployment::Unknown, LastDeployment::Known),
        }
    }

    /// Records a search of every kind that saw everything and found no orphans.
    pub fn swept(&self, key: &ObjectKey) {
        if let Some(entry) = self.0.lock().get_mut(key) {
            entry.sweep = Some(next_sweep());
        }
    }

    /// Calls a function with the versions of the objects that were last found equal to their manifests.
    pub fn with_seen<T>(&self, key: &ObjectKey, read: impl FnOnce(&AppliedVersions) -> T) -> Option<T> {
        self.0.lock().get(key).map(|entry| read(&entry.seen))
    }

    /// Records that a deployment ended without errors, and saw all orphans. `known` is the base of its search; absent if it
    /// searched every kind.
    pub fn end_deployment(&self, key: &ObjectKey, known: Option<&KnownDeployment>) {
        let sweep = known.map_or_else(next_sweep, |known| known.sweep);
        let mut entries = self.0.lock();
        let entry = entries.entry(key.clone()).or_default();
        entry.sweep = Some(sweep);
        entry.is_deploying = false;
    }

    /// Makes the next deployment search every kind.
    pub fn request_sweep(&self, key: &ObjectKey) {
        if let Some(entry) = self.0.lock().get_mut(key) {
            entry.is_deploying = true;
        }
    }

    /// Returns the time since this process first tried to delete the deployed objects.
    pub fn removing_for(&self, key: &ObjectKey) -> Duration {
        self.0
            .lock()
            .entry(key.clone())
            .or_default()
            .removing
            .get_or_insert_with(Instant::now)
            .elapsed()
    }

    pub fn forget(&self, key: &ObjectKey) {
        self.0.lock().remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_keeps_ages_until_the_object_is_forgotten() {
        let (memory, key) = (DeploymentStates::default(), ObjectKey::new("apps", "shop"));
        assert_eq!(memory.ages(&key), Ages::default());
        memory.compared(&key, AppliedVersions::default());
        memory.validated(&key);
        let first = memory.removing_for(&key);
        let ages = memory.ages(&key);
        assert!(ages.since_compared.is_some() && ages.since_validated.is_some());
        assert!(memory.removing_for(&key) >= first);
        assert!(memory.take_seen(&key).is_empty());
        memory.forget(&key);
        assert_eq!(memory.ages(&key), Ages::default());
    }
}

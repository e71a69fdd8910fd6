//! State of objects that this process keeps between passes: times that are not part of a status, and hashes that save
//! requests. Losing it costs one comparison.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::{Duration, Instant},
};

use api::Fault;
use apply::AppliedVersions;
use objects::ObjectId;
use parking_lot::Mutex;
use runtime::ObjectKey;

use crate::schedule::due_age;

/// Times since actions of this process that are not part of the status.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ages {
    /// Time since the cluster was last compared with the rendered objects.
    pub since_compared: Option<Duration>,
    pub since_validated: Option<Duration>,
    /// The last deployment, if it is to be repeated.
    pub failed: Option<FailedAttempt>,
}

impl Ages {
    /// Returns true if the last deployment wanted the same, failed, and is not due again: hooks, deletions and waits are repeated at this
    /// period alone, not by the passes in between.
    #[must_use]
    pub fn is_early(&self, wanted: u64, period: Duration) -> bool {
        let same = self.failed.filter(|failed| failed.wanted == wanted);
        same.is_some_and(|failed| failed.age < due_age(period))
    }
}

/// A deployment that failed, or broke off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FailedAttempt {
    /// Fingerprint of the objects and the spec that it deployed.
    pub wanted: u64,
    /// Time since its end.
    pub age: Duration,
}

/// The work of a cancelled pass may go on for a moment: once the pass has ended, its results are not noted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AttemptState {
    /// Its pass runs, and it counts as failed.
    Running,
    /// It succeeded, or is superseded, and its pass runs.
    Succeeded,
    /// It is to be repeated.
    Failed,
    /// Nothing is to be repeated.
    Over,
}

impl AttemptState {
    const fn is_running(self) -> bool {
        matches!(self, Self::Running | Self::Succeeded)
    }

    const fn has_failed(self) -> bool {
        matches!(self, Self::Running | Self::Failed)
    }

    const fn succeeded(self) -> Self {
        match self.is_running() {
            true => Self::Succeeded,
            false => Self::Over,
        }
    }

    const fn ended(self) -> Self {
        match self.has_failed() {
            true => Self::Failed,
            false => Self::Over,
        }
    }
}

#[derive(Debug)]
struct Attempt {
    wanted: u64,
    /// The start, or the end if it ended.
    at: Instant,
    state: AttemptState,
    /// The fault that ended it as a whole.
    fault: Option<Fault>,
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
    attempt: Option<Attempt>,
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
            failed: entry
                .and_then(|entry| entry.attempt.as_ref())
                .filter(|attempt| attempt.state.has_failed())
                .map(|attempt| FailedAttempt {
                    wanted: attempt.wanted,
                    age: attempt.at.elapsed(),
                }),
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

    /// Notes that a pass begins to deploy the objects and the spec with this fingerprint. Until it succeeds, it counts as failed.
    pub fn begin_attempt(&self, key: &ObjectKey, wanted: u64) {
        self.0.lock().entry(key.clone()).or_default().attempt = Some(Attempt {
            wanted,
            at: Instant::now(),
            state: AttemptState::Running,
            fault: None,
        });
    }

    /// Notes that there is nothing to repeat: the deployment succeeded, or is superseded.
    pub fn forget_attempt(&self, key: &ObjectKey) {
        let mut entries = self.0.lock();
        if let Some(attempt) = entries.get_mut(key).and_then(|entry| entry.attempt.as_mut()) {
            attempt.state = attempt.state.succeeded();
        }
    }

    /// Notes that the deployment of the running pass failed, as a whole by the fault if there is one. Returns false if it had none.
    pub fn fail_attempt(&self, key: &ObjectKey, fault: Option<Fault>) -> bool {
        let mut entries = self.0.lock();
        let attempt = entries.get_mut(key).and_then(|entry| entry.attempt.as_mut());
        let Some(attempt) = attempt.filter(|attempt| attempt.state.is_running()) else {
            return false;
        };
        (attempt.state, attempt.at, attempt.fault) = (AttemptState::Running, Instant::now(), fault);
        true
    }

    /// Notes the end of a pass.
    pub(crate) fn end_pass(&self, key: &ObjectKey) {
        let mut entries = self.0.lock();
        if let Some(attempt) = entries.get_mut(key).and_then(|entry| entry.attempt.as_mut()) {
            attempt.state = attempt.state.ended();
        }
    }

    /// Returns the fault by which the last deployment failed as a whole.
    pub fn attempt_fault(&self, key: &ObjectKey) -> Option<Fault> {
        let entries = self.0.lock();
        let attempt = entries.get(key)?.attempt.as_ref()?;
        attempt.fault.clone().filter(|_| attempt.state.has_failed())
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

    #[test]
    fn failed_deployment_is_early_until_its_period_ends_or_it_wants_something_else() {
        let (states, key) = (DeploymentStates::default(), ObjectKey::new("apps", "shop"));
        let (long, short) = (Duration::from_secs(3600), Duration::ZERO);
        assert!(!states.fail_attempt(&key, None) && !states.ages(&key).is_early(7, long));
        states.begin_attempt(&key, 7);
        let fault = Fault::retry(api::Reason::Timeout, "too slow");
        // The result of a pass that exceeded its timeout may come before the fault.
        states.forget_attempt(&key);
        assert!(!states.ages(&key).is_early(7, long));
        assert!(states.fail_attempt(&key, Some(fault.clone())));
        states.end_pass(&key);
        assert!(!states.fail_attempt(&key, None));
        assert_eq!(states.attempt_fault(&key), Some(fault));
        let ages = states.ages(&key);
        assert!(ages.is_early(7, long) && !ages.is_early(7, short) && !ages.is_early(8, long));
        states.forget_attempt(&key);
        assert!(!states.ages(&key).is_early(7, long));
    }
}

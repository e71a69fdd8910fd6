//! Status, conditions and events of sources. Pure: nothing else makes conditions and events of these kinds.

use std::collections::BTreeMap;

use api::{
    Artifact, Class, Condition, ConditionStatus, Fault, Reason, Time, annotation, condition_type as types,
    conditions, group, revision::Style,
};
use artifact::storage::Stored;
use kube::{Resource as _, ResourceExt, core::object::HasStatus as _};
use runtime::{EventDraft, Outcome, Requeue, Severity, bounded_text};

use crate::{
    plan::StoredArtifact,
    source_kind::{CommonStatus as _, SourceKind, SourceStatus, Verification},
};

const IN_PROGRESS: &str = "reconciliation in progress";

const NEVER_ENDED: &str = "suspended before the first reconciliation ended";

#[derive(Debug)]
pub(crate) struct FailedPass {
    pub(crate) fault: Fault,
    pub(crate) artifact: Option<Artifact>,
    /// Reason and message of ArtifactOutdated, if there is a newer revision than the artifact's.
    pub(crate) outdated: Option<(Reason, String)>,
}

impl FailedPass {
    /// Returns a failure after which `artifact` can still be used.
    pub(crate) fn keeping(artifact: Option<Artifact>, fault: Fault) -> Self {
        Self {
            fault,
            artifact,
            outdated: None,
        }
    }
}

impl From<Fault> for FailedPass {
    fn from(fault: Fault) -> Self {
        Self::keeping(None, fault)
    }
}

pub(crate) struct Success {
    pub(crate) artifact: Artifact,
    pub(crate) url: String,
    pub(crate) ready: (Reason, String),
    /// Reason, if the kind has its own, and message of the event of a new artifact.
    pub(crate) event: (Option<Reason>, String),
    pub(crate) event_metadata: BTreeMap<String, String>,
    pub(crate) verification: Option<Verification>,
    /// Warning that names files that are not part of the artifact.
    pub(crate) left_out: Option<String>,
}

pub(crate) struct Report<'a, K: SourceKind> {
    pub(crate) object: &'a K::Object,
    pub(crate) style: Style,
    pub(crate) now: Time,
}

impl<K: SourceKind> Report<'_, K> {
    /// Returns the artifact that was just stored, without its URL.
    pub(crate) fn artifact(&self, stored: Stored, revision: &str) -> Artifact {
        // Readers of 2021 know SHA-1 only.
        let checksum = match self.style {
            Style::Legacy => stored.packed.sha1,
            Style::Rfc5 => stored.packed.sha256,
        };
        Artifact {
            path: stored.path,
            revision: revision.to_owned(),
            digest: Some(stored.packed.digest.to_string()),
            checksum: Some(checksum),
            last_update_time: Some(self.now.clone()),
            size: i64::try_from(stored.packed.size).ok(),
            ..Artifact::default()
        }
    }

    pub(crate) fn is_verified(&self) -> bool {
        let past = K::past(self.object);
        let verified = conditions::get(&past.conditions, types::SOURCE_VERIFIED);
        verified.is_some_and(|condition| {
            condition.is_true() && condition.observed_generation == self.generation()
        })
    }

    /// Returns the condition of the verification, of this pass or an earlier one; `None` without verification.
    fn verified(&self, verification: Option<&Verification>) -> Option<Condition> {
        if !K::verifies(self.object) {
            return None;
        }
        let past = K::past(self.object).conditions;
        let message = match (verification, conditions::get(&past, types::SOURCE_VERIFIED)) {
            (Some(verification), _) => verification.message.clone()?,
            (None, Some(past)) if past.is_true() => past.message.clone(),
            (None, _) => return None,
        };
        Some(self.condition(types::SOURCE_VERIFIED, true, Reason::Succeeded, &message))
    }

    pub(crate) fn ready(&self, success: Success, stored: &StoredArtifact) -> Outcome<K::Status> {
        let Success {
            artifact,
            url,
            ready,
            event,
            event_metadata,
            verification,
            left_out,
        } = success;
        let (reason, message) = match self.style {
            Style::Rfc5 => ready,
            Style::Legacy => (
                K::LEGACY_READY,
                format!("Fetched revision: {}", artifact.revision),
            ),
        };
        let mut events: Vec<EventDraft> = self.corruption(stored).into_iter().collect();
        events.extend(self.success(&artifact, event, event_metadata));
        events.extend(left_out.map(|message| EventDraft {
            severity: Severity::Error,
            reason: Reason::FilesLeftOut,
            message,
            metadata: BTreeMap::new(),
        }));
        let mut new = vec![self.condition(types::READY, true, reason, &message)];
        if self.style == Style::Rfc5 {
            new.push(self.condition(types::ARTIFACT_IN_STORAGE, true, reason, &message));
        }
        new.extend(self.verified(verification.as_ref()));
        let spec = K::spec(self.object);
        let status = SourceStatus {
            observed_generation: self.generation(),
            artifact: Some(artifact),
            url: Some(url),
            observed_ignore: spec.ignore.map(|rules| bounded_text(rules).into_owned()),
            ..self.status(new)
        };
        let mut status = new_status::<K>(status);
        K::observe(&mut status, self.object, verification.as_ref());
        Outcome {
            status,
            requeue: Requeue::Interval(spec.interval),
            events,
            fault: None,
        }
    }

    pub(crate) fn failed(&self, failed: &FailedPass) -> Outcome<K::Status> {
        let Fault {
            class,
            reason,
            message,
        } = &failed.fault;
        let past = K::past(self.object);
        let stalled = *class == Class::Stall;
        let mut new = vec![self.condition(types::READY, false, *reason, message)];
        if stalled {
            new.push(self.condition(types::STALLED, true, *reason, message));
        } else {
            new.push(self.condition(
                types::RECONCILING,
                true,
                Reason::ProgressingWithRetry,
                IN_PROGRESS,
            ));
        }
        if self.style == Style::Rfc5 {
            new.extend(self.problems(failed, &past));
        }
        let observed_generation = if stalled {
            self.generation()
        } else {
            past.observed_generation.or(Some(-1))
        };
        let status = SourceStatus {
            observed_generation,
            artifact: failed.artifact.clone(),
            url: past.url.filter(|_| failed.artifact.is_some()),
            observed_ignore: past.observed_ignore.filter(|_| failed.artifact.is_some()),
            ..self.status(new)
        };
        let events = self.failure(&failed.fault).into_iter().collect();
        let status = match failed.artifact {
            Some(_) => self.changed(status),
            None => new_status::<K>(status),
        };
        Outcome {
            status,
            requeue: Requeue::from(*class),
            events,
            fault: Some(failed.fault.clone()),
        }
    }

    /// Returns the conditions of a failure beside Ready, and the ones that it leaves as they were.
    fn problems(&self, failed: &FailedPass, past: &SourceStatus) -> Vec<Condition> {
        let Fault { reason, message, .. } = &failed.fault;
        let mut new = Vec::new();
        let failures = K::failure_conditions(*reason);
        // SourceVerified is good when it is true, the others are bad.
        let is_good = |name: &str| name == types::SOURCE_VERIFIED;
        new.extend(
            failures
                .iter()
                .map(|name| self.condition(name, !is_good(name), *reason, message)),
        );
        // Ready has the reason of the worst condition: without a condition of this failure, no other may report a problem.
        let has_own = !failures.is_empty();
        if K::verifies(self.object) && !failures.iter().any(|name| is_good(name)) {
            let verified = conditions::get(&past.conditions, types::SOURCE_VERIFIED);
            new.extend(verified.filter(|verified| has_own || verified.is_true()).cloned());
        }
        if let Some((reason, message)) = failed.outdated.as_ref().filter(|_| has_own) {
            new.push(self.condition(types::ARTIFACT_OUTDATED, true, *reason, message));
        }
        let stored = conditions::get(&past.conditions, types::ARTIFACT_IN_STORAGE);
        new.extend(stored.filter(|_| failed.artifact.is_some()).cloned());
        new
    }

    /// Returns the status at the start of work on a new generation or request.
    pub(crate) fn progressing(&self) -> K::Status {
        let mut status = K::past(self.object);
        let message = match (status.observed_generation, self.generation()) {
            (observed, generation) if observed == generation => IN_PROGRESS.to_owned(),
            (observed, generation) => format!(
                "processing object: new generation {} -> {}",
                observed.unwrap_or(-1),
                generation.unwrap_or_default()
            ),
        };
        let set = &mut status.conditions;
        conditions::remove(set, types::STALLED);
        conditions::set(
            set,
            self.condition(types::RECONCILING, true, Reason::Progressing, &message),
        );
        // An object with a usable artifact stays ready while the next revision is built.
        let ready = conditions::get(set, types::READY).map(|ready| ready.status);
        if matches!(ready, None | Some(ConditionStatus::Unknown)) {
            let unknown = self.condition(
                types::READY,
                ConditionStatus::Unknown,
                Reason::Progressing,
                &message,
            );
            conditions::set(set, unknown);
        }
        conditions::sort(set);
        self.changed(status)
    }

    /// Returns the status of a suspended object: requests are handled, and it is neither reconciling nor stalled. If no pass has ended yet,
    /// it is not ready. `None` if the status is unchanged.
    pub(crate) fn suspended(&self) -> Option<K::Status> {
        let past = K::past(self.object);
        let mut status = past.clone();
        for gone in [types::STALLED, types::RECONCILING] {
            conditions::remove(&mut status.conditions, gone);
        }
        let ready = conditions::get(&status.conditions, types::READY);
        if ready.is_some_and(|ready| ready.status == ConditionStatus::Unknown) {
            let never = self.condition(types::READY, false, Reason::Suspended, NEVER_ENDED);
            conditions::set(&mut status.conditions, never);
        }
        if !status.conditions.is_empty() {
            status.observed_generation = self.generation();
        }
        for condition in &mut status.conditions {
            condition.observed_generation = self.generation();
        }
        status.last_handled_reconcile_at = self.requested();
        (status != past).then(|| self.changed(status))
    }

    /// Returns a status with these conditions and the fields that every pass sets.
    fn status(&self, mut new: Vec<Condition>) -> SourceStatus {
        let past = K::past(self.object);
        conditions::carry_times(&past.conditions, &mut new);
        conditions::sort(&mut new);
        SourceStatus {
            conditions: new,
            last_handled_reconcile_at: self.requested(),
            ..SourceStatus::default()
        }
    }

    fn changed(&self, common: SourceStatus) -> K::Status {
        let mut status = self.object.status().cloned().unwrap_or_default();
        status.set_common(common);
        status
    }

    fn generation(&self) -> Option<i64> {
        self.object.meta().generation
    }

    /// Returns the request that this pass handles, or the last handled one.
    fn requested(&self) -> Option<String> {
        let annotations = self.object.annotations();
        let requested = annotations.get(annotation::RECONCILE_REQUESTED_AT).cloned();
        requested.or_else(|| K::past(self.object).last_handled_reconcile_at)
    }

    fn condition(
        &self,
        name: &str,
        status: impl Into<ConditionStatus>,
        reason: Reason,
        message: &str,
    ) -> Condition {
        Condition::new(name, status, reason, message, self.generation(), self.now.clone())
    }

    /// Returns the event of a new artifact, or of the end of a failure.
    fn success(
        &self,
        artifact: &Artifact,
        (own_reason, event): (Option<Reason>, String),
        mut metadata: BTreeMap<String, String>,
    ) -> Option<EventDraft> {
        let past = K::past(self.object);
        let before = past
            .artifact
            .as_ref()
            .and_then(|artifact| artifact.digest.as_deref());
        let reason = if before != artifact.digest.as_deref() {
            Reason::NewArtifact
        } else if conditions::is_false(&past.conditions, types::READY) {
            Reason::Succeeded
        } else {
            return None;
        };
        let (reason, message) = match self.style {
            Style::Legacy => (Reason::Info, format!("Fetched revision: {}", artifact.revision)),
            Style::Rfc5 => (own_reason.unwrap_or(reason), event),
        };
        metadata.extend(self.metadata(artifact));
        Some(EventDraft {
            severity: Severity::Info,
            reason,
            message,
            metadata,
        })
    }

    /// Returns the metadata of an event about the artifact in the status.
    pub(crate) fn current_metadata(&self) -> BTreeMap<String, String> {
        let artifact = K::past(self.object).artifact;
        artifact.map_or_else(BTreeMap::new, |artifact| self.metadata(&artifact))
    }

    fn metadata(&self, artifact: &Artifact) -> BTreeMap<String, String> {
        let (name, digest) = match self.style {
            Style::Rfc5 => ("digest", &artifact.digest),
            Style::Legacy => ("checksum", &artifact.checksum),
        };
        let digest = digest.clone().unwrap_or_default();
        let pairs = [("revision", artifact.revision.clone()), (name, digest)];
        pairs
            .into_iter()
            .map(|(key, value)| (format!("{}/{key}", group::SOURCE), value))
            .collect()
    }

    /// Returns the event of a failure; `None` if the last pass failed in the same way. Waiting for another object is not an error.
    fn failure(&self, fault: &Fault) -> Option<EventDraft> {
        let (reason, message) = (fault.reason, fault.message.as_str());
        let past = K::past(self.object);
        let said = conditions::get(&past.conditions, types::READY).is_some_and(|ready| {
            ready.is_false() && ready.reason == reason.as_str() && ready.message == message
        });
        if said {
            return None;
        }
        let (severity, legacy) = match fault.class {
            Class::Wait(_) => (Severity::Info, Reason::Info),
            _ => (Severity::Error, Reason::Error),
        };
        let reason = match self.style {
            Style::Rfc5 => reason,
            Style::Legacy => legacy,
        };
        let metadata = past
            .artifact
            .as_ref()
            .map(|artifact| self.metadata(artifact))
            .unwrap_or_default();
        Some(EventDraft {
            severity,
            reason,
            message: message.to_owned(),
            metadata,
        })
    }

    /// Returns the event of a corrupt artifact.
    fn corruption(&self, stored: &StoredArtifact) -> Option<EventDraft> {
        let StoredArtifact::Corrupt { wanted, found, .. } = stored else {
            return None;
        };
        Some(EventDraft {
            severity: Severity::Error,
            reason: Reason::ArtifactVerificationFailed,
            message: format!("failed to verify integrity of artifact: digest is {found}, not {wanted}"),
            metadata: BTreeMap::new(),
        })
    }
}

fn new_status<K: SourceKind>(common: SourceStatus) -> K::Status {
    let mut status = K::Status::default();
    status.set_common(common);
    status
}

#[cfg(test)]
mod tests;

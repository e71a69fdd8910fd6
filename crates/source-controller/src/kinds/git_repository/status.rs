//! What is true of a GitRepository after (or at the start of) a pass, and what to tell about it. Pure: the only maker
//! of conditions and events of this kind.

use std::collections::BTreeMap;

use api::{
    Artifact, Class, Condition, ConditionStatus, Fault, Reason, Time, annotation, condition_type as types,
    conditions, group,
    revision::Style,
    source::{GitRepository, GitRepositoryStatus},
};
use artifact::storage::Stored;
use runtime::{EventDraft, Outcome, Requeue, Severity};

use super::plan::Held;

const IN_PROGRESS: &str = "reconciliation in progress";

/// Characters of a commit's subject in an event.
const SUBJECT_CHARS: usize = 50;

/// A failed pass.
#[derive(Debug)]
pub(super) struct Failed {
    pub(super) fault: Fault,
    /// The artifact that can still be used.
    pub(super) held: Option<Artifact>,
    /// A newer revision than that of the artifact, if one was seen.
    pub(super) outdated: Option<String>,
}

impl Failed {
    /// A failure after which `held` can still be used.
    pub(super) fn keeping(held: Option<Artifact>, fault: Fault) -> Self {
        Self {
            fault,
            held,
            outdated: None,
        }
    }
}

impl From<Fault> for Failed {
    fn from(fault: Fault) -> Self {
        Self::keeping(None, fault)
    }
}

/// Makes the statuses of one pass.
pub(super) struct Report<'a> {
    pub(super) object: &'a GitRepository,
    pub(super) style: Style,
    pub(super) now: Time,
}

impl Report<'_> {
    /// The artifact that was just stored. Its URL is not known here.
    pub(super) fn artifact(&self, stored: Stored, revision: &str) -> Artifact {
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

    /// All is well. `subject` is the first line of the commit's message, if it was fetched.
    pub(super) fn ready(
        &self,
        artifact: Artifact,
        url: String,
        subject: Option<&str>,
        held: &Held,
    ) -> Outcome<GitRepositoryStatus> {
        let (reason, message) = match self.style {
            Style::Rfc5 => (
                Reason::Succeeded,
                format!("stored artifact for revision '{}'", artifact.revision),
            ),
            Style::Legacy => (
                Reason::GitOperationSucceed,
                format!("Fetched revision: {}", artifact.revision),
            ),
        };
        let mut events: Vec<EventDraft> = self.corruption(held).into_iter().collect();
        events.extend(self.success(&artifact, subject));
        let mut new = vec![self.condition(types::READY, true, reason, &message)];
        if self.style == Style::Rfc5 {
            new.push(self.condition(types::ARTIFACT_IN_STORAGE, true, reason, &message));
        }
        let status = GitRepositoryStatus {
            observed_generation: self.object.metadata.generation,
            artifact: Some(artifact),
            url: Some(url),
            observed_ignore: self.object.spec.ignore.clone(),
            ..self.status(new)
        };
        let interval = self.object.spec.interval.as_duration();
        Outcome {
            status,
            requeue: Requeue::Interval(interval),
            events,
            fault: None,
        }
    }

    /// The pass failed.
    pub(super) fn failed(&self, failed: &Failed) -> Outcome<GitRepositoryStatus> {
        let Fault {
            class,
            reason,
            message,
        } = &failed.fault;
        let past = self.past();
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
            let failure = failure_type(*reason);
            new.extend(failure.map(|name| self.condition(name, true, *reason, message)));
            if let Some(revision) = &failed.outdated {
                let message = format!("new upstream revision '{revision}'");
                new.push(self.condition(types::ARTIFACT_OUTDATED, true, Reason::NewRevision, &message));
            }
            let stored = conditions::get(&past.conditions, types::ARTIFACT_IN_STORAGE);
            new.extend(stored.filter(|_| failed.held.is_some()).cloned());
        }
        let observed_generation = if stalled {
            self.object.metadata.generation
        } else {
            past.observed_generation.or(Some(-1))
        };
        let status = GitRepositoryStatus {
            observed_generation,
            artifact: failed.held.clone(),
            url: past.url.filter(|_| failed.held.is_some()),
            observed_ignore: past.observed_ignore.filter(|_| failed.held.is_some()),
            ..self.status(new)
        };
        let events = self.failure(*reason, message).into_iter().collect();
        Outcome {
            status,
            requeue: Requeue::from(*class),
            events,
            fault: Some(failed.fault.clone()),
        }
    }

    /// Work begins, on a new generation or because somebody asked for it.
    pub(super) fn progressing(&self) -> GitRepositoryStatus {
        let mut status = self.past();
        let message = match (status.observed_generation, self.object.metadata.generation) {
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
        // An artifact that is in use stays ready while its successor is looked for.
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
        status
    }

    /// The object is suspended: requests count as handled, and nothing is in progress or stalled any more. `None` when
    /// the status says so already.
    pub(super) fn suspended(&self) -> Option<GitRepositoryStatus> {
        let past = self.past();
        let mut status = past.clone();
        for gone in [types::STALLED, types::RECONCILING] {
            conditions::remove(&mut status.conditions, gone);
        }
        if !status.conditions.is_empty() {
            status.observed_generation = self.object.metadata.generation;
        }
        for condition in &mut status.conditions {
            condition.observed_generation = self.object.metadata.generation;
        }
        status.last_handled_reconcile_at = self.requested();
        (status != past).then_some(status)
    }

    /// A status with these conditions and what every pass says.
    fn status(&self, mut new: Vec<Condition>) -> GitRepositoryStatus {
        let past = self.past();
        conditions::carry_times(&past.conditions, &mut new);
        conditions::sort(&mut new);
        GitRepositoryStatus {
            conditions: new,
            last_handled_reconcile_at: self.requested(),
            ..GitRepositoryStatus::default()
        }
    }

    fn past(&self) -> GitRepositoryStatus {
        self.object.status.clone().unwrap_or_default()
    }

    /// The request that this pass handles, or the last one that was.
    fn requested(&self) -> Option<String> {
        let asked = self.object.metadata.annotations.as_ref();
        let asked = asked
            .and_then(|annotations| annotations.get(annotation::RECONCILE_REQUESTED_AT))
            .cloned();
        asked.or_else(|| self.object.status.as_ref()?.last_handled_reconcile_at.clone())
    }

    fn condition(
        &self,
        name: &str,
        status: impl Into<ConditionStatus>,
        reason: Reason,
        message: &str,
    ) -> Condition {
        Condition::new(
            name,
            status,
            reason,
            message,
            self.object.metadata.generation,
            self.now.clone(),
        )
    }

    /// What to tell of a good end: a new artifact, or the end of a failure.
    fn success(&self, artifact: &Artifact, subject: Option<&str>) -> Option<EventDraft> {
        let past = self.past();
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
            Style::Rfc5 => {
                let commit = subject.map_or_else(|| artifact.revision.clone(), shorten);
                (reason, format!("stored artifact for commit '{commit}'"))
            }
        };
        Some(EventDraft {
            severity: Severity::Info,
            reason,
            message,
            metadata: self.metadata(artifact),
        })
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

    /// What to tell of a failure: the same one only once.
    fn failure(&self, reason: Reason, message: &str) -> Option<EventDraft> {
        let past = self.past();
        let said = conditions::get(&past.conditions, types::READY).is_some_and(|ready| {
            ready.is_false() && ready.reason == reason.as_str() && ready.message == message
        });
        if said {
            return None;
        }
        let reason = match self.style {
            Style::Rfc5 => reason,
            Style::Legacy => Reason::Error,
        };
        let metadata = past
            .artifact
            .as_ref()
            .map(|artifact| self.metadata(artifact))
            .unwrap_or_default();
        Some(EventDraft {
            severity: Severity::Error,
            reason,
            message: message.to_owned(),
            metadata,
        })
    }

    fn corruption(&self, held: &Held) -> Option<EventDraft> {
        let Held::Corrupt { wanted, found } = held else {
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

/// The condition that a failure stands under, beside Ready.
const fn failure_type(reason: Reason) -> Option<&'static str> {
    match reason {
        Reason::URLInvalid
        | Reason::AuthenticationFailed
        | Reason::GitOperationFailed
        | Reason::EmptyGitRepository
        | Reason::Timeout => Some(types::FETCH_FAILED),
        Reason::StorageOperationFailed
        | Reason::DirectoryCreationFailed
        | Reason::ArchiveOperationFailed
        | Reason::GarbageCollectionFailed => Some(types::STORAGE_OPERATION_FAILED),
        _ => None,
    }
}

fn shorten(subject: &str) -> String {
    match subject.char_indices().nth(SUBJECT_CHARS) {
        Some((cut, _)) => format!("{}...", subject.get(..cut).unwrap_or_default()),
        None => subject.to_owned(),
    }
}

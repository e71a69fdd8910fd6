//! Events of a pass.

use std::{collections::BTreeMap, time::Duration};

use api::{Reason, condition_type, conditions, kluctl::gitops::KluctlDeploymentStatus};
use runtime::{EventDraft, Severity};

use super::work::Work;
use crate::common::message;

/// Metadata key for the revision of an event.
const REVISION: &str = "gitops.kluctl.io/revision";
/// Metadata key that asks to update the status of the commit.
const COMMIT_STATUS: &str = "gitops.kluctl.io/commit_status";

/// Returns the metadata of an event that repeats what the status says. Of a deployment that succeeded, it updates the status of the
/// commit.
pub(super) fn current_metadata(status: &KluctlDeploymentStatus) -> BTreeMap<String, String> {
    metadata(
        status,
        conditions::is_true(&status.conditions, condition_type::READY),
    )
}

fn metadata(status: &KluctlDeploymentStatus, updates_commit: bool) -> BTreeMap<String, String> {
    let mut metadata = BTreeMap::new();
    if let Some(commit) = &status.observed_commit {
        metadata.insert(REVISION.to_owned(), commit.clone());
    }
    if updates_commit {
        metadata.insert(COMMIT_STATUS.to_owned(), "update".to_owned());
    }
    metadata
}

impl Work<'_, '_> {
    /// Returns the events: one for each command that did something, and one at the end if something changed.
    pub(super) fn events(&self, reason: Reason, delay: Duration) -> Vec<EventDraft> {
        let event = |severity, message: String, is_end: bool| EventDraft {
            severity,
            reason,
            message: message::limit(message, message::MESSAGE_BYTES),
            metadata: metadata(&self.status, is_end),
        };
        let mut events: Vec<EventDraft> = self
            .told
            .iter()
            .map(|told| event(told.severity, told.message.clone(), false))
            .collect();
        let past = self.pass.object.status.as_ref();
        let ready = |status: &KluctlDeploymentStatus| {
            let ready = conditions::get(&status.conditions, condition_type::READY);
            ready.map(|ready| (ready.status, ready.reason.clone(), ready.message.clone()))
        };
        let prepared = |status: &KluctlDeploymentStatus| status.last_prepare_error.clone();
        let news = past.is_none_or(|past| {
            ready(past) != ready(&self.status) || prepared(past) != prepared(&self.status)
        });
        match reason {
            Reason::ReconciliationSucceeded if news || !events.is_empty() => {
                let message = message::finished(self.started.elapsed(), delay);
                events.push(event(Severity::Info, message, true));
            }
            Reason::ReconciliationSucceeded | Reason::Progressing => {}
            _ if news => {
                let error = self
                    .unprepared
                    .as_ref()
                    .or(self.status.last_prepare_error.as_ref());
                let message = error.cloned().unwrap_or_else(|| self.ready_message());
                events.push(event(Severity::Error, message, false));
            }
            _ => {}
        }
        events
    }
}

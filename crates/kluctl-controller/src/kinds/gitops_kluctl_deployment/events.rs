//! Events of a pass.

use std::{collections::BTreeMap, time::Duration};

use api::{Reason, condition_type, conditions, group, kluctl::gitops::KluctlDeploymentStatus};
use deployer::message;
use runtime::{EventDraft, Severity};

use super::command_event::CommandEvent;

/// Returns the metadata of an event that repeats the status. Of a deployment that succeeded, it updates the status of the
/// commit.
pub(super) fn current_metadata(status: &KluctlDeploymentStatus) -> BTreeMap<String, String> {
    metadata(
        status,
        conditions::is_true(&status.conditions, condition_type::READY),
    )
}

fn metadata(status: &KluctlDeploymentStatus, updates_commit: bool) -> BTreeMap<String, String> {
    let commit = status.observed_commit.as_deref();
    deployer::events::metadata(group::GITOPS_KLUCTL, commit, updates_commit)
}

pub(super) struct Ended<'a> {
    pub(super) past: Option<&'a KluctlDeploymentStatus>,
    pub(super) status: &'a KluctlDeploymentStatus,
    pub(super) commands: &'a [CommandEvent],
    pub(super) reason: Reason,
    /// The error of the preparation, which the status may have in fewer words.
    pub(super) unprepared: Option<&'a str>,
    pub(super) took: Duration,
    pub(super) delay: Duration,
}

impl Ended<'_> {
    fn event(&self, severity: Severity, text: String, is_end: bool) -> EventDraft {
        EventDraft {
            severity,
            reason: self.reason,
            message: message::limit(text, message::MESSAGE_BYTES),
            metadata: metadata(self.status, is_end),
        }
    }

    /// Returns true if Ready or the error of the preparation differ from the stored status.
    fn is_news(&self) -> bool {
        self.past.is_none_or(|past| {
            deployer::events::is_ready_news(&past.conditions, &self.status.conditions)
                || past.last_prepare_error != self.status.last_prepare_error
        })
    }
}

pub(super) fn of_pass(ended: &Ended<'_>) -> Vec<EventDraft> {
    let commands = ended.commands.iter();
    let mut events: Vec<EventDraft> = commands
        .map(|command| ended.event(command.severity, command.message.clone(), false))
        .collect();
    let news = ended.is_news();
    match ended.reason {
        Reason::ReconciliationSucceeded if news || !events.is_empty() => {
            let text = message::finished(ended.took, ended.delay);
            events.push(ended.event(Severity::Info, text, true));
        }
        Reason::ReconciliationSucceeded | Reason::Progressing => {}
        _ if news => {
            let ready = conditions::get(&ended.status.conditions, condition_type::READY);
            let text = ended
                .unprepared
                .or(ended.status.last_prepare_error.as_deref())
                .or(ready.map(|ready| ready.message.as_str()));
            events.push(ended.event(Severity::Error, text.unwrap_or_default().to_owned(), false));
        }
        _ => {}
    }
    events
}

//! The parts of events that all kinds have. Pure.

use std::collections::BTreeMap;

use api::{Condition, condition_type, conditions};

/// Returns the metadata of an event of an API group: the revision, and a request to update the status of its commit.
#[must_use]
pub fn metadata(group: &str, revision: Option<&str>, updates_commit: bool) -> BTreeMap<String, String> {
    let revision = revision.map(|revision| (format!("{group}/revision"), revision.to_owned()));
    let update = updates_commit.then(|| (format!("{group}/commit_status"), "update".to_owned()));
    revision.into_iter().chain(update).collect()
}

/// Returns true if Ready differs from the one of the stored status in more than its times.
#[must_use]
pub fn is_ready_news(past: &[Condition], now: &[Condition]) -> bool {
    let ready = |list: &[Condition]| {
        let ready = conditions::get(list, condition_type::READY);
        ready.map(|ready| (ready.status, ready.reason.clone(), ready.message.clone()))
    };
    ready(past) != ready(now)
}

/// Returns the message of Ready; empty without one.
#[must_use]
pub fn ready_message(conditions: &[Condition]) -> &str {
    conditions::get(conditions, condition_type::READY).map_or("", |ready| &ready.message)
}

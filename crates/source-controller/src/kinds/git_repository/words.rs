//! Words of conditions and events of a GitRepository. Pure.

use std::collections::BTreeMap;

use api::{Artifact, Reason, commit_metadata, condition_type as types};
use git::Snapshot;

use super::{GitRepositories, Resolved};
use crate::source_kind::{Words, failure_conditions};

const SUBJECT_CHARS: usize = 50;

impl Words for GitRepositories {
    const LEGACY_READY: Reason = Reason::GitOperationSucceed;

    fn failure_conditions(reason: Reason) -> &'static [&'static str] {
        match reason {
            Reason::NotFound | Reason::NoArtifact => &[types::INCLUDE_UNAVAILABLE],
            Reason::CopyFailure => &[types::STORAGE_OPERATION_FAILED],
            Reason::InvalidVerificationMode
            | Reason::InvalidGitObject
            | Reason::InvalidTagSignature
            | Reason::InvalidCommitSignature => &[types::SOURCE_VERIFIED],
            reason => failure_conditions(reason),
        }
    }

    fn event_message(_: &Resolved, artifact: &Artifact, subject: Option<&str>) -> String {
        event_message(&artifact.revision, subject)
    }
}

pub(super) fn event_message(revision: &str, subject: Option<&str>) -> String {
    let commit = subject.map_or_else(|| revision.to_owned(), shorten);
    format!("stored artifact for commit '{commit}'")
}

fn shorten(subject: &str) -> String {
    match subject.char_indices().nth(SUBJECT_CHARS) {
        Some((cut, _)) => format!("{}...", subject.get(..cut).unwrap_or_default()),
        None => subject.to_owned(),
    }
}

/// Returns the metadata of a commit for an event. URLs in it lose possible secrets.
pub(super) fn commit_metadata(commit: &Snapshot) -> BTreeMap<String, String> {
    let texts = [
        (commit_metadata::AUTHOR, commit.author(), 256),
        (commit_metadata::SUBJECT, commit.subject(), 256),
        (commit_metadata::MESSAGE, commit.message(), 2048),
    ];
    let bounded = |text: &str, chars: usize| api::redact(text).chars().take(chars).collect::<String>();
    texts
        .into_iter()
        .map(|(key, text, chars)| (key.to_owned(), bounded(text, chars)))
        .filter(|(_, text)| !text.is_empty())
        .collect()
}

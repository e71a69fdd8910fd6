use std::collections::BTreeMap;

use api::{
    Artifact, Class, Condition, Fault, Reason, Time, annotation, condition_type as types,
    conditions::{self, KindRules, Subject},
    group,
    revision::Style,
    source::{GitRepository, GitRepositoryStatus},
};
use artifact::{Algorithm, Digest, pack::Packed, storage::Stored};
use jiff::Timestamp;
use runtime::{Outcome, Requeue, Severity};

use super::object;
use crate::{
    kinds::git_repository::{GitRepositories, words::event_message},
    plan::StoredArtifact,
    status::{FailedPass, Report, Success},
};

const HASH: &str = "5394cb7f48332b2de7c17dd8b8384bbc84b7e738";

fn at(second: i64) -> Time {
    Time(Timestamp::from_second(second).unwrap())
}

fn report(object: &GitRepository, style: Style, second: i64) -> Report<'_, GitRepositories> {
    Report {
        object,
        style,
        now: at(second),
    }
}

fn stored() -> Stored {
    let digest = Digest::parse(&format!("sha256:{}", "a".repeat(64))).unwrap();
    assert_eq!(digest.algorithm(), Algorithm::Sha256);
    let packed = Packed {
        digest,
        sha256: "a".repeat(64),
        sha1: "b".repeat(40),
        size: 42,
        hashes: Vec::new(),
    };
    Stored {
        path: format!("gitrepository/ns/repo/{HASH}.tar.gz"),
        packed,
    }
}

fn success(artifact: Artifact, event: String) -> Success {
    Success {
        url: "http://h/latest.tar.gz".to_owned(),
        ready: (
            Reason::Succeeded,
            format!("stored artifact for revision '{}'", artifact.revision),
        ),
        event: (None, event),
        artifact,
        event_metadata: BTreeMap::new(),
        verification: None,
        left_out: None,
    }
}

fn ready(
    object: &GitRepository,
    style: Style,
    subject: Option<&str>,
    held: &StoredArtifact,
) -> Outcome<GitRepositoryStatus> {
    let report = report(object, style, 100);
    let revision = api::revision::write(style, Some("main"), HASH);
    let artifact = Artifact {
        url: "http://h/file".to_owned(),
        ..report.artifact(stored(), &revision)
    };
    report.ready(success(artifact, event_message(&revision, subject)), held)
}

fn failed(object: &GitRepository, style: Style, failed: &FailedPass) -> Outcome<GitRepositoryStatus> {
    report(object, style, 100).failed(failed)
}

fn after(object: &GitRepository, outcome: &Outcome<GitRepositoryStatus>) -> GitRepository {
    GitRepository {
        status: Some(outcome.status.clone()),
        ..object.clone()
    }
}

#[track_caller]
fn check(object: &GitRepository, status: &GitRepositoryStatus) {
    let subject = Subject {
        generation: object.metadata.generation.unwrap(),
        observed_generation: status.observed_generation,
        conditions: &status.conditions,
        kind: KindRules::of(group::SOURCE),
        suspended: object.spec.suspend,
    };
    assert_eq!(conditions::check(&subject), [], "{status:?}");
}

fn events(outcome: &Outcome<GitRepositoryStatus>) -> Vec<(Severity, &str, &str)> {
    outcome
        .events
        .iter()
        .map(|event| (event.severity, event.reason.as_str(), event.message.as_str()))
        .collect()
}

fn named<'a>(status: &'a GitRepositoryStatus, name: &str) -> &'a Condition {
    conditions::get(&status.conditions, name).unwrap()
}

fn names(status: &GitRepositoryStatus) -> Vec<&str> {
    status
        .conditions
        .iter()
        .map(|condition| condition.type_.as_str())
        .collect()
}

#[test]
fn files_that_were_left_out_are_named_by_a_warning() {
    let object = object(|_| {});
    let report = report(&object, Style::Rfc5, 100);
    let success = Success {
        left_out: Some("left out 'a\\b'".to_owned()),
        ..success(report.artifact(stored(), "main@sha1:1"), "stored".to_owned())
    };
    let outcome = report.ready(success, &StoredArtifact::None);
    check(&object, &outcome.status);
    assert!(events(&outcome).contains(&(Severity::Error, "FilesLeftOut", "left out 'a\\b'")));
}

#[test]
fn ready_status_has_the_fields_of_today() {
    let object = object(|spec| spec.ignore = Some("*.md".to_owned()));
    let long = "a subject that is much longer than the fifty characters that fit";
    let outcome = ready(&object, Style::Rfc5, Some(long), &StoredArtifact::None);
    let status = &outcome.status;
    check(&object, status);
    let message = format!("stored artifact for revision 'main@sha1:{HASH}'");
    for name in [types::READY, types::ARTIFACT_IN_STORAGE] {
        let condition = named(status, name);
        assert_eq!(
            (condition.is_true(), condition.reason.as_str()),
            (true, "Succeeded")
        );
        assert_eq!(condition.message, message);
    }
    let artifact = status.artifact.as_ref().unwrap();
    assert_eq!(artifact.revision, format!("main@sha1:{HASH}"));
    assert_eq!(artifact.checksum, Some("a".repeat(64)));
    assert_eq!(artifact.digest, Some(format!("sha256:{}", "a".repeat(64))));
    assert_eq!(
        (artifact.size, artifact.last_update_time.clone()),
        (Some(42), Some(at(100)))
    );
    assert_eq!(status.url.as_deref(), Some("http://h/latest.tar.gz"));
    assert_eq!(
        (status.observed_generation, status.observed_ignore.as_deref()),
        (Some(2), Some("*.md"))
    );
    assert!(matches!(outcome.requeue, Requeue::Interval(interval) if interval.as_secs() == 60));
    let event = "stored artifact for commit 'a subject that is much longer than the fifty chara...'";
    assert_eq!(events(&outcome), [(Severity::Info, "NewArtifact", event)]);
    let expected = [
        (
            "source.toolkit.fluxcd.io/digest".to_owned(),
            format!("sha256:{}", "a".repeat(64)),
        ),
        (
            "source.toolkit.fluxcd.io/revision".to_owned(),
            format!("main@sha1:{HASH}"),
        ),
    ];
    assert_eq!(outcome.events[0].metadata, BTreeMap::from(expected));
}

#[test]
fn ready_status_has_the_fields_of_2021_in_legacy_style() {
    let object = object(|_| {});
    let outcome = ready(&object, Style::Legacy, Some("first"), &StoredArtifact::None);
    check(&object, &outcome.status);
    let message = format!("Fetched revision: main/{HASH}");
    assert_eq!(names(&outcome.status), [types::READY]);
    let condition = named(&outcome.status, types::READY);
    assert_eq!(
        (condition.reason.as_str(), condition.message.as_str()),
        ("GitOperationSucceed", message.as_str())
    );
    assert_eq!(
        outcome.status.artifact.as_ref().unwrap().checksum,
        Some("b".repeat(40))
    );
    assert_eq!(events(&outcome), [(Severity::Info, "info", message.as_str())]);
    assert!(
        outcome.events[0]
            .metadata
            .contains_key("source.toolkit.fluxcd.io/checksum")
    );
    let fault = Fault::retry(Reason::GitOperationFailed, "no");
    let outcome = failed(&object, Style::Legacy, &FailedPass::from(fault));
    assert_eq!(events(&outcome), [(Severity::Error, "error", "no")]);
}

#[test]
fn ready_status_is_unchanged_without_a_new_artifact() {
    let first = object(|_| {});
    let outcome = ready(&first, Style::Rfc5, Some("first"), &StoredArtifact::None);
    let again = after(&first, &outcome);
    let artifact = outcome.status.artifact.clone().unwrap();
    let held = StoredArtifact::Good {
        artifact: artifact.clone(),
        file: "f".to_owned(),
    };
    let later = report(&again, Style::Rfc5, 999).ready(success(artifact, String::new()), &held);
    assert_eq!(later.status, outcome.status);
    assert_eq!(events(&later), []);
}

#[test]
fn waiting_for_includes_is_reported_without_an_alarm() {
    let first = object(|_| {});
    let missing = "could not get resource for include 'base': not found";
    let waiting = FailedPass::from(Fault::wait(
        std::time::Duration::from_secs(30),
        Reason::NotFound,
        missing,
    ));
    for (style, reason) in [(Style::Rfc5, "NotFound"), (Style::Legacy, "info")] {
        let outcome = failed(&first, style, &waiting);
        check(&first, &outcome.status);
        assert!(named(&outcome.status, types::READY).is_false());
        assert_eq!(events(&outcome), [(Severity::Info, reason, missing)]);
        assert_eq!(events(&failed(&after(&first, &outcome), style, &waiting)), []);
    }
}

#[test]
fn failed_status_keeps_the_artifact_and_has_one_event() {
    let first = object(|_| {});
    let before = after(
        &first,
        &ready(&first, Style::Rfc5, Some("first"), &StoredArtifact::None),
    );
    let failure = FailedPass {
        fault: Fault::retry(Reason::GitOperationFailed, "no route"),
        artifact: before.status.as_ref().unwrap().artifact.clone(),
        outdated: Some((
            Reason::NewRevision,
            "new upstream revision 'main@sha1:2'".to_owned(),
        )),
    };
    let outcome = failed(&before, Style::Rfc5, &failure);
    let status = &outcome.status;
    check(&before, status);
    let expected = [
        types::RECONCILING,
        types::READY,
        types::ARTIFACT_IN_STORAGE,
        types::ARTIFACT_OUTDATED,
        types::FETCH_FAILED,
    ];
    assert_eq!(names(status), expected);
    for name in [types::READY, types::FETCH_FAILED] {
        assert_eq!(
            (
                named(status, name).reason.as_str(),
                named(status, name).message.as_str()
            ),
            ("GitOperationFailed", "no route")
        );
    }
    assert_eq!(named(status, types::RECONCILING).reason, "ProgressingWithRetry");
    assert_eq!(
        named(status, types::ARTIFACT_OUTDATED).message,
        "new upstream revision 'main@sha1:2'"
    );
    assert_eq!(status.artifact, failure.artifact);
    assert_eq!(outcome.requeue, Requeue::Retry);
    assert_eq!(
        events(&outcome),
        [(Severity::Error, "GitOperationFailed", "no route")]
    );
    let again = failed(&after(&before, &outcome), Style::Rfc5, &failure);
    assert_eq!((&again.status, events(&again)), (status, vec![]));
    // The end of the failure is reported, though the artifact is the same.
    let ill = after(&before, &outcome);
    let well = ready(&ill, Style::Rfc5, None, &StoredArtifact::None);
    check(&ill, &well.status);
    assert_eq!(names(&well.status), [types::READY, types::ARTIFACT_IN_STORAGE]);
    let message = format!("stored artifact for commit 'main@sha1:{HASH}'");
    assert_eq!(events(&well), [(Severity::Info, "Succeeded", message.as_str())]);
}

#[test]
fn failed_status_drops_a_lost_artifact() {
    let first = object(|_| {});
    let before = after(
        &first,
        &ready(&first, Style::Rfc5, Some("first"), &StoredArtifact::None),
    );
    let outcome = failed(
        &before,
        Style::Rfc5,
        &Fault::retry(Reason::GitOperationFailed, "no").into(),
    );
    check(&before, &outcome.status);
    assert_eq!((outcome.status.artifact, outcome.status.url), (None, None));
    assert_eq!(outcome.status.observed_ignore, None);
}

#[test]
fn failed_status_is_stalled_only_for_stalling_faults() {
    for (class, requeue, stalled, observed) in [
        (Class::Stall, Requeue::OnChange, true, Some(2)),
        (Class::Retry, Requeue::Retry, false, Some(-1)),
        (Class::Bug, Requeue::Retry, false, Some(-1)),
    ] {
        let object = object(|_| {});
        let fault = Fault {
            class,
            reason: Reason::URLInvalid,
            message: "bad url".to_owned(),
        };
        let outcome = failed(&object, Style::Rfc5, &fault.into());
        check(&object, &outcome.status);
        assert_eq!(
            (outcome.requeue, outcome.status.observed_generation),
            (requeue, observed)
        );
        assert_eq!(
            conditions::is_true(&outcome.status.conditions, types::STALLED),
            stalled
        );
    }
}

#[test]
fn progressing_status_keeps_ready() {
    let new = object(|_| {});
    let status = report(&new, Style::Rfc5, 1).progressing();
    check(&new, &status);
    assert_eq!(
        named(&status, types::RECONCILING).message,
        "processing object: new generation -1 -> 2"
    );
    assert_eq!(named(&status, types::READY).status, api::ConditionStatus::Unknown);
    let mut in_use = after(&new, &ready(&new, Style::Rfc5, None, &StoredArtifact::None));
    let status = report(&in_use, Style::Rfc5, 1).progressing();
    assert!(named(&status, types::READY).is_true());
    assert_eq!(
        named(&status, types::RECONCILING).message,
        "reconciliation in progress"
    );
    in_use.metadata.generation = Some(3);
    let status = report(&in_use, Style::Rfc5, 1).progressing();
    check(&in_use, &status);
    assert_eq!(
        named(&status, types::RECONCILING).message,
        "processing object: new generation 2 -> 3"
    );
    assert_eq!(status.artifact, in_use.status.unwrap().artifact);
}

#[test]
fn suspended_status_handles_requests() {
    let asked = |value: &str| {
        Some(BTreeMap::from([(
            annotation::RECONCILE_REQUESTED_AT.to_owned(),
            value.to_owned(),
        )]))
    };
    let mut object = object(|_| {});
    object.metadata.annotations = asked("1");
    let outcome = ready(&object, Style::Rfc5, None, &StoredArtifact::None);
    assert_eq!(outcome.status.last_handled_reconcile_at.as_deref(), Some("1"));
    let mut suspended = after(&object, &outcome);
    suspended.spec.suspend = true;
    assert_eq!(report(&suspended, Style::Rfc5, 1).suspended(), None);
    suspended.metadata.annotations = asked("2");
    suspended.metadata.generation = Some(3);
    let status = report(&suspended, Style::Rfc5, 1).suspended().unwrap();
    check(&suspended, &status);
    assert_eq!(
        (
            status.last_handled_reconcile_at.as_deref(),
            status.observed_generation
        ),
        (Some("2"), Some(3))
    );
    // Without the annotation, the last request stays the last.
    suspended.metadata.annotations = None;
    let outcome = failed(
        &suspended,
        Style::Rfc5,
        &Fault::retry(Reason::Failed, "no").into(),
    );
    assert_eq!(outcome.status.last_handled_reconcile_at.as_deref(), Some("1"));
}

#[test]
fn corrupt_artifact_has_an_event_of_its_own() {
    let held = StoredArtifact::Corrupt {
        path: "p".to_owned(),
        wanted: "sha256:1".to_owned(),
        found: "sha256:2".to_owned(),
    };
    let outcome = ready(&object(|_| {}), Style::Rfc5, Some("first"), &held);
    let first = events(&outcome)[0];
    let message = "failed to verify integrity of artifact: digest is sha256:2, not sha256:1";
    assert_eq!(first, (Severity::Error, "ArtifactVerificationFailed", message));
    assert_eq!(events(&outcome).len(), 2);
}

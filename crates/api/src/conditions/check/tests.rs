//! For each rule, statuses that keep it and statuses that break it.

use k8s_openapi::jiff::Timestamp;

use super::*;
use crate::{
    ConditionStatus::{self, False, True, Unknown},
    Time,
};

const NOW: i64 = 3;

fn condition(type_: &str, status: ConditionStatus) -> Condition {
    let time = Time(Timestamp::UNIX_EPOCH);
    Condition::new(type_, status, Reason::Succeeded, "because", Some(NOW), time)
}

fn of(generation: i64, condition: Condition) -> Condition {
    Condition {
        observed_generation: Some(generation),
        ..condition
    }
}

fn ready(status: ConditionStatus) -> Condition {
    condition("Ready", status)
}

fn running() -> Condition {
    Condition {
        reason: "Progressing".to_owned(),
        ..condition("Reconciling", True)
    }
}

fn retried() -> Condition {
    Condition {
        reason: "ProgressingWithRetry".to_owned(),
        ..condition("Reconciling", True)
    }
}

fn stalled() -> Condition {
    condition("Stalled", True)
}

fn subject(conditions: &[Condition], observed: i64) -> Subject<'_> {
    Subject {
        generation: NOW,
        observed_generation: Some(observed),
        conditions,
        kind: KindRules::of(group::SOURCE),
        suspended: false,
    }
}

fn broken(subject: &Subject<'_>) -> Vec<String> {
    check(subject).iter().map(Violation::to_string).collect()
}

#[track_caller]
fn breaks(conditions: &[Condition], observed: i64, expected: &[&str]) {
    assert_eq!(broken(&subject(conditions, observed)), expected);
}

#[track_caller]
fn keeps(conditions: &[Condition], observed: i64) {
    breaks(conditions, observed, &[]);
}

#[test]
fn statuses_of_each_state_keep_the_rules() {
    keeps(&[ready(True)], NOW);
    keeps(&[ready(True), condition("ArtifactInStorage", True)], NOW);
    keeps(&[ready(Unknown), running()], -1);
    keeps(&[ready(True), running()], NOW - 1);
    keeps(&[ready(False), stalled()], NOW);
    keeps(
        &[ready(False), retried(), condition("FetchFailed", True)],
        NOW - 1,
    );
}

#[test]
fn negative_conditions_are_not_beside_ready() {
    let failed = [ready(True), condition("FetchFailed", True)];
    breaks(
        &failed,
        NOW,
        &["FAIL0001 by FetchFailed", "WARN0001 by FetchFailed"],
    );
    let left = [ready(True), condition("FetchFailed", False)];
    breaks(&left, NOW, &["WARN0001 by FetchFailed"]);
    keeps(&[ready(True), condition("FetchFailed", True), running()], NOW);
    // Others are not negative.
    keeps(&[ready(True), condition("SourceVerified", True)], NOW);
    keeps(&[ready(True), condition("SourceVerified", False)], NOW);
}

#[test]
fn ready_is_present() {
    breaks(&[], NOW, &["FAIL0002 by Ready"]);
    breaks(&[running()], NOW, &["FAIL0002 by Ready"]);
}

#[test]
fn ready_is_false_while_a_failed_pass_is_retried() {
    let broken = [
        "FAIL0001 by Reconciling",
        "FAIL0003 by Ready",
        "WARN0001 by Reconciling",
    ];
    breaks(&[ready(True), retried()], NOW, &broken);
    breaks(&[ready(Unknown), retried()], NOW, &["FAIL0003 by Ready"]);
    keeps(&[ready(False), retried()], NOW);
    keeps(&[ready(True), running()], NOW);
}

#[test]
fn ready_is_false_while_stalled() {
    let broken = ["FAIL0004 by Ready", "FAIL0011 by Ready"];
    breaks(&[ready(Unknown), stalled()], NOW, &broken);
    let broken = ["FAIL0001 by Stalled", "WARN0001 by Stalled", "FAIL0004 by Ready"];
    breaks(&[ready(True), stalled()], NOW, &broken);
    keeps(&[ready(False), stalled()], NOW);
}

#[test]
fn reconciling_and_stalled_exclude_each_other() {
    let both = [ready(False), stalled(), retried()];
    breaks(&both, NOW, &["FAIL0005 by Stalled"]);
    let both = [ready(False), condition("Stalled", False), retried()];
    breaks(&both, NOW, &["FAIL0005 by Stalled", "WARN0004 by Stalled"]);
    let both = [ready(False), stalled(), running()];
    breaks(&both, NOW, &["FAIL0005 by Stalled"]);
}

#[test]
fn status_is_not_ahead_of_the_object() {
    breaks(&[ready(False), stalled()], NOW + 1, &["FAIL0006 by status"]);
    breaks(&[ready(Unknown), running()], NOW + 1, &["FAIL0006 by status"]);
    keeps(&[ready(False), retried()], -1);
}

#[test]
fn ready_status_is_of_the_generation_of_the_object() {
    let rules = ["FAIL0007 by Ready", "FAIL0009 by Ready"];
    breaks(&[ready(True)], NOW - 1, &rules);
    let list = [ready(True)];
    let none = Subject {
        observed_generation: None,
        ..subject(&list, 0)
    };
    assert_eq!(broken(&none), rules);
    keeps(&[ready(False), retried()], NOW - 1);
    keeps(&[ready(True), running()], NOW - 1);
}

#[test]
fn conditions_beside_ready_are_of_the_generation_of_the_object() {
    let verified = condition("SourceVerified", True);
    let old = [ready(True), of(NOW - 1, verified.clone())];
    let broken = ["FAIL0008 by SourceVerified", "FAIL0009 by SourceVerified"];
    breaks(&old, NOW, &broken);
    let old = [of(NOW - 1, ready(True)), verified.clone()];
    breaks(&old, NOW, &["FAIL0008 by Ready", "FAIL0009 by Ready"]);
    keeps(&[ready(False), retried(), of(NOW - 1, verified.clone())], NOW);
    keeps(
        &[of(NOW - 1, ready(True)), running(), of(NOW - 1, verified)],
        NOW - 1,
    );
}

#[test]
fn conditions_beside_ready_are_of_the_generation_of_the_status() {
    let all = [
        of(NOW - 1, ready(True)),
        of(NOW - 1, condition("SourceVerified", True)),
    ];
    let broken = [
        "FAIL0007 by Ready",
        "FAIL0008 by Ready",
        "FAIL0008 by SourceVerified",
    ];
    breaks(&all, NOW - 1, &broken);
    breaks(
        &[ready(True)],
        NOW - 2,
        &["FAIL0007 by Ready", "FAIL0009 by Ready"],
    );
}

#[test]
fn unknown_is_the_middle_of_a_pass() {
    breaks(&[ready(Unknown)], NOW, &["FAIL0011 by Ready"]);
    keeps(&[ready(Unknown), running()], NOW);
    // Not all kinds say so.
    for status in [Unknown, False] {
        let list = [ready(status)];
        let alone = Subject {
            kind: KindRules::of(group::FLUX_KLUCTL),
            ..subject(&list, NOW)
        };
        assert_eq!(broken(&alone), [""; 0]);
    }
}

#[test]
fn ready_has_reason_and_message_of_the_worst_condition() {
    let with = |message: &str, condition: Condition| Condition {
        message: message.to_owned(),
        ..condition
    };
    let fetch = with("refused", condition("FetchFailed", True));
    let outdated = condition("ArtifactOutdated", True);
    let other = [ready(False), retried(), fetch.clone(), outdated.clone()];
    breaks(&other, NOW, &["WARN0002 by FetchFailed"]);
    keeps(
        &[
            with("refused", ready(False)),
            retried(),
            fetch.clone(),
            outdated.clone(),
        ],
        NOW,
    );
    // The order of the conditions makes no difference.
    keeps(&[outdated, with("refused", ready(False)), fetch, retried()], NOW);
    let mut build = condition("BuildFailed", True);
    build.reason = "BuildFailed".to_owned();
    breaks(
        &[ready(False), stalled(), build],
        NOW,
        &["WARN0002 by BuildFailed"],
    );
    let verified = with("unsigned", condition("SourceVerified", False));
    let both = |message| {
        let outdated = condition("ArtifactOutdated", True);
        [with(message, ready(False)), retried(), verified.clone(), outdated]
    };
    keeps(&both("unsigned"), NOW);
    breaks(&both("because"), NOW, &["WARN0002 by SourceVerified"]);
    // Stalled and Reconciling may differ from Ready.
    keeps(&[ready(False), with("other", stalled())], NOW);
    keeps(&[ready(False), with("other", retried())], NOW);
}

#[test]
fn false_conditions_are_absent() {
    let left = [ready(False), stalled(), condition("Reconciling", False)];
    breaks(&left, NOW, &["FAIL0005 by Stalled", "WARN0003 by Reconciling"]);
    let left = [ready(True), condition("Stalled", False)];
    breaks(&left, NOW, &["WARN0001 by Stalled", "WARN0004 by Stalled"]);
}

#[test]
fn conditions_have_a_generation_that_exists() {
    let without = Condition {
        observed_generation: None,
        ..stalled()
    };
    breaks(&[ready(False), without], NOW, &["WARN0005 by Stalled"]);
    breaks(&[ready(False), of(0, stalled())], NOW, &["WARN0005 by Stalled"]);
    breaks(
        &[ready(False), of(NOW + 1, stalled())],
        NOW,
        &["AHEAD by Stalled"],
    );
    keeps(&[of(1, ready(False)), of(2, stalled())], NOW);
}

#[test]
fn failure_says_what_comes_next() {
    let failed = [ready(False)];
    breaks(&failed, NOW, &["OUTLOOK by Ready"]);
    let suspended = Subject {
        suspended: true,
        ..subject(&failed, NOW)
    };
    assert_eq!(broken(&suspended), [""; 0]);
}

#[test]
fn conditions_are_well_formed() {
    breaks(&[ready(True), ready(True)], NOW, &["UNIQUE by Ready"]);
    for bad in ["", "1st", "two words", "Trailing:", "ünicode"] {
        let reason = Condition {
            reason: bad.to_owned(),
            ..ready(True)
        };
        breaks(&[reason], NOW, &["REASON by Ready"]);
    }
    let silent = Condition {
        message: String::new(),
        ..ready(True)
    };
    breaks(&[silent], NOW, &["MESSAGE by Ready"]);
}

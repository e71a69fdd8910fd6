//! The rules. Each one returns the types of the conditions that break it.

use super::Subject;
use crate::{
    Condition, ConditionStatus,
    condition_type::{ARTIFACT_OUTDATED, PROBLEMS, READY, RECONCILING, SOURCE_VERIFIED, STALLED},
    conditions::get,
};

pub(super) type Rule = for<'a> fn(&Subject<'a>) -> Vec<&'a str>;

/// Rules of the status that a pass leaves.
pub(super) const AT_REST: &[(&str, Rule)] = &[
    ("FAIL0001", true_beside_ready),
    ("FAIL0003", ready_while_reconciling),
    ("FAIL0007", ready_of_old_status),
    ("FAIL0008", old_beside_ready),
    ("FAIL0009", other_generation_beside_ready),
    ("WARN0001", present_beside_ready),
    ("WARN0002", worse_than_ready),
    ("OUTLOOK", failed_without_outlook),
];

/// Rules of each status, also of one in the middle of a pass.
pub(super) const ALWAYS: &[(&str, Rule)] = &[
    ("FAIL0002", no_ready),
    ("FAIL0004", ready_while_stalled),
    ("FAIL0005", reconciling_and_stalled),
    ("FAIL0006", status_ahead),
    // Flux applies it to statuses in progress. A status whose pass ended is never Unknown, which this ensures as well.
    ("FAIL0011", unknown_without_reconciling),
    ("WARN0003", reconciling_false),
    ("WARN0004", stalled_false),
    ("WARN0005", without_generation),
    ("AHEAD", ahead),
    ("UNIQUE", duplicates),
    ("REASON", malformed_reasons),
    ("MESSAGE", without_message),
];

fn which<'a>(s: &Subject<'a>, breaks: impl Fn(&Condition) -> bool) -> Vec<&'a str> {
    let broken = s.conditions.iter().filter(|condition| breaks(condition));
    broken.map(|condition| condition.type_.as_str()).collect()
}

fn named(name: &str, broken: bool) -> Vec<&str> {
    if broken { vec![name] } else { Vec::new() }
}

fn is_negative(condition: &Condition) -> bool {
    PROBLEMS.contains(&condition.type_.as_str())
}

/// Negative conditions must not be True when Ready is.
fn true_beside_ready<'a>(s: &Subject<'a>) -> Vec<&'a str> {
    which(s, |condition| {
        s.holds(READY) && is_negative(condition) && condition.is_true()
    })
}

fn no_ready<'a>(s: &Subject<'a>) -> Vec<&'a str> {
    named(READY, get(s.conditions, READY).is_none())
}

/// Ready must be False when Reconciling is True.
fn ready_while_reconciling<'a>(s: &Subject<'a>) -> Vec<&'a str> {
    which(s, |ready| {
        ready.type_ == READY && !ready.is_false() && s.holds(RECONCILING)
    })
}

/// Ready must be False when Stalled is True.
fn ready_while_stalled<'a>(s: &Subject<'a>) -> Vec<&'a str> {
    which(s, |ready| {
        ready.type_ == READY && !ready.is_false() && s.holds(STALLED)
    })
}

/// Only one of Reconciling and Stalled must be present.
fn reconciling_and_stalled<'a>(s: &Subject<'a>) -> Vec<&'a str> {
    let both = [RECONCILING, STALLED].map(|name| get(s.conditions, name).is_some());
    named(STALLED, both == [true, true])
}

/// The generation of the status must not be ahead of the object's.
fn status_ahead<'a>(s: &Subject<'a>) -> Vec<&'a str> {
    named("status", s.observed() > s.generation)
}

/// Ready must be False when the status is of an older generation.
fn ready_of_old_status<'a>(s: &Subject<'a>) -> Vec<&'a str> {
    named(READY, s.is_ready() && s.observed() < s.generation)
}

/// Ready must be False when a condition is of an older generation.
fn old_beside_ready<'a>(s: &Subject<'a>) -> Vec<&'a str> {
    which(s, |condition| {
        s.is_ready() && condition.observed_generation.unwrap_or(0) < s.generation
    })
}

/// All conditions must be of the generation of the status when Ready is True.
fn other_generation_beside_ready<'a>(s: &Subject<'a>) -> Vec<&'a str> {
    which(s, |condition| {
        s.is_ready() && condition.observed_generation.unwrap_or(0) != s.observed()
    })
}

/// Reconciling must be True when Ready is Unknown, in kinds that have Reconciling.
fn unknown_without_reconciling<'a>(s: &Subject<'a>) -> Vec<&'a str> {
    let unknown = |condition: &Condition| condition.status == ConditionStatus::Unknown;
    which(s, |ready| {
        ready.type_ == READY && unknown(ready) && s.kind.reconciling && !s.holds(RECONCILING)
    })
}

/// Negative conditions should not be present when Ready is True.
fn present_beside_ready<'a>(s: &Subject<'a>) -> Vec<&'a str> {
    which(s, |condition| s.holds(READY) && is_negative(condition))
}

/// Ready should have reason and message of the first negative condition, unless that is Reconciling or Stalled. A failed verification
/// goes before ArtifactOutdated: it has both polarities, and Flux writes it to Ready like a negative condition.
fn worse_than_ready<'a>(s: &Subject<'a>) -> Vec<&'a str> {
    let unverified = || get(s.conditions, SOURCE_VERIFIED).filter(|verified| verified.is_false());
    let present = |name: &&str| match *name {
        ARTIFACT_OUTDATED => unverified().or_else(|| get(s.conditions, ARTIFACT_OUTDATED)),
        name => get(s.conditions, name),
    };
    let (Some(ready), Some(worst)) = (get(s.conditions, READY), PROBLEMS.iter().find_map(present)) else {
        return Vec::new();
    };
    let is_own = ![RECONCILING, STALLED].contains(&worst.type_.as_str());
    let differs = (&ready.reason, &ready.message) != (&worst.reason, &worst.message);
    named(&worst.type_, is_own && !ready.is_true() && differs)
}

/// Reconciling should be absent instead of False.
fn reconciling_false<'a>(s: &Subject<'a>) -> Vec<&'a str> {
    which(s, |condition| {
        condition.type_ == RECONCILING && condition.is_false()
    })
}

/// Stalled should be absent instead of False.
fn stalled_false<'a>(s: &Subject<'a>) -> Vec<&'a str> {
    which(s, |condition| condition.type_ == STALLED && condition.is_false())
}

/// Conditions should have a generation.
fn without_generation<'a>(s: &Subject<'a>) -> Vec<&'a str> {
    which(s, |condition| condition.observed_generation.unwrap_or(0) < 1)
}

/// Conditions must not be ahead of the object.
fn ahead<'a>(s: &Subject<'a>) -> Vec<&'a str> {
    which(s, |condition| condition.observed_generation > Some(s.generation))
}

/// Ready=False must come with Reconciling or Stalled, which say whether it is tried again.
fn failed_without_outlook<'a>(s: &Subject<'a>) -> Vec<&'a str> {
    let says = s.holds(RECONCILING) || s.holds(STALLED);
    which(s, |ready| {
        ready.type_ == READY && ready.is_false() && s.kind.outlook && !s.suspended && !says
    })
}

/// There must be one condition of a type.
fn duplicates<'a>(s: &Subject<'a>) -> Vec<&'a str> {
    let names = s.conditions.iter().map(|condition| condition.type_.as_str());
    let earlier = |index: usize, name| s.conditions.iter().take(index).any(|other| other.type_ == name);
    let repeated = names.enumerate().filter(|&(index, name)| earlier(index, name));
    repeated.map(|(_, name)| name).collect()
}

fn malformed_reasons<'a>(s: &Subject<'a>) -> Vec<&'a str> {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    which(s, |condition| {
        let reason = &condition.reason;
        let well_formed = reason.starts_with(|c: char| c.is_ascii_alphabetic())
            && reason.ends_with(word)
            && reason.len() <= 1024
            && reason.chars().all(|c| word(c) || c == ',' || c == ':');
        !well_formed
    })
}

fn without_message<'a>(s: &Subject<'a>) -> Vec<&'a str> {
    which(s, |condition| condition.message.is_empty())
}

//! The rules that kstatus, `kubectl wait` and the flux CLI expect of a status. Used by the tests of all kinds.

use std::collections::BTreeSet;
use std::fmt;

use super::get;
use crate::{Condition, ConditionStatus, condition_type as types};

/// The status to check, with its generation.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// `metadata.generation` of the object.
    pub generation: i64,
    /// `status.observedGeneration` of the object.
    pub observed_generation: Option<i64>,
    /// `status.conditions` of the object.
    pub conditions: &'a [Condition],
    /// The condition types that report a problem when True, besides Reconciling and Stalled.
    pub negative: &'a [&'a str],
}

/// A broken rule of a status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Violation {
    /// There is no Ready condition.
    ReadyMissing,
    /// Two conditions have the same type.
    Duplicate(String),
    /// Reconciling and Stalled are both True.
    ReconcilingAndStalled,
    /// Stalled is True, but Ready is not False.
    StalledButNotFailed,
    /// Ready is True beside a condition that reports a problem.
    ReadyDespite(String),
    /// A condition that reports a problem is present without being True.
    NegativeNotTrue(String),
    /// The status describes a generation that does not exist yet.
    GenerationAhead(String),
    /// Ready or Stalled is True, but the status does not describe the current generation.
    GenerationBehind,
    /// Ready describes another generation than the status.
    ReadyOfOtherGeneration,
    /// The reason is empty or malformed.
    BadReason(String),
    /// A condition has no message.
    NoMessage(String),
    /// Ready is False, but neither Reconciling nor Stalled is True.
    FailedWithoutOutlook,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

/// Lists the rules that the status breaks. With `outlook`, Ready=False needs Reconciling or Stalled; pass false for a kind
/// that has Ready alone.
#[must_use]
pub fn check(subject: &Subject<'_>, outlook: bool) -> Vec<Violation> {
    let mut found = Vec::new();
    each(subject, &mut found);
    let Some(ready) = get(subject.conditions, types::READY) else {
        found.push(Violation::ReadyMissing);
        return found;
    };
    let holds = |name: &str| get(subject.conditions, name).is_some_and(Condition::is_true);
    let (reconciling, stalled) = (holds(types::RECONCILING), holds(types::STALLED));
    if reconciling && stalled {
        found.push(Violation::ReconcilingAndStalled);
    }
    if stalled && !ready.is_false() {
        found.push(Violation::StalledButNotFailed);
    }
    if ready.is_true() {
        let bad = subject.negative.iter().filter(|name| holds(name));
        found.extend(bad.map(|name| Violation::ReadyDespite((*name).to_owned())));
    }
    generations(subject, ready, stalled, reconciling, &mut found);
    if outlook && ready.is_false() && !reconciling && !stalled {
        found.push(Violation::FailedWithoutOutlook);
    }
    found
}

fn generations(
    s: &Subject<'_>,
    ready: &Condition,
    stalled: bool,
    reconciling: bool,
    found: &mut Vec<Violation>,
) {
    if s.observed_generation
        .is_some_and(|observed| observed > s.generation)
    {
        found.push(Violation::GenerationAhead("status".to_owned()));
    }
    let settled = (ready.is_true() && !reconciling) || stalled;
    if settled && s.observed_generation != Some(s.generation) {
        found.push(Violation::GenerationBehind);
    }
    if settled
        && ready
            .observed_generation
            .is_some_and(|g| Some(g) != s.observed_generation)
    {
        found.push(Violation::ReadyOfOtherGeneration);
    }
}

fn each(s: &Subject<'_>, found: &mut Vec<Violation>) {
    let mut seen = BTreeSet::new();
    for condition in s.conditions {
        let name = || condition.type_.clone();
        if !seen.insert(&condition.type_) {
            found.push(Violation::Duplicate(name()));
        }
        if condition.observed_generation.is_some_and(|g| g > s.generation) {
            found.push(Violation::GenerationAhead(name()));
        }
        if !well_formed(&condition.reason) {
            found.push(Violation::BadReason(name()));
        }
        if condition.message.is_empty() {
            found.push(Violation::NoMessage(name()));
        }
        let negative = [types::RECONCILING, types::STALLED].contains(&condition.type_.as_str())
            || s.negative.contains(&condition.type_.as_str());
        if negative && condition.status != ConditionStatus::True {
            found.push(Violation::NegativeNotTrue(name()));
        }
    }
}

fn well_formed(reason: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    reason.starts_with(|c: char| c.is_ascii_alphabetic())
        && reason.ends_with(word)
        && reason.len() <= 1024
        && reason.chars().all(|c| word(c) || c == ',' || c == ':')
}

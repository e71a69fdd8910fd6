//! The rules of statuses that kstatus, `kubectl wait` and the flux CLI rely on. Used by the tests of all kinds.
//!
//! Rules called `FAIL` and `WARN` are in the package `runtime/conditions/check` of Flux. It has two lists of them, one for the status
//! that a pass leaves and one for the status in the middle of a pass. Flux only prints broken `WARN` rules; here, both kinds count.
//! `FAIL0010` is not among them: Flux removed it, since a retry works on the generation of the status. The other rules are
//! conventions of the Kubernetes API.

mod rules;
#[cfg(test)]
mod tests;

use std::fmt;

use super::{get, is_true};
use crate::{Condition, Reason, condition_type as types, group};
use rules::Rule;

/// The properties of a kind that rules depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KindRules {
    /// False for kinds whose statuses do not say if a pass runs, as `flux.kluctl.io` and its original: Ready is Unknown in the first pass,
    /// without Reconciling, and keeps its value in later ones.
    pub reconciling: bool,
    /// True for kinds whose statuses say after a failure if it is tried again. Those kinds of kluctl do not: the original removes
    /// Reconciling at the end of each pass, and its clients wait for that.
    pub outlook: bool,
}

impl KindRules {
    #[must_use]
    pub fn of(group: &str) -> Self {
        Self {
            reconciling: group != group::FLUX_KLUCTL,
            outlook: ![group::FLUX_KLUCTL, group::GITOPS_KLUCTL].contains(&group),
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    pub generation: i64,
    pub observed_generation: Option<i64>,
    pub conditions: &'a [Condition],
    pub kind: KindRules,
    /// True if the user suspended the object: nothing says then if a failure is retried.
    pub suspended: bool,
}

impl Subject<'_> {
    /// Returns true if the status is of the middle of a pass: a pass that failed and is retried has another reason.
    #[must_use]
    pub fn is_in_progress(&self) -> bool {
        let reconciling = get(self.conditions, types::RECONCILING);
        reconciling.is_some_and(|condition| {
            condition.is_true() && condition.reason != Reason::ProgressingWithRetry.as_str()
        })
    }

    fn holds(&self, name: &str) -> bool {
        is_true(self.conditions, name)
    }

    /// Returns true if Ready is True and the status neither is of a running pass nor says that the controller gave up.
    fn is_ready(&self) -> bool {
        self.holds(types::READY) && !self.holds(types::RECONCILING) && !self.holds(types::STALLED)
    }

    /// Returns the generation of the status; zero if it has none, as Flux reads it.
    fn observed(&self) -> i64 {
        self.observed_generation.unwrap_or(0)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    pub rule: &'static str,
    /// The type of the condition that breaks it.
    pub condition: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} by {}", self.rule, self.condition)
    }
}

#[must_use]
pub fn check(subject: &Subject<'_>) -> Vec<Violation> {
    let at_rest = match subject.is_in_progress() {
        true => &[],
        false => rules::AT_REST,
    };
    let broken = |(name, rule): &(&'static str, Rule)| {
        let violation = |condition: &str| Violation {
            rule: name,
            condition: condition.to_owned(),
        };
        rule(subject).into_iter().map(violation).collect::<Vec<_>>()
    };
    at_rest.iter().chain(rules::ALWAYS).flat_map(broken).collect()
}

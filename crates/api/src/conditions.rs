//! Functions over lists of conditions. Pure.

mod check;
#[cfg(test)]
mod tests;
mod writer;

pub use check::{KindRules, Subject, Violation, check};
pub use writer::ConditionWriter;

use std::cmp::Reverse;

use crate::{Condition, condition_type};

/// A status with conditions.
pub trait HasConditions {
    fn conditions(&self) -> &Vec<Condition>;

    fn conditions_mut(&mut self) -> &mut Vec<Condition>;
}

#[must_use]
pub fn get<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|c| c.type_ == type_)
}

#[must_use]
pub fn is_true(conditions: &[Condition], type_: &str) -> bool {
    get(conditions, type_).is_some_and(Condition::is_true)
}

#[must_use]
pub fn is_false(conditions: &[Condition], type_: &str) -> bool {
    get(conditions, type_).is_some_and(Condition::is_false)
}

/// Adds a condition, or replaces the one of the same type. The transition time is kept if the status is the same.
pub fn set(conditions: &mut Vec<Condition>, mut condition: Condition) {
    match conditions.iter_mut().find(|c| c.type_ == condition.type_) {
        Some(past) => {
            if past.status == condition.status {
                condition.last_transition_time = past.last_transition_time.clone();
            }
            *past = condition;
        }
        None => conditions.push(condition),
    }
}

pub fn remove(conditions: &mut Vec<Condition>, type_: &str) -> bool {
    let before = conditions.len();
    conditions.retain(|c| c.type_ != type_);
    conditions.len() != before
}

/// Copies to each new condition the transition time of the past one of the same type and status: for a status that is
/// created anew instead of changed in place.
pub fn carry_times(past: &[Condition], new: &mut [Condition]) {
    for condition in new {
        if let Some(old) = get(past, &condition.type_).filter(|old| old.status == condition.status) {
            condition.last_transition_time = old.last_transition_time.clone();
        }
    }
}

/// Sorts conditions as clients expect: Stalled, Reconciling, Ready, then by generation (newest first) and by type.
pub fn sort(conditions: &mut [Condition]) {
    conditions.sort_by_cached_key(|c| (rank(&c.type_), Reverse(c.observed_generation), c.type_.clone()));
}

fn rank(type_: &str) -> u8 {
    match type_ {
        condition_type::STALLED => 0,
        condition_type::RECONCILING => 1,
        condition_type::READY => 2,
        _ => 3,
    }
}

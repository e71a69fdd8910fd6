//! Writes the conditions that all kinds have. Pure.

use super::{carry_times, remove, set, sort};
use crate::{Condition, ConditionStatus, Time, condition_type};

/// Writes Ready, Reconciling and Stalled of a new status. Each call replaces the condition; [`ConditionWriter::finish`] sorts them, and
/// keeps the transition times of those whose status did not change.
#[derive(Debug)]
pub struct ConditionWriter<'a> {
    conditions: &'a mut Vec<Condition>,
    generation: Option<i64>,
    now: &'a Time,
}

impl<'a> ConditionWriter<'a> {
    /// Starts with the conditions of a status, without Reconciling and Stalled.
    pub fn new(conditions: &'a mut Vec<Condition>, generation: Option<i64>, now: &'a Time) -> Self {
        remove(conditions, condition_type::RECONCILING);
        remove(conditions, condition_type::STALLED);
        Self {
            conditions,
            generation,
            now,
        }
    }

    /// Sets Ready.
    #[must_use]
    pub fn ready(self, status: impl Into<ConditionStatus>, reason: impl Into<String>, message: &str) -> Self {
        self.set(condition_type::READY, status, reason, message)
    }

    /// Sets Reconciling to True.
    #[must_use]
    pub fn reconciling(self, reason: impl Into<String>, message: &str) -> Self {
        self.set(condition_type::RECONCILING, true, reason, message)
    }

    /// Sets Stalled to True.
    #[must_use]
    pub fn stalled(self, reason: impl Into<String>, message: &str) -> Self {
        self.set(condition_type::STALLED, true, reason, message)
    }

    fn set(
        self,
        type_: &str,
        status: impl Into<ConditionStatus>,
        reason: impl Into<String>,
        message: &str,
    ) -> Self {
        let condition = Condition::new(type_, status, reason, message, self.generation, self.now.clone());
        set(self.conditions, condition);
        self
    }

    /// Sorts the conditions, with the transition times of the past ones.
    pub fn finish(self, past: &[Condition]) {
        carry_times(past, self.conditions);
        sort(self.conditions);
    }
}

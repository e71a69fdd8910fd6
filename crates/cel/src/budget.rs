//! The limits of an evaluation.

use crate::{Value, pattern::PatternError};

/// Bytes that are compared, copied or searched in one step.
const STEP_BYTES: usize = 64;

/// Limits of one evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Parts of expressions, items, and units of 64 bytes. The default, 500,000, takes less than 0.2 s.
    pub steps: usize,
    /// Bytes of all values that the evaluation makes, in total; by default 32 MiB.
    pub bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            steps: 500_000,
            bytes: 32 << 20,
        }
    }
}

/// The reason why an expression has no value for these variables. Other values may have one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EvalError {
    #[error("the expression takes more than {0} steps")]
    Steps(usize),
    #[error("the expression takes more than {0} bytes of memory")]
    Memory(usize),
    /// An operation has no result. Operators that don't need it continue without it.
    #[error("{0}")]
    Failed(String),
}

impl EvalError {
    pub(crate) fn failed(why: impl Into<String>) -> Self {
        Self::Failed(why.into())
    }

    /// Returns true if the budget is exhausted: then the whole evaluation ends.
    pub(crate) fn is_final(&self) -> bool {
        !matches!(self, Self::Failed(_))
    }
}

impl From<PatternError> for EvalError {
    fn from(error: PatternError) -> Self {
        Self::Failed(format!("invalid regular expression: {error}"))
    }
}

pub(crate) struct Budget {
    limits: Limits,
    steps: usize,
    bytes: usize,
}

impl Budget {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            steps: limits.steps,
            bytes: limits.bytes,
        }
    }

    pub(crate) fn spend(&mut self, steps: usize) -> Result<(), EvalError> {
        let left = self.steps.checked_sub(steps);
        self.steps = left.unwrap_or(0);
        left.map(|_| ()).ok_or(EvalError::Steps(self.limits.steps))
    }

    /// Spends the steps for comparing, copying or searching bytes.
    pub(crate) fn spend_bytes(&mut self, bytes: usize) -> Result<(), EvalError> {
        self.spend(1 + bytes / STEP_BYTES)
    }

    /// Reserves the memory of a value that is about to be made.
    pub(crate) fn allocate(&mut self, bytes: usize) -> Result<(), EvalError> {
        let left = self.bytes.checked_sub(bytes);
        self.bytes = left.unwrap_or(0);
        left.map(|_| ()).ok_or(EvalError::Memory(self.limits.bytes))
    }

    /// Reserves the memory of items of a list or entries of a map.
    pub(crate) fn allocate_items(&mut self, items: usize) -> Result<(), EvalError> {
        self.allocate(items.saturating_mul(size_of::<Value>()))
    }
}

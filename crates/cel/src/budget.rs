//! The limits of an evaluation.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use crate::{Value, pattern::PatternError, value::Key};

/// Bytes that are compared, copied or searched in one step.
const STEP_BYTES: usize = 64;
/// Bytes of keys that are compared in one step while a map is searched.
const SEARCH_BYTES: usize = 1024;
/// Keys that are compared at each halving of a map.
const SEARCH_WIDTH: usize = 3;

/// Limits of one evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Parts of expressions, items, and units of 64 bytes. The default, 500,000, takes less than 0.2 s.
    pub steps: usize,
    /// Bytes of all values that the evaluation makes, in total; by default 32 MiB.
    pub bytes: usize,
}

impl Limits {
    /// Limits of all expressions of one pass of a controller over an object, apart from the limits of each evaluation: 20,000,000 steps, which take
    /// less than 8 s. The values of an evaluation end with it, so their bytes are not added up.
    pub const OF_PASS: Self = Self {
        steps: 20_000_000,
        bytes: usize::MAX,
    };
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
    /// The evaluations that share an [`Allowance`] exceed it.
    #[error("the expressions together take more than {0} steps")]
    AllSteps(usize),
    #[error("the values of the expressions together take more than {0} bytes of memory")]
    AllMemory(usize),
    #[error("the evaluation was cancelled")]
    Cancelled,
    /// A variable has no value: the longest path of fields that was read from it. Otherwise as [`EvalError::Failed`].
    #[error("no such attribute(s): {0}")]
    Missing(String),
    /// An operation has no result. Operators that don't need it continue without it.
    #[error("{0}")]
    Failed(String),
}

impl EvalError {
    pub(crate) fn failed(why: impl Into<String>) -> Self {
        Self::Failed(why.into())
    }

    /// Adds a field to the path of a variable without a value.
    pub(crate) fn below(mut self, field: &str) -> Self {
        if let Self::Missing(path) = &mut self {
            path.push('.');
            path.push_str(field);
        }
        self
    }

    /// Returns true if the budget is exhausted: then the whole evaluation ends.
    pub(crate) fn is_final(&self) -> bool {
        !matches!(self, Self::Failed(_) | Self::Missing(_))
    }
}

impl From<PatternError> for EvalError {
    fn from(error: PatternError) -> Self {
        Self::Failed(format!("invalid regular expression: {error}"))
    }
}

/// Steps and bytes that several evaluations take from, such as all of one request, and a flag that ends them.
#[derive(Debug, Clone)]
pub struct Allowance {
    limits: Limits,
    left: Limits,
    cancelled: Option<Arc<AtomicBool>>,
}

impl Allowance {
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            left: limits,
            cancelled: None,
        }
    }

    /// Ends evaluations with [`EvalError::Cancelled`] soon after the flag is true.
    #[must_use]
    pub fn with_cancellation(mut self, cancelled: Arc<AtomicBool>) -> Self {
        self.cancelled = Some(cancelled);
        self
    }

    /// Returns the steps and bytes that are left.
    #[must_use]
    pub const fn left(&self) -> Limits {
        self.left
    }

    /// Spends steps for other work, such as compiling: a step for each byte of an expression.
    pub fn spend(&mut self, steps: usize) -> Result<(), EvalError> {
        if is_set(self.cancelled.as_ref()) {
            return Err(EvalError::Cancelled);
        }
        let left = self.left.steps.checked_sub(steps);
        self.left.steps = left.unwrap_or(0);
        left.map(|_| ()).ok_or(EvalError::AllSteps(self.limits.steps))
    }

    /// Converts a value of an object, for a step for each part and each 64 bytes of text.
    pub fn convert(&mut self, value: &yaml::Value) -> Result<Value, EvalError> {
        self.spend(conversion_steps(value))?;
        Ok(value.into())
    }
}

/// Returns the steps of converting a value: one for each part, and for each 64 bytes of text.
fn conversion_steps(value: &yaml::Value) -> usize {
    let text = |text: &str| 1 + text.len() / STEP_BYTES;
    match value {
        yaml::Value::String(value) => text(value),
        yaml::Value::Seq(items) => 1 + items.iter().map(conversion_steps).sum::<usize>(),
        yaml::Value::Map(fields) => {
            let fields = fields.iter();
            let steps = fields.map(|(name, value)| text(name) + conversion_steps(value));
            1 + steps.sum::<usize>()
        }
        _ => 1,
    }
}

fn is_set(flag: Option<&Arc<AtomicBool>>) -> bool {
    flag.is_some_and(|flag| flag.load(Ordering::Relaxed))
}

pub(crate) struct Budget {
    limits: Limits,
    allowance: Limits,
    /// The smaller one of limits and allowance at the start.
    start: Limits,
    steps: usize,
    bytes: usize,
    all: Limits,
    cancelled: Option<Arc<AtomicBool>>,
}

impl Budget {
    pub(crate) fn new(limits: Limits, allowance: &Allowance) -> Self {
        let start = Limits {
            steps: limits.steps.min(allowance.left.steps),
            bytes: limits.bytes.min(allowance.left.bytes),
        };
        Self {
            limits,
            allowance: allowance.left,
            start,
            steps: start.steps,
            bytes: start.bytes,
            all: allowance.limits,
            cancelled: allowance.cancelled.clone(),
        }
    }

    /// Takes the steps and bytes of the evaluation from an allowance.
    pub(crate) fn charge(&self, allowance: &mut Allowance) {
        let used = |start: usize, left: usize| start.saturating_sub(left);
        let left = &mut allowance.left;
        left.steps = left.steps.saturating_sub(used(self.start.steps, self.steps));
        left.bytes = left.bytes.saturating_sub(used(self.start.bytes, self.bytes));
    }

    pub(crate) fn spend(&mut self, steps: usize) -> Result<(), EvalError> {
        if is_set(self.cancelled.as_ref()) {
            return Err(EvalError::Cancelled);
        }
        let left = self.steps.checked_sub(steps);
        self.steps = left.unwrap_or(0);
        left.map(|_| ())
            .ok_or(match self.allowance.steps < self.limits.steps {
                true => EvalError::AllSteps(self.all.steps),
                false => EvalError::Steps(self.limits.steps),
            })
    }

    /// Spends the comparisons of a search for a key in a map with this number of fields.
    pub(crate) fn spend_search(&mut self, fields: usize, key: &Key) -> Result<(), EvalError> {
        let Key::String(text) = key else {
            return Ok(());
        };
        let halvings = usize::try_from(usize::BITS - fields.leading_zeros()).unwrap_or(usize::MAX);
        let bytes = text.len().saturating_mul(halvings.saturating_mul(SEARCH_WIDTH));
        self.spend(bytes / SEARCH_BYTES)
    }

    /// Spends the steps for comparing, copying or searching bytes.
    pub(crate) fn spend_bytes(&mut self, bytes: usize) -> Result<(), EvalError> {
        self.spend(1 + bytes / STEP_BYTES)
    }

    /// Reserves the memory of a value that is about to be made.
    pub(crate) fn allocate(&mut self, bytes: usize) -> Result<(), EvalError> {
        let left = self.bytes.checked_sub(bytes);
        self.bytes = left.unwrap_or(0);
        left.map(|_| ())
            .ok_or(match self.allowance.bytes < self.limits.bytes {
                true => EvalError::AllMemory(self.all.bytes),
                false => EvalError::Memory(self.limits.bytes),
            })
    }

    /// Reserves the memory of items of a list or entries of a map.
    pub(crate) fn allocate_items(&mut self, items: usize) -> Result<(), EvalError> {
        self.allocate(items.saturating_mul(size_of::<Value>()))
    }
}

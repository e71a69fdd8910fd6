//! Bounds the attempts to open the data key of a file: its author chooses the messages, and often the keys.

use tree::{Budget, Exceeded};

/// Units of work that may be spent on the data key of one file. A unit is about 50 µs: one X25519 agreement. A thousand identities for a
/// hundred messages are within it.
const MAX_UNITS: u64 = 1 << 18;
/// Steps of the budget for a unit.
const STEPS: u64 = 1000;

/// Work left for one file.
#[derive(Debug)]
pub(crate) struct Attempts<'a> {
    budget: &'a Budget,
    left: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refused {
    #[error("it takes too many attempts, or keys that are too large: remove keys that don't open it")]
    TooMany,
    #[error(transparent)]
    Exceeded(#[from] Exceeded),
}

impl<'a> Attempts<'a> {
    pub(crate) fn new(budget: &'a Budget) -> Self {
        Self {
            budget,
            left: MAX_UNITS,
        }
    }

    /// Fails if less work is left.
    pub(crate) fn expect(&self, units: u64) -> Result<(), Refused> {
        self.left.checked_sub(units).map(drop).ok_or(Refused::TooMany)
    }

    /// Charges work before it is done, and polls the budget.
    pub(crate) fn charge(&mut self, units: u64) -> Result<(), Refused> {
        self.left = self.left.checked_sub(units).ok_or(Refused::TooMany)?;
        self.budget.step(units.saturating_mul(STEPS))?;
        Ok(self.budget.check()?)
    }

    #[cfg(test)]
    pub(crate) fn spent(&self) -> u64 {
        MAX_UNITS - self.left
    }
}

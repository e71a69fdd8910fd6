//! The work of evaluations, which is charged before it is done.

use go::regexp::Pattern;
use yaml::Value;

use super::JsonPathError;

/// Maximum number of values that one evaluation visits, and of all evaluations for an object that share a meter.
const MAX_VISITS: u64 = 1_000_000;
const MAX_SHARED_VISITS: u64 = 2 * MAX_VISITS;
/// Maximum work of the patterns for an object: 16 MB of text with small ones, and kilobytes with the largest.
const MAX_MATCHING: u64 = 16 << 20;
/// Bytes of paths and of compared strings that count as a visited value.
const VISIT_BYTES: usize = 64;

/// Counts the work of paths and patterns for one object.
#[derive(Debug, Clone)]
pub struct Meter {
    visits: u64,
    matching: u64,
}

impl Default for Meter {
    fn default() -> Self {
        Self {
            visits: MAX_SHARED_VISITS,
            matching: MAX_MATCHING,
        }
    }
}

impl Meter {
    /// Makes a meter for one path.
    pub(super) fn of_path() -> Self {
        Self {
            visits: MAX_VISITS,
            matching: MAX_MATCHING,
        }
    }

    pub(super) fn visit(&mut self, values: u64) -> Result<(), JsonPathError> {
        let left = self.visits.checked_sub(values);
        self.visits = left.unwrap_or(0);
        left.map(|_| ()).ok_or(JsonPathError::TooManyValues)
    }

    /// Charges the comparison or the copy of a string.
    pub(super) fn text(&mut self, bytes: usize) -> Result<(), JsonPathError> {
        self.visit((bytes / VISIT_BYTES) as u64)
    }

    /// Returns true if a pattern has a match in a string. The search is charged before.
    ///
    /// # Errors
    /// Fails when the meter is used up.
    pub fn is_match(&mut self, pattern: &Pattern, text: &str) -> Result<bool, JsonPathError> {
        let left = self.matching.checked_sub(pattern.steps(text.len()));
        self.matching = left.unwrap_or(0);
        left.map(|_| pattern.is_match(text))
            .ok_or(JsonPathError::TooMuchMatching)
    }

    /// Returns true if two values are equal, and charges their common part.
    pub(super) fn equal(&mut self, a: &Value, b: &Value) -> Result<bool, JsonPathError> {
        self.visit(1)?;
        match (a, b) {
            (Value::String(a), Value::String(b)) => {
                self.text(a.len().min(b.len()))?;
                Ok(a == b)
            }
            (Value::Seq(a), Value::Seq(b)) => {
                if a.len() != b.len() {
                    return Ok(false);
                }
                for (a, b) in a.iter().zip(b) {
                    if !self.equal(a, b)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            (Value::Map(a), Value::Map(b)) => {
                if a.len() != b.len() {
                    return Ok(false);
                }
                for (name, value) in a {
                    self.text(name.len())?;
                    match b.get(name) {
                        Some(other) if self.equal(value, other)? => {}
                        _ => return Ok(false),
                    }
                }
                Ok(true)
            }
            _ => Ok(a == b),
        }
    }
}

//! Counts strings that are repeated for each object or item.

use tree::Budget;

use crate::Error;

/// Repeated strings up to this size cost nothing: hardly an object has more labels.
const FREE_BYTES: usize = 8 << 10;

/// Counts the bytes of repeated strings, beyond the usual size.
pub(crate) fn count(
    budget: &Budget,
    lens: impl Iterator<Item = usize>,
    operation: impl FnOnce() -> String,
) -> Result<(), Error> {
    // With the overhead in memory.
    let bytes: usize = lens.map(|len| len.saturating_add(64)).sum();
    let counted = budget.output(bytes.saturating_sub(FREE_BYTES) as u64);
    counted.map_err(|source| Error::Budget {
        operation: operation(),
        source,
    })
}

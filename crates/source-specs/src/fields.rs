//! Checks of fields that several kinds have.

use std::time::Duration;

use api::{Fault, Reason};

/// Checks that the interval of a source is positive. Fails with a stalling fault that names the field.
pub fn check_interval(interval: Duration) -> Result<(), Fault> {
    match interval.is_zero() {
        true => Err(Fault::stall(
            Reason::InvalidSpec,
            "spec.interval: it must be more than nothing",
        )),
        false => Ok(()),
    }
}

/// Returns a string of a spec unless it is empty, which is as good as absent.
#[must_use]
pub fn given(text: &Option<String>) -> Option<&str> {
    text.as_deref().filter(|text| !text.is_empty())
}

//! Names of objects, which become parts of URLs of the API server.

use crate::{Fault, Reason};

/// Returns true for a DNS subdomain, as the names of most objects are.
#[must_use]
pub fn is_object_name(name: &str) -> bool {
    let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    name.len() <= 253
        && edge(name.chars().next())
        && edge(name.chars().next_back())
        && name
            .chars()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.'))
}

/// Checks the name of an object. Another one could lead to an object of another namespace, as a part of a path.
///
/// # Errors
/// A stalling fault that names the field at `path` and its value.
pub fn check_object_name(path: &str, name: &str) -> Result<(), Fault> {
    match is_object_name(name) {
        true => Ok(()),
        false => Err(Fault::stall(
            Reason::InvalidSpec,
            format!("{path}: {name:?}: is not a valid object name"),
        )),
    }
}

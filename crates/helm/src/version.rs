//! Versions and ranges of charts and of Kubernetes.

use versions::{Constraint, Version};

/// Accepts fewer than three numbers.
pub(crate) fn is_version(text: &str) -> bool {
    Version::parse(text).is_ok()
}

/// Returns true if a version is in a range; false if either is invalid.
pub(crate) fn is_compatible(range: &str, version: &str) -> bool {
    match (Constraint::parse(range), Version::parse(version)) {
        (Ok(range), Ok(version)) => range.matches(&version),
        _ => false,
    }
}

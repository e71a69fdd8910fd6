//! Versions and ranges of charts and of Kubernetes.

use versions::{Constraint, Version};

/// Whether a text is a version, also one that lacks numbers.
pub(crate) fn is_version(text: &str) -> bool {
    Version::parse(text).is_ok()
}

/// Whether a version is in a range; what is neither is not.
pub(crate) fn is_compatible(range: &str, version: &str) -> bool {
    match (Constraint::parse(range), Version::parse(version)) {
        (Ok(range), Ok(version)) => range.matches(&version),
        _ => false,
    }
}

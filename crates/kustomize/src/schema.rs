//! What is known of the fields of kinds: the built-in tables, and what `openapi` adds or puts in their place.

/// The schema of a build.
#[derive(Debug, Default)]
pub(crate) struct Schema {}

//! What is known of the fields of kinds: the built-in tables, and what `openapi` adds or puts in their place.

/// The schema of a build.
#[derive(Debug, Default)]
pub(crate) struct Schema {}

impl Schema {
    pub(crate) fn set(
        &mut self,
        _: &std::collections::BTreeMap<String, String>,
        _: Option<&[u8]>,
        _: bool,
        _: crate::OpenApi,
        _: &tree::Budget,
    ) -> Result<(), crate::Error> {
        Ok(())
    }
}

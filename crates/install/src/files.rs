//! The embedded files.

use tree::Mem;

use crate::Error;

/// Paths relative to the root of the repository, and contents.
pub(crate) const FILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/files.rs"));

pub(crate) fn tree() -> Result<Mem, Error> {
    Mem::from_files(FILES.iter().copied()).map_err(|error| Error::Embedded(error.to_string()))
}

/// Returns the text of a file, by its path relative to the root of the repository.
pub(crate) fn text(path: &str) -> Option<&'static str> {
    FILES
        .iter()
        .find_map(|(known, text)| (*known == path).then_some(*text))
}

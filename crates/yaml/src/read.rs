//! Readers, one function a dialect.
//!
//! The dialects agree on layout and differ in what a plain scalar means:
//!
//! | text | [`goyaml`] | [`kustomize`] | [`pyyaml`] |
//! |---|---|---|---|
//! | `yes`, `on` | true | "yes", "on" | true |
//! | `y` | true | "y" | "y" |
//! | `0o17` | 15 | 15 | "0o17" |
//! | `1e3` | 1000 | 1000 | "1e3" |
//! | `1.0` | 1 | 1 | 1.0 |
//! | `1:30` | "1:30" | "1:30" | 90 |
//! | `2020-01-01` | "2020-01-01" | "2020-01-01T00:00:00Z" | "2020-01-01" |
//! | `.inf` | error | error | infinity |
//! | a key set twice | error | error | the last one wins |
//! | `<<` against an own key | error | the own key wins | the own key wins |
//!
//! Every reader accepts bytes in UTF-8, or in UTF-16 with a byte order mark, and ends with one error when the text is
//! larger than a file may be, nested too deeply, or expands its aliases too far.

mod compose;
mod events;
mod goyaml;
mod kustomize;
mod number;
mod pyyaml;
mod tag;
#[cfg(test)]
mod tests;
mod timestamp;

pub(crate) use goyaml::resolves as goyaml_resolves;
pub(crate) use pyyaml::resolves as pyyaml_resolves;

use tree::Budget;

use crate::{Error, Position, Problem, Value};
use compose::{Composer, Dialect};

/// One document of a stream.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Document {
    /// Its value; null for an empty document.
    pub value: Value,
    /// Where its value begins.
    pub position: Position,
}

/// Reads the first document as sigs.k8s.io/yaml does in strict mode; later documents are not looked at. A text without
/// any document is null.
///
/// # Errors
/// When the text is no YAML, has a key twice, a key that is null, a list or a map, or an infinite number.
pub fn goyaml(text: impl AsRef<[u8]>, budget: &Budget) -> Result<Document, Error> {
    first(text.as_ref(), &goyaml::DIALECT, budget)
}

/// Reads all documents as [`goyaml`] reads one; those that are null are dropped.
///
/// # Errors
/// As [`goyaml`], for any of the documents.
pub fn goyaml_all(text: impl AsRef<[u8]>, budget: &Budget) -> Result<Vec<Document>, Error> {
    all(text.as_ref(), &goyaml::DIALECT, budget)
}

/// Reads the first document as kustomize does; later documents are not looked at. A text without any document is null.
///
/// # Errors
/// When the text is no YAML, has a key twice, a key that isn't a string, or an infinite number.
pub fn kustomize(text: impl AsRef<[u8]>, budget: &Budget) -> Result<Document, Error> {
    first(text.as_ref(), &kustomize::DIALECT, budget)
}

/// Reads all documents as [`kustomize`] reads one; those that are null are dropped.
///
/// # Errors
/// As [`kustomize`], for any of the documents.
pub fn kustomize_all(text: impl AsRef<[u8]>, budget: &Budget) -> Result<Vec<Document>, Error> {
    all(text.as_ref(), &kustomize::DIALECT, budget)
}

/// Reads the only document as PyYAML's `SafeLoader` does. A text without any document is null.
///
/// What [`Value`] has no word for becomes the text that Python's `str` gives: dates, and keys that aren't strings. Integers
/// beyond 64 bits become floats.
///
/// # Errors
/// When the text is no YAML, has a second document, a key that is a list or a map, or a tag that `SafeLoader` refuses.
/// `!!binary`, `!!omap` and `!!pairs` are refused too.
pub fn pyyaml(text: impl AsRef<[u8]>, budget: &Budget) -> Result<Document, Error> {
    let text = events::decode(text.as_ref(), budget)?;
    let mut composer = Composer::new(&text, &pyyaml::DIALECT, budget);
    let Some(document) = composer.document()? else {
        return Ok(Document::default());
    };
    match composer.document()? {
        None => Ok(document),
        Some(second) => Err(Error::new(second.position, Problem::SecondDocument)),
    }
}

fn first(text: &[u8], dialect: &Dialect, budget: &Budget) -> Result<Document, Error> {
    let text = events::decode(text, budget)?;
    Ok(Composer::new(&text, dialect, budget)
        .document()?
        .unwrap_or_default())
}

fn all(text: &[u8], dialect: &Dialect, budget: &Budget) -> Result<Vec<Document>, Error> {
    let text = events::decode(text, budget)?;
    let mut composer = Composer::new(&text, dialect, budget);
    let mut documents = Vec::new();
    while let Some(document) = composer.document()? {
        if !document.value.is_null() {
            documents.push(document);
        }
    }
    Ok(documents)
}

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

mod build;
mod comments;
mod compose;
mod construct;
mod dialect;
mod events;
mod goyaml;
mod graph;
mod kustomize;
mod merge;
mod number;
mod pyyaml;
mod restyle;
mod simple;
mod tag;
#[cfg(test)]
mod tests;
mod timestamp;

pub use build::{Build, Opened};
pub(crate) use goyaml::resolves as goyaml_resolves;
pub(crate) use kustomize::kind as kustomize_kind;
pub(crate) use pyyaml::resolves as pyyaml_resolves;
pub use pyyaml::{PythonScalar, python_scalar};
pub(crate) use restyle::restyled;

use tree::Budget;

use crate::{Error, Position, Problem, Value, graph::Graph, node::Node};
use compose::Composer;
use dialect::Dialect;

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

/// Reads the first document as [`goyaml`] does, where it is not strict: of a key that is set twice the last value counts.
///
/// # Errors
/// As [`goyaml`], but for keys that are set twice.
pub fn goyaml_lenient(text: impl AsRef<[u8]>, budget: &Budget) -> Result<Document, Error> {
    first(text.as_ref(), &goyaml::LENIENT, budget)
}

/// Reads the first document as [`goyaml_lenient`] does, for those who only want some entries of the map that it is: those with
/// keys that `wanted` tells. Others may be left out.
///
/// # Errors
/// As [`goyaml_lenient`].
pub fn goyaml_lenient_part(
    text: impl AsRef<[u8]>,
    wanted: &dyn Fn(&str) -> bool,
    budget: &Budget,
) -> Result<Document, Error> {
    part(text.as_ref(), wanted, &goyaml::LENIENT, budget)
}

/// Reads the first document as [`goyaml_lenient`] does, into what the caller works with; nothing of a text without any
/// document.
///
/// # Errors
/// As [`goyaml_lenient`].
pub fn goyaml_lenient_as<T: Build>(text: impl AsRef<[u8]>, budget: &Budget) -> Result<Option<T>, Error> {
    let built = build(text.as_ref(), &|_| true, &goyaml::LENIENT, budget)?;
    Ok(built.map(|(value, _)| value))
}

/// Reads the first document as [`goyaml_lenient_as`] does, for those who take every number for a float: `-0.0` keeps its
/// sign.
///
/// # Errors
/// As [`goyaml_lenient`].
pub fn goyaml_floats_as<T: Build>(text: impl AsRef<[u8]>, budget: &Budget) -> Result<Option<T>, Error> {
    let built = build(text.as_ref(), &|_| true, &goyaml::FLOATS, budget)?;
    Ok(built.map(|(value, _)| value))
}

/// Reads all documents as [`goyaml`] reads one; those that are null are dropped.
///
/// # Errors
/// As [`goyaml`], for any of the documents.
pub fn goyaml_all(text: impl AsRef<[u8]>, budget: &Budget) -> Result<Vec<Document>, Error> {
    all(text.as_ref(), &goyaml::DIALECT, budget)
}

/// Reads all documents as [`goyaml_lenient`] reads one; those that are null are dropped.
///
/// # Errors
/// As [`goyaml_lenient`], for any of the documents.
pub fn goyaml_lenient_all(text: impl AsRef<[u8]>, budget: &Budget) -> Result<Vec<Document>, Error> {
    all(text.as_ref(), &goyaml::LENIENT, budget)
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
    let Some(first) = document(&mut composer, &pyyaml::DIALECT)? else {
        return Ok(Document::default());
    };
    match document(&mut composer, &pyyaml::DIALECT)? {
        None => Ok(first),
        Some(second) => Err(Error::new(second.position, Problem::SecondDocument)),
    }
}

/// Reads the only document with its anchors, for who makes of it what PyYAML's `SafeLoader` does. A text without any document
/// is nothing.
///
/// # Errors
/// When the text is no YAML or has a second document.
pub fn graph(text: impl AsRef<[u8]>, budget: &Budget) -> Result<Option<Graph>, Error> {
    let text = events::decode(text.as_ref(), budget)?;
    graph::read(&text, budget)
}

/// Reads all documents in kustomize's dialect without resolving their scalars; those that are null are dropped. Merge keys
/// are resolved: what they bring stands behind the map's own entries.
///
/// # Errors
/// When the text is no YAML, has a key that is a list or a map, or a merge key that is set twice or brings something else
/// than maps.
pub fn nodes(text: impl AsRef<[u8]>, budget: &Budget) -> Result<Vec<Node>, Error> {
    let text = events::decode(text.as_ref(), budget)?;
    let mut composer = Composer::new(&text, &kustomize::DIALECT, budget);
    let mut nodes = Vec::new();
    while let Some(node) = merged(&mut composer)? {
        if !node.is_null() {
            nodes.push(node);
        }
    }
    Ok(nodes)
}

/// Reads the first document as [`nodes`] does; later documents are not looked at. There is none when it is null.
///
/// # Errors
/// As [`nodes`].
pub fn node(text: impl AsRef<[u8]>, budget: &Budget) -> Result<Option<Node>, Error> {
    let text = events::decode(text.as_ref(), budget)?;
    let first = merged(&mut Composer::new(&text, &kustomize::DIALECT, budget))?;
    Ok(first.filter(|node| !node.is_null()))
}

/// All of a text: what [`written`] gives.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Written {
    /// The documents, those that are null, too.
    pub documents: Vec<Node>,
    /// The comments of all documents, in their order.
    pub comments: Vec<Comment>,
}

/// A comment of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comment {
    /// Where its `#` is.
    pub position: Position,
    /// What stands behind the `#`, without blanks at its end.
    pub text: String,
    /// Nothing else is on its line.
    pub alone: bool,
}

/// Reads all documents as [`nodes`] does, as they are written: with those that are null, with comments, and with merge keys
/// as the keys that they are.
///
/// # Errors
/// When the text is no YAML in UTF-8, or has a key that is a list or a map.
pub fn written(text: &str, budget: &Budget) -> Result<Written, Error> {
    let decoded = events::decode(text.as_bytes(), budget)?;
    let mut composer = Composer::new(&decoded, &kustomize::DIALECT, budget);
    let mut documents = Vec::new();
    while let Some(node) = composer.document()? {
        documents.push(node);
    }
    let comments = if text.contains('#') {
        restyle::comments(text, budget)?
    } else {
        Vec::new()
    };
    Ok(Written { documents, comments })
}

/// What [`Node::into_value`] gives.
pub(crate) fn kustomize_value(node: Node) -> Result<Value, Error> {
    construct::value(node, &kustomize::PRINTED)
}

fn first(text: &[u8], dialect: &Dialect, budget: &Budget) -> Result<Document, Error> {
    part(text, &|_| true, dialect, budget)
}

/// The first document, of which all that is wanted is kept.
fn part(
    text: &[u8],
    wanted: &dyn Fn(&str) -> bool,
    dialect: &Dialect,
    budget: &Budget,
) -> Result<Document, Error> {
    let built = build(text, wanted, dialect, budget)?;
    Ok(
        built.map_or_else(Document::default, |(value, position)| Document {
            value,
            position,
        }),
    )
}

/// What the first document becomes, and where it begins.
fn build<T: Build>(
    text: &[u8],
    wanted: &dyn Fn(&str) -> bool,
    dialect: &Dialect,
    budget: &Budget,
) -> Result<Option<(T, Position)>, Error> {
    let text = events::decode(text, budget)?;
    if let Some(simple) = simple::read(&text, wanted, budget) {
        budget
            .step(simple.events)
            .map_err(|exceeded| Error::new(simple.node.position, exceeded))?;
        return constructed(simple.node, dialect).map(Some);
    }
    let text = text.shortened();
    let node = Composer::new(&text, dialect, budget).document()?;
    node.map(|node| constructed(node, dialect)).transpose()
}

fn all(text: &[u8], dialect: &Dialect, budget: &Budget) -> Result<Vec<Document>, Error> {
    let text = events::decode(text, budget)?;
    let mut composer = Composer::new(&text, dialect, budget);
    let mut documents = Vec::new();
    while let Some(document) = document(&mut composer, dialect)? {
        if !document.value.is_null() {
            documents.push(document);
        }
    }
    Ok(documents)
}

/// The next document as a value.
fn document(composer: &mut Composer<'_>, dialect: &Dialect) -> Result<Option<Document>, Error> {
    let Some(node) = composer.document()? else {
        return Ok(None);
    };
    let (value, position) = constructed(node, dialect)?;
    Ok(Some(Document { value, position }))
}

/// What a node becomes, and where it begins.
fn constructed<T: Build>(node: Node, dialect: &Dialect) -> Result<(T, Position), Error> {
    let position = node.position;
    Ok((construct::value(node, dialect)?, position))
}

/// The next document as a node without merge keys.
fn merged(composer: &mut Composer<'_>) -> Result<Option<Node>, Error> {
    let mut node = composer.document()?;
    if let Some(node) = &mut node
        && composer.has_merges()
    {
        merge::resolve(node)?;
    }
    Ok(node)
}

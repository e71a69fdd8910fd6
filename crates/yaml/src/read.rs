//! Readers, one function per dialect.
//!
//! The dialects agree on layout and differ in the meaning of plain scalars:
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
//! Every reader accepts UTF-8, or UTF-16 with a byte order mark, and fails if the document is larger than
//! [`tree::Limits::file_bytes`], nested deeper than `yaml_depth` (at most 200), or expands its aliases to more than
//! `alias_bytes`.

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
mod parse;
mod pyyaml;
pub(crate) mod resolve;
mod restyle;
mod scan;
mod simple;
#[cfg(test)]
mod tests;
mod timestamp;
mod written;

pub use build::{Build, Opened};
pub(crate) use pyyaml::resolves as pyyaml_resolves;
pub use pyyaml::{PythonScalar, python_scalar};
pub(crate) use resolve::goyaml_resolves;
pub(crate) use restyle::restyled;
pub use written::{Comment, Written};

use tree::Budget;

use crate::{Error, Position, Problem, Value, graph::Graph, node::Node};
use compose::Composer;
use dialect::Dialect;

/// A document of a YAML stream; null if it is empty.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Document {
    pub value: Value,
    pub position: Position,
}

/// Returns a number that the nodes of a document don't exceed, without parsing it: its separators, and one.
#[must_use]
pub fn most_nodes(text: &[u8]) -> usize {
    let is_separator = |byte: &&u8| matches!(byte, b',' | b'\n' | b'[' | b'{' | b':');
    text.iter().filter(is_separator).count() + 1
}

/// Reads the first document as sigs.k8s.io/yaml does in strict mode; later documents are ignored. An empty stream is null.
/// Fails if the stream is not valid YAML, has a key twice, a key that is null, a list or a map, or an infinite number.
pub fn goyaml(text: impl AsRef<[u8]>, budget: &Budget) -> Result<Document, Error> {
    first(text.as_ref(), &goyaml::DIALECT, budget)
}

/// Reads the first document as [`goyaml`] does without strict mode: the last value of a key that is set twice counts.
pub fn goyaml_lenient(text: impl AsRef<[u8]>, budget: &Budget) -> Result<Document, Error> {
    first(text.as_ref(), &goyaml::LENIENT, budget)
}

/// Reads the first document as [`goyaml_lenient`] does, for callers that need only the entries of its map whose keys are
/// `wanted`. Others may be omitted.
pub fn goyaml_lenient_part(
    text: impl AsRef<[u8]>,
    wanted: &dyn Fn(&str) -> bool,
    budget: &Budget,
) -> Result<Document, Error> {
    part(text.as_ref(), wanted, &goyaml::LENIENT, budget)
}

/// Reads the first document as [`goyaml_lenient`] does, into a type of the caller; `None` for an empty stream.
pub fn goyaml_lenient_as<T: Build>(text: impl AsRef<[u8]>, budget: &Budget) -> Result<Option<T>, Error> {
    let built = build(text.as_ref(), &|_| true, &goyaml::LENIENT, budget)?;
    Ok(built.map(|(value, _)| value))
}

/// Reads the first document as [`goyaml_lenient_as`] does, for callers that treat every number as a float: `-0.0` keeps its
/// sign.
pub fn goyaml_floats_as<T: Build>(text: impl AsRef<[u8]>, budget: &Budget) -> Result<Option<T>, Error> {
    let built = build(text.as_ref(), &|_| true, &goyaml::FLOATS, budget)?;
    Ok(built.map(|(value, _)| value))
}

/// Reads all documents as [`goyaml`] reads one; null documents are dropped.
pub fn goyaml_all(text: impl AsRef<[u8]>, budget: &Budget) -> Result<Vec<Document>, Error> {
    all(text.as_ref(), &goyaml::DIALECT, budget)
}

/// Reads all documents as [`goyaml_lenient`] reads one; null documents are dropped.
pub fn goyaml_lenient_all(text: impl AsRef<[u8]>, budget: &Budget) -> Result<Vec<Document>, Error> {
    all(text.as_ref(), &goyaml::LENIENT, budget)
}

/// Reads the first document as kustomize does; later documents are ignored. An empty stream is null. Fails if the stream is
/// not valid YAML, has a key twice, a key that isn't a string, or an infinite number.
pub fn kustomize(text: impl AsRef<[u8]>, budget: &Budget) -> Result<Document, Error> {
    first(text.as_ref(), &kustomize::DIALECT, budget)
}

/// Reads all documents as [`kustomize`] reads one; null documents are dropped.
pub fn kustomize_all(text: impl AsRef<[u8]>, budget: &Budget) -> Result<Vec<Document>, Error> {
    all(text.as_ref(), &kustomize::DIALECT, budget)
}

/// Reads the only document as PyYAML's `SafeLoader` does. An empty stream is null. Dates and keys that aren't strings become
/// the strings that Python's `str` gives, since [`Value`] has no such types. Integers beyond 64 bits become floats. Fails if
/// the stream is not valid YAML, has a second document, a key that is a list or a map, or a tag that `SafeLoader` refuses;
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

/// Reads the only document with its anchors, for callers that construct values as PyYAML's `SafeLoader` does; `None` for an
/// empty stream. Fails if the stream is not valid YAML or has a second document.
pub fn graph(text: impl AsRef<[u8]>, budget: &Budget) -> Result<Option<Graph>, Error> {
    let text = events::decode(text.as_ref(), budget)?;
    graph::read(&text, budget)
}

/// Reads all documents in kustomize's dialect without resolving their scalars; null documents are dropped. Merge keys are
/// resolved: merged entries follow the map's own. Fails if the stream is not valid YAML, has a key that is a list or a map,
/// or a merge key that is set twice or whose value is not a map or maps.
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

/// Reads the first document as [`nodes`] does; later documents are ignored. `None` for null and for an empty stream.
pub fn node(text: impl AsRef<[u8]>, budget: &Budget) -> Result<Option<Node>, Error> {
    let text = events::decode(text.as_ref(), budget)?;
    let first = merged(&mut Composer::new(&text, &kustomize::DIALECT, budget))?;
    Ok(first.filter(|node| !node.is_null()))
}

/// Reads all documents as [`nodes`] does, but as written: with null documents, comments and unresolved merge keys. Fails if
/// the stream is not valid YAML in UTF-8, or has a key that is a list or a map.
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

impl Node {
    /// Returns the value in kustomize's dialect: plain scalars are resolved and times are normalised. Fails if a map has a
    /// key twice or a key that isn't a string, a scalar doesn't match its tag, or a number is infinite.
    pub fn to_value(&self) -> Result<Value, Error> {
        self.clone().into_value()
    }

    /// Returns the value as [`Node::to_value`] does, without copying. A null without any characters becomes an empty string
    /// between brackets, as in `{a: }`: kustomize prints it with quotes there before it reads it again.
    pub fn into_value(self) -> Result<Value, Error> {
        construct::value(self, &kustomize::PRINTED)
    }
}

fn first(text: &[u8], dialect: &Dialect, budget: &Budget) -> Result<Document, Error> {
    part(text, &|_| true, dialect, budget)
}

/// Reads at least the wanted entries of the first document.
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

/// Builds the first document, and returns it with its position.
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

fn document(composer: &mut Composer<'_>, dialect: &Dialect) -> Result<Option<Document>, Error> {
    let Some(node) = composer.document()? else {
        return Ok(None);
    };
    let (value, position) = constructed(node, dialect)?;
    Ok(Some(Document { value, position }))
}

fn constructed<T: Build>(node: Node, dialect: &Dialect) -> Result<(T, Position), Error> {
    let position = node.position;
    Ok((construct::value(node, dialect)?, position))
}

/// Reads the next document as a node and resolves its merge keys.
fn merged(composer: &mut Composer<'_>) -> Result<Option<Node>, Error> {
    let mut node = composer.document()?;
    if let Some(node) = &mut node
        && composer.has_merges()
    {
        merge::resolve(node)?;
    }
    Ok(node)
}

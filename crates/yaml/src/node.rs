//! A document as it was composed, before its scalars are resolved.
//!
//! [`Value`] forgets how a scalar was written; a [`Node`] keeps the text (`1.10` stays `1.10`), the tag, keys that are set
//! twice and keys that are no strings. [`Node::into_value`] is where all of that is resolved or refused, in kustomize's
//! dialect. Anchors are expanded before a node is made.

mod mapping;
#[cfg(test)]
mod tests;

pub use ecow::EcoString as Text;
pub use mapping::{Entry, Mapping};

use std::num::NonZeroU32;

use crate::{Error, Position, Value, print::number::go_yaml, read};

/// A part of a composed document. Nodes are equal when their contents are; positions don't count.
#[derive(Debug, Clone)]
pub struct Node {
    /// Where it begins in its source text; the default for a node that was not read.
    pub position: Position,
    /// What it holds.
    pub content: Content,
}

/// What a [`Node`] holds.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// A scalar as written.
    Scalar(Scalar),
    /// A list.
    Seq(Vec<Node>),
    /// A map.
    Map(Mapping),
}

/// A scalar as written. Scalars are equal when their texts, tags and styles are.
#[derive(Debug, Clone)]
pub struct Scalar {
    /// Its text, without quotes.
    pub text: Text,
    /// Its tag. Without one, plain text is what it looks like, and any other text is a string.
    pub tag: Option<Tag>,
    /// Neither quoted nor a block.
    pub plain: bool,
    /// A number that all places of a document have which are to hold the same scalar. Whoever writes into one of them sees
    /// to the others; nothing is done about it here.
    pub share: Option<NonZeroU32>,
    /// Read between brackets, without a tag: see [`Node::into_value`].
    pub in_flow: bool,
}

/// The kind of a scalar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tag {
    /// `!!null`
    Null,
    /// `!!bool`
    Bool,
    /// `!!int`
    Int,
    /// `!!float`
    Float,
    /// `!!str`
    Str,
    /// `!!timestamp`
    Timestamp,
    /// `!!binary`: base64, decoded only when it becomes a value.
    Binary,
    /// A tag that means nothing here; the scalar becomes a string.
    Other,
}

impl Scalar {
    /// A string, whatever its text looks like.
    pub fn string(text: impl Into<Text>) -> Self {
        Self {
            text: text.into(),
            tag: Some(Tag::Str),
            plain: false,
            share: None,
            in_flow: false,
        }
    }

    /// Plain text, which is what it looks like.
    pub fn plain(text: impl Into<Text>) -> Self {
        Self {
            text: text.into(),
            tag: None,
            plain: true,
            share: None,
            in_flow: false,
        }
    }

    fn tagged(text: impl Into<Text>, tag: Tag) -> Self {
        Self {
            text: text.into(),
            tag: Some(tag),
            plain: true,
            share: None,
            in_flow: false,
        }
    }

    /// The tag, or what the text looks like to kustomize.
    #[must_use]
    pub fn kind(&self) -> Tag {
        match self.tag {
            Some(tag) => tag,
            None if self.plain => read::kustomize_kind(&self.text),
            None => Tag::Str,
        }
    }

    /// Whether this is null.
    #[must_use]
    pub fn is_null(&self) -> bool {
        self.kind() == Tag::Null
    }

    /// Whether this is a string.
    #[must_use]
    pub fn is_string(&self) -> bool {
        self.kind() == Tag::Str
    }

    /// Whether this is the key that brings in the entries of other maps.
    pub(crate) fn is_merge(&self) -> bool {
        self.plain && self.tag.is_none() && &*self.text == "<<"
    }
}

impl Node {
    /// A node that comes from nowhere.
    #[must_use]
    pub fn new(content: Content) -> Self {
        Self {
            position: Position::default(),
            content,
        }
    }

    /// A string, whatever its text looks like.
    pub fn string(text: impl Into<Text>) -> Self {
        Scalar::string(text).into()
    }

    /// A scalar of plain text, which is what it looks like.
    pub fn plain(text: impl Into<Text>) -> Self {
        Scalar::plain(text).into()
    }

    /// Null.
    #[must_use]
    pub fn null() -> Self {
        Scalar::tagged("null", Tag::Null).into()
    }

    /// An empty map.
    #[must_use]
    pub fn map() -> Self {
        Mapping::new().into()
    }

    /// A list.
    #[must_use]
    pub fn seq(items: Vec<Node>) -> Self {
        Self::new(Content::Seq(items))
    }

    /// Whether this is a scalar that is null.
    #[must_use]
    pub fn is_null(&self) -> bool {
        self.as_scalar().is_some_and(Scalar::is_null)
    }

    /// The text of a scalar of any kind but null.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        let scalar = self.as_scalar().filter(|scalar| !scalar.is_null())?;
        Some(&scalar.text)
    }

    /// The text of a string.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        let scalar = self.as_scalar().filter(|scalar| scalar.is_string())?;
        Some(&scalar.text)
    }

    /// The scalar.
    #[must_use]
    pub fn as_scalar(&self) -> Option<&Scalar> {
        match &self.content {
            Content::Scalar(scalar) => Some(scalar),
            _ => None,
        }
    }

    /// The scalar, to change it.
    pub fn as_scalar_mut(&mut self) -> Option<&mut Scalar> {
        match &mut self.content {
            Content::Scalar(scalar) => Some(scalar),
            _ => None,
        }
    }

    /// The map.
    #[must_use]
    pub fn as_map(&self) -> Option<&Mapping> {
        match &self.content {
            Content::Map(mapping) => Some(mapping),
            _ => None,
        }
    }

    /// The map, to change it.
    pub fn as_map_mut(&mut self) -> Option<&mut Mapping> {
        match &mut self.content {
            Content::Map(mapping) => Some(mapping),
            _ => None,
        }
    }

    /// The items of a list.
    #[must_use]
    pub fn as_seq(&self) -> Option<&[Node]> {
        match &self.content {
            Content::Seq(items) => Some(items),
            _ => None,
        }
    }

    /// The items of a list, to change them.
    pub fn as_seq_mut(&mut self) -> Option<&mut Vec<Node>> {
        match &mut self.content {
            Content::Seq(items) => Some(items),
            _ => None,
        }
    }

    /// The value under `key`, when this is a map that has it.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.as_map()?.get(key)
    }

    /// The value under `key`, to change it.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Node> {
        self.as_map_mut()?.get_mut(key)
    }

    /// Walks down the keys of maps and the decimal indexes of lists.
    #[must_use]
    pub fn pointer(&self, path: &[&str]) -> Option<&Node> {
        path.iter().try_fold(self, |node, part| match &node.content {
            Content::Map(mapping) => mapping.get(part),
            Content::Seq(items) => items.get(part.parse::<usize>().ok()?),
            Content::Scalar(_) => None,
        })
    }

    /// Walks down as [`Node::pointer`] does, to change what is there.
    pub fn pointer_mut(&mut self, path: &[&str]) -> Option<&mut Node> {
        path.iter().try_fold(self, |node, part| match &mut node.content {
            Content::Map(mapping) => mapping.get_mut(part),
            Content::Seq(items) => items.get_mut(part.parse::<usize>().ok()?),
            Content::Scalar(_) => None,
        })
    }

    /// Sets `key` as [`Mapping::set`] does; false, and nothing done, when this is no map.
    pub fn set(&mut self, key: &str, value: Node) -> bool {
        self.as_map_mut().map(|mapping| mapping.set(key, value)).is_some()
    }

    /// Removes `key` as [`Mapping::remove`] does.
    pub fn remove(&mut self, key: &str) -> Option<Node> {
        self.as_map_mut()?.remove(key)
    }

    /// Takes away what makes scalars the same as others: see [`Scalar::share`].
    pub fn unshare(&mut self) {
        match &mut self.content {
            Content::Scalar(scalar) => scalar.share = None,
            Content::Seq(items) => items.iter_mut().for_each(Self::unshare),
            Content::Map(map) => map.values_mut().for_each(Self::unshare),
        }
    }

    /// What this is, in the word that kustomize's messages use.
    #[must_use]
    pub fn kind_name(&self) -> &'static str {
        match self.content {
            Content::Scalar(_) => "ScalarNode",
            Content::Seq(_) => "SequenceNode",
            Content::Map(_) => "MappingNode",
        }
    }

    /// The value in kustomize's dialect: what scalars look like is resolved and times are normalised.
    ///
    /// # Errors
    /// When a map has a key twice or a key that isn't a string, a scalar isn't what its tag says, or a number is infinite.
    pub fn to_value(&self) -> Result<Value, Error> {
        self.clone().into_value()
    }

    /// The value as [`Node::to_value`] gives it, without copying.
    ///
    /// A null of which nothing is written is an empty text between brackets, as in `{a: }`: kustomize prints it with quotes
    /// there before it reads it again.
    ///
    /// # Errors
    /// As [`Node::to_value`].
    pub fn into_value(self) -> Result<Value, Error> {
        read::kustomize_value(self)
    }

    /// The node of a value. Numbers and booleans have their tags, texts are strings.
    #[must_use]
    pub fn from_value(value: &Value) -> Self {
        match value {
            Value::Null => Self::null(),
            Value::Bool(value) => Scalar::tagged(value.to_string(), Tag::Bool).into(),
            Value::Int(value) => Scalar::tagged(value.to_string(), Tag::Int).into(),
            Value::UInt(value) => Scalar::tagged(value.to_string(), Tag::Int).into(),
            Value::Float(value) => Scalar::tagged(go_yaml(*value), Tag::Float).into(),
            Value::String(text) => Self::string(text.as_str()),
            Value::Seq(items) => Self::seq(items.iter().map(Self::from_value).collect()),
            Value::Map(map) => Mapping::from_map(map).into(),
        }
    }
}

impl PartialEq for Scalar {
    fn eq(&self, other: &Self) -> bool {
        (&self.text, self.tag, self.plain) == (&other.text, other.tag, other.plain)
    }
}

impl Eq for Scalar {}

impl PartialEq for Node {
    fn eq(&self, other: &Self) -> bool {
        self.content == other.content
    }
}

impl From<Scalar> for Node {
    fn from(scalar: Scalar) -> Self {
        Self::new(Content::Scalar(scalar))
    }
}

impl From<Mapping> for Node {
    fn from(mapping: Mapping) -> Self {
        Self::new(Content::Map(mapping))
    }
}

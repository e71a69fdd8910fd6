//! A document as it was composed, before its scalars are resolved.
//!
//! A [`Value`] forgets the notation of a scalar; a [`Node`] keeps its characters (`1.10` stays `1.10`), its tag, keys that
//! are set twice and keys that aren't strings. [`Node::into_value`] resolves all of that or fails, in kustomize's dialect.
//! Anchors are expanded before a node is made.

mod mapping;
#[cfg(test)]
mod tests;

pub use ecow::EcoString as Text;
pub use mapping::{Entry, Mapping};

pub use crate::tag::Tag;

use std::num::NonZeroU32;

use crate::{Position, Value, print::number::go_yaml, read::resolve::kustomize_kind};

/// A part of a composed document. Nodes are equal when their contents are; positions don't count. The position of a node
/// that was not read is the default.
#[derive(Debug, Clone)]
pub struct Node {
    pub position: Position,
    pub content: Content,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// As written.
    Scalar(Scalar),
    Seq(Vec<Node>),
    Map(Mapping),
}

/// A scalar as written. Scalars are equal if their content, tags and styles are.
#[derive(Debug, Clone)]
pub struct Scalar {
    /// Without quotes.
    pub text: Text,
    /// Without a tag, a plain scalar is resolved from its content, and any other scalar is a string.
    pub tag: Option<Tag>,
    /// True if the scalar is neither quoted nor a block.
    pub plain: bool,
    /// A number that scalars share which must stay equal. The caller that writes to one of them must update the others; this
    /// crate does not.
    pub share: Option<NonZeroU32>,
    /// True if it was read in a flow collection, without a tag; see [`Node::into_value`].
    pub in_flow: bool,
}

impl Scalar {
    /// Makes a string, whatever type its content looks like.
    pub fn string(text: impl Into<Text>) -> Self {
        Self {
            text: text.into(),
            tag: Some(Tag::Str),
            plain: false,
            share: None,
            in_flow: false,
        }
    }

    /// Makes a plain scalar, whose type is resolved from its content.
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

    /// Returns the tag, or the one that kustomize resolves from the content.
    #[must_use]
    pub fn kind(&self) -> Tag {
        match self.tag {
            Some(tag) => tag,
            None if self.plain => kustomize_kind(&self.text),
            None => Tag::Str,
        }
    }

    #[must_use]
    pub fn is_null(&self) -> bool {
        self.kind() == Tag::Null
    }

    #[must_use]
    pub fn is_string(&self) -> bool {
        self.kind() == Tag::Str
    }

    pub(crate) fn is_merge(&self) -> bool {
        self.plain && self.tag.is_none() && &*self.text == "<<"
    }
}

impl Node {
    #[must_use]
    pub fn new(content: Content) -> Self {
        Self {
            position: Position::default(),
            content,
        }
    }

    pub fn string(text: impl Into<Text>) -> Self {
        Scalar::string(text).into()
    }

    pub fn plain(text: impl Into<Text>) -> Self {
        Scalar::plain(text).into()
    }

    #[must_use]
    pub fn null() -> Self {
        Scalar::tagged("null", Tag::Null).into()
    }

    #[must_use]
    pub fn map() -> Self {
        Mapping::new().into()
    }

    #[must_use]
    pub fn seq(items: Vec<Node>) -> Self {
        Self::new(Content::Seq(items))
    }

    #[must_use]
    pub fn is_null(&self) -> bool {
        self.as_scalar().is_some_and(Scalar::is_null)
    }

    /// Returns the content of a scalar of any type but null.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        let scalar = self.as_scalar().filter(|scalar| !scalar.is_null())?;
        Some(&scalar.text)
    }

    /// Returns the content of a string.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        let scalar = self.as_scalar().filter(|scalar| scalar.is_string())?;
        Some(&scalar.text)
    }

    #[must_use]
    pub fn as_scalar(&self) -> Option<&Scalar> {
        match &self.content {
            Content::Scalar(scalar) => Some(scalar),
            _ => None,
        }
    }

    pub fn as_scalar_mut(&mut self) -> Option<&mut Scalar> {
        match &mut self.content {
            Content::Scalar(scalar) => Some(scalar),
            _ => None,
        }
    }

    #[must_use]
    pub fn as_map(&self) -> Option<&Mapping> {
        match &self.content {
            Content::Map(mapping) => Some(mapping),
            _ => None,
        }
    }

    pub fn as_map_mut(&mut self) -> Option<&mut Mapping> {
        match &mut self.content {
            Content::Map(mapping) => Some(mapping),
            _ => None,
        }
    }

    #[must_use]
    pub fn as_seq(&self) -> Option<&[Node]> {
        match &self.content {
            Content::Seq(items) => Some(items),
            _ => None,
        }
    }

    pub fn as_seq_mut(&mut self) -> Option<&mut Vec<Node>> {
        match &mut self.content {
            Content::Seq(items) => Some(items),
            _ => None,
        }
    }

    /// Returns the value under `key` of a map.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.as_map()?.get(key)
    }

    pub fn get_mut(&mut self, key: &str) -> Option<&mut Node> {
        self.as_map_mut()?.get_mut(key)
    }

    /// Follows a path of keys of maps and decimal indexes of lists.
    #[must_use]
    pub fn pointer(&self, path: &[&str]) -> Option<&Node> {
        path.iter().try_fold(self, |node, part| match &node.content {
            Content::Map(mapping) => mapping.get(part),
            Content::Seq(items) => items.get(part.parse::<usize>().ok()?),
            Content::Scalar(_) => None,
        })
    }

    pub fn pointer_mut(&mut self, path: &[&str]) -> Option<&mut Node> {
        path.iter().try_fold(self, |node, part| match &mut node.content {
            Content::Map(mapping) => mapping.get_mut(part),
            Content::Seq(items) => items.get_mut(part.parse::<usize>().ok()?),
            Content::Scalar(_) => None,
        })
    }

    /// Sets `key` as [`Mapping::set`] does. Returns false if the node is not a map.
    pub fn set(&mut self, key: &str, value: Node) -> bool {
        self.as_map_mut().map(|mapping| mapping.set(key, value)).is_some()
    }

    pub fn remove(&mut self, key: &str) -> Option<Node> {
        self.as_map_mut()?.remove(key)
    }

    /// Clears [`Scalar::share`] of all scalars.
    pub fn unshare(&mut self) {
        match &mut self.content {
            Content::Scalar(scalar) => scalar.share = None,
            Content::Seq(items) => items.iter_mut().for_each(Self::unshare),
            Content::Map(map) => map.values_mut().for_each(Self::unshare),
        }
    }

    /// Returns the kind in the words of kustomize's messages, such as `MappingNode`.
    #[must_use]
    pub fn kind_name(&self) -> &'static str {
        match self.content {
            Content::Scalar(_) => "ScalarNode",
            Content::Seq(_) => "SequenceNode",
            Content::Map(_) => "MappingNode",
        }
    }

    /// Makes the node of a value. Numbers and booleans get their tags.
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

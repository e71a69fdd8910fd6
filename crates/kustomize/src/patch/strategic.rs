//! The strategic merge of a patch into an object.
//!
//! The original shares nodes between patch and result: it merges nodes that came from the patch as if they were patched by
//! themselves. [`Sources::Same`] is that case.

mod list;
#[cfg(test)]
mod tests;

use std::{
    cell::RefCell,
    collections::{HashMap, HashSet},
};

use yaml::{
    Node,
    node::{Content, Entry, Mapping, Scalar, Tag, Text},
};

use crate::{
    Error,
    error::Step,
    lookup::{self, has_type, is_null, is_quoted},
    resource::Written,
    schema::{Schema, Shape},
};

/// The key of a merge directive in a map.
const DIRECTIVE: &str = "$patch";

/// Merges a patch into an object; `None` if nothing is left of it. `step` counts steps. Fails if patch and object don't fit
/// each other, the patch has an unknown directive, or `step` fails.
pub(crate) fn merge(
    mut object: Node,
    patch: &Node,
    schema: &Schema,
    step: &dyn Fn(u64) -> Result<(), Error>,
) -> Result<Option<Node>, Error> {
    // Directives are removed from the patch when they are obeyed.
    let mut patch = patch.clone();
    let merger = Merger {
        schema,
        step,
        written: RefCell::default(),
    };
    let remainder = merger.walk(Sources::Two(Some(&mut object), Some(&mut patch)), None)?;
    merger.written.into_inner().spread(&mut object);
    // quirk: a patch with the directive to replace the whole object is lost.
    Ok((remainder != Remainder::Nothing).then_some(object))
}

struct Merger<'m> {
    schema: &'m Schema,
    step: &'m dyn Fn(u64) -> Result<(), Error>,
    written: RefCell<Written>,
}

/// The nodes to be merged at one path.
enum Sources<'n> {
    /// The nodes of the object and of the patch.
    Two(Option<&'n mut Node>, Option<&'n mut Node>),
    /// A node of the patch that was taken over, and is now both.
    Same(&'n mut Node),
}

/// The node that remains at a path, already changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Remainder {
    Object,
    Patch,
    Nothing,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Directive {
    Merge,
    Replace,
    Delete,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ContentKind {
    Map,
    Seq,
    Scalar,
}

impl Sources<'_> {
    fn present(&self) -> impl Iterator<Item = &Node> {
        let (first, second) = match self {
            Self::Two(object, patch) => (object.as_deref(), patch.as_deref()),
            Self::Same(node) => (Some(&**node), None),
        };
        first.into_iter().chain(second).filter(|node| !is_null(node))
    }

    /// Returns the kind of the merged nodes; a map if there are none or only nulls.
    fn kind(&self) -> Result<ContentKind, Error> {
        let kind_of = |node: &Node| match node.content {
            Content::Map(_) => ContentKind::Map,
            Content::Seq(_) => ContentKind::Seq,
            Content::Scalar(_) => ContentKind::Scalar,
        };
        let kind = self.present().next().map_or(ContentKind::Map, kind_of);
        match self.present().find(|node| kind_of(node) != kind) {
            None => Ok(kind),
            Some(other) => Err(wrong_kind(kind, other)),
        }
    }
}

/// Names both kinds, without the content, which may be secret.
fn wrong_kind(expected: ContentKind, node: &Node) -> Error {
    let expected = match expected {
        ContentKind::Map => "MappingNode",
        ContentKind::Seq => "SequenceNode",
        ContentKind::Scalar => "ScalarNode",
    };
    lookup::wrong_kind(expected, node.kind_name())
}

impl<'m> Merger<'m> {
    fn walk(&self, sources: Sources<'_>, shape: Option<Shape<'m>>) -> Result<Remainder, Error> {
        (self.step)(1)?;
        let shape = match shape {
            Some(shape) => Some(shape),
            None => self.infer(&sources)?,
        };
        match sources.kind()? {
            ContentKind::Map => self.map(sources, shape),
            ContentKind::Seq => match shape.and_then(Shape::merge_keys) {
                Some(keys) => self.list(sources, &keys, shape.and_then(Shape::elements)),
                None => Ok(replaced(&sources)),
            },
            ContentKind::Scalar => Ok(replaced(&sources)),
        }
    }

    /// Infers the schema of a value from its apiVersion and kind.
    fn infer(&self, sources: &Sources<'_>) -> Result<Option<Shape<'m>>, Error> {
        for node in sources.present() {
            let text = |key: &str| node.get(key).and_then(Node::as_text).unwrap_or_default();
            let (api_version, kind) = (text("apiVersion"), text("kind"));
            if api_version.is_empty() || kind.is_empty() {
                continue;
            }
            if let Some(shape) = self.schema.root(api_version, kind)? {
                return Ok(Some(shape));
            }
        }
        Ok(None)
    }

    fn map(&self, sources: Sources<'_>, shape: Option<Shape<'m>>) -> Result<Remainder, Error> {
        match sources {
            Sources::Same(node) => match as_map(Some(node)) {
                None => Ok(Remainder::Nothing),
                Some(map) => match directive(map)? {
                    Directive::Delete => Ok(Remainder::Nothing),
                    Directive::Merge | Directive::Replace => {
                        self.fields(map, true, shape)?;
                        Ok(Remainder::Object)
                    }
                },
            },
            Sources::Two(Some(object), None) if is_null(object) => Ok(explicit_null(object)),
            Sources::Two(object, patch) => self.two_maps(as_map(object), patch, shape),
        }
    }

    fn two_maps(
        &self,
        object: Option<&mut Mapping>,
        patch: Option<&mut Node>,
        shape: Option<Shape<'m>>,
    ) -> Result<Remainder, Error> {
        let Some(object) = object else {
            let Some(patch) = as_map(patch) else {
                return Ok(Remainder::Nothing);
            };
            // An unknown directive is not an error here.
            if directive(patch).is_ok_and(|directive| directive == Directive::Delete) {
                return Ok(Remainder::Nothing);
            }
            self.fields(patch, true, shape)?;
            return Ok(Remainder::Patch);
        };
        let Some(patch) = patch else {
            self.fields(object, false, shape)?;
            return Ok(Remainder::Object);
        };
        let Some(patch) = as_map(Some(patch)) else {
            return Ok(Remainder::Nothing);
        };
        match directive(patch)? {
            Directive::Delete => Ok(Remainder::Nothing),
            Directive::Replace => {
                self.fields(patch, true, shape)?;
                Ok(Remainder::Patch)
            }
            Directive::Merge => {
                self.merge_fields(object, patch, shape)?;
                Ok(Remainder::Object)
            }
        }
    }

    /// Walks a map alone: one of the patch that was taken over (`same`), or one of the object that the patch doesn't have.
    fn fields(&self, map: &mut Mapping, same: bool, shape: Option<Shape<'m>>) -> Result<(), Error> {
        let mut first = firsts(map);
        let mut gone = false;
        for (entry, first) in map.entries_mut().iter_mut().zip(&mut first) {
            if !*first {
                continue;
            }
            let shape = shape.and_then(|shape| shape.field(&entry.key.text));
            let sources = if same {
                Sources::Same(&mut entry.value)
            } else {
                Sources::Two(Some(&mut entry.value), None)
            };
            let remainder = self.walk(sources, shape)?;
            self.retype(&mut entry.value);
            // From here on, true marks entries to be removed.
            *first = remainder == Remainder::Nothing;
            gone |= *first;
        }
        if gone {
            drop_marked(map, &first);
        }
        Ok(())
    }

    fn merge_fields(
        &self,
        object: &mut Mapping,
        patch: &mut Mapping,
        shape: Option<Shape<'m>>,
    ) -> Result<(), Error> {
        let index = index(patch);
        let mut used = HashSet::new();
        let mut first = firsts(object);
        let entries = object.entries_mut().iter_mut().zip(&mut first);
        let mut entries: Vec<_> = entries.filter(|(_, first)| **first).collect();
        // The last write to one of the shared scalars is the value of all of them.
        entries.sort_unstable_by(|(one, _), (other, _)| one.key.text.cmp(&other.key.text));
        for (entry, first) in entries {
            let shape = shape.and_then(|shape| shape.field(&entry.key.text));
            let at = index.get(&entry.key.text).copied();
            used.extend(at);
            let from_patch = at.and_then(|at| patch.entries_mut().get_mut(at));
            let from_patch = from_patch.map(|entry| &mut entry.value);
            let remainder = match from_patch {
                None => self.walk(Sources::Two(Some(&mut entry.value), None), shape)?,
                Some(value) => {
                    let remainder = self.walk(Sources::Two(Some(&mut entry.value), Some(value)), shape)?;
                    if remainder == Remainder::Patch {
                        let mut written = self.written.borrow_mut();
                        written.write(&mut entry.value, |old| *old = overwritten(old, value));
                    }
                    remainder
                }
            };
            self.retype(&mut entry.value);
            *first = remainder == Remainder::Nothing;
        }
        drop_marked(object, &first);
        let mut new: Vec<_> = index.into_iter().filter(|(_, at)| !used.contains(at)).collect();
        new.sort();
        for (key, at) in new {
            let shape = shape.and_then(|shape| shape.field(&key));
            let Some(entry) = patch.entries_mut().get_mut(at) else {
                continue;
            };
            if self.walk(Sources::Two(None, Some(&mut entry.value)), shape)? == Remainder::Patch {
                object.push(Entry::clone(entry));
            }
        }
        Ok(())
    }

    /// quirk: a plain scalar that the build made and that looks like another type becomes a string at the next merge.
    fn retype(&self, node: &mut Node) {
        let is_text =
            |scalar: &Scalar| scalar.text.is_empty() || matches!(scalar.kind(), Tag::Str | Tag::Timestamp);
        if has_type(node) || node.as_scalar().is_none_or(is_text) {
            return;
        }
        self.written.borrow_mut().write(node, |node| {
            if let Some(scalar) = node.as_scalar_mut() {
                *scalar = Scalar::string(scalar.text.clone());
            }
        });
    }
}

/// Returns the map of a node; `None` for null.
fn as_map(node: Option<&mut Node>) -> Option<&mut Mapping> {
    node.and_then(Node::as_map_mut)
}

/// quirk: a scalar is written in the style of the one that it overwrites. A number over a quoted string becomes a string.
fn overwritten(old: &Node, new: &Node) -> Node {
    let mut node = new.clone();
    if old.as_scalar().is_some()
        && let Content::Scalar(scalar) = &mut node.content
    {
        let kind = scalar.kind();
        // A tag that follows from the content is not written.
        let plain_kind = Scalar::plain(scalar.text.clone()).kind();
        let is_quoted = is_quoted(old);
        scalar.tag = (!is_quoted || kind != plain_kind).then_some(kind);
        scalar.plain = !is_quoted;
    }
    node
}

/// Returns the remaining node if the patch's value replaces the object's.
fn replaced(sources: &Sources<'_>) -> Remainder {
    match sources {
        Sources::Two(_, Some(patch)) if is_null(patch) => Remainder::Nothing,
        Sources::Two(_, Some(_)) => Remainder::Patch,
        Sources::Two(_, None) | Sources::Same(_) => Remainder::Object,
    }
}

/// quirk: a null of the object stays if it is written explicitly, and is removed if nothing is written after its key.
fn explicit_null(null: &Node) -> Remainder {
    let is_written = null.as_scalar().is_some_and(|scalar| !scalar.text.is_empty());
    if is_written {
        Remainder::Object
    } else {
        Remainder::Nothing
    }
}

/// Removes and returns the directive of a map.
fn directive(map: &mut Mapping) -> Result<Directive, Error> {
    let Some(value) = map.get(DIRECTIVE) else {
        return Ok(Directive::Merge);
    };
    let directive = parse_directive(text(value))?;
    let at = map.keys().position(|key| key == DIRECTIVE);
    at.map(|at| map.entries_mut().remove(at));
    Ok(directive)
}

fn parse_directive(text: &str) -> Result<Directive, Error> {
    match text {
        "merge" => Ok(Directive::Merge),
        "replace" => Ok(Directive::Replace),
        "delete" => Ok(Directive::Delete),
        other => Err(Error::new(
            Step::Patch,
            format!("unknown patch strategy '{other}'"),
        )),
    }
}

/// Returns the content of any scalar; empty for a map or list.
fn text(node: &Node) -> &str {
    node.as_scalar().map_or("", |scalar| &scalar.text)
}

/// For each entry, returns true if it is the first with its key.
fn firsts(map: &Mapping) -> Vec<bool> {
    if map.len() <= 8 {
        let keys = map.keys().enumerate();
        return keys
            .map(|(at, key)| !map.keys().take(at).any(|other| other == key))
            .collect();
    }
    let mut seen = HashSet::with_capacity(map.len());
    map.keys().map(|key| seen.insert(key)).collect()
}

fn index(map: &Mapping) -> HashMap<Text, usize> {
    let mut index = HashMap::with_capacity(map.len());
    for (at, key) in map.keys().enumerate() {
        index.entry(Text::from(key)).or_insert(at);
    }
    index
}

fn drop_marked(map: &mut Mapping, marks: &[bool]) {
    let mut marks = marks.iter();
    map.retain(|_, _| !marks.next().is_some_and(|mark| *mark));
}

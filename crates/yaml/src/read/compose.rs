//! From parser events to values: anchors, aliases, merge keys, duplicate keys and the limits. What a scalar means is the
//! dialect's.

use std::collections::HashMap;

use libyaml_safer::{Event, EventData, ScalarStyle};
use tree::{Budget, Exceeded};

use super::{
    Document,
    events::{Events, Text, position},
    tag,
};
use crate::{Error, Map, Position, Problem, Value};

/// Deeper than this no flag can go: values are walked by recursion.
const MAX_DEPTH: u32 = 200;

/// In what the readers differ.
pub(super) struct Dialect {
    /// What a scalar means.
    pub(super) scalar: fn(Scalar) -> Result<Value, Problem>,
    /// The text of a map key.
    pub(super) key: fn(Value) -> Result<String, Problem>,
    /// Whether the tag of a list or a map is allowed.
    pub(super) collection_tag: fn(&str) -> Result<(), Problem>,
    /// What happens to a key that is set twice.
    pub(super) duplicates: Duplicates,
    /// Whether a merge key may bring a key that the map sets itself; the map's own then wins.
    pub(super) merge_overlaps: bool,
    /// Whether infinities and NaN are values.
    pub(super) not_finite: bool,
    /// The highest minor version that a `%YAML` directive may ask for.
    pub(super) max_minor: i32,
}

#[derive(PartialEq, Eq)]
pub(super) enum Duplicates {
    Refused,
    LastWins,
}

/// A scalar as written.
pub(super) struct Scalar {
    pub(super) text: String,
    /// The tag in its short form, `!!int` or `!custom`.
    pub(super) tag: Option<String>,
    /// Neither quoted nor a block.
    pub(super) plain: bool,
    /// In the place of a map key.
    pub(super) key: bool,
}

/// A value with what it would cost to have it once more.
#[derive(Clone)]
struct Node {
    value: Value,
    bytes: u64,
    depth: u32,
}

impl Node {
    fn new(value: Value, bytes: usize) -> Self {
        Self {
            value,
            bytes: bytes as u64 + size_of::<Value>() as u64,
            depth: 1,
        }
    }

    fn add(&mut self, inner_bytes: u64, inner_depth: u32) {
        self.bytes = self.bytes.saturating_add(inner_bytes);
        self.depth = self.depth.max(inner_depth.saturating_add(1));
    }
}

pub(super) struct Composer<'t> {
    events: Events<'t>,
    dialect: &'t Dialect,
    budget: &'t Budget,
    anchors: HashMap<String, Node>,
    /// Bytes that anchors and aliases have copied so far.
    copied: u64,
}

impl<'t> Composer<'t> {
    pub(super) fn new(text: &'t Text<'t>, dialect: &'t Dialect, budget: &'t Budget) -> Self {
        Self {
            events: Events::new(text, budget),
            dialect,
            budget,
            anchors: HashMap::new(),
            copied: 0,
        }
    }

    /// The next document of the stream.
    pub(super) fn document(&mut self) -> Result<Option<Document>, Error> {
        loop {
            let event = self.events.next()?;
            match event.data {
                EventData::StreamEnd => return Ok(None),
                EventData::DocumentStart {
                    version_directive, ..
                } => {
                    if let Some(version) = version_directive
                        && (version.major != 1 || version.minor > self.dialect.max_minor)
                    {
                        let problem = Problem::Version {
                            major: version.major,
                            minor: version.minor,
                        };
                        return Err(Error::new(position(event.start_mark), problem));
                    }
                    self.anchors.clear();
                    let first = self.events.next()?;
                    let position = position(first.start_mark);
                    let value = self.value(first, 1)?.value;
                    let end = self.events.next()?;
                    if !matches!(end.data, EventData::DocumentEnd { .. }) {
                        let problem = Problem::Syntax("expected the end of the document".to_owned());
                        return Err(Error::new(super::events::position(end.start_mark), problem));
                    }
                    return Ok(Some(Document { value, position }));
                }
                _ => {}
            }
        }
    }

    /// A node in the place of a value.
    fn value(&mut self, event: Event, depth: u32) -> Result<Node, Error> {
        let at = position(event.start_mark);
        let node = self.node(event, depth, false)?;
        match node.value {
            Value::Float(float) if !self.dialect.not_finite && !float.is_finite() => {
                let name = if float.is_nan() {
                    "NaN"
                } else if float > 0.0 {
                    "+Inf"
                } else {
                    "-Inf"
                };
                Err(Error::new(at, Problem::NotFinite(name)))
            }
            _ => Ok(node),
        }
    }

    fn node(&mut self, event: Event, depth: u32, key: bool) -> Result<Node, Error> {
        let at = position(event.start_mark);
        self.check_depth(depth, at)?;
        let (anchor, node) = match event.data {
            EventData::Alias { anchor } => return self.alias(&anchor, depth, at),
            EventData::Scalar {
                anchor,
                tag,
                value,
                plain_implicit,
                style,
                ..
            } => {
                let plain = style == ScalarStyle::Plain && (plain_implicit || tag.is_some());
                let size = value.len();
                let scalar = Scalar {
                    text: value,
                    tag: tag.as_deref().map(tag::short),
                    plain,
                    key,
                };
                let value = (self.dialect.scalar)(scalar).map_err(|problem| Error::new(at, problem))?;
                (anchor, Node::new(value, size))
            }
            EventData::SequenceStart { anchor, tag, .. } => {
                self.check_tag(tag.as_deref(), at)?;
                (anchor, self.sequence(depth)?)
            }
            EventData::MappingStart { anchor, tag, .. } => {
                self.check_tag(tag.as_deref(), at)?;
                (anchor, self.mapping(depth)?)
            }
            _ => return Err(Error::new(at, Problem::Syntax("expected a value".to_owned()))),
        };
        if let Some(anchor) = anchor {
            self.copy(&node, at)?;
            self.anchors.insert(anchor, node.clone());
        }
        Ok(node)
    }

    fn alias(&mut self, anchor: &str, depth: u32, at: Position) -> Result<Node, Error> {
        let Some(node) = self.anchors.get(anchor).cloned() else {
            return Err(Error::new(at, Problem::UnknownAnchor(anchor.to_owned())));
        };
        self.copy(&node, at)?;
        self.check_depth(depth.saturating_add(node.depth).saturating_sub(1), at)?;
        Ok(node)
    }

    fn sequence(&mut self, depth: u32) -> Result<Node, Error> {
        let mut items = Vec::new();
        let mut node = Node::new(Value::Null, 0);
        loop {
            let event = self.events.next()?;
            if event.data == EventData::SequenceEnd {
                node.value = Value::Seq(items);
                return Ok(node);
            }
            let item = self.value(event, depth + 1)?;
            node.add(item.bytes, item.depth);
            items.push(item.value);
        }
    }

    fn mapping(&mut self, depth: u32) -> Result<Node, Error> {
        let (mut own, mut merged) = (Map::new(), Map::new());
        let mut node = Node::new(Value::Null, 0);
        loop {
            let event = self.events.next()?;
            if event.data == EventData::MappingEnd {
                node.value = Value::Map(self.join(merged, own)?);
                return Ok(node);
            }
            let at = position(event.start_mark);
            if is_merge(&event.data) {
                let event = self.events.next()?;
                let from = self.value(event, depth + 1)?;
                node.add(from.bytes, from.depth);
                self.merge(&mut merged, from.value, at)?;
                continue;
            }
            let key = self.node(event, depth + 1, true)?;
            let key = (self.dialect.key)(key.value).map_err(|problem| Error::new(at, problem))?;
            let event = self.events.next()?;
            let value = self.value(event, depth + 1)?;
            node.add(
                value.bytes + key.len() as u64 + size_of::<Node>() as u64,
                value.depth,
            );
            self.refuse_duplicate(&own, &key, at)?;
            own.insert_at(key, value.value, at);
        }
    }

    /// Adds what a merge key names to `merged`, where an earlier map of a list wins over a later one.
    fn merge(&self, merged: &mut Map, from: Value, at: Position) -> Result<(), Error> {
        let refused = || Error::new(at, Problem::Merge);
        let maps = match from {
            Value::Map(map) => vec![map],
            Value::Seq(items) => items
                .into_iter()
                .map(|item| {
                    if let Value::Map(map) = item {
                        Ok(map)
                    } else {
                        Err(refused())
                    }
                })
                .collect::<Result<_, _>>()?,
            _ => return Err(refused()),
        };
        for map in maps.into_iter().rev() {
            for (key, value, position) in map.into_entries() {
                self.refuse_overlap(merged, &key, at)?;
                merged.insert_at(key, value, position.unwrap_or(at));
            }
        }
        Ok(())
    }

    /// The merged entries first, overridden by the map's own.
    fn join(&self, mut merged: Map, own: Map) -> Result<Map, Error> {
        if merged.is_empty() {
            return Ok(own);
        }
        for (key, value, position) in own.into_entries() {
            let position = position.unwrap_or_default();
            self.refuse_overlap(&merged, &key, position)?;
            merged.insert_at(key, value, position);
        }
        Ok(merged)
    }

    fn refuse_duplicate(&self, map: &Map, key: &str, at: Position) -> Result<(), Error> {
        if self.dialect.duplicates == Duplicates::Refused && map.contains_key(key) {
            let problem = Problem::DuplicateKey {
                key: key.to_owned(),
                first: map.position(key),
            };
            return Err(Error::new(at, problem));
        }
        Ok(())
    }

    fn refuse_overlap(&self, map: &Map, key: &str, at: Position) -> Result<(), Error> {
        if self.dialect.merge_overlaps {
            Ok(())
        } else {
            self.refuse_duplicate(map, key, at)
        }
    }

    fn check_tag(&self, tag: Option<&str>, at: Position) -> Result<(), Error> {
        let Some(tag) = tag else { return Ok(()) };
        (self.dialect.collection_tag)(&tag::short(tag)).map_err(|problem| Error::new(at, problem))
    }

    fn check_depth(&self, depth: u32, at: Position) -> Result<(), Error> {
        let limit = self.budget.limits().yaml_depth.min(MAX_DEPTH);
        if depth <= limit {
            return Ok(());
        }
        Err(Error::new(
            at,
            Exceeded::Limit {
                what: "nested YAML values",
                limit: limit.into(),
            },
        ))
    }

    /// Counts one more copy of a node.
    fn copy(&mut self, node: &Node, at: Position) -> Result<(), Error> {
        let limit = self.budget.limits().alias_bytes;
        self.copied = self.copied.saturating_add(node.bytes);
        if self.copied <= limit {
            return Ok(());
        }
        Err(Error::new(
            at,
            Exceeded::Limit {
                what: "bytes expanded from YAML aliases",
                limit,
            },
        ))
    }
}

fn is_merge(event: &EventData) -> bool {
    match event {
        EventData::Scalar {
            value, tag, style, ..
        } if value == "<<" => match tag.as_deref() {
            None => *style == ScalarStyle::Plain,
            Some(tag) => tag == "tag:yaml.org,2002:merge",
        },
        _ => false,
    }
}

//! From parser events to nodes: anchors, aliases, positions and the limits. Scalars are left to `construct`.

use std::collections::HashMap;

use libyaml_safer::{Event, EventData, MappingStyle, ScalarStyle, SequenceStyle};
use tree::{Budget, Exceeded};

use super::{
    construct,
    dialect::Dialect,
    events::{Events, Text, position},
    scan::Flavour,
};
use crate::{
    Error, Position, Problem,
    go::go_syntax,
    node::{Content, Entry, Mapping, Node, Scalar, Tag},
    tag,
};

/// No flag can exceed this: nodes and values are walked by recursion.
const MAX_DEPTH: u32 = 200;

/// A node with the cost of one more copy.
#[derive(Clone)]
struct Composed {
    node: Node,
    bytes: u64,
    depth: u32,
}

impl Composed {
    fn new(content: Content, position: Position, bytes: usize) -> Self {
        Self {
            node: Node { position, content },
            bytes: bytes as u64 + size_of::<Node>() as u64,
            depth: 1,
        }
    }
}

#[derive(Default)]
struct Cost {
    bytes: u64,
    depth: u32,
}

impl Cost {
    fn add(&mut self, part: &Composed) {
        self.bytes = self.bytes.saturating_add(part.bytes);
        self.depth = self.depth.max(part.depth);
    }

    fn of(self, content: Content, position: Position) -> Composed {
        let whole = Composed::new(content, position, 0);
        Composed {
            bytes: whole.bytes.saturating_add(self.bytes),
            depth: self.depth.saturating_add(1),
            ..whole
        }
    }
}

pub(super) struct Composer<'t> {
    events: Events<'t>,
    dialect: &'t Dialect,
    budget: &'t Budget,
    anchors: HashMap<String, Composed>,
    /// The items of all lists in progress, the innermost last. A list is allocated when it is complete, in its exact size.
    items: Vec<Node>,
    /// Likewise, the entries of all maps.
    entries: Vec<Entry>,
    /// Bytes that aliases have copied so far.
    copied: u64,
    /// True if any map so far has a merge key.
    merges: bool,
    in_flow: bool,
}

impl<'t> Composer<'t> {
    pub(super) fn new(text: &'t Text<'t>, dialect: &'t Dialect, budget: &'t Budget) -> Self {
        Self {
            events: Events::new(text, dialect.flavour, budget),
            dialect,
            budget,
            anchors: HashMap::new(),
            items: Vec::new(),
            entries: Vec::new(),
            copied: 0,
            merges: false,
            in_flow: false,
        }
    }

    pub(super) fn has_merges(&self) -> bool {
        self.merges
    }

    pub(super) fn document(&mut self) -> Result<Option<Node>, Error> {
        loop {
            let event = self.events.next()?;
            match event.data {
                EventData::StreamEnd => return Ok(None),
                EventData::DocumentStart { .. } => {
                    self.anchors.clear();
                    let first = self.events.next()?;
                    let node = self.node(first, 1)?.node;
                    let end = self.events.next()?;
                    if !matches!(end.data, EventData::DocumentEnd { .. }) {
                        let problem = Problem::Syntax("expected the end of the document".to_owned());
                        return Err(Error::new(position(end.start_mark), problem));
                    }
                    return Ok(Some(node));
                }
                _ => {}
            }
        }
    }

    fn node(&mut self, event: Event, depth: u32) -> Result<Composed, Error> {
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
                let python = self.dialect.flavour == Flavour::Python;
                let plain = style == ScalarStyle::Plain && (plain_implicit || tag.is_some())
                    || python && plain_implicit;
                let tag = match tag {
                    Some(tag) => self.scalar_tag(&tag, at)?,
                    None => None,
                };
                let in_flow = self.in_flow && tag.is_none();
                let size = value.len();
                let scalar = Content::Scalar(Scalar {
                    text: value.into(),
                    tag,
                    plain,
                    share: None,
                    in_flow,
                });
                (anchor, Composed::new(scalar, at, size))
            }
            EventData::SequenceStart {
                anchor, tag, style, ..
            } => {
                self.check_tag(tag.as_deref(), at)?;
                let outer = self.enter(style == SequenceStyle::Flow);
                let node = self.sequence(depth, at)?;
                self.in_flow = outer;
                (anchor, node)
            }
            EventData::MappingStart {
                anchor, tag, style, ..
            } => {
                self.check_tag(tag.as_deref(), at)?;
                let outer = self.enter(style == MappingStyle::Flow);
                let node = self.mapping(depth, at)?;
                self.in_flow = outer;
                (anchor, node)
            }
            _ => return Err(Error::new(at, Problem::Syntax("expected a value".to_owned()))),
        };
        if let Some(anchor) = anchor {
            self.count(node.bytes, at)?;
            self.anchors.insert(anchor, node.clone());
        }
        Ok(node)
    }

    /// Enters a list or map, and returns the previous `in_flow`.
    fn enter(&mut self, is_flow: bool) -> bool {
        let outer = self.in_flow;
        self.in_flow |= is_flow;
        outer
    }

    fn alias(&mut self, anchor: &str, depth: u32, at: Position) -> Result<Composed, Error> {
        let Some(named) = self.anchors.get(anchor) else {
            return Err(Error::new(at, Problem::UnknownAnchor(anchor.to_owned())));
        };
        let (bytes, inner) = (named.bytes, named.depth);
        self.count(bytes, at)?;
        self.check_depth(depth.saturating_add(inner).saturating_sub(1), at)?;
        let Some(mut node) = self.anchors.get(anchor).cloned() else {
            return Err(Error::new(at, Problem::UnknownAnchor(anchor.to_owned())));
        };
        node.node.position = at;
        Ok(node)
    }

    fn sequence(&mut self, depth: u32, at: Position) -> Result<Composed, Error> {
        let first = self.items.len();
        let mut cost = Cost::default();
        loop {
            let event = self.events.next()?;
            if event.data == EventData::SequenceEnd {
                let items = self.items.drain(first..).collect();
                return Ok(cost.of(Content::Seq(items), at));
            }
            let item = self.node(event, depth + 1)?;
            cost.add(&item);
            self.items.push(item.node);
        }
    }

    fn mapping(&mut self, depth: u32, at: Position) -> Result<Composed, Error> {
        let first = self.entries.len();
        let mut cost = Cost::default();
        loop {
            let event = self.events.next()?;
            if event.data == EventData::MappingEnd {
                let entries: Vec<Entry> = self.entries.drain(first..).collect();
                return Ok(cost.of(Content::Map(Mapping::from(entries)), at));
            }
            let position = position(event.start_mark);
            let key = self.key(event, depth + 1, position)?;
            let event = self.events.next()?;
            let value = self.node(event, depth + 1)?;
            cost.bytes += (key.text.len() + size_of::<Entry>() - size_of::<Node>()) as u64;
            cost.add(&value);
            self.entries.push(Entry {
                position,
                key,
                value: value.node,
            });
        }
    }

    /// Reads the key of an entry. Only the plain scalar `<<` is a merge key.
    fn key(&mut self, event: Event, depth: u32, at: Position) -> Result<Scalar, Error> {
        if is_merge(&event.data) {
            self.merges = true;
            return Ok(Scalar::plain("<<"));
        }
        let node = self.node(event, depth)?.node;
        let found = match node.content {
            Content::Scalar(mut key) => {
                key.plain &= !key.is_merge();
                return Ok(key);
            }
            Content::Seq(_) => "list",
            Content::Map(_) => "map",
        };
        let key = construct::value::<crate::Value>(node, self.dialect);
        let go = key.map_or_else(|_| found.to_owned(), |key| go_syntax(&key));
        Err(Error::new(at, Problem::DeepKey { found, go }))
    }

    fn scalar_tag(&self, tag: &str, at: Position) -> Result<Option<Tag>, Error> {
        (self.dialect.scalar_tag)(&tag::short(tag)).map_err(|problem| Error::new(at, problem))
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
    fn count(&mut self, bytes: u64, at: Position) -> Result<(), Error> {
        let limit = self.budget.limits().alias_bytes;
        self.copied = self.copied.saturating_add(bytes);
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

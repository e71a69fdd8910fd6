//! Reads documents with their anchors.

use std::collections::HashMap;

use libyaml_safer::{Event, EventData, ScalarStyle};
use tree::{Budget, Exceeded};

use super::{
    events::{Events, Text, position},
    scan::Flavour,
};
use crate::{
    Error, Position, Problem,
    graph::{Graph, GraphContent, GraphNode},
    tag,
};

/// No flag can exceed this: graphs are walked by recursion.
const MAX_DEPTH: u32 = 200;

pub(super) fn read(text: &Text<'_>, budget: &Budget) -> Result<Option<Graph>, Error> {
    let mut reader = Reader {
        events: Events::new(text, Flavour::Python, budget),
        max_depth: budget.limits().yaml_depth.min(MAX_DEPTH),
        graph: Graph::default(),
        anchors: HashMap::new(),
    };
    let mut found = false;
    loop {
        let event = reader.events.next()?;
        let at = position(event.start_mark);
        match event.data {
            EventData::StreamEnd => return Ok(found.then_some(reader.graph)),
            EventData::DocumentStart { .. } if found => return Err(Error::new(at, Problem::SecondDocument)),
            EventData::DocumentStart { .. } => {
                let first = reader.events.next()?;
                let root = reader.node(first, 1)?;
                reader.graph.set_root(root);
                found = true;
            }
            _ => {}
        }
    }
}

struct Reader<'t> {
    events: Events<'t>,
    max_depth: u32,
    graph: Graph,
    anchors: HashMap<String, usize>,
}

impl Reader<'_> {
    fn node(&mut self, event: Event, depth: u32) -> Result<usize, Error> {
        let at = position(event.start_mark);
        if depth > self.max_depth {
            return Err(Error::new(
                at,
                Exceeded::Limit {
                    what: "nested YAML values",
                    limit: self.max_depth.into(),
                },
            ));
        }
        match event.data {
            EventData::Alias { anchor } => match self.anchors.get(&anchor) {
                Some(number) => Ok(*number),
                None => Err(Error::new(at, Problem::UnknownAnchor(anchor))),
            },
            EventData::Scalar {
                anchor,
                tag,
                value,
                style,
                ..
            } => {
                let content = GraphContent::Scalar {
                    text: value,
                    plain: style == ScalarStyle::Plain,
                };
                self.add_node(at, anchor, tag, content)
            }
            EventData::SequenceStart { anchor, tag, .. } => {
                let number = self.add_node(at, anchor, tag, GraphContent::Seq(Vec::new()))?;
                let mut items = Vec::new();
                while let Some(event) = self.until(&EventData::SequenceEnd)? {
                    items.push(self.node(event, depth + 1)?);
                }
                self.graph.fill(number, GraphContent::Seq(items));
                Ok(number)
            }
            EventData::MappingStart { anchor, tag, .. } => {
                let number = self.add_node(at, anchor, tag, GraphContent::Map(Vec::new()))?;
                let mut entries = Vec::new();
                while let Some(event) = self.until(&EventData::MappingEnd)? {
                    let key = self.node(event, depth + 1)?;
                    let event = self.events.next()?;
                    entries.push((key, self.node(event, depth + 1)?));
                }
                self.graph.fill(number, GraphContent::Map(entries));
                Ok(number)
            }
            _ => Err(Error::new(at, Problem::Syntax("expected a value".to_owned()))),
        }
    }

    fn until(&mut self, end: &EventData) -> Result<Option<Event>, Error> {
        let event = self.events.next()?;
        Ok((event.data != *end).then_some(event))
    }

    /// Adds a node, whose anchor is known from now on.
    fn add_node(
        &mut self,
        position: Position,
        anchor: Option<String>,
        tag: Option<String>,
        content: GraphContent,
    ) -> Result<usize, Error> {
        let number = self.graph.add(GraphNode {
            position,
            tag: tag.map(|tag| tag::short(&tag).into_owned()),
            content,
        });
        if let Some(anchor) = anchor {
            if self.anchors.contains_key(&anchor) {
                return Err(Error::new(position, Problem::SameAnchor(anchor)));
            }
            self.anchors.insert(anchor, number);
        }
        Ok(number)
    }
}

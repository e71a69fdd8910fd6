//! Follows the path of a target: every field of the path is set, and missing ones may be created.

use yaml::{
    Node,
    node::{Content, Mapping},
};

use super::{
    meter::{Meter, parse},
    path::{Condition, Part},
};
use crate::{
    Error,
    error::Step,
    lookup::{items, key_index, raw_text, wrong_kind},
    measure::NODE_SIZE,
};

/// The initial content of a created field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ContentKind {
    Scalar,
    Seq,
    Map,
}

impl ContentKind {
    pub(super) fn of(node: &Node) -> Self {
        match node.content {
            Content::Scalar(_) => Self::Scalar,
            Content::Seq(_) => Self::Seq,
            Content::Map(_) => Self::Map,
        }
    }

    fn empty(self) -> Node {
        match self {
            Self::Scalar => Node::plain(""),
            Self::Seq => Node::seq(Vec::new()),
            Self::Map => Node::map(),
        }
    }
}

pub(super) struct Found<'n> {
    pub(super) node: &'n mut Node,
    /// The nesting of the field in its object.
    pub(super) depth: usize,
}

pub(super) type Set<'s> = dyn FnMut(&mut Found<'_>) -> Result<(), Error> + 's;

pub(super) struct Walk<'a> {
    pub(super) create: Option<ContentKind>,
    pub(super) meter: &'a Meter<'a>,
}

impl Walk<'_> {
    /// Sets every field of a path below a node, and returns their number.
    pub(super) fn visit(
        &self,
        node: &mut Node,
        path: &[Part],
        depth: usize,
        set: &mut Set<'_>,
    ) -> Result<usize, Error> {
        self.meter.work(1)?;
        self.meter.nest(depth)?;
        let Some((first, rest)) = path.split_first() else {
            set(&mut Found { node, depth })?;
            return Ok(1);
        };
        match first {
            Part::Index(index) => self.index(node, *index, rest, depth, set),
            Part::Items(condition) => self.items(node, condition, rest, depth, set),
            Part::NoCondition(problem) => Err(Error::new(Step::Replacement, problem)),
            Part::Every => self.every(node, rest, depth, set),
            Part::Key(key) => self.key(node, key, rest, depth, set),
        }
    }

    fn key(
        &self,
        node: &mut Node,
        key: &str,
        rest: &[Part],
        depth: usize,
        set: &mut Set<'_>,
    ) -> Result<usize, Error> {
        if key.is_empty() {
            return self.no_key(node, rest, depth, set);
        }
        let index = key_index(node, key)?;
        let is_null = node.is_null();
        let entries = node.as_map_mut().map(Mapping::entries_mut);
        if let (Some(index), Some(entries)) = (index, entries)
            && let Some(entry) = entries.get_mut(index)
        {
            return match entry.value.as_scalar() {
                Some(_) if !rest.is_empty() => self.inside(raw_text(&entry.value), rest, depth, set),
                _ => self.visit(&mut entry.value, rest, depth + 1, set),
            };
        }
        let Some(kind) = self.create else {
            return Ok(0);
        };
        let mut made = self.make(rest, kind)?;
        let found = self.visit(&mut made, rest, depth + 1, set)?;
        // quirk: nodes created below null are lost.
        if !is_null {
            node.set(key, made);
        }
        Ok(found)
    }

    /// An empty key means the node itself if it is an empty string, and nothing else.
    fn no_key(
        &self,
        node: &mut Node,
        rest: &[Part],
        depth: usize,
        set: &mut Set<'_>,
    ) -> Result<usize, Error> {
        if node.as_scalar().is_none() {
            return Err(wrong_kind("ScalarNode", node.kind_name()));
        }
        if node.is_null() || !raw_text(node).is_empty() {
            return Ok(0);
        }
        self.visit(node, rest, depth, set)
    }

    fn index(
        &self,
        node: &mut Node,
        index: usize,
        rest: &[Part],
        depth: usize,
        set: &mut Set<'_>,
    ) -> Result<usize, Error> {
        let count = items(node)?.len();
        if let Some(item) = node.as_seq_mut().and_then(|items| items.get_mut(index)) {
            return self.visit(item, rest, depth + 1, set);
        }
        match self.create {
            Some(kind) if index == count => {
                let mut made = self.make(rest, kind)?;
                let found = self.visit(&mut made, rest, depth + 1, set)?;
                append(node, made);
                Ok(found)
            }
            _ => {
                let problem = format!("index {index} specified but only {count} elements found");
                Err(Error::new(Step::Replacement, problem))
            }
        }
    }

    fn every(&self, node: &mut Node, rest: &[Part], depth: usize, set: &mut Set<'_>) -> Result<usize, Error> {
        items(node)?;
        let mut found = 0;
        for item in node.as_seq_mut().into_iter().flatten() {
            found += self.visit(item, rest, depth + 1, set)?;
        }
        Ok(found)
    }

    fn items(
        &self,
        node: &mut Node,
        condition: &Condition,
        rest: &[Part],
        depth: usize,
        set: &mut Set<'_>,
    ) -> Result<usize, Error> {
        items(node)?;
        let mut found = 0;
        for item in node.as_seq_mut().into_iter().flatten() {
            found += self.item(item, condition, rest, depth + 1, set)?;
        }
        if found > 0 || self.create.is_none() {
            return Ok(found);
        }
        self.meter.grow(NODE_SIZE + condition.value.len())?;
        let mut made = Node::plain(condition.value.as_str());
        if !condition.key.is_empty() {
            let entries = [(condition.key.as_str(), made)];
            made = entries.into_iter().collect::<Mapping>().into();
        }
        let found = self.item(&mut made, condition, rest, depth + 1, set)?;
        if found == 0 {
            let problem = format!(
                "failed to create element for \"[{}={}]\": its own pattern does not select it",
                condition.key, condition.value
            );
            return Err(Error::new(Step::Replacement, problem));
        }
        append(node, made);
        Ok(found)
    }

    fn item(
        &self,
        item: &mut Node,
        condition: &Condition,
        rest: &[Part],
        depth: usize,
        set: &mut Set<'_>,
    ) -> Result<usize, Error> {
        self.meter.work(1)?;
        if !condition.key.is_empty() {
            let Some(field) = item.get(&condition.key) else {
                return Ok(0);
            };
            if !condition.fits(&printed(field), self.meter)? {
                return Ok(0);
            }
            return self.visit(item, rest, depth, set);
        }
        if !condition.fits(&printed(item), self.meter)? {
            return Ok(0);
        }
        // quirk: the rest of the path after such a condition is ignored.
        self.meter.nest(depth)?;
        set(&mut Found { node: item, depth })?;
        Ok(1)
    }

    /// Follows a path into the content of a scalar.
    ///
    /// quirk: writes there are lost. Only [`super::structured`], which follows paths as a source's, can write; paths that it
    /// can't follow come here and are only checked.
    fn inside(&self, text: &str, path: &[Part], depth: usize, set: &mut Set<'_>) -> Result<usize, Error> {
        self.meter.work(text.len())?;
        let parsed = parse(text, self.meter)?;
        let Some(mut parsed) = parsed else {
            let expected = match path.first() {
                Some(Part::Key(_)) => "MappingNode",
                _ => "SequenceNode",
            };
            return Err(wrong_kind(expected, "nothing"));
        };
        self.visit(&mut parsed, path, depth, set)
    }

    /// Creates a node for the parts of the path in `rest`.
    fn make(&self, rest: &[Part], kind: ContentKind) -> Result<Node, Error> {
        self.meter.grow(NODE_SIZE)?;
        Ok(match rest.first() {
            None => kind.empty(),
            Some(Part::Key(key)) if key.is_empty() => kind.empty(),
            Some(Part::Index(_) | Part::Items(_) | Part::NoCondition(_)) => ContentKind::Seq.empty(),
            Some(Part::Every | Part::Key(_)) => ContentKind::Map.empty(),
        })
    }
}

/// Appends to a list; items appended to null are lost.
fn append(node: &mut Node, item: Node) {
    if let Some(items) = node.as_seq_mut() {
        items.push(item);
    }
}

/// Prints a value for conditions, in quotes if it has them.
fn printed(node: &Node) -> String {
    let Some(scalar) = node.as_scalar() else {
        let value = node.to_value().unwrap_or_default();
        return yaml::print::kustomize(&value).trim().to_owned();
    };
    let was_quoted = !scalar.plain && scalar.tag.is_none();
    if was_quoted
        || (scalar.is_string()
            && !Node::plain(&*scalar.text)
                .as_scalar()
                .is_some_and(|s| s.is_string()))
    {
        return yaml::print::json(&yaml::Value::String(scalar.text.to_string()));
    }
    scalar.text.trim().to_owned()
}

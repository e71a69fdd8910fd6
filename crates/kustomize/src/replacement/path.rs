//! Paths of replacements: how they are taken apart, and how a source's is followed.

use regex::Regex;
use yaml::{Node, node::Content};

use crate::{Error, error::Step, fieldspec, selector};

/// One part of a target's path.
#[derive(Debug)]
pub(super) enum Part {
    /// An index of a list.
    Index(usize),
    /// The items of a list that fit a condition.
    Items(Condition),
    /// Brackets that hold no condition; an error where a list is met.
    NoCondition,
    /// Every item of a list.
    Every,
    /// A key of a map.
    Key(String),
}

/// Which items of a list are meant: `[key=value]`, or `[=value]` for items that are scalars.
#[derive(Debug)]
pub(super) struct Condition {
    /// Empty for items that are scalars.
    pub(super) key: String,
    pub(super) value: String,
    pattern: Result<Regex, String>,
}

impl Condition {
    /// Whether a printed value fits.
    ///
    /// Quirk: the value of a condition is a pattern that has to be found anywhere, so `[name=web]` also means `web2`. In a
    /// source's path it is the whole text.
    pub(super) fn fits(&self, printed: &str) -> Result<bool, Error> {
        match &self.pattern {
            Ok(pattern) => Ok(pattern.is_match(printed)),
            Err(problem) => Err(Error::new(Step::Replacement, problem)),
        }
    }
}

impl Part {
    fn parse(text: &str) -> Self {
        if let Some(index) = index(text).and_then(|index| usize::try_from(index).ok()) {
            return Self::Index(index);
        }
        if is_condition(text) {
            return condition(text).map_or(Self::NoCondition, |(key, value)| {
                Self::Items(Condition {
                    key: key.to_owned(),
                    value: value.to_owned(),
                    pattern: selector::regex(value).map_err(|error| error.to_string()),
                })
            });
        }
        match text {
            "*" => Self::Every,
            key => Self::Key(key.to_owned()),
        }
    }
}

/// The path of a target's field.
#[derive(Debug)]
pub(super) struct Path {
    /// As written.
    pub(super) text: String,
    pub(super) elements: Vec<String>,
    pub(super) parts: Vec<Part>,
}

impl Path {
    pub(super) fn new(text: &str) -> Self {
        let elements = split(text);
        Self {
            text: text.to_owned(),
            parts: elements.iter().map(|element| Part::parse(element)).collect(),
            elements,
        }
    }
}

/// Takes a path apart at its dots, but not at `\.` and not between brackets. A condition keeps its brackets, a key loses
/// them.
pub(super) fn split(path: &str) -> Vec<String> {
    let mut elements = Vec::new();
    let mut pieces = fieldspec::split(path, '.').into_iter();
    while let Some(first) = pieces.next() {
        if !first.starts_with('[') || first.ends_with(']') {
            elements.push(first.into_owned());
            continue;
        }
        let mut joined = first.into_owned();
        for piece in pieces.by_ref() {
            joined.push('.');
            joined.push_str(&piece);
            if piece.ends_with(']') {
                break;
            }
        }
        if joined.contains('=') {
            elements.push(joined);
        } else {
            elements.push(joined.trim_matches(['[', ']']).to_owned());
        }
    }
    elements
}

/// Follows a source's path; empty parts are skipped.
pub(super) fn look_up<'n>(object: &'n Node, path: &[String]) -> Result<Option<&'n Node>, Error> {
    let mut node = object;
    for part in path {
        match step(node, part)? {
            Leads::Stay => {}
            Leads::Down(place) => match child(node, place) {
                Some(child) => node = child,
                None => return Ok(None),
            },
            Leads::Nowhere => return Ok(None),
        }
    }
    Ok(Some(node))
}

/// Where a part of a source's path leads.
pub(super) enum Leads {
    /// Nowhere else: the part is empty.
    Stay,
    /// To the entry of a map or the item of a list at this place.
    Down(usize),
    /// To something that isn't there.
    Nowhere,
}

/// Finds out where a part of a source's path leads.
pub(super) fn step(node: &Node, part: &str) -> Result<Leads, Error> {
    let part = part.trim();
    if part.is_empty() {
        return Ok(Leads::Stay);
    }
    let found = if let Some(index) = index(part) {
        let Ok(place) = usize::try_from(index) else {
            let problem = format!("array index {index} cannot be negative");
            return Err(Error::new(Step::Replacement, problem));
        };
        let count = items(node)?.len();
        Some(place).filter(|place| *place < count)
    } else if part == "-" {
        let last = items(node)?.len().checked_sub(1);
        Some(last.ok_or_else(|| Error::new(Step::Replacement, "the list has no last item"))?)
    } else if part == "*" {
        return Err(Error::new(
            Step::Replacement,
            "wildcard is not supported in PathGetter",
        ));
    } else if is_condition(part) {
        let (key, value) = condition(part).ok_or_else(no_condition)?;
        items(node)?.iter().position(|item| is_item(item, key, value))
    } else {
        key_place(node, part)?
    };
    Ok(found.map_or(Leads::Nowhere, Leads::Down))
}

/// The child at a place that [`step`] found.
pub(super) fn child(node: &Node, place: usize) -> Option<&Node> {
    match &node.content {
        Content::Map(map) => map.entries().get(place).map(|entry| &entry.value),
        Content::Seq(items) => items.get(place),
        Content::Scalar(_) => None,
    }
}

/// The child at a place that [`step`] found, to change it.
pub(super) fn child_mut(node: &mut Node, place: usize) -> Option<&mut Node> {
    match &mut node.content {
        Content::Map(map) => map.entries_mut().get_mut(place).map(|entry| &mut entry.value),
        Content::Seq(items) => items.get_mut(place),
        Content::Scalar(_) => None,
    }
}

/// The place of a key's first entry; null has none.
pub(super) fn key_place(node: &Node, key: &str) -> Result<Option<usize>, Error> {
    match &node.content {
        Content::Map(map) => Ok(map.keys().position(|name| name == key)),
        _ if node.is_null() => Ok(None),
        _ => Err(wrong_kind("MappingNode", node)),
    }
}

/// The items of a list; null has none.
pub(super) fn items(node: &Node) -> Result<&[Node], Error> {
    match &node.content {
        Content::Seq(items) => Ok(items),
        _ if node.is_null() => Ok(&[]),
        _ => Err(wrong_kind("SequenceNode", node)),
    }
}

/// The text of a scalar, null too; maps and lists have an empty one.
pub(super) fn text(node: &Node) -> &str {
    node.as_scalar().map_or("", |scalar| &scalar.text)
}

pub(super) fn wrong_kind(expected: &str, node: &Node) -> Error {
    let problem = format!(
        "wrong node kind: expected {expected} but got {}",
        node.kind_name()
    );
    Error::new(Step::Replacement, problem)
}

pub(super) fn no_condition() -> Error {
    let problem = "list path element must contain fieldName=fieldValue for element to match";
    Error::new(Step::Replacement, problem)
}

fn is_item(item: &Node, key: &str, value: &str) -> bool {
    if key.is_empty() {
        return text(item) == value;
    }
    item.get(key).is_some_and(|field| text(field) == value)
}

fn index(part: &str) -> Option<i64> {
    part.parse().ok()
}

fn is_condition(part: &str) -> bool {
    part.starts_with('[') && part.ends_with(']')
}

/// Key and value of a condition.
fn condition(part: &str) -> Option<(&str, &str)> {
    let inner = part.strip_suffix(']').unwrap_or(part);
    inner.strip_prefix('[').unwrap_or(inner).split_once('=')
}

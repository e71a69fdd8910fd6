//! Paths of dots, as vars and the sources of replacements have them: `spec.ports.0.name`, `spec.containers.[name=a].image`.

use std::borrow::Cow;

use yaml::{
    Node,
    node::{Content, Scalar, Tag},
};

use crate::{Error, error::Step};

/// Splits a path at its dots. A dot in brackets or after a backslash belongs to its element; brackets with a dot but without
/// a condition are removed.
pub(crate) fn split(path: &str) -> Vec<Cow<'_, str>> {
    let mut elements = Vec::new();
    let mut parts = split_escaped(path, '.').into_iter();
    while let Some(part) = parts.next() {
        if !part.starts_with('[') || part.ends_with(']') {
            elements.push(part);
            continue;
        }
        let mut whole = part.into_owned();
        for part in parts.by_ref() {
            whole.push('.');
            whole.push_str(&part);
            if part.ends_with(']') {
                break;
            }
        }
        if !whole.contains('=') {
            whole = whole.trim_matches(['[', ']']).to_owned();
        }
        elements.push(whole.into());
    }
    elements
}

/// Splits a path at a delimiter, unless escaped. A path may start with the delimiter.
pub(crate) fn split_escaped(path: &str, delimiter: char) -> Vec<Cow<'_, str>> {
    let mut parts = path.split(delimiter).peekable();
    let mut elements: Vec<Cow<'_, str>> = Vec::new();
    let mut first = parts.next().unwrap_or_default();
    if first.is_empty() && parts.peek().is_some() {
        first = parts.next().unwrap_or_default();
    }
    elements.push(first.into());
    for part in parts {
        match elements.last_mut() {
            Some(last) if last.ends_with('\\') => {
                let joined = last.to_mut();
                joined.pop();
                joined.push(delimiter);
                joined.push_str(part);
            }
            _ => elements.push(part.into()),
        }
    }
    elements
}

/// Returns the node at a path; `None` for a missing node, or if the path doesn't fit.
pub(crate) fn get<'a>(node: &'a Node, elements: &[Cow<'_, str>]) -> Option<&'a Node> {
    follow(node, elements).ok().flatten()
}

/// Follows a path as [`get`] does, with an error for a path that does not fit the node.
pub(crate) fn follow<'a>(node: &'a Node, elements: &[Cow<'_, str>]) -> Result<Option<&'a Node>, Error> {
    let mut node = node;
    for element in elements {
        match step(node, element)? {
            Leads::Stay => {}
            Leads::Down(index) => match child(node, index) {
                Some(child) => node = child,
                None => return Ok(None),
            },
            Leads::Nowhere => return Ok(None),
        }
    }
    Ok(Some(node))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leads {
    /// An empty element: the node itself.
    Stay,
    /// The entry of a map or the item of a list with this index.
    Down(usize),
    /// A missing node.
    Nowhere,
}

pub(crate) fn step(node: &Node, element: &str) -> Result<Leads, Error> {
    let fail = |problem: String| Err(Error::new(Step::Reference, problem));
    let element = element.trim();
    if element.is_empty() {
        return Ok(Leads::Stay);
    }
    let found = if let Ok(index) = element.parse::<i64>() {
        let Ok(index) = usize::try_from(index) else {
            return fail(format!("array index {index} cannot be negative"));
        };
        let count = items(node)?.len();
        Some(index).filter(|index| *index < count)
    } else if element == "-" {
        match items(node)?.len().checked_sub(1) {
            None => return fail("the list has no last item".to_owned()),
            last => last,
        }
    } else if element == "*" {
        return fail("wildcard is not supported in PathGetter".to_owned());
    } else if is_condition(element) {
        let (field, value) = condition(element)?;
        items(node)?.iter().position(|item| is(item, field, value))
    } else {
        key_index(node, element)?
    };
    Ok(found.map_or(Leads::Nowhere, Leads::Down))
}

/// Returns the child with an index of [`step`].
pub(crate) fn child(node: &Node, index: usize) -> Option<&Node> {
    match &node.content {
        Content::Map(map) => map.entries().get(index).map(|entry| &entry.value),
        Content::Seq(items) => items.get(index),
        Content::Scalar(_) => None,
    }
}

pub(crate) fn child_mut(node: &mut Node, index: usize) -> Option<&mut Node> {
    match &mut node.content {
        Content::Map(map) => map.entries_mut().get_mut(index).map(|entry| &mut entry.value),
        Content::Seq(items) => items.get_mut(index),
        Content::Scalar(_) => None,
    }
}

/// Returns the index of a key's first entry; null has none.
pub(crate) fn key_index(node: &Node, key: &str) -> Result<Option<usize>, Error> {
    match &node.content {
        Content::Map(map) => Ok(map.keys().position(|name| name == key)),
        _ if node.is_null() => Ok(None),
        _ => Err(wrong_kind("MappingNode", node.kind_name())),
    }
}

pub(crate) fn items(node: &Node) -> Result<&[Node], Error> {
    match &node.content {
        Content::Seq(items) => Ok(items),
        _ if node.is_null() => Ok(&[]),
        _ => Err(wrong_kind("SequenceNode", node.kind_name())),
    }
}

pub(crate) fn wrong_kind(expected: &str, found: &str) -> Error {
    let problem = format!("wrong node kind: expected {expected} but got {found}");
    Error::new(Step::Reference, problem)
}

/// Returns true if an element selects items of a list.
pub(crate) fn is_condition(element: &str) -> bool {
    element.starts_with('[') && element.ends_with(']')
}

/// Splits a condition into field and value; the field is empty for items that are scalars.
pub(crate) fn condition(element: &str) -> Result<(&str, &str), Error> {
    let inner = element.strip_suffix(']').unwrap_or(element);
    let inner = inner.strip_prefix('[').unwrap_or(inner);
    inner.split_once('=').ok_or_else(|| {
        let problem = "list path element must contain fieldName=fieldValue for element to match";
        Error::new(Step::Reference, problem)
    })
}

fn is(item: &Node, field: &str, value: &str) -> bool {
    if field.is_empty() {
        raw_text(item) == value
    } else {
        item.get(field).is_some_and(|field| raw_text(field) == value)
    }
}

/// Returns the content of a scalar, even of a null; empty for anything else.
pub(crate) fn raw_text(node: &Node) -> &str {
    match &node.content {
        Content::Scalar(Scalar { text, .. }) => text,
        Content::Seq(_) | Content::Map(_) => "",
    }
}

/// Returns true if the type of a scalar doesn't follow from its content.
pub(crate) fn has_type(node: &Node) -> bool {
    let is_plain = |scalar: &Scalar| scalar.plain && scalar.tag.is_none();
    node.position != yaml::Position::default() || !node.as_scalar().is_some_and(is_plain)
}

/// Returns true if a node is null. A plain scalar that the build made has no type yet, and is not null.
pub(crate) fn is_null(node: &Node) -> bool {
    node.is_null() && has_type(node)
}

/// Returns true if a scalar was read in quotes, or was made of a string that needs them.
pub(crate) fn is_quoted(node: &Node) -> bool {
    let was_read = node.position != yaml::Position::default();
    let needs_them = |old: &Scalar| was_read || Scalar::plain(old.text.clone()).kind() != Tag::Str;
    node.as_scalar()
        .is_some_and(|scalar| !scalar.plain && needs_them(scalar))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_split_at_dots_unless_bracketed() {
        let cases: &[(&str, &[&str])] = &[
            ("a.b", &["a", "b"]),
            (r"a.b\.c", &["a", "b.c"]),
            ("a.[b.c/d].e", &["a", "b.c/d", "e"]),
            ("a.[n=b.c].e", &["a", "[n=b.c]", "e"]),
            ("a.[n=b].e", &["a", "[n=b]", "e"]),
            ("a.[0]", &["a", "[0]"]),
            ("a.[b.c", &["a", "b.c"]),
            ("a.", &["a", ""]),
        ];
        for (path, expected) in cases {
            assert_eq!(split(path), *expected, "{path}");
        }
    }

    #[test]
    fn paths_are_split_at_delimiters_that_are_not_escaped() {
        let cases: &[(&str, &[&str])] = &[
            ("a", &["a"]),
            ("", &[""]),
            ("/a/b", &["a", "b"]),
            ("a/b[]/c", &["a", "b[]", "c"]),
            (r"a/k8s.io\/x/c", &["a", "k8s.io/x", "c"]),
            ("a//b", &["a", "", "b"]),
        ];
        for (path, expected) in cases {
            assert_eq!(split_escaped(path, '/'), *expected, "{path}");
        }
    }

    #[test]
    fn paths_lead_through_maps_and_lists() {
        let text = "{l: [{n: a, v: 1}, {n: b.c, v: 2}, s, null], m: {x: ~}}";
        let node = yaml::read::node(text, &tree::Budget::default()).unwrap().unwrap();
        let cases = [
            ("l.0.v", Some("1")),
            ("l.[n=b.c].v", Some("2")),
            ("l.[=s]", Some("s")),
            ("l.-", Some("null")),
            (" m . x ", Some("~")),
            ("m.x.y", None),
            ("l.-1", None),
            ("l.9", None),
            ("l.*", None),
            ("l.[n]", None),
            ("m.[n=a]", None),
            ("l.[n=c].v", None),
            ("m.0", None),
        ];
        for (path, expected) in cases {
            assert_eq!(get(&node, &split(path)).map(raw_text), expected, "{path}");
        }
    }
}

//! Paths of dots, as vars and the sources of replacements have them: `spec.ports.0.name`, `spec.containers.[name=a].image`.

use std::borrow::Cow;

use yaml::{
    Node,
    node::{Content, Scalar},
};

use crate::fieldspec;

/// Takes a path apart at its dots. A dot in brackets or after a backslash belongs to its element; brackets around what is
/// no condition are taken away when there is a dot in them.
pub(crate) fn split(path: &str) -> Vec<Cow<'_, str>> {
    let mut elements = Vec::new();
    let mut parts = fieldspec::split(path, '.').into_iter();
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

/// The node that the elements of a path lead to. Where nothing is there, or something else than the path says, it is none.
pub(crate) fn get<'a>(node: &'a Node, elements: &[Cow<'_, str>]) -> Option<&'a Node> {
    let mut elements = elements
        .iter()
        .map(|element| element.trim())
        .filter(|element| !element.is_empty());
    elements.try_fold(node, step)
}

fn step<'a>(node: &'a Node, element: &str) -> Option<&'a Node> {
    if let Ok(index) = element.parse::<i64>() {
        return node.as_seq()?.get(usize::try_from(index).ok()?);
    }
    match element {
        "-" => node.as_seq()?.last(),
        // The original refuses it by name, and so do the users of paths that may have one.
        "*" => None,
        _ => match element.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            Some(condition) => {
                let (field, value) = condition.split_once('=')?;
                node.as_seq()?.iter().find(|item| is(item, field, value))
            }
            None => node.get(element),
        },
    }
}

fn is(item: &Node, field: &str, value: &str) -> bool {
    if field.is_empty() {
        raw_text(item) == value
    } else {
        item.get(field).is_some_and(|field| raw_text(field) == value)
    }
}

/// The text of a scalar, even of a null; empty for anything else.
pub(crate) fn raw_text(node: &Node) -> &str {
    match &node.content {
        Content::Scalar(Scalar { text, .. }) => text,
        Content::Seq(_) | Content::Map(_) => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_split_at_dots_outside_of_brackets() {
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

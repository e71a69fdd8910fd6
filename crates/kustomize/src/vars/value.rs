//! The values of vars.

use yaml::{
    Node, Value as Plain,
    node::{Content, Scalar, Tag},
};

use crate::lookup;

#[derive(Debug)]
pub(super) struct Value {
    /// For a string that is nothing but the reference.
    pub(super) scalar: Scalar,
    /// For references in other strings.
    pub(super) text: String,
}

/// The node at a path.
#[derive(Debug)]
pub(super) enum Field {
    /// Or a node that doesn't fit its tag.
    Missing,
    /// A map or a list.
    Structure,
    Value(Value),
}

/// Returns the field of an object; `ports[0]` and `ports.0` are the same.
pub(super) fn field(object: &Node, path: &str) -> Field {
    let mut elements = Vec::new();
    for element in lookup::split(path) {
        match indexed(&element) {
            Some((name, index)) => {
                // An empty one is ignored.
                elements.extend([name.to_owned().into(), index.to_owned().into()]);
            }
            None => elements.push(element),
        }
    }
    match lookup::get(object, &elements) {
        None => Field::Missing,
        Some(node) => match &node.content {
            Content::Scalar(scalar) => read(scalar).map_or(Field::Missing, Field::Value),
            Content::Seq(_) | Content::Map(_) if node.to_value().is_err() => Field::Missing,
            Content::Seq(_) | Content::Map(_) => Field::Structure,
        },
    }
}

fn indexed(element: &str) -> Option<(&str, &str)> {
    let (name, index) = element.strip_suffix(']')?.rsplit_once('[')?;
    let is_number = !index.is_empty() && index.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then_some((name, index))
}

/// quirk: numbers are read in Go's notation, not YAML's: `0x1F` and `1_000` are invalid, and `0777` is 777.
fn read(scalar: &Scalar) -> Option<Value> {
    let text = &*scalar.text;
    let (text, inside, tag) = match scalar.kind() {
        Tag::Int => {
            let text = text.parse::<i64>().ok()?.to_string();
            (text.clone(), text, Tag::Int)
        }
        Tag::Float => {
            let float = text.parse::<f64>().ok().filter(|float| float.is_finite())?;
            let inside = Node::from_value(&Plain::Float(float));
            (
                float.to_string(),
                lookup::raw_text(&inside).to_owned(),
                Tag::Float,
            )
        }
        Tag::Bool => {
            let text = if is_true(text)? { "true" } else { "false" }.to_owned();
            (text.clone(), text, Tag::Bool)
        }
        Tag::Null | Tag::Str | Tag::Timestamp | Tag::Binary | Tag::Other => {
            (text.to_owned(), text.to_owned(), Tag::Str)
        }
    };
    let scalar = Scalar {
        text: text.into(),
        tag: Some(tag),
        plain: tag != Tag::Str,
        share: None,
        in_flow: false,
    };
    Some(Value { scalar, text: inside })
}

fn is_true(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Some(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Some(false),
        _ => None,
    }
}

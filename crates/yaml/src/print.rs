//! Printers, one function per dialect. All write block style with two spaces per level and list items at the column of their
//! key, and all output reads back as the same value in its dialect. JSON has no infinities and no NaN: the JSON printers
//! that follow Go write `null` for them.

mod analysis;
mod dialect;
mod emit;
mod graph;
mod json;
pub(crate) mod number;
mod order;
mod scalar;
mod style;
#[cfg(test)]
mod tests;

use dialect::{Dialect, GO, INDENT};
use emit::Emitter;
pub use json::JsonWriter;

use tree::Budget;

use crate::{
    Error, Node, Value,
    graph::{Graph, GraphContent},
    read,
};

/// Prints as sigs.k8s.io/yaml does: keys in its natural order (`a2` before `a10`), ambiguous strings in double quotes,
/// strings of several lines as `|`, long lines folded at 80 columns.
#[must_use]
pub fn goyaml(value: &Value) -> String {
    Emitter::new(&GO).document(value)
}

/// Prints as [`goyaml`] does, except for the differences of go-yaml version 3: long lines are not folded, and strings of
/// several lines may contain tabs.
#[must_use]
pub fn goyaml_v3(value: &Value) -> String {
    let dialect = Dialect {
        width: usize::MAX,
        tabs: true,
        ..GO
    };
    Emitter::new(&dialect).document(value)
}

/// Prints as [`goyaml_v3`] does with an indentation of two spaces: lists are indented below their key. Strings are in the form of
/// [`go::bytes`]; other bytes than UTF-8 become `!!binary`.
#[must_use]
pub fn goyaml_v3_indented(value: &Value) -> String {
    let dialect = Dialect {
        width: usize::MAX,
        tabs: true,
        bytes: true,
        list_indent: INDENT,
        ..GO
    };
    Emitter::new(&dialect).document(value)
}

/// Prints with the quoting of kustomize's output and keeps the order of keys. The tool itself orders keys: [`goyaml`] prints
/// its exact bytes.
#[must_use]
pub fn kustomize(value: &Value) -> String {
    Emitter::new(&Dialect { sorted: false, ..GO }).document(value)
}

/// Prints as PyYAML's `safe_dump` in block style with keys in their order and several lines as `|`: ambiguous strings in
/// single quotes, everything beyond ASCII escaped, a scalar on its own ended by `...`.
#[must_use]
pub fn pyyaml(value: &Value) -> String {
    let mut graph = Graph::default();
    let root = add_value(&mut graph, value);
    graph.set_root(root);
    graph::print(&graph, usize::MAX).unwrap_or_default()
}

/// Prints as [`pyyaml`]. Shared nodes get an anchor and aliases.
/// Indentation makes a document up to hundreds of times as long as its strings: returns `None` if it is longer than `limit` bytes.
#[must_use]
pub fn pyyaml_graph(graph: &Graph, limit: usize) -> Option<String> {
    graph::print(graph, limit)
}

/// Adds a value as nodes, none of them shared.
fn add_value(graph: &mut Graph, value: &Value) -> usize {
    let plain = |text: String| GraphContent::Scalar { text, plain: true };
    let content = match value {
        Value::Null => plain("null".to_owned()),
        Value::Bool(value) => plain(value.to_string()),
        Value::Int(value) => plain(value.to_string()),
        Value::UInt(value) => plain(value.to_string()),
        Value::Float(value) => plain(number::python_yaml(*value)),
        Value::String(text) => GraphContent::Scalar {
            text: text.clone(),
            plain: false,
        },
        Value::Seq(items) => GraphContent::Seq(items.iter().map(|item| add_value(graph, item)).collect()),
        Value::Map(map) => {
            let key = |text: &str| GraphContent::Scalar {
                text: text.to_owned(),
                plain: false,
            };
            let entry = |(name, value)| (graph.hold(key(name)), add_value(graph, value));
            GraphContent::Map(map.iter().map(entry).collect())
        }
    };
    graph.hold(content)
}

/// Prints a changed document in the style of its source, as go-yaml version 3 prints a document that it has read: quotes,
/// brackets, anchors, tags and comments stay, the layout is made anew. `before` is the result of [`read::node`] for the
/// source, `after` the same with scalars changed, nodes replaced, or entries and items appended.
pub fn restyled(text: &str, before: &Node, after: &Node, budget: &Budget) -> Result<String, Error> {
    read::restyled(text, before, after, budget)
}

/// Prints documents separated by `---` lines.
#[must_use]
pub fn all<'v>(values: impl IntoIterator<Item = &'v Value>, print: fn(&Value) -> String) -> String {
    let texts: Vec<String> = values.into_iter().map(print).collect();
    texts.join("---\n")
}

/// Prints compact JSON with keys in their order.
#[must_use]
pub fn json(value: &Value) -> String {
    json::print(value, &json::GO_RAW)
}

/// Prints JSON as Go's encoding/json prints structs by default: as [`json`], with `<`, `>` and `&` escaped.
#[must_use]
pub fn json_html(value: &Value) -> String {
    json::print(value, &json::GO)
}

/// Prints JSON as Go's encoding/json prints maps without HTML escaping: compact, keys sorted bytewise.
#[must_use]
pub fn json_sorted(value: &Value) -> String {
    json::print(value, &json::GO_SORTED_RAW)
}

/// Prints JSON as Go's encoding/json prints maps by default: as [`json_sorted`], with `<`, `>` and `&` escaped.
#[must_use]
pub fn json_sorted_html(value: &Value) -> String {
    json::print(value, &json::GO_SORTED)
}

/// Prints JSON as Python's `json.dumps` does: spaces after `,` and `:`, only ASCII, keys in their order.
#[must_use]
pub fn python_json(value: &Value) -> String {
    json::print(value, &json::PYTHON)
}

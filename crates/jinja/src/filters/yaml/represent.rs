//! Converts values to the nodes of a document. A shared value becomes one node.

use std::collections::HashMap;

use yaml::graph::{Graph, GraphContent};

use crate::{
    exc::{R, raise},
    format::repr,
    rt::{ENTRY, Rt},
    value::{Object, Value, iter},
};

const MAX_DEPTH: usize = 200;

pub(super) fn graph(rt: &Rt, value: &Value) -> R<Graph> {
    let mut maker = Maker {
        rt,
        graph: Graph::default(),
        known: HashMap::new(),
        retained: Vec::new(),
        depth: 0,
    };
    let root = maker.node(value)?;
    maker.graph.set_root(root);
    Ok(maker.graph)
}

struct Maker<'a> {
    rt: &'a Rt,
    graph: Graph,
    /// Containers by address.
    known: HashMap<usize, usize>,
    /// Retains the containers, so that no address is reused.
    retained: Vec<Value>,
    depth: usize,
}

impl Maker<'_> {
    fn node(&mut self, value: &Value) -> R<usize> {
        self.rt.step(4)?;
        self.rt
            .alloc(ENTRY * 4 + value.as_str().map_or(0, |text| text.len()))?;
        self.rt
            .step(value.as_str().map_or(0, |text| text.len() as u64 / 16))?;
        let plain = |text: String| GraphContent::Scalar { text, plain: true };
        let content = match value {
            Value::None => plain("null".to_owned()),
            Value::Bool(flag) => plain(flag.to_string()),
            Value::Int(_) | Value::Big(_) => plain(repr::text(self.rt, value)?),
            Value::Float(number) => plain(float(*number)),
            Value::Str(text) => GraphContent::Scalar {
                text: text.to_string(),
                plain: false,
            },
            Value::List(_) | Value::Tuple(_) | Value::Dict(_) => return self.container(value),
            Value::Object(object) => match &**object {
                Object::Date(date) => {
                    let content = plain(date.text(' '));
                    return Ok(self.once(value, content));
                }
                _ => return refused(self.rt, value),
            },
            _ => return refused(self.rt, value),
        };
        Ok(self.graph.hold(content))
    }

    /// Returns the node of an object, made at its first use.
    fn once(&mut self, value: &Value, content: GraphContent) -> usize {
        let address = value.address();
        if let Some(number) = self.known.get(&address) {
            return *number;
        }
        let number = self.graph.hold(content);
        self.known.insert(address, number);
        self.retained.push(value.clone());
        number
    }

    fn container(&mut self, value: &Value) -> R<usize> {
        if let Some(number) = self.known.get(&value.address()) {
            return Ok(*number);
        }
        if self.depth >= MAX_DEPTH {
            return raise("RecursionError", "maximum recursion depth exceeded");
        }
        // All empty tuples are the same object, and get no anchor.
        if matches!(value, Value::Tuple(tuple) if tuple.items.is_empty()) {
            return Ok(self.graph.hold(GraphContent::Seq(Vec::new())));
        }
        let number = self.once(value, GraphContent::Seq(Vec::new()));
        self.depth += 1;
        let content = match value {
            Value::Dict(dict) => {
                let mut entries = Vec::with_capacity(dict.len());
                for (key, item) in dict.pairs() {
                    entries.push((self.node(&key)?, self.node(&item)?));
                }
                GraphContent::Map(entries)
            }
            _ => {
                let items = iter::collect(self.rt, value)?;
                let items: R<Vec<usize>> = items.iter().map(|item| self.node(item)).collect();
                GraphContent::Seq(items?)
            }
        };
        self.depth -= 1;
        self.graph.fill(number, content);
        Ok(number)
    }
}

fn refused<T>(rt: &Rt, value: &Value) -> R<T> {
    let mut text = String::new();
    repr::write_repr(rt, value, &mut text)?;
    raise(
        "RepresenterError",
        format!("('cannot represent an object', {text})"),
    )
}

/// A float always has a point.
fn float(number: f64) -> String {
    match repr::float(number).as_str() {
        "nan" => ".nan".to_owned(),
        "inf" => ".inf".to_owned(),
        "-inf" => "-.inf".to_owned(),
        text if !text.contains('.') => text.replacen('e', ".0e", 1),
        text => text.to_owned(),
    }
}

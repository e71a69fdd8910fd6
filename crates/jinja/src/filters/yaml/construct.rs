//! Converts the nodes of a document to values. A shared node becomes one value.

use std::{collections::HashMap, rc::Rc};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use num_bigint::BigInt;
use yaml::{
    graph::{Graph, GraphContent, GraphNode},
    read::{PythonScalar, python_scalar},
};

use crate::{
    exc::{Exc, R, raise, value_error},
    rt::{ENTRY, Rt},
    value::{Dict, DictMap, List, Object, Value, date::Date, number::from_big},
};

/// The maximum digits of a decimal number, as in Python.
const MAX_DIGITS: usize = 4300;

/// The maximum number of entries from merge keys.
const MAX_MERGED: usize = 1_000_000;

pub(super) fn value(rt: &Rt, graph: &Graph) -> R<Value> {
    let mut maker = Maker {
        rt,
        graph,
        known: HashMap::new(),
        merged: 0,
    };
    maker.value(graph.root())
}

struct Maker<'a> {
    rt: &'a Rt,
    graph: &'a Graph,
    known: HashMap<usize, Value>,
    merged: usize,
}

type Entries = Vec<(usize, usize)>;

fn fail<T>(node: &GraphNode, message: impl std::fmt::Display) -> R<T> {
    raise("ConstructorError", format!("{}: {message}", node.position))
}

impl<'a> Maker<'a> {
    fn node(&self, number: usize) -> R<&'a GraphNode> {
        match self.graph.get(number) {
            Some(node) => Ok(node),
            None => raise("ConstructorError", "the document has no such node"),
        }
    }

    fn value(&mut self, number: usize) -> R<Value> {
        self.rt.step(2)?;
        if let Some(known) = self.known.get(&number) {
            return Ok(known.clone());
        }
        let graph = self.graph;
        let Some(node) = graph.get(number) else {
            return Ok(Value::None);
        };
        match (&node.content, node.tag.as_deref()) {
            (GraphContent::Scalar { text, plain }, _) => {
                let made = scalar(self.rt, node, text, *plain)?;
                self.known.insert(number, made.clone());
                Ok(made)
            }
            (GraphContent::Seq(items), None | Some("!!seq" | "!")) => {
                let list = Rc::new(List::new(Vec::new()));
                self.rt.alloc(items.len().saturating_mul(ENTRY))?;
                self.known.insert(number, Value::List(list.clone()));
                for item in items {
                    let item = self.value(*item)?;
                    self.rt.linked(&Value::List(list.clone()), &item)?;
                    list.change(|items| items.push(item));
                }
                Ok(Value::List(list))
            }
            (GraphContent::Seq(items), Some("!!omap" | "!!pairs")) => {
                let mut pairs = Vec::with_capacity(items.len());
                for item in items {
                    let entry = self.node(*item)?;
                    let (key, value) = match &entry.content {
                        GraphContent::Map(entries) if entries.len() == 1 => {
                            entries.first().copied().unwrap_or_default()
                        }
                        _ => return fail(entry, "expected a mapping of length 1"),
                    };
                    let pair = vec![self.value(key)?, self.value(value)?];
                    pairs.push(Value::tuple(pair));
                }
                self.rt.list(pairs)
            }
            (GraphContent::Map(_), None | Some("!!map" | "!")) => self.map(number),
            (_, Some("!!set")) => fail(node, "sets are not known"),
            (_, tag) => fail(
                node,
                format_args!(
                    "could not determine a constructor for the tag '{}'",
                    tag.unwrap_or_default()
                ),
            ),
        }
    }

    fn map(&mut self, number: usize) -> R<Value> {
        let made = Rc::new(Dict::new(DictMap::new()));
        self.known.insert(number, Value::Dict(made.clone()));
        for (key, item) in self.entries(number, 0)? {
            self.rt.alloc(ENTRY * 2)?;
            let name = self.value(key)?;
            let name = match self.rt.key(&name) {
                Err(error) if matches!(*error, Exc::Limit(_)) => return Err(error),
                Err(_) => return fail(self.node(key)?, "found unhashable key"),
                Ok(name) => name,
            };
            let item = self.value(item)?;
            self.rt.linked(&Value::Dict(made.clone()), &item)?;
            drop(made.insert(name, item));
        }
        Ok(Value::Dict(made))
    }

    /// Returns the entries of a map; entries of merge keys come first.
    fn entries(&mut self, number: usize, depth: u32) -> R<Entries> {
        let graph = self.graph;
        self.count(1)?;
        let node = self.node(number)?;
        let GraphContent::Map(entries) = &node.content else {
            return fail(node, "expected a mapping for merging");
        };
        if depth > 100 {
            return raise("RecursionError", "maximum recursion depth exceeded");
        }
        let (mut merged, mut own) = (Entries::new(), Entries::new());
        for (key, value) in entries {
            if !self.is_merge(*key)? {
                own.push((*key, *value));
                continue;
            }
            let source = graph.get(*value).map(|node| &node.content);
            match source {
                Some(GraphContent::Map(_)) => merged.extend(self.entries(*value, depth + 1)?),
                Some(GraphContent::Seq(items)) => {
                    for item in items.iter().rev() {
                        merged.extend(self.entries(*item, depth + 1)?);
                    }
                }
                _ => {
                    let node = self.node(*value)?;
                    return fail(node, "expected a mapping or list of mappings for merging");
                }
            }
            self.count(merged.len())?;
        }
        merged.extend(own);
        Ok(merged)
    }

    fn count(&mut self, entries: usize) -> R<()> {
        self.rt.step(entries as u64)?;
        self.merged = self.merged.saturating_add(entries);
        if self.merged > MAX_MERGED {
            return raise("ConstructorError", "merge keys bring in too many entries");
        }
        Ok(())
    }

    fn is_merge(&self, number: usize) -> R<bool> {
        let node = self.node(number)?;
        Ok(match (&node.content, node.tag.as_deref()) {
            (_, Some(tag)) => tag == "!!merge",
            (GraphContent::Scalar { text, plain: true }, None) => text == "<<",
            _ => false,
        })
    }
}

fn scalar(rt: &Rt, node: &GraphNode, text: &str, plain: bool) -> R<Value> {
    let mismatch = || {
        fail(
            node,
            format_args!(
                "{text:?} can't be read as {}",
                node.tag.as_deref().unwrap_or_default()
            ),
        )
    };
    if plain && text.contains('\t') {
        let message = "found character '\\t' that cannot start any token";
        return raise("ScannerError", format!("{}: {message}", node.position));
    }
    let tag = match node.tag.as_deref() {
        Some("!") => {
            return match python_scalar(text) {
                Some(found) => resolved(rt, node, found),
                None => rt.text(text.to_owned()),
            };
        }
        None if !plain => return rt.text(text.to_owned()),
        None => match python_scalar(text) {
            Some(found) => return resolved(rt, node, found),
            None => return rt.text(text.to_owned()),
        },
        Some(tag) => tag,
    };
    match (tag, python_scalar(text)) {
        ("!!str" | "!!value", _) => rt.text(text.to_owned()),
        ("!!null", _) => Ok(Value::None),
        ("!!bool", Some(found @ PythonScalar::Bool(_)))
        | ("!!int", Some(found @ PythonScalar::Int { .. }))
        | ("!!float", Some(found @ PythonScalar::Float(_)))
        | ("!!timestamp", Some(found @ PythonScalar::Timestamp(_))) => resolved(rt, node, found),
        ("!!float", _) => match text.replace('_', "").parse() {
            Ok(number) => Ok(Value::Float(number)),
            Err(_) => mismatch(),
        },
        ("!!binary", _) => {
            let compact: String = text.chars().filter(|letter| !letter.is_whitespace()).collect();
            match STANDARD.decode(compact) {
                Ok(bytes) => Ok(Value::Bytes(bytes.into())),
                Err(_) => fail(node, "failed to decode base64 data"),
            }
        }
        ("!!bool" | "!!int" | "!!timestamp", _) => mismatch(),
        (tag, _) => fail(
            node,
            format_args!("could not determine a constructor for the tag '{tag}'"),
        ),
    }
}

fn resolved(rt: &Rt, node: &GraphNode, found: PythonScalar) -> R<Value> {
    Ok(match found {
        PythonScalar::Null => Value::None,
        PythonScalar::Bool(flag) => Value::Bool(flag),
        PythonScalar::Float(number) => Value::Float(number),
        PythonScalar::Timestamp(text) => Value::object(Object::Date(Date::parse(&text)?)),
        PythonScalar::Merge => {
            return fail(
                node,
                "could not determine a constructor for the tag 'tag:yaml.org,2002:merge'",
            );
        }
        PythonScalar::Int {
            negative,
            radix,
            digits,
        } => {
            rt.step((digits.len() as u64).saturating_pow(2) / 65_536)?;
            let number = whole(radix, &digits)?;
            from_big(if negative { -number } else { number })
        }
    })
}

fn whole(radix: u32, digits: &str) -> R<BigInt> {
    if digits.len() > MAX_DIGITS && radix != 2 && radix != 16 && radix != 8 {
        return value_error(format!(
            "Exceeds the limit ({MAX_DIGITS} digits) for integer string conversion: value has {} digits",
            digits.len()
        ));
    }
    if radix == 60 {
        let parts = digits
            .split(':')
            .map(|part| part.parse::<u64>().unwrap_or_default());
        return Ok(parts.fold(BigInt::default(), |total, part| total * 60u32 + part));
    }
    match BigInt::parse_bytes(digits.as_bytes(), radix) {
        Some(number) => Ok(number),
        None => value_error(format!("invalid literal for int() with base {radix}: '{digits}'")),
    }
}

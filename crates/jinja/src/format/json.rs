//! Python's `json.dumps`.

use std::fmt::Write as _;

use super::repr;
use crate::{
    exc::{R, raise, type_error, value_error},
    rt::{ENTRY, Rt},
    value::{Str, Value, compare},
};

const MAX_DEPTH: usize = 900;

#[derive(Debug, Clone, Default)]
pub(crate) struct Style {
    pub(crate) sorted: bool,
    /// The indentation of a level; `None` for one line.
    pub(crate) indent: Option<Str>,
}

/// Prints a value, ASCII only.
pub(crate) fn dumps(rt: &Rt, value: &Value, style: &Style) -> R<String> {
    let mut out = String::new();
    write(rt, value, style, &mut out, &mut Vec::new())?;
    Ok(out)
}

fn write(rt: &Rt, value: &Value, style: &Style, out: &mut String, path: &mut Vec<usize>) -> R<()> {
    rt.step(4)?;
    rt.fits(out.len())?;
    match value {
        Value::None => out.push_str("null"),
        Value::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Value::Int(_) | Value::Big(_) => repr::write_repr(rt, value, out)?,
        Value::Float(number) => out.push_str(&float(*number)),
        Value::Str(text) | Value::Markup(text) => {
            rt.step(text.len() as u64 / 16)?;
            write_text(text, out);
        }
        Value::List(_) | Value::Tuple(_) | Value::Dict(_) => {
            let address = value.address();
            if path.contains(&address) {
                return value_error("Circular reference detected");
            }
            if path.len() >= MAX_DEPTH {
                return raise(
                    "RecursionError",
                    "maximum recursion depth exceeded while encoding a JSON object",
                );
            }
            path.push(address);
            match value {
                Value::List(list) => write_items(rt, &list.items(), style, out, path)?,
                Value::Tuple(tuple) => write_items(rt, &tuple.items, style, out, path)?,
                Value::Dict(dict) => write_map(rt, dict.pairs(), style, out, path)?,
                _ => {}
            }
            path.pop();
        }
        _ => {
            return type_error(format!(
                "Object of type {} is not JSON serializable",
                value.type_name()
            ));
        }
    }
    rt.fits(out.len())
}

fn float(number: f64) -> String {
    match repr::float(number).as_str() {
        "nan" => "NaN".to_owned(),
        "inf" => "Infinity".to_owned(),
        "-inf" => "-Infinity".to_owned(),
        other => other.to_owned(),
    }
}

fn write_items(rt: &Rt, items: &[Value], style: &Style, out: &mut String, path: &mut Vec<usize>) -> R<()> {
    out.push('[');
    for (index, item) in items.iter().enumerate() {
        separate(rt, style, index, out, path.len())?;
        write(rt, item, style, out, path)?;
    }
    if !items.is_empty() {
        new_line(rt, style, out, path.len() - 1)?;
    }
    out.push(']');
    Ok(())
}

fn write_map(
    rt: &Rt,
    mut pairs: Vec<(Value, Value)>,
    style: &Style,
    out: &mut String,
    path: &mut Vec<usize>,
) -> R<()> {
    rt.alloc(pairs.len().saturating_mul(ENTRY))?;
    if style.sorted {
        pairs = sort_pairs(rt, pairs)?;
    }
    out.push('{');
    let empty = pairs.is_empty();
    for (index, (key, value)) in pairs.into_iter().enumerate() {
        separate(rt, style, index, out, path.len())?;
        let key = key_text(rt, &key)?;
        rt.step(key.len() as u64 / 16)?;
        write_text(&key, out);
        out.push_str(": ");
        write(rt, &value, style, out, path)?;
    }
    if !empty {
        new_line(rt, style, out, path.len() - 1)?;
    }
    out.push('}');
    Ok(())
}

/// Sorts by the keys, which must be comparable.
pub(crate) fn sort_pairs(rt: &Rt, pairs: Vec<(Value, Value)>) -> R<Vec<(Value, Value)>> {
    crate::value::sort::sort_by(rt, pairs, |rt, a, b| compare::sorts_before(rt, &a.0, &b.0))
}

fn separate(rt: &Rt, style: &Style, index: usize, out: &mut String, depth: usize) -> R<()> {
    if index > 0 {
        out.push_str(if style.indent.is_some() { "," } else { ", " });
    }
    new_line(rt, style, out, depth)
}

fn new_line(rt: &Rt, style: &Style, out: &mut String, depth: usize) -> R<()> {
    if let Some(indent) = &style.indent {
        rt.fits(out.len().saturating_add(indent.len().saturating_mul(depth)))?;
        rt.product(indent.len() / 64, depth)?;
        out.push('\n');
        for _ in 0..depth {
            out.push_str(indent);
        }
    }
    Ok(())
}

fn key_text(rt: &Rt, key: &Value) -> R<String> {
    Ok(match key {
        Value::Str(text) | Value::Markup(text) => text.to_string(),
        Value::None => "null".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Float(number) => float(*number),
        Value::Int(_) | Value::Big(_) => repr::text(rt, key)?,
        _ => {
            return type_error(format!(
                "keys must be str, int, float, bool or None, not {}",
                key.type_name()
            ));
        }
    })
}

fn write_text(text: &str, out: &mut String) {
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            ' '..='~' => out.push(letter),
            other => {
                for unit in other.encode_utf16(&mut [0; 2]) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
        }
    }
    out.push('"');
}

//! `pprint`: values over several lines, with sorted keys.

use super::{json::sort_pairs, repr};
use crate::{
    exc::{R, raise},
    rt::{ENTRY, Rt},
    value::{Dict, DictMap, Value, char_count},
};
use std::rc::Rc;

const WIDTH: usize = 80;

const MAX_DEPTH: usize = 300;

pub(crate) fn format(rt: &Rt, value: &Value) -> R<String> {
    let sorted = sorted(rt, value, 0)?;
    let mut out = String::new();
    write(rt, &sorted, 0, 0, 0, &mut out)?;
    Ok(out)
}

/// Returns the value with dictionaries in key order.
fn sorted(rt: &Rt, value: &Value, depth: usize) -> R<Value> {
    rt.alloc(ENTRY)?;
    rt.step(1)?;
    if depth > MAX_DEPTH {
        return raise("RecursionError", "maximum recursion depth exceeded");
    }
    Ok(match value {
        Value::List(list) => {
            let items: R<Vec<Value>> = list
                .to_vec()
                .iter()
                .map(|item| sorted(rt, item, depth + 1))
                .collect();
            Value::list(items?)
        }
        Value::Tuple(tuple) => {
            let items: R<Vec<Value>> = tuple
                .items
                .iter()
                .map(|item| sorted(rt, item, depth + 1))
                .collect();
            Value::tuple(items?)
        }
        Value::Dict(dict) => {
            let pairs = dict.pairs();
            let all_text = pairs.iter().all(|(key, _)| key.as_str().is_some());
            let pairs = match sort_pairs(rt, pairs) {
                Ok(pairs) => pairs,
                Err(error) if all_text => return Err(error),
                Err(_) => dict.pairs(),
            };
            let mut map = DictMap::new();
            for (key, value) in pairs {
                map.insert(rt.key(&key)?, sorted(rt, &value, depth + 1)?);
            }
            Value::Dict(Rc::new(Dict::new(map)))
        }
        other => other.clone(),
    })
}

fn line(rt: &Rt, value: &Value) -> R<String> {
    let mut text = String::new();
    repr::write_repr(rt, value, &mut text)?;
    Ok(text)
}

fn write(rt: &Rt, value: &Value, indent: usize, allowance: usize, level: usize, out: &mut String) -> R<()> {
    rt.step(1)?;
    let text = line(rt, value)?;
    let available = WIDTH.saturating_sub(indent + allowance);
    rt.fits(out.len().saturating_add(text.len()))?;
    if char_count(&text) <= available {
        out.push_str(&text);
        return Ok(());
    }
    match value {
        Value::Dict(dict) if dict.len() > 0 => {
            out.push('{');
            let pairs = dict.pairs();
            let last = pairs.len() - 1;
            for (index, (key, value)) in pairs.iter().enumerate() {
                let key = line(rt, key)?;
                out.push_str(&key);
                out.push_str(": ");
                let inner = indent + 1 + char_count(&key) + 2;
                let allowance = if index == last { allowance + 1 } else { 1 };
                write(rt, value, inner, allowance, level + 1, out)?;
                if index < last {
                    new_line(indent + 1, out);
                }
            }
            out.push('}');
        }
        Value::List(list) if list.len() > 0 => {
            items(rt, &list.to_vec(), ('[', "]"), (indent, allowance, level), out)?;
        }
        Value::Tuple(tuple) if !tuple.items.is_empty() => {
            let close = if tuple.items.len() == 1 { ",)" } else { ")" };
            items(rt, &tuple.items, ('(', close), (indent, allowance, level), out)?;
        }
        Value::Str(long) => long_text(rt, long, (indent, allowance, level), out)?,
        _ => out.push_str(&text),
    }
    Ok(())
}

fn new_line(indent: usize, out: &mut String) {
    out.push_str(",\n");
    out.extend(std::iter::repeat_n(' ', indent));
}

fn items(
    rt: &Rt,
    items: &[Value],
    (open, close): (char, &str),
    (indent, allowance, level): (usize, usize, usize),
    out: &mut String,
) -> R<()> {
    out.push(open);
    let last = items.len() - 1;
    for (index, item) in items.iter().enumerate() {
        let allowance = if index == last { allowance + close.len() } else { 1 };
        write(rt, item, indent + 1, allowance, level + 1, out)?;
        if index < last {
            new_line(indent + 1, out);
        }
    }
    out.push_str(close);
    Ok(())
}

/// Splits a long string at its spaces into lines below each other.
fn long_text(
    rt: &Rt,
    text: &str,
    (indent, allowance, level): (usize, usize, usize),
    out: &mut String,
) -> R<()> {
    let (mut indent, mut allowance) = (indent, allowance);
    if level == 0 {
        indent += 1;
        allowance += 1;
    }
    // Each word is quoted twice, and can become a string of its own.
    rt.step(text.len() as u64 / 4)?;
    rt.alloc(text.len().saturating_mul(ENTRY / 2))?;
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let width = WIDTH.saturating_sub(indent);
    let mut chunks: Vec<String> = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let whole = repr::quoted(line);
        let last_line = index + 1 == lines.len();
        let available = if last_line {
            width.saturating_sub(allowance)
        } else {
            width
        };
        if char_count(&whole) <= available {
            chunks.push(whole);
            continue;
        }
        let mut current = String::new();
        for part in words(line) {
            let candidate = format!("{current}{part}");
            if char_count(&repr::quoted(&candidate)) > available && !current.is_empty() {
                chunks.push(repr::quoted(&current));
                current = part.to_owned();
            } else {
                current = candidate;
            }
        }
        if !current.is_empty() {
            chunks.push(repr::quoted(&current));
        }
    }
    if chunks.len() == 1 {
        out.push_str(&chunks.concat());
        return Ok(());
    }
    if level == 0 {
        out.push('(');
    }
    for (index, chunk) in chunks.iter().enumerate() {
        if index > 0 {
            rt.read(indent)?;
            rt.fits(out.len().saturating_add(indent))?;
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', indent));
        }
        out.push_str(chunk);
    }
    if level == 0 {
        out.push(')');
    }
    Ok(())
}

/// Splits into words with the space after them.
fn words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut start = 0;
    let mut in_space = false;
    for (at, letter) in text.char_indices() {
        if in_space && !letter.is_whitespace() {
            words.extend(text.get(start..at));
            start = at;
        }
        in_space = letter.is_whitespace();
    }
    words.extend(text.get(start..));
    words
}

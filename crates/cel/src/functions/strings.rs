//! Methods of strings.

use std::sync::Arc;

use crate::{
    EvalError, Value,
    eval::{Evaluated, Evaluation, no_overload},
    functions::int,
};

pub(super) fn join(run: &mut Evaluation, items: &[Value], rest: &[Value]) -> Evaluated {
    let separator = match rest {
        [] => "",
        [Value::String(text)] => text,
        other => return no_overload("join", other),
    };
    let mut made = String::new();
    for (at, item) in items.iter().enumerate() {
        let Value::String(text) = item else {
            return no_overload("join", std::slice::from_ref(item));
        };
        run.budget.spend_bytes(text.len() + separator.len())?;
        run.budget.allocate(text.len() + separator.len())?;
        if at > 0 {
            made.push_str(separator);
        }
        made.push_str(text);
    }
    Ok(made.into())
}

/// Converts an index in characters to one in bytes.
fn byte_index(text: &str, at: i64) -> Result<usize, EvalError> {
    let error = || EvalError::failed("index out of range");
    let at = usize::try_from(at).map_err(|_| error())?;
    let mut indices = text.char_indices().map(|(index, _)| index);
    indices
        .nth(at)
        .or_else(|| (text.chars().count() == at).then_some(text.len()))
        .ok_or_else(error)
}

pub(super) fn quote(run: &mut Evaluation, text: &str) -> Evaluated {
    run.budget.allocate(text.len().saturating_mul(2))?;
    let mut made = String::from("\"");
    for c in text.chars() {
        match c {
            '\u{7}' => made.push_str("\\a"),
            '\u{8}' => made.push_str("\\b"),
            '\u{c}' => made.push_str("\\f"),
            '\n' => made.push_str("\\n"),
            '\r' => made.push_str("\\r"),
            '\t' => made.push_str("\\t"),
            '\u{b}' => made.push_str("\\v"),
            '\\' => made.push_str("\\\\"),
            '"' => made.push_str("\\\""),
            other => made.push(other),
        }
    }
    made.push('"');
    Ok(made.into())
}

pub(super) fn method(run: &mut Evaluation, name: &str, text: &Arc<str>, rest: &[Value]) -> Evaluated {
    // No result is longer, except for `replace` and `split`, which count their own.
    run.budget.allocate(text.len())?;
    Ok(match (name, rest) {
        ("contains", [Value::String(part)]) => Value::Bool(text.contains(&**part)),
        ("startsWith", [Value::String(part)]) => Value::Bool(text.starts_with(&**part)),
        ("endsWith", [Value::String(part)]) => Value::Bool(text.ends_with(&**part)),
        ("lowerAscii", []) => text.to_ascii_lowercase().into(),
        ("upperAscii", []) => text.to_ascii_uppercase().into(),
        ("trim", []) => text.trim().into(),
        ("reverse", []) => text.chars().rev().collect::<String>().into(),
        ("charAt", [Value::Int(at)]) => {
            let from = byte_index(text, *at)?;
            let tail = text.get(from..).unwrap_or_default();
            tail.chars().next().map(String::from).unwrap_or_default().into()
        }
        ("substring", [Value::Int(from)]) => text.get(byte_index(text, *from)?..).unwrap_or_default().into(),
        ("substring", [Value::Int(from), Value::Int(to)]) => {
            let (from, to) = (byte_index(text, *from)?, byte_index(text, *to)?);
            let part = text.get(from..to);
            part.ok_or_else(|| EvalError::failed("index out of range"))?
                .into()
        }
        ("indexOf", [Value::String(part)]) => char_index(text, text.find(&**part)),
        ("indexOf", [Value::String(part), Value::Int(from)]) => {
            let from = byte_index(text, *from)?;
            let found = text.get(from..).and_then(|tail| tail.find(&**part));
            char_index(text, found.map(|at| at + from))
        }
        ("lastIndexOf", [Value::String(part)]) => char_index(text, text.rfind(&**part)),
        ("lastIndexOf", [Value::String(part), Value::Int(last)]) => {
            let end = (byte_index(text, *last)? + part.len()).min(text.len());
            let head = text.get(..text.floor_char_boundary(end)).unwrap_or_default();
            char_index(text, head.rfind(&**part))
        }
        ("replace", [Value::String(from), Value::String(to)]) => replace(run, text, from, to, -1)?,
        ("replace", [Value::String(from), Value::String(to), Value::Int(most)]) => {
            replace(run, text, from, to, *most)?
        }
        ("split", [Value::String(separator)]) => split(run, text, separator, -1)?,
        ("split", [Value::String(separator), Value::Int(most)]) => split(run, text, separator, *most)?,
        _ => return no_overload(name, &[&[Value::String(Arc::clone(text))], rest].concat()),
    })
}

/// Converts an index in bytes to one in characters; -1 for none.
fn char_index(text: &str, found: Option<usize>) -> Value {
    let head = found.and_then(|at| text.get(..at));
    head.map_or(Value::Int(-1), |head| int(head.chars().count()))
}

fn replace(run: &mut Evaluation, text: &str, from: &str, to: &str, most: i64) -> Evaluated {
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let count = text.matches(from).take(most).count();
    let bytes = text.len().saturating_add(count.saturating_mul(to.len()));
    run.budget.spend_bytes(bytes)?;
    run.budget.allocate(bytes)?;
    Ok(text.replacen(from, to, most).into())
}

fn split(run: &mut Evaluation, text: &str, separator: &str, most: i64) -> Evaluated {
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    if most == 0 {
        return Ok(Value::List(Arc::default()));
    }
    let parts: Vec<Value> = if separator.is_empty() {
        let ends = text.char_indices().map(|(at, c)| (at, at + c.len_utf8()));
        let count = text.chars().count();
        run.budget.spend(count)?;
        run.budget.allocate_items(count.min(most))?;
        let mut parts: Vec<Value> = Vec::new();
        for (number, (start, end)) in ends.enumerate() {
            if number + 1 == most {
                parts.push(text.get(start..).unwrap_or_default().into());
                break;
            }
            parts.push(text.get(start..end).unwrap_or_default().into());
        }
        parts
    } else {
        let count = text.matches(separator).take(most).count();
        run.budget.spend(count)?;
        run.budget.allocate_items(count)?;
        text.splitn(most, separator).map(Value::from).collect()
    };
    Ok(Value::List(Arc::new(parts)))
}

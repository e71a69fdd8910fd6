//! Plain functions on strings. Lengths and offsets count bytes, as in Go.

use std::{borrow::Cow, rc::Rc};

use go::bytes;
use memchr::memmem;

use super::{
    arguments::{any, int, rest, text},
    cast,
    context::{Context, ENTRY},
    table::{Answer, Entry, fixed, variadic},
};
use crate::template::FunctionError;
use crate::{
    Value,
    template::{self, Type, weight::STRING},
};

const ONE: &[Type] = &[Type::String];
const TWO: &[Type] = &[Type::String, Type::String];

pub(super) const TABLE: &[Entry] = &[
    fixed("trim", ONE, |_, arguments| {
        Ok(Value::string(text(arguments, 0).trim()))
    }),
    fixed("trimAll", TWO, trim_all),
    fixed("trimall", TWO, trim_all),
    fixed("trimPrefix", TWO, trim_prefix),
    fixed("trimSuffix", TWO, trim_suffix),
    fixed("trunc", &[Type::Int, Type::String], trunc),
    fixed("substr", &[Type::Int, Type::Int, Type::String], substr),
    fixed("repeat", &[Type::Int, Type::String], repeat),
    fixed("contains", TWO, |_, arguments| {
        Ok(Value::Bool(contains(text(arguments, 1), text(arguments, 0))))
    }),
    fixed("hasPrefix", TWO, |_, arguments| {
        Ok(Value::Bool(
            without_prefix(text(arguments, 1), text(arguments, 0)).is_some(),
        ))
    }),
    fixed("hasSuffix", TWO, |_, arguments| {
        Ok(Value::Bool(
            without_suffix(text(arguments, 1), text(arguments, 0)).is_some(),
        ))
    }),
    fixed("replace", &[Type::String, Type::String, Type::String], replace),
    fixed("indent", &[Type::Int, Type::String], indent),
    fixed("nindent", &[Type::Int, Type::String], nindent),
    fixed("plural", &[Type::String, Type::String, Type::Int], plural),
    variadic("quote", &[Type::Any], quote),
    variadic("squote", &[Type::Any], squote),
    variadic("cat", &[Type::Any], cat),
    fixed("join", &[Type::String, Type::Any], join),
    fixed("split", TWO, split),
    fixed("splitn", &[Type::String, Type::Int, Type::String], splitn),
    fixed("splitList", TWO, split_list),
    fixed("toString", &[Type::Any], to_string),
    fixed("toStrings", &[Type::Any], to_strings),
    fixed("sortAlpha", &[Type::Any], sort_alpha),
];

/// The set of characters is made once, so that it doesn't cost for each character of the string. Any invalid byte of the set
/// stands for all.
fn trim_all(_: &Context<'_>, arguments: &[Value]) -> Answer {
    let known = |c: char| bytes::invalid_byte(c).map_or(c, |_| char::REPLACEMENT_CHARACTER);
    let cut: foldhash::HashSet<char> = text(arguments, 0).chars().map(known).collect();
    Ok(Value::string(
        text(arguments, 1).trim_matches(|c| cut.contains(&known(c))),
    ))
}

// A part with invalid bytes may match within a character.

fn contains(full: &str, part: &str) -> bool {
    if bytes::has_invalid(part) {
        memmem::find(&bytes::of_str(full), &bytes::of_str(part)).is_some()
    } else {
        full.contains(part)
    }
}

fn without_prefix<'t>(full: &'t str, prefix: &str) -> Option<Cow<'t, str>> {
    if !bytes::has_invalid(prefix) {
        return full.strip_prefix(prefix).map(Cow::from);
    }
    let full = bytes::of_str(full);
    let rest = full.strip_prefix(bytes::of_str(prefix).as_ref());
    rest.map(|rest| bytes::to_string(rest).into())
}

fn without_suffix<'t>(full: &'t str, suffix: &str) -> Option<Cow<'t, str>> {
    if !bytes::has_invalid(suffix) {
        return full.strip_suffix(suffix).map(Cow::from);
    }
    let full = bytes::of_str(full);
    let rest = full.strip_suffix(bytes::of_str(suffix).as_ref());
    rest.map(|rest| bytes::to_string(rest).into())
}

fn trim_prefix(_: &Context<'_>, arguments: &[Value]) -> Answer {
    let full = text(arguments, 1);
    let rest = without_prefix(full, text(arguments, 0));
    Ok(Value::string(rest.unwrap_or_else(|| full.into())))
}

fn trim_suffix(_: &Context<'_>, arguments: &[Value]) -> Answer {
    let full = text(arguments, 1);
    let rest = without_suffix(full, text(arguments, 0));
    Ok(Value::string(rest.unwrap_or_else(|| full.into())))
}

/// Returns a part of a string by bytes, or Go's error if it is out of range.
fn part(full: &str, start: i64, end: Option<i64>) -> Result<String, FunctionError> {
    let bytes = bytes::of_str(full);
    let length = bytes.len();
    let failed = |what: String| Err(format!("runtime error: slice bounds out of range [{what}").into());
    let end = match end {
        Some(end) if end < 0 => return failed(format!(":{end}]")),
        Some(end) if end as u64 > length as u64 => return failed(format!(":{end}] with length {length}")),
        Some(end) => end as usize,
        None => length,
    };
    match usize::try_from(start)
        .ok()
        .and_then(|start| bytes.get(start..end))
    {
        Some(part) => Ok(bytes::to_string(part)),
        None => failed(format!("{start}:{end}]")),
    }
}

fn trunc(_: &Context<'_>, arguments: &[Value]) -> Answer {
    let (count, full) = (int(arguments, 0), text(arguments, 1));
    let length = bytes::len(full) as i64;
    let cut = match count {
        ..0 if length.saturating_add(count) > 0 => part(full, length + count, None)?,
        0.. if length > count => part(full, 0, Some(count))?,
        _ => return Ok(Value::string(full)),
    };
    Ok(Value::string(cut))
}

fn substr(_: &Context<'_>, arguments: &[Value]) -> Answer {
    let (start, end, full) = (int(arguments, 0), int(arguments, 1), text(arguments, 2));
    let length = bytes::len(full) as i64;
    let made = if start < 0 {
        part(full, 0, Some(end))
    } else if end < 0 || end > length {
        part(full, start, None)
    } else {
        part(full, start, Some(end))
    };
    made.map(Value::string)
}

/// Repeats a string, up to the limit of one string.
fn repeated(context: &Context<'_>, count: i64, piece: &str) -> Result<String, FunctionError> {
    if count < 0 {
        return Err("strings: negative Repeat count".into());
    }
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    context.text(piece.len().saturating_mul(count))?;
    Ok(if piece.is_empty() {
        String::new()
    } else {
        piece.repeat(count)
    })
}

fn repeat(context: &Context<'_>, arguments: &[Value]) -> Answer {
    repeated(context, int(arguments, 0), text(arguments, 1)).map(Value::string)
}

fn replace(context: &Context<'_>, arguments: &[Value]) -> Answer {
    let (old, new, full) = (text(arguments, 0), text(arguments, 1), text(arguments, 2));
    if bytes::has_invalid(old) {
        return Ok(Value::string(parts(context, full, old, -1)?.join(new)));
    }
    let count = full.matches(old).count();
    context.text(full.len().saturating_add(count.saturating_mul(new.len())))?;
    Ok(Value::string(full.replace(old, new)))
}

/// Indents every line, and prepends `before`.
fn indented(context: &Context<'_>, before: &str, arguments: &[Value]) -> Answer {
    let full = text(arguments, 1);
    let pad = repeated(context, int(arguments, 0), " ")?;
    let lines = full.bytes().filter(|byte| *byte == b'\n').count() + 1;
    context.text(full.len().saturating_add(lines.saturating_mul(pad.len())))?;
    Ok(Value::string(format!(
        "{before}{pad}{}",
        full.replace('\n', &format!("\n{pad}"))
    )))
}

fn indent(context: &Context<'_>, arguments: &[Value]) -> Answer {
    indented(context, "", arguments)
}

fn nindent(context: &Context<'_>, arguments: &[Value]) -> Answer {
    indented(context, "\n", arguments)
}

fn plural(_: &Context<'_>, arguments: &[Value]) -> Answer {
    Ok(any(arguments, usize::from(int(arguments, 2) != 1)).clone())
}

fn joined(
    context: &Context<'_>,
    arguments: &[Value],
    make: impl Fn(&Value) -> Result<String, FunctionError>,
) -> Answer {
    let given = arguments
        .iter()
        .filter(|value| !matches!(value, Value::Nil | Value::Missing));
    let mut out = String::new();
    for (index, value) in given.enumerate() {
        let part = make(value)?;
        let length = out.len().saturating_add(part.len()).saturating_add(1);
        let is_long = length as u64 > context.budget.limits().bytes;
        context.text(if is_long { length } else { part.len() })?;
        if index > 0 {
            out.push(' ');
        }
        out.push_str(&part);
    }
    Ok(Value::string(out))
}

fn quote(context: &Context<'_>, arguments: &[Value]) -> Answer {
    joined(context, arguments, |value| {
        Ok(go::strconv::quote(&cast::to_text(context, value)?))
    })
}

fn squote(context: &Context<'_>, arguments: &[Value]) -> Answer {
    joined(context, arguments, |value| {
        Ok(format!(
            "'{}'",
            template::print(std::slice::from_ref(value), context.budget)?
        ))
    })
}

fn cat(context: &Context<'_>, arguments: &[Value]) -> Answer {
    joined(context, arguments, |value| {
        Ok(template::print(std::slice::from_ref(value), context.budget)?)
    })
}

/// Converts a value to a list of strings, without nil.
fn strings_of(context: &Context<'_>, value: &Value) -> Result<Vec<String>, FunctionError> {
    let items = match value {
        Value::Nil | Value::Missing => return Ok(Vec::new()),
        Value::Bytes(bytes) => {
            context.strings(bytes.len(), bytes.len().saturating_mul(3))?;
            return Ok(bytes.iter().map(ToString::to_string).collect());
        }
        value => match value.as_list() {
            Some(items) => items,
            None => return Ok(vec![cast::to_text(context, value)?]),
        },
    };
    context.items(items.len())?;
    let given = items
        .iter()
        .filter(|item| !matches!(item, Value::Nil | Value::Missing));
    let text = |item: &Value| {
        if let Value::String(text) = item {
            context.memory(text.len().saturating_add(STRING))?;
        }
        let text = cast::to_text(context, item)?;
        if !matches!(item, Value::String(_)) {
            context.memory(text.len().saturating_add(STRING))?;
        }
        Ok(text)
    };
    given.map(text).collect()
}

fn join(context: &Context<'_>, arguments: &[Value]) -> Answer {
    let (separator, parts) = (text(arguments, 0), strings_of(context, any(arguments, 1))?);
    let bytes: usize = parts
        .iter()
        .map(|part| part.len().saturating_add(separator.len()))
        .sum();
    context.text(bytes)?;
    Ok(Value::string(parts.join(separator)))
}

/// Splits as Go's `strings.SplitN`: without a limit if `count` is negative; an empty separator splits between all characters.
fn parts<'t>(
    context: &Context<'_>,
    full: &'t str,
    separator: &str,
    count: i64,
) -> Result<Vec<Cow<'t, str>>, FunctionError> {
    context.text(full.len())?;
    if bytes::has_invalid(separator) {
        return byte_parts(context, full, separator, count);
    }
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let found = match separator {
        "" => full.chars().count(),
        separator => full.matches(separator).count() + 1,
    };
    let found = found.min(count);
    context.strings(found, full.len())?;
    context.memory(found.saturating_mul(size_of::<Cow<'_, str>>()))?;
    let mut parts = Vec::with_capacity(found);
    let mut tail = full;
    if separator.is_empty() {
        while let Some(first) = tail.chars().next().filter(|_| parts.len() < count) {
            let cut = if parts.len() + 1 == count {
                tail.len()
            } else {
                first.len_utf8()
            };
            let (part, rest) = tail.split_at(cut);
            parts.push(part.into());
            tail = rest;
        }
        return Ok(parts);
    }
    while parts.len() < count {
        match tail.split_once(separator).filter(|_| parts.len() + 1 < count) {
            Some((part, rest)) => {
                parts.push(part.into());
                tail = rest;
            }
            None => {
                parts.push(tail.into());
                break;
            }
        }
    }
    Ok(parts)
}

/// Splits like [`parts`] by a separator that may match within characters.
fn byte_parts<'t>(
    context: &Context<'_>,
    full: &str,
    separator: &str,
    count: i64,
) -> Result<Vec<Cow<'t, str>>, FunctionError> {
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let (full, separator) = (bytes::of_str(full), bytes::of_str(separator));
    let found = memmem::find_iter(&full, separator.as_ref()).take(count.saturating_sub(1));
    let ends: Vec<usize> = found.collect();
    context.strings(ends.len() + 1, full.len().saturating_mul(4))?;
    context.memory((ends.len() + 1).saturating_mul(size_of::<(usize, Cow<'_, str>)>()))?;
    let starts = ends.iter().map(|end| end + separator.len());
    let parts = std::iter::once(0)
        .chain(starts)
        .zip(ends.iter().copied().chain([full.len()]));
    let part = |(start, end): (usize, usize)| full.get(start..end).unwrap_or_default();
    let parts = parts.map(|range| bytes::to_string(part(range)).into());
    Ok(parts.take(count).collect())
}

fn split(context: &Context<'_>, arguments: &[Value]) -> Answer {
    let parts = parts(context, text(arguments, 1), text(arguments, 0), -1)?;
    numbered(context, parts)
}

fn splitn(context: &Context<'_>, arguments: &[Value]) -> Answer {
    let parts = parts(context, text(arguments, 2), text(arguments, 0), int(arguments, 1))?;
    numbered(context, parts)
}

fn numbered(context: &Context<'_>, parts: Vec<Cow<'_, str>>) -> Answer {
    context.memory(parts.len().saturating_mul(ENTRY))?;
    let entries = parts.into_iter().enumerate();
    let map = Value::dict(entries.map(|(index, part)| (format!("_{index}"), Value::string(part))));
    Ok(Value::Object(Rc::new(super::dicts::StringMap(
        map.as_dict().unwrap_or_default(),
    ))))
}

fn split_list(context: &Context<'_>, arguments: &[Value]) -> Answer {
    let parts = parts(context, text(arguments, 1), text(arguments, 0), -1)?;
    Ok(strings(parts.into_iter().map(Value::string)))
}

pub(super) fn strings(items: impl IntoIterator<Item = Value>) -> Value {
    Value::Strings(Rc::new(items.into_iter().collect()))
}

fn to_string(context: &Context<'_>, arguments: &[Value]) -> Answer {
    match rest(arguments, 0) {
        [text @ Value::String(_)] => Ok(text.clone()),
        _ => cast::to_text(context, any(arguments, 0)).map(Value::string),
    }
}

fn to_strings(context: &Context<'_>, arguments: &[Value]) -> Answer {
    if let value @ Value::Strings(_) = any(arguments, 0) {
        return Ok(value.clone());
    }
    Ok(strings(
        strings_of(context, any(arguments, 0))?
            .into_iter()
            .map(Value::string),
    ))
}

fn sort_alpha(context: &Context<'_>, arguments: &[Value]) -> Answer {
    let value = any(arguments, 0);
    if value.as_list().is_none() {
        return Ok(strings([Value::string(cast::to_text(context, value)?)]));
    }
    let mut sorted = strings_of(context, value)?;
    let size = sorted.iter().map(String::len).fold(0, usize::saturating_add);
    let rounds = u64::from(sorted.len().max(1).ilog2()) + 1;
    context.work((size as u64 / 16 + sorted.len() as u64).saturating_mul(rounds))?;
    if sorted.iter().any(|text| bytes::has_invalid(text)) {
        sorted.sort_by_cached_key(|text| bytes::of_str(text).into_owned());
    } else {
        sorted.sort_unstable();
    }
    Ok(strings(sorted.into_iter().map(Value::string)))
}

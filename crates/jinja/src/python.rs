//! Text as Python prints it: `str`, `repr`, and JSON of `json.dumps`.

use std::fmt::Write as _;

use minijinja::{Error, ErrorKind, Value as Dynamic, value::ValueKind};

use crate::{account, functions, lists::Group};

/// How deep a printed value may nest.
const MAX_DEPTH: u32 = 200;

/// Prints as `str(value)` does.
pub(crate) fn text(value: &Dynamic) -> Result<String, Error> {
    let mut out = String::new();
    write_text(value, &mut out)?;
    Ok(out)
}

/// Appends what `str(value)` gives.
pub(crate) fn write_text(value: &Dynamic, out: &mut String) -> Result<(), Error> {
    match value.as_str() {
        Some(text) => {
            account::fits(out.len().saturating_add(text.len()))?;
            out.push_str(text);
        }
        None => write_repr(value, out, 0)?,
    }
    Ok(())
}

/// How long `str(value)` is.
pub(crate) fn size(value: &Dynamic) -> Result<usize, Error> {
    match value.as_str() {
        Some(text) => Ok(text.len()),
        None => repr(value).map(|text| text.len()),
    }
}

/// Prints as `repr(value)` does.
pub(crate) fn repr(value: &Dynamic) -> Result<String, Error> {
    let mut out = String::new();
    write_repr(value, &mut out, 0)?;
    Ok(out)
}

/// Prints as `repr(value)` does, with the keys of maps in order.
pub(crate) fn sorted_repr(value: &Dynamic) -> Result<String, Error> {
    repr(&sorted(value, 0)?)
}

fn sorted(value: &Dynamic, depth: u32) -> Result<Dynamic, Error> {
    account::charge(account::ENTRY)?;
    if depth > MAX_DEPTH {
        return Err(too_deep());
    }
    match value.kind() {
        ValueKind::Seq | ValueKind::Iterable if !value.is_tuple() => {
            let items = value.try_iter()?.checked();
            Ok(Dynamic::from(
                items
                    .map(|item| sorted(&item?, depth + 1))
                    .collect::<Result<Vec<_>, _>>()?,
            ))
        }
        ValueKind::Map => {
            let mut entries = Vec::new();
            for key in value.try_iter()?.checked() {
                let key = key?;
                entries.push((key.clone(), sorted(&value.get_item(&key)?, depth + 1)?));
            }
            entries.sort_by(|(a, _), (b, _)| a.cmp(b));
            Ok(Dynamic::from_pairs(entries))
        }
        _ => Ok(value.clone()),
    }
}

fn too_deep() -> Error {
    functions::fail("RecursionError: maximum recursion depth exceeded while printing a value")
}

fn write_repr(value: &Dynamic, out: &mut String, depth: u32) -> Result<(), Error> {
    account::fits(out.len())?;
    if depth > MAX_DEPTH {
        return Err(too_deep());
    }
    match value.kind() {
        // Only what an `if` without an `else` gives gets here as a whole.
        ValueKind::Undefined if depth == 0 => {}
        ValueKind::Undefined => out.push_str("Undefined"),
        ValueKind::Number if !value.is_integer() => {
            out.push_str(&float(f64::try_from(value.clone())?));
        }
        ValueKind::Seq | ValueKind::Iterable => {
            let tuple = value.is_tuple() || value.downcast_object_ref::<Group>().is_some();
            let (open, close) = if tuple { ('(', ')') } else { ('[', ']') };
            out.push(open);
            let mut count = 0;
            for item in value.try_iter()?.checked() {
                if count > 0 {
                    out.push_str(", ");
                }
                write_repr(&item?, out, depth + 1)?;
                count += 1;
            }
            if tuple && count == 1 {
                out.push(',');
            }
            out.push(close);
        }
        ValueKind::Map => {
            out.push('{');
            for (index, key) in value.try_iter()?.checked().enumerate() {
                let key = key?;
                if index > 0 {
                    out.push_str(", ");
                }
                write_repr(&key, out, depth + 1)?;
                out.push_str(": ");
                write_repr(&value.get_item(&key)?, out, depth + 1)?;
            }
            out.push('}');
        }
        // The engine quotes text as Python does; its other kinds are flat.
        ValueKind::String | ValueKind::None | ValueKind::Bool | ValueKind::Number => {
            let _ = write!(out, "{value:?}");
        }
        _ => {
            functions::refuse_unsupported(value)?;
            let _ = write!(out, "{value}");
        }
    }
    Ok(())
}

/// The shortest text that reads back as the same number, in Python's choice of notation.
pub(crate) fn float(number: f64) -> String {
    if number.is_nan() {
        return "nan".to_owned();
    }
    if number.is_infinite() {
        return (if number > 0.0 { "inf" } else { "-inf" }).to_owned();
    }
    let scientific = format!("{number:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..16).contains(&exponent) {
        let plain = number.to_string();
        return if plain.contains('.') { plain } else { plain + ".0" };
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.unsigned_abs())
}

/// How JSON is laid out.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JsonStyle {
    /// Whether keys are sorted.
    pub(crate) sorted: bool,
    /// Whether `<`, `>`, `&` and `'` are escaped, as the template engine's own filter does.
    pub(crate) html_safe: bool,
    /// Spaces of indentation; none for one line.
    pub(crate) indent: Option<usize>,
}

/// Prints as `json.dumps` does: ASCII only, a space after separators.
pub(crate) fn json(value: &Dynamic, style: JsonStyle) -> Result<String, Error> {
    let mut out = String::new();
    write_json(value, style, &mut out, 0)?;
    account::made(out)
}

fn write_json(value: &Dynamic, style: JsonStyle, out: &mut String, depth: u32) -> Result<(), Error> {
    account::fits(out.len())?;
    if depth > MAX_DEPTH {
        return Err(Error::new(
            ErrorKind::InvalidOperation,
            "RecursionError: the value nests too deeply for JSON",
        ));
    }
    match value.kind() {
        ValueKind::None => out.push_str("null"),
        ValueKind::Bool => out.push_str(if value.is_true() { "true" } else { "false" }),
        ValueKind::Number if value.is_integer() => {
            let _ = write!(out, "{value}");
        }
        ValueKind::Number => {
            let text = float(f64::try_from(value.clone())?);
            out.push_str(match text.as_str() {
                "nan" => "NaN",
                "inf" => "Infinity",
                "-inf" => "-Infinity",
                other => other,
            });
        }
        ValueKind::String => json_string(value.as_str().unwrap_or_default(), style, out),
        ValueKind::Seq | ValueKind::Iterable => {
            let items = value
                .try_iter()?
                .checked()
                .map(|item| item.map(|item| (None, item)));
            write_items(items.collect::<Result<_, _>>()?, ('[', ']'), style, out, depth)?;
        }
        ValueKind::Map => {
            let mut items = Vec::new();
            for key in value.try_iter()?.checked() {
                let key = key?;
                items.push((Some(crate::convert::key_text(&key)), value.get_item(&key)?));
            }
            if style.sorted {
                items.sort_by(|(a, _), (b, _)| a.cmp(b));
            }
            write_items(items, ('{', '}'), style, out, depth)?;
        }
        ValueKind::Undefined => return Err(Error::from(ErrorKind::UndefinedError)),
        kind => {
            let message = format!("TypeError: Object of type {kind} is not JSON serializable");
            return Err(Error::new(ErrorKind::InvalidOperation, message));
        }
    }
    Ok(())
}

fn write_items(
    items: Vec<(Option<String>, Dynamic)>,
    (open, close): (char, char),
    style: JsonStyle,
    out: &mut String,
    depth: u32,
) -> Result<(), Error> {
    out.push(open);
    let empty = items.is_empty();
    for (index, (key, item)) in items.into_iter().enumerate() {
        if index > 0 {
            out.push_str(if style.indent.is_some() { "," } else { ", " });
        }
        new_line(style, out, depth + 1);
        if let Some(key) = key {
            json_string(&key, style, out);
            out.push_str(": ");
        }
        write_json(&item, style, out, depth + 1)?;
    }
    if !empty {
        new_line(style, out, depth);
    }
    out.push(close);
    Ok(())
}

fn new_line(style: JsonStyle, out: &mut String, depth: u32) {
    if let Some(indent) = style.indent {
        out.push('\n');
        out.extend(std::iter::repeat_n(' ', indent.min(80) * depth as usize));
    }
}

fn json_string(text: &str, style: JsonStyle, out: &mut String) {
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
            '<' | '>' | '&' | '\'' if style.html_safe => {
                let _ = write!(out, "\\u{:04x}", u32::from(letter));
            }
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

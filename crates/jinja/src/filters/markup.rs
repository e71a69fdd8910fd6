//! Filters for HTML and URLs.

use crate::{
    eval::context::Cx,
    exc::{R, raise, value_error},
    format::{escape, repr},
    text::without_tags,
    value::{
        Str, Value,
        args::{Args, to_text},
        iter,
    },
};

fn escaped(cx: &Cx<'_>, text: &str) -> R<Str> {
    let mut out = String::with_capacity(text.len());
    escape::escape(cx.rt, text, &mut out)?;
    cx.rt.made(out)
}

pub(super) fn escape(cx: &Cx<'_>, value: Value, args: Args) -> R<Value> {
    args.none("escape")?;
    if matches!(value, Value::Markup(_)) {
        return Ok(value);
    }
    let text = cx.text_of(&value)?;
    escaped(cx, &text).map(Value::Markup)
}

pub(super) fn forceescape(cx: &Cx<'_>, value: Value, args: Args) -> R<Value> {
    args.none("do_forceescape")?;
    let text = cx.text_of(&value)?;
    escaped(cx, &text).map(Value::Markup)
}

pub(super) fn safe(cx: &Cx<'_>, value: Value, args: Args) -> R<Value> {
    args.none("do_mark_safe")?;
    cx.text_of(&value).map(Value::Markup)
}

pub(super) fn striptags(cx: &Cx<'_>, value: Value, args: Args) -> R<Value> {
    args.none("do_striptags")?;
    let text = cx.text_of(&value)?;
    cx.rt.step(text.len() as u64 / 8)?;
    cx.rt.text(without_tags(&text))
}

pub(super) fn quote(text: &str, in_query: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'.' | b'-' | b'~' => out.push(char::from(byte)),
            b'/' if !in_query => out.push('/'),
            b' ' if in_query => out.push('+'),
            other => {
                const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
                let digit = |nibble: u8| DIGITS.get(usize::from(nibble)).copied().map_or('0', char::from);
                out.extend(['%', digit(other >> 4), digit(other & 0xf)]);
            }
        }
    }
    out
}

pub(super) fn urlencode(cx: &Cx<'_>, value: Value, args: Args) -> R<Value> {
    args.none("do_urlencode")?;
    let pairs = match value.defined()? {
        Value::Str(text) | Value::Markup(text) => {
            cx.rt.fits(text.len())?;
            cx.rt.step(text.len() as u64 / 16)?;
            return cx.rt.text(quote(text, false));
        }
        Value::Dict(dict) => dict.pairs(),
        other => match iter::of(other) {
            Ok(items) => pairs_of(cx, items.collect(cx.rt)?)?,
            Err(_) => return cx.rt.text(quote(&repr::text(cx.rt, other)?, false)),
        },
    };
    let mut out = String::new();
    for (index, (key, value)) in pairs.iter().enumerate() {
        if index > 0 {
            out.push('&');
        }
        out.push_str(&quote(&repr::text(cx.rt, key)?, true));
        out.push('=');
        out.push_str(&quote(&repr::text(cx.rt, value)?, true));
        cx.rt.fits(out.len())?;
    }
    cx.rt.text(out)
}

fn pairs_of(cx: &Cx<'_>, items: Vec<Value>) -> R<Vec<(Value, Value)>> {
    let mut pairs = Vec::with_capacity(items.len());
    for item in items {
        let parts = iter::collect(cx.rt, &item)?;
        match parts.as_slice() {
            [key, value] => pairs.push((key.clone(), value.clone())),
            parts if parts.len() < 2 => {
                return value_error(format!(
                    "not enough values to unpack (expected 2, got {})",
                    parts.len()
                ));
            }
            _ => return value_error("too many values to unpack (expected 2)"),
        }
    }
    Ok(pairs)
}

pub(super) fn xmlattr(cx: &Cx<'_>, value: Value, args: Args) -> R<Value> {
    let autospace = args.bind("do_xmlattr", ["autospace"], 0)?.flag(0, true)?;
    let Value::Dict(dict) = value.defined()? else {
        return raise(
            "AttributeError",
            format!("'{}' object has no attribute 'items'", value.type_name()),
        );
    };
    let mut out = String::new();
    for (key, item) in dict.pairs() {
        let nothing = matches!(&item, Value::None) || item.is_undefined();
        if nothing {
            continue;
        }
        let name = to_text(&key)?;
        cx.rt.read(name.len())?;
        let odd = |letter: char| letter.is_whitespace() || "/>=".contains(letter);
        if name.contains(odd) {
            return value_error(format!(
                "Invalid character in attribute name: {}",
                repr::quoted(&name)
            ));
        }
        if !out.is_empty() {
            out.push(' ');
        }
        escape::write_escaped(cx.rt, &Value::Str(name), &mut out)?;
        out.push_str("=\"");
        escape::write_escaped(cx.rt, &item, &mut out)?;
        out.push('"');
        cx.rt.fits(out.len())?;
    }
    if autospace && !out.is_empty() {
        out.insert(0, ' ');
    }
    let made = cx.rt.made(out)?;
    Ok(if cx.rt.escapes.get() {
        Value::Markup(made)
    } else {
        Value::like(&Value::str(""), made)
    })
}

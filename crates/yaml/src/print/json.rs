//! JSON as Go and Python print it.

use std::fmt::Write as _;

use super::number;
use crate::{Map, Value};

pub(super) struct Style {
    /// Keys sorted bytewise.
    pub(super) sorted: bool,
    pub(super) html: bool,
    /// Everything beyond ASCII escaped.
    pub(super) ascii: bool,
    pub(super) comma: &'static str,
    pub(super) colon: &'static str,
    pub(super) float: fn(f64) -> String,
}

pub(super) const GO: Style = Style {
    sorted: true,
    html: true,
    ascii: false,
    comma: ",",
    colon: ":",
    float: number::go_json,
};

pub(super) const PYTHON: Style = Style {
    sorted: false,
    html: false,
    ascii: true,
    comma: ", ",
    colon: ": ",
    float: number::python_json,
};

pub(super) fn print(value: &Value, style: &Style) -> String {
    let mut out = String::new();
    write_value(&mut out, value, style);
    out
}

fn write_value(out: &mut String, value: &Value, style: &Style) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Int(value) => out.push_str(&value.to_string()),
        Value::UInt(value) => out.push_str(&value.to_string()),
        Value::Float(value) => out.push_str(&(style.float)(*value)),
        Value::String(text) => write_text(out, text, style),
        Value::Seq(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push_str(style.comma);
                }
                write_value(out, item, style);
            }
            out.push(']');
        }
        Value::Map(map) => write_map(out, map, style),
    }
}

fn write_map(out: &mut String, map: &Map, style: &Style) {
    let mut entries: Vec<(&str, &Value)> = map.iter().collect();
    if style.sorted {
        entries.sort_unstable_by_key(|(key, _)| *key);
    }
    out.push('{');
    for (index, (key, value)) in entries.into_iter().enumerate() {
        if index > 0 {
            out.push_str(style.comma);
        }
        write_text(out, key, style);
        out.push_str(style.colon);
        write_value(out, value, style);
    }
    out.push('}');
}

fn write_text(out: &mut String, text: &str, style: &Style) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '<' | '>' | '&' if style.html => escape(out, c),
            '\u{2028}' | '\u{2029}' => escape(out, c),
            '\0'..='\u{1f}' => escape(out, c),
            '\u{7f}'.. if style.ascii => escape(out, c),
            c => out.push(c),
        }
    }
    out.push('"');
}

/// `\u00e9`, or a pair of them beyond the first 65,536 characters.
fn escape(out: &mut String, c: char) {
    for unit in c.encode_utf16(&mut [0; 2]) {
        let _ = write!(out, "\\u{unit:04x}");
    }
}

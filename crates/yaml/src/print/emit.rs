//! The block layout that the YAML dialects share.

use std::borrow::Cow;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use go::bytes::has_invalid;

use super::{
    analysis::is_break,
    dialect::{Dialect, INDENT, KEY_BYTES},
    order,
    style::{Context, Style},
};
use crate::{Map, Value};

/// The length of a line of base64.
const BINARY_LINE: usize = 70;

pub(super) struct Emitter<'d> {
    pub(super) dialect: &'d Dialect,
    pub(super) out: String,
    /// The column of the next character, counted from 0.
    pub(super) column: usize,
    /// True if the document needs `...` at its end: a reader would take later blank lines for content.
    pub(super) open_ended: bool,
    /// Maximum length of the output in bytes; writes beyond it are lost.
    limit: usize,
}

impl<'d> Emitter<'d> {
    pub(super) fn new(dialect: &'d Dialect) -> Self {
        Self {
            dialect,
            out: String::new(),
            column: 0,
            open_ended: false,
            limit: usize::MAX,
        }
    }

    pub(super) fn with_limit(mut self, bytes: usize) -> Self {
        self.limit = bytes;
        self
    }

    /// Returns true if the output is longer than the limit.
    pub(super) fn is_full(&self) -> bool {
        self.out.len() > self.limit
    }

    /// Prints a whole document, with its last line break.
    pub(super) fn document(mut self, value: &Value) -> String {
        match value {
            Value::Map(map) if !map.is_empty() => self.map(map, 0),
            Value::Seq(items) if !items.is_empty() => self.seq(items, 0),
            other => self.leaf(
                other,
                Context {
                    indent: INDENT,
                    key: false,
                    root: true,
                },
            ),
        }
        self.finish()
    }

    pub(super) fn finish(mut self) -> String {
        if self.column > 0 {
            self.newline();
        }
        if self.open_ended {
            self.out.push_str("...\n");
        }
        self.out
    }

    /// Prints a map whose first key is at the cursor, at column `indent`.
    fn map(&mut self, map: &Map, indent: usize) {
        let mut entries: Vec<(&str, &Value)> = map.iter().collect();
        if self.dialect.sorted {
            entries = order::sort(entries, |(key, _)| key);
        }
        for (index, (key, value)) in entries.into_iter().enumerate() {
            if index > 0 {
                self.line_at(indent);
            }
            let context = |key| Context {
                indent: indent + INDENT,
                key,
                root: false,
            };
            if self.is_simple_key(key) {
                self.string(key, context(true));
                self.put(":");
                self.map_value(value, indent);
            } else {
                self.put("? ");
                self.string(key, context(false));
                self.line_at(indent);
                self.put(":");
                self.explicit_value(value, indent);
            }
        }
    }

    fn string(&mut self, text: &str, context: Context) {
        if self.dialect.bytes && has_invalid(text) {
            let bytes = go::bytes::of_str(text);
            return match str::from_utf8(&bytes) {
                Ok(text) => self.text(text, Style::of(text, context.key, self.dialect), context),
                Err(_) => self.binary(&bytes, context),
            };
        }
        self.text(text, Style::of(text, context.key, self.dialect), context);
    }

    /// Prints bytes in lines of base64.
    fn binary(&mut self, bytes: &[u8], context: Context) {
        let text = STANDARD.encode(bytes);
        self.put("!!binary ");
        if text.len() < BINARY_LINE {
            return self.text(&text, Style::Plain, context);
        }
        let (mut lines, mut rest) = (String::with_capacity(text.len() + text.len() / 32), text.as_str());
        while !rest.is_empty() {
            let (line, after) = rest.split_at_checked(BINARY_LINE).unwrap_or((rest, ""));
            lines.push_str(line);
            lines.push('\n');
            rest = after;
        }
        self.text(&lines, Style::Literal, context);
    }

    /// Returns true for a key that fits before its colon on one line.
    fn is_simple_key(&self, key: &str) -> bool {
        if self.dialect.python {
            // PyYAML counts the tag `!!str` too, and has no simple empty keys.
            let one_line = !key.contains(|c| c != '\r' && is_break(c));
            return one_line && !key.is_empty() && key.chars().count() + 5 < KEY_BYTES;
        }
        if self.dialect.bytes && has_invalid(key) {
            return go::bytes::len(key).div_ceil(3).saturating_mul(4) < BINARY_LINE;
        }
        !key.contains(is_break) && key.len() <= KEY_BYTES
    }

    fn map_value(&mut self, value: &Value, indent: usize) {
        match value {
            Value::Map(map) if !map.is_empty() => {
                self.line_at(indent + INDENT);
                self.map(map, indent + INDENT);
            }
            Value::Seq(items) if !items.is_empty() => {
                let indent = indent + self.dialect.list_indent;
                self.line_at(indent);
                self.seq(items, indent);
            }
            leaf => self.spaced_leaf(leaf, indent),
        }
    }

    /// Prints a value after the colon of an explicit key: collections start on the same line.
    fn explicit_value(&mut self, value: &Value, indent: usize) {
        match value {
            Value::Map(map) if !map.is_empty() => {
                self.put(" ");
                self.map(map, indent + INDENT);
            }
            Value::Seq(items) if !items.is_empty() => {
                self.put(" ");
                self.seq(items, indent + INDENT);
            }
            leaf => self.spaced_leaf(leaf, indent),
        }
    }

    /// Prints a list whose first dash is at the cursor, at column `indent`.
    fn seq(&mut self, items: &[Value], indent: usize) {
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                self.line_at(indent);
            }
            self.put("-");
            self.explicit_value(item, indent);
        }
    }

    fn spaced_leaf(&mut self, value: &Value, indent: usize) {
        self.put(" ");
        self.leaf(
            value,
            Context {
                indent: indent + INDENT,
                key: false,
                root: false,
            },
        );
    }

    fn leaf(&mut self, value: &Value, context: Context) {
        let word: Cow<'_, str> = match value {
            Value::Null => "null".into(),
            Value::Bool(value) => if *value { "true" } else { "false" }.into(),
            Value::Int(value) => value.to_string().into(),
            Value::UInt(value) => value.to_string().into(),
            Value::Float(value) => (self.dialect.float)(*value).into(),
            Value::Seq(_) => "[]".into(),
            Value::Map(_) => "{}".into(),
            Value::String(text) => return self.string(text, context),
        };
        self.put(&word);
        let plain = !matches!(value, Value::Seq(_) | Value::Map(_));
        self.open_ended = plain && context.root && self.dialect.python;
    }

    pub(super) fn put(&mut self, text: &str) {
        if self.is_full() {
            return;
        }
        self.out.push_str(text);
        self.column += text.chars().count();
        self.open_ended = false;
    }

    pub(super) fn newline(&mut self) {
        if self.is_full() {
            return;
        }
        self.out.push('\n');
        self.column = 0;
    }

    /// Moves to column `indent` of a new line, or of the current one if it is empty.
    pub(super) fn line_at(&mut self, indent: usize) {
        if self.column > 0 {
            self.newline();
        }
        if self.is_full() {
            return;
        }
        self.out.extend(std::iter::repeat_n(' ', indent));
        self.column = indent;
    }
}

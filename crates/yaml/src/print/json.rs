//! JSON as Go and Python print it.

use std::fmt::Write as _;

use super::number;
use crate::{Map, Value};

#[derive(Debug)]
pub(super) struct Style {
    /// Keys sorted bytewise.
    pub(super) sorted: bool,
    pub(super) html: bool,
    /// Everything beyond ASCII escaped.
    pub(super) ascii: bool,
    pub(super) comma: &'static str,
    pub(super) colon: &'static str,
    /// The indentation of a level, each item on its own line; empty for all on one line.
    pub(super) indent: &'static str,
    pub(super) float: fn(f64) -> String,
}

/// Go's JSON of structs.
pub(super) const GO: Style = Style {
    sorted: false,
    html: true,
    ascii: false,
    comma: ",",
    colon: ":",
    indent: "",
    float: number::go_json,
};
pub(super) const GO_RAW: Style = Style { html: false, ..GO };
const GO_INDENTED: Style = Style {
    colon: ": ",
    indent: "  ",
    ..GO
};
/// Go's JSON of maps.
pub(super) const GO_SORTED: Style = Style { sorted: true, ..GO };
pub(super) const GO_SORTED_RAW: Style = Style {
    sorted: true,
    ..GO_RAW
};

pub(super) const PYTHON: Style = Style {
    sorted: false,
    html: false,
    ascii: true,
    comma: ", ",
    colon: ": ",
    indent: "",
    float: number::python_json,
};

pub(super) fn print(value: &Value, style: &'static Style) -> String {
    let mut writer = JsonWriter::new(style);
    writer.value(value);
    writer.finish()
}

/// Writes JSON piece by piece, for values of other types than [`Value`]. Lists and maps are opened and closed by the caller, who
/// names the position of each item.
#[derive(Debug)]
pub struct JsonWriter {
    out: String,
    style: &'static Style,
    depth: usize,
}

impl JsonWriter {
    pub(super) fn new(style: &'static Style) -> Self {
        Self {
            out: String::with_capacity(256),
            style,
            depth: 0,
        }
    }

    /// Makes a writer of compact JSON as Go's encoding/json prints it; with `html`, `<`, `>` and `&` are escaped.
    #[must_use]
    pub fn go(html: bool) -> Self {
        Self::new(if html { &GO } else { &GO_RAW })
    }

    /// Makes a writer of JSON as Go's `json.MarshalIndent` prints it with two spaces a level.
    #[must_use]
    pub fn go_indented() -> Self {
        Self::new(&GO_INDENTED)
    }

    #[must_use]
    pub fn finish(self) -> String {
        self.out
    }

    pub fn null(&mut self) {
        self.out.push_str("null");
    }

    pub fn bool(&mut self, value: bool) {
        self.out.push_str(if value { "true" } else { "false" });
    }

    pub fn int(&mut self, value: i64) {
        let _ = write!(self.out, "{value}");
    }

    pub fn uint(&mut self, value: u64) {
        let _ = write!(self.out, "{value}");
    }

    pub fn float(&mut self, value: f64) {
        self.out.push_str(&(self.style.float)(value));
    }

    pub fn open_list(&mut self) {
        self.open('[');
    }

    /// Begins an item of a list.
    pub fn item(&mut self, index: usize) {
        if index > 0 {
            self.out.push_str(self.style.comma);
        }
        self.line();
    }

    pub fn close_list(&mut self) {
        self.close('[', ']');
    }

    pub fn open_map(&mut self) {
        self.open('{');
    }

    /// Begins an entry of a map.
    pub fn key(&mut self, index: usize, key: &str) {
        self.item(index);
        self.text(key);
        self.out.push_str(self.style.colon);
    }

    pub fn close_map(&mut self) {
        self.close('{', '}');
    }

    fn open(&mut self, bracket: char) {
        self.out.push(bracket);
        self.depth += 1;
    }

    fn close(&mut self, opening: char, bracket: char) {
        self.depth -= 1;
        // The brackets of an empty list or map stay together.
        if !self.out.ends_with(opening) {
            self.line();
        }
        self.out.push(bracket);
    }

    /// Begins a line, unless the style is compact.
    fn line(&mut self) {
        if self.style.indent.is_empty() {
            return;
        }
        self.out.push('\n');
        for _ in 0..self.depth {
            self.out.push_str(self.style.indent);
        }
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::Null => self.null(),
            Value::Bool(value) => self.bool(*value),
            Value::Int(value) => self.int(*value),
            Value::UInt(value) => self.uint(*value),
            Value::Float(value) => self.float(*value),
            Value::String(text) => self.text(text),
            Value::Seq(items) => {
                self.open_list();
                for (index, item) in items.iter().enumerate() {
                    self.item(index);
                    self.value(item);
                }
                self.close_list();
            }
            Value::Map(map) => self.map(map),
        }
    }

    fn map(&mut self, map: &Map) {
        let mut entries: Vec<(&str, &Value)> = map.iter().collect();
        if self.style.sorted {
            entries.sort_unstable_by_key(|(key, _)| *key);
        }
        self.open_map();
        for (index, (key, value)) in entries.into_iter().enumerate() {
            self.key(index, key);
            self.value(value);
        }
        self.close_map();
    }

    pub fn text(&mut self, text: &str) {
        let (out, style) = (&mut self.out, self.style);
        let is_plain =
            |byte: u8| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\' | b'<' | b'>' | b'&');
        out.push('"');
        if text.bytes().all(is_plain) {
            out.push_str(text);
        } else {
            text.chars().for_each(|c| write_char(out, c, style));
        }
        out.push('"');
    }
}

fn write_char(out: &mut String, c: char, style: &Style) {
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

/// `\u00e9`, or a pair of them beyond the first 65,536 characters.
fn escape(out: &mut String, c: char) {
    for unit in c.encode_utf16(&mut [0; 2]) {
        let _ = write!(out, "\\u{unit:04x}");
    }
}

//! Printing as go-yaml v3 does with four spaces per level: lists are indented, comments have their own lines.

use base64::{Engine, prelude::BASE64_STANDARD};
use yaml::print::goyaml_v3;

use crate::document::{Branch, Item, Value};

const LEVEL: usize = 4;

/// Key that merges the entries of other maps.
pub(super) const MERGE: &str = "<<";

pub(in crate::store) fn print(documents: &[Branch]) -> Vec<u8> {
    let texts = documents.iter().map(|branch| {
        let mut printer = Printer {
            out: String::new(),
            is_started: false,
        };
        if has_entries(branch) {
            printer.branch(branch, 0);
        } else {
            printer.comments(branch.iter().filter_map(of_item), 0);
            printer.out.push_str("{}\n");
        }
        printer.out
    });
    texts.collect::<Vec<_>>().join("---\n").into_bytes()
}

struct Printer {
    out: String,
    /// True if the cursor is at the position of the next line's content.
    is_started: bool,
}

fn of_item(item: &Item) -> Option<&str> {
    match item {
        Item::Comment(text) => Some(text),
        Item::Entry(..) => None,
    }
}

fn of_value(value: &Value) -> Option<&str> {
    match value {
        Value::Comment(text) => Some(text),
        _ => None,
    }
}

fn has_entries(branch: &[Item]) -> bool {
    branch.iter().any(|item| of_item(item).is_none())
}

fn has_items(items: &[Value]) -> bool {
    items.iter().any(|item| of_value(item).is_none())
}

fn inside(column: usize) -> usize {
    (column + LEVEL) / LEVEL * LEVEL
}

impl Printer {
    fn line(&mut self, column: usize) {
        if !std::mem::take(&mut self.is_started) {
            self.out.extend(std::iter::repeat_n(' ', column));
        }
    }

    fn comments<'c>(&mut self, texts: impl Iterator<Item = &'c str>, column: usize) {
        for text in texts {
            self.line(column);
            self.out.push('#');
            self.out.push_str(text);
            self.out.push('\n');
        }
    }

    /// Prints the leading comments of a list or map before its first line, and returns their number.
    fn hoist(&mut self, value: &Value, column: usize) -> usize {
        let texts: Vec<&str> = match value {
            Value::Map(branch) if has_entries(branch) => branch.iter().map_while(of_item).collect(),
            Value::Seq(items) if has_items(items) => items.iter().map_while(of_value).collect(),
            _ => return 0,
        };
        self.comments(texts.iter().copied(), column);
        texts.len()
    }

    fn branch(&mut self, branch: &[Item], column: usize) {
        for item in branch {
            match item {
                Item::Comment(text) => self.comments([text.as_str()].into_iter(), column),
                Item::Entry(key, value) => self.entry(key, value, column),
            }
        }
    }

    fn entry(&mut self, key: &str, value: &Value, column: usize) {
        let (lead, is_simple) = lead(key, column);
        self.line(column);
        self.out.push_str(&lead);
        let inner = inside(column);
        if !is_simple && is_collection(value) {
            let gap = inner.saturating_sub(column + 1);
            self.out.extend(std::iter::repeat_n(' ', gap));
            self.is_started = true;
        } else if is_collection(value) {
            self.out.push('\n');
        } else {
            self.out.push(' ');
        }
        match value {
            Value::Map(branch) if has_entries(branch) => self.branch(branch, inner),
            Value::Seq(items) if has_items(items) => self.seq(items, inner),
            // Comments of an empty collection are printed before its brackets.
            leaf => self.leaf(leaf, inner, inner - column),
        }
    }

    fn seq(&mut self, items: &[Value], column: usize) {
        let inner = column + 2;
        for item in items {
            match item {
                Value::Comment(text) => self.comments([text.as_str()].into_iter(), column),
                item => {
                    let hoisted = self.hoist(item, column);
                    self.line(column);
                    self.out.push_str("- ");
                    match item {
                        Value::Map(branch) if has_entries(branch) => {
                            self.is_started = true;
                            self.branch(rest(branch, hoisted), inner);
                        }
                        Value::Seq(items) if has_items(items) => {
                            self.is_started = true;
                            self.seq(rest(items, hoisted), inner);
                        }
                        leaf => self.leaf(leaf, inner, 2),
                    }
                }
            }
        }
    }

    /// Prints a scalar or an empty list or map, and the end of its line. A string of several lines is indented to `column`,
    /// which is `by` more than its parent's.
    fn leaf(&mut self, value: &Value, column: usize, by: usize) {
        let text = match value {
            Value::Null | Value::Comment(_) => "null".to_owned(),
            Value::Time(text) => text.clone(),
            Value::Bytes(bytes) => format!("!!binary {}", BASE64_STANDARD.encode(bytes)),
            Value::Bool(flag) => flag.to_string(),
            Value::Int(number) => number.to_string(),
            Value::Float(number) if !number.is_finite() => {
                let word = if number.is_nan() { "nan" } else { "inf" };
                format!("{}.{word}", if *number < 0.0 { "-" } else { "" })
            }
            Value::Float(number) => scalar(yaml::Value::Float(*number)),
            Value::Seq(_) => "[]".to_owned(),
            Value::Map(_) => "{}".to_owned(),
            Value::Text(text) if text == MERGE => "!!merge <<".to_owned(),
            Value::Text(text) => {
                let printed = scalar(yaml::Value::String(text.as_str().into()));
                self.block(&printed, column, by);
                return;
            }
        };
        self.out.push_str(&text);
        self.out.push('\n');
    }

    /// Appends a scalar that was printed with two columns of indentation, moved to its own column.
    fn block(&mut self, printed: &str, column: usize, by: usize) {
        let Some((header, content)) = printed.split_once('\n') else {
            self.out.push_str(printed);
            self.out.push('\n');
            return;
        };
        match header.strip_prefix("|2") {
            Some(chomp) => self.out.push_str(&format!("|{by}{chomp}")),
            None => self.out.push_str(header),
        }
        self.out.push('\n');
        for line in content.split('\n') {
            if let Some(line) = line.strip_prefix("  ") {
                self.out.extend(std::iter::repeat_n(' ', column));
                self.out.push_str(line);
            }
            self.out.push('\n');
        }
    }
}

/// Returns the parts after the comments that were already printed.
fn rest<T>(parts: &[T], hoisted: usize) -> &[T] {
    parts.get(hoisted..).unwrap_or_default()
}

fn is_collection(value: &Value) -> bool {
    match value {
        Value::Map(branch) => has_entries(branch),
        Value::Seq(items) => has_items(items),
        _ => false,
    }
}

/// Prints a scalar as the value of a key, without its last line break.
fn scalar(value: yaml::Value) -> String {
    if let yaml::Value::String(text) = &value
        && let Some(quoted) = quoted(text)
    {
        return quoted;
    }
    let mut map = yaml::Map::new();
    map.insert("k", value);
    let printed = goyaml_v3(&yaml::Value::Map(map));
    let text = printed.strip_prefix("k: ").unwrap_or(&printed);
    text.strip_suffix('\n').unwrap_or(text).to_owned()
}

/// Quotes a string of several lines that begins with a tab or has line ends of Unicode: the original's block of it would be
/// invalid.
fn quoted(text: &str) -> Option<String> {
    let tab = text.trim_start_matches('\n').starts_with('\t');
    if !text.contains('\n') || !(tab || text.contains(['\u{2028}', '\u{2029}'])) {
        return None;
    }
    let json = yaml::print::json(&yaml::Value::String(text.to_owned()));
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}' => {
                out.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            c => out.push(c),
        }
    }
    Some(out)
}

/// Returns a key with its colon, and true if both are on one line without a question mark.
fn lead(key: &str, column: usize) -> (String, bool) {
    if key == MERGE {
        return ("!!merge <<:".to_owned(), true);
    }
    if let Some(quoted) = quoted(key) {
        return (quoted + ":", true);
    }
    let mut map = yaml::Map::new();
    map.insert(key, yaml::Value::Null);
    let printed = goyaml_v3(&yaml::Value::Map(map));
    let Some(explicit) = printed.strip_prefix("? ") else {
        let lead = printed.strip_suffix(" null\n").unwrap_or(&printed);
        return (lead.to_owned(), true);
    };
    let text = explicit.strip_suffix("\n: null\n").unwrap_or(explicit);
    let mut printer = Printer {
        out: "? ".to_owned(),
        is_started: false,
    };
    let inner = inside(column);
    printer.block(text, inner, inner - column);
    printer.line(column);
    printer.out.push(':');
    (printer.out, false)
}

//! TOML as the library of Helm writes it: plain keys first, then indented tables.

mod first;
mod read;

use std::fmt::Write as _;

pub(super) use read::read;

use super::context::Context;
use crate::template::FunctionError;
use crate::{HelmVersion, Value};

const DEPTH: usize = 200;

pub(super) fn write(context: &Context<'_>, value: &Value) -> Result<String, FunctionError> {
    let value = value.to_yaml(context.budget)?;
    let mut writer = Writer {
        out: String::new(),
        helm: context.helm,
        limit: usize::try_from(context.budget.limits().bytes).unwrap_or(usize::MAX),
    };
    match &value {
        yaml::Value::Map(map) => writer.map(&[], map)?,
        yaml::Value::Seq(items) if is_tables(items) => {
            return Err("toml: top-level values must be Go maps or structs".into());
        }
        other => writer.element(other, 0)?,
    }
    Ok(writer.out)
}

struct Writer {
    out: String,
    helm: HelmVersion,
    /// Maximum number of bytes: the header of each table repeats the keys above it.
    limit: usize,
}

fn is_table(value: &yaml::Value) -> bool {
    match value {
        yaml::Value::Map(_) => true,
        yaml::Value::Seq(items) => is_tables(items),
        _ => false,
    }
}

fn is_tables(items: &[yaml::Value]) -> bool {
    !items.is_empty() && items.iter().all(|item| matches!(item, yaml::Value::Map(_)))
}

fn key(name: &str) -> String {
    let bare = !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    if bare { name.to_owned() } else { text(name) }
}

fn text(given: &str) -> String {
    let mut out = String::from('"');
    for c in given.chars() {
        match c {
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            c if c < ' ' || c == '\u{7f}' => drop(write!(out, "\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

type Entry<'m> = (&'m str, &'m yaml::Value);

fn sorted(map: &yaml::Map) -> [Vec<Entry<'_>>; 2] {
    let mut entries: Vec<_> = map.iter().collect();
    entries.sort_unstable_by_key(|(key, _)| *key);
    let (tables, plain) = entries.into_iter().partition(|(_, value)| is_table(value));
    [plain, tables]
}

impl Writer {
    /// Indents by two spaces per level below the top.
    fn indent(&mut self, level: usize) {
        for _ in 0..level {
            self.out.push_str("  ");
        }
    }

    fn blank_line(&mut self) {
        if !self.out.is_empty() {
            self.out.push('\n');
        }
    }

    fn map(&mut self, path: &[&str], map: &yaml::Map) -> Result<(), FunctionError> {
        if path.len() > DEPTH {
            return Err(format!("toml: values nest deeper than {DEPTH} levels").into());
        }
        let above: usize = path.iter().map(|name| name.len()).sum();
        for (name, value) in sorted(map)
            .into_iter()
            .flatten()
            .filter(|(_, value)| !value.is_null())
        {
            let header = above.saturating_add(name.len()).saturating_mul(6);
            if self.out.len().saturating_add(header) > self.limit.saturating_mul(2) {
                return Err(format!("toml: the text is over the limit of {} bytes", self.limit).into());
            }
            let inner: Vec<&str> = path.iter().copied().chain([name]).collect();
            let header = || inner.iter().map(|name| key(name)).collect::<Vec<_>>().join(".");
            match value {
                yaml::Value::Map(map) => {
                    if inner.len() == 1 {
                        self.blank_line();
                    }
                    self.indent(path.len());
                    let header = header();
                    self.out.push_str(&format!("[{header}]\n"));
                    self.map(&inner, map)?;
                }
                yaml::Value::Seq(items) if is_tables(items) => {
                    for item in items.iter().filter_map(yaml::Value::as_map) {
                        self.blank_line();
                        self.indent(path.len());
                        let header = header();
                        self.out.push_str(&format!("[[{header}]]\n"));
                        self.map(&inner, item)?;
                    }
                }
                value => {
                    self.indent(path.len());
                    self.out.push_str(&format!("{} = ", key(name)));
                    self.element(value, 0)?;
                    self.out.push('\n');
                }
            }
        }
        Ok(())
    }

    fn element(&mut self, value: &yaml::Value, depth: usize) -> Result<(), FunctionError> {
        if depth > DEPTH {
            return Err(format!("toml: values nest deeper than {DEPTH} levels").into());
        }
        match value {
            yaml::Value::Null => return Err("toml: cannot encode array with nil element".into()),
            yaml::Value::Bool(value) => self.out.push_str(&value.to_string()),
            yaml::Value::Int(value) => self.out.push_str(&value.to_string()),
            yaml::Value::UInt(value) => self.out.push_str(&value.to_string()),
            yaml::Value::Float(value) => self.out.push_str(&float(*value, self.helm)),
            yaml::Value::String(given) => self.out.push_str(&text(given)),
            yaml::Value::Seq(items) => {
                self.out.push('[');
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        self.out.push_str(", ");
                    }
                    self.element(item, depth + 1)?;
                }
                self.out.push(']');
            }
            yaml::Value::Map(map) => {
                self.out.push('{');
                let mut left = map.len();
                for (name, value) in sorted(map).into_iter().flatten() {
                    left -= 1;
                    if value.is_null() {
                        continue;
                    }
                    self.out.push_str(&format!("{} = ", key(name)));
                    self.element(value, depth + 1)?;
                    // Also before entries that print nothing.
                    if left > 0 {
                        self.out.push_str(", ");
                    }
                }
                self.out.push('}');
            }
        }
        Ok(())
    }
}

/// Prints a float, always with a point or, in Helm 4, an exponent.
fn float(value: f64, helm: HelmVersion) -> String {
    if value.is_nan() {
        return "nan".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    let verb = helm.pick('f', 'g');
    let text = go::strconv::format_float(value, verb, None);
    if text.contains(['.', 'e']) {
        text
    } else {
        text + ".0"
    }
}

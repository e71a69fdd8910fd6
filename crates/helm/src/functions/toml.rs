//! TOML as the library of Helm writes it: plain keys first, then indented tables.

mod first;
mod read;

use std::{collections::BTreeMap, fmt::Write as _, rc::Rc};

pub(super) use read::read;

use super::context::Context;
use crate::template::FunctionError;
use crate::{HelmVersion, Object, Value};

const DEPTH: usize = 200;

pub(super) fn write(context: &Context<'_>, value: &Value) -> Result<String, FunctionError> {
    // Counts the value with all that it contains, and fails if it nests without end.
    drop(value.to_yaml(context.budget)?);
    let value = Item::of(value, context)?;
    let mut writer = Writer {
        out: String::new(),
        limit: usize::try_from(context.budget.limits().bytes).unwrap_or(usize::MAX),
    };
    match &value {
        Item::Table(map) => writer.map(&[], map)?,
        Item::List(items) if is_tables(items) => {
            return Err("toml: top-level values must be Go maps or structs".into());
        }
        other => writer.element(other, 0)?,
    }
    Ok(writer.out)
}

/// A value as TOML has it.
enum Item {
    Nothing,
    /// A string.
    Text(Rc<str>),
    /// Another scalar, as it is written.
    Scalar(String),
    List(Vec<Item>),
    Table(BTreeMap<Rc<str>, Item>),
}

impl Item {
    fn of(value: &Value, context: &Context<'_>) -> Result<Self, FunctionError> {
        Ok(match value {
            Value::Nil | Value::Missing => Self::Nothing,
            Value::Bool(flag) => Self::Scalar(flag.to_string()),
            Value::Int(number, _) => Self::Scalar(number.to_string()),
            Value::Float(number) => Self::Scalar(float(*number, context.helm)),
            Value::String(text) => Self::Text(text.clone()),
            Value::Bytes(bytes) => {
                Self::List(bytes.iter().map(|byte| Self::Scalar(byte.to_string())).collect())
            }
            Value::List(_) | Value::Strings(_) | Value::Ints(_) if value.is_nil_list() => Self::Nothing,
            Value::List(items) | Value::Strings(items) | Value::Ints(items) => {
                let items = items.iter().map(|item| Self::of(item, context));
                Self::List(items.collect::<Result<_, _>>()?)
            }
            Value::Dict(map) => {
                let map = map.borrow();
                let entries = map
                    .iter()
                    .map(|(key, value)| Ok((key.clone(), Self::of(value, context)?)));
                Self::Table(entries.collect::<Result<_, FunctionError>>()?)
            }
            Value::Object(object) => Self::of_object(object, context)?,
        })
    }

    fn of_object(object: &Rc<dyn Object>, context: &Context<'_>) -> Result<Self, FunctionError> {
        if let Some(written) = object.toml() {
            return Ok(Self::Scalar(written));
        }
        if let Some(members) = object.members() {
            let entries = members
                .iter()
                .map(|(key, value)| Ok((Rc::from(*key), Self::of(value, context)?)));
            return Ok(Self::Table(entries.collect::<Result<_, FunctionError>>()?));
        }
        match object.text_data() {
            Some(data) => Self::of(&data, context),
            None => Ok(Self::Text(object.print(context.budget)?.into())),
        }
    }

    fn is_nothing(&self) -> bool {
        matches!(self, Self::Nothing)
    }
}

struct Writer {
    out: String,
    /// Maximum number of bytes: the header of each table repeats the keys above it.
    limit: usize,
}

fn is_table(value: &Item) -> bool {
    match value {
        Item::Table(_) => true,
        Item::List(items) => is_tables(items),
        _ => false,
    }
}

fn is_tables(items: &[Item]) -> bool {
    !items.is_empty() && items.iter().all(|item| matches!(item, Item::Table(_)))
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

type Entry<'m> = (&'m str, &'m Item);

/// Returns the plain entries, then the tables.
fn sorted(map: &BTreeMap<Rc<str>, Item>) -> [Vec<Entry<'_>>; 2] {
    let entries = map.iter().map(|(key, value)| (&**key, value));
    let (tables, plain) = entries.partition(|(_, value)| is_table(value));
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

    fn map(&mut self, path: &[&str], map: &BTreeMap<Rc<str>, Item>) -> Result<(), FunctionError> {
        if path.len() > DEPTH {
            return Err(format!("toml: values nest deeper than {DEPTH} levels").into());
        }
        let above: usize = path.iter().map(|name| name.len()).sum();
        for (name, value) in sorted(map)
            .into_iter()
            .flatten()
            .filter(|(_, value)| !value.is_nothing())
        {
            let header = above.saturating_add(name.len()).saturating_mul(6);
            if self.out.len().saturating_add(header) > self.limit.saturating_mul(2) {
                return Err(format!("toml: the text is over the limit of {} bytes", self.limit).into());
            }
            let inner: Vec<&str> = path.iter().copied().chain([name]).collect();
            let header = || inner.iter().map(|name| key(name)).collect::<Vec<_>>().join(".");
            match value {
                Item::Table(map) => {
                    if inner.len() == 1 {
                        self.blank_line();
                    }
                    self.indent(path.len());
                    let header = header();
                    self.out.push_str(&format!("[{header}]\n"));
                    self.map(&inner, map)?;
                }
                Item::List(items) if is_tables(items) => {
                    for item in items {
                        let Item::Table(item) = item else { continue };
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

    fn element(&mut self, value: &Item, depth: usize) -> Result<(), FunctionError> {
        if depth > DEPTH {
            return Err(format!("toml: values nest deeper than {DEPTH} levels").into());
        }
        match value {
            Item::Nothing => return Err("toml: cannot encode array with nil element".into()),
            Item::Scalar(written) => self.out.push_str(written),
            Item::Text(given) => self.out.push_str(&text(given)),
            Item::List(items) => {
                self.out.push('[');
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        self.out.push_str(", ");
                    }
                    self.element(item, depth + 1)?;
                }
                self.out.push(']');
            }
            Item::Table(map) => {
                self.out.push('{');
                let mut left = map.len();
                for (name, value) in sorted(map).into_iter().flatten() {
                    left -= 1;
                    if value.is_nothing() {
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

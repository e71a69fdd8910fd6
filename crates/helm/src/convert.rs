//! Values of templates and values of YAML.

use std::{cell::Cell, rc::Rc};

use go::bytes::{of_utf8, to_valid_utf8};
use tree::{Budget, Exceeded};
use yaml::{
    Position,
    node::Text,
    print::JsonWriter,
    read::{Build, Opened},
};

use crate::{
    IntKind, Object, Value,
    template::{FormatError, FunctionError},
};

/// The maximum depth of nested values: a map that contains itself nests without end.
const DEPTH: u32 = 1000;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConvertError {
    #[error("values nest deeper than {DEPTH} levels")]
    TooDeep,
    #[error("JSON has no number {0}")]
    NotJson(&'static str),
    #[error(transparent)]
    Exceeded(#[from] Exceeded),
    #[error(transparent)]
    Format(#[from] FormatError),
}

impl From<ConvertError> for FunctionError {
    fn from(error: ConvertError) -> Self {
        match error {
            ConvertError::Exceeded(error) => error.into(),
            ConvertError::Format(error) => error.into(),
            ConvertError::NotJson(number) => Self::NotJson(number),
            error @ ConvertError::TooDeep => Self::Failed(error.to_string()),
        }
    }
}

impl Value {
    /// Converts a value of a file as Helm does, through JSON: every number is a float.
    #[must_use]
    pub fn from_yaml(value: &yaml::Value) -> Self {
        match value {
            yaml::Value::Null => Self::Nil,
            yaml::Value::Bool(value) => Self::Bool(*value),
            yaml::Value::Int(value) => Self::Float(*value as f64),
            yaml::Value::UInt(value) => Self::Float(*value as f64),
            yaml::Value::Float(value) => Self::Float(*value),
            yaml::Value::String(text) => Self::utf8(text),
            yaml::Value::Seq(items) => Self::list(items.iter().map(Self::from_yaml).collect()),
            yaml::Value::Map(map) => Self::dict(
                map.iter()
                    .map(|(key, value)| (of_utf8(key), Self::from_yaml(value))),
            ),
        }
    }

    /// Converts a live object as client-go does: whole numbers are integers.
    #[must_use]
    pub fn from_object(value: &yaml::Value) -> Self {
        match value {
            yaml::Value::Int(value) => Self::Int((*value).into(), IntKind::Int64),
            yaml::Value::UInt(value) => Self::Int((*value).into(), IntKind::Int64),
            yaml::Value::Seq(items) => Self::list(items.iter().map(Self::from_object).collect()),
            yaml::Value::Map(map) => Self::dict(
                map.iter()
                    .map(|(key, value)| (of_utf8(key), Self::from_object(value))),
            ),
            other => Self::from_yaml(other),
        }
    }

    /// Converts to plain data, whose strings are in the form of [`go::bytes`].
    pub fn to_yaml(&self, budget: &Budget) -> Result<yaml::Value, ConvertError> {
        Conversion::new(budget, true).plain(self, 0)
    }

    /// Converts a value for formats other than JSON: nil lists become empty.
    pub(crate) fn to_yaml_alone(&self, budget: &Budget) -> Result<yaml::Value, ConvertError> {
        Conversion::new(budget, false).plain(self, 0)
    }

    /// Prints JSON, whose strings are in the form of [`go::bytes`]. Fails for numbers that JSON can't represent.
    pub(crate) fn to_json(&self, mut writer: JsonWriter, budget: &Budget) -> Result<String, ConvertError> {
        Conversion::new(budget, true).write_json(self, 0, &mut writer)?;
        Ok(writer.finish())
    }
}

/// Checks that JSON can represent a number.
pub(crate) fn check_finite(float: f64) -> Result<(), ConvertError> {
    match float {
        f64::INFINITY => Err(ConvertError::NotJson("+Inf")),
        f64::NEG_INFINITY => Err(ConvertError::NotJson("-Inf")),
        float if float.is_nan() => Err(ConvertError::NotJson("NaN")),
        _ => Ok(()),
    }
}

impl Build for Value {
    /// The entries in any order; of equal keys the last one counts.
    type Map = Vec<(Rc<str>, Self)>;

    fn scalar(scalar: yaml::Value) -> Self {
        Self::from_yaml(&scalar)
    }

    fn text(text: Text) -> Self {
        Self::utf8(text.as_str())
    }

    fn list(items: Vec<Self>) -> Self {
        Self::list(items)
    }

    fn map(map: Self::Map) -> Self {
        Self::dict(map)
    }

    fn open(self) -> Opened<Self> {
        match self {
            Self::Dict(map) => {
                let entries = map.borrow();
                let entry = |(key, value): (&Rc<str>, &Self)| (key.clone(), value.clone());
                Opened::Map(entries.iter().map(entry).collect())
            }
            Self::List(items) => Opened::List(items.to_vec()),
            _ => Opened::Scalar,
        }
    }

    fn start(entries: usize) -> Self::Map {
        Vec::with_capacity(entries)
    }

    fn insert(map: &mut Self::Map, key: Text, value: Self, _: Position) {
        map.push((of_utf8(key.as_str()).into(), value));
    }

    fn find(map: &Self::Map, key: &str) -> Option<Option<Position>> {
        let key = of_utf8(key);
        map.iter().any(|(known, _)| **known == *key).then_some(None)
    }

    fn entries(map: Self::Map) -> Vec<(Text, Self, Option<Position>)> {
        let entries = map.into_iter();
        entries
            .map(|(key, value)| (Text::from(&*to_valid_utf8(&key)), value, None))
            .collect()
    }
}

/// A conversion to plain data. Each use of a shared string becomes a copy, so the length of the printed result is counted before.
struct Conversion<'b> {
    budget: &'b Budget,
    json: bool,
    bytes: Cell<u64>,
}

impl<'b> Conversion<'b> {
    fn new(budget: &'b Budget, json: bool) -> Self {
        Self {
            budget,
            json,
            bytes: Cell::new(0),
        }
    }

    /// Counts bytes of the printed value. The estimate includes escapes, and may be twice the limit of one string.
    fn grow(&self, bytes: usize) -> Result<(), ConvertError> {
        let total = self.bytes.get().saturating_add(bytes as u64);
        self.bytes.set(total);
        let limit = self.budget.limits().bytes;
        if total > limit.saturating_mul(2) {
            let what = "bytes of one printed value";
            return Err(Exceeded::Limit { what, limit }.into());
        }
        Ok(())
    }

    /// Counts a string or a key with its escapes, and the indentation of its lines.
    fn string(&self, text: &str, depth: u32) -> Result<(), ConvertError> {
        self.budget.step(text.len() as u64 / 8)?;
        let is_escaped = |byte: &u8| matches!(byte, 0..b'\t' | 11..b' ' | b'<' | b'>' | b'&' | 0x7f);
        let indent = (depth as usize).saturating_mul(2).saturating_add(1);
        // Most strings are short words.
        if indent <= 40 && text.bytes().all(|byte| byte != b'\n' && !is_escaped(&byte)) {
            return self.grow(text.len());
        }
        let escaped = text.bytes().filter(is_escaped).count();
        // Far to the right, each space of a long line becomes a line break.
        let is_break = |byte: &u8| *byte == b'\n' || indent > 40 && *byte == b' ';
        let lines = text.bytes().filter(is_break).count();
        self.grow(
            text.len()
                .saturating_add(escaped.saturating_mul(5))
                .saturating_add(lines.saturating_mul(indent)),
        )
    }

    /// Counts a value without its items and entries.
    fn count(&self, value: &Value, depth: u32) -> Result<(), ConvertError> {
        self.budget.step(16)?;
        match value {
            Value::String(text) => self.string(text, depth)?,
            Value::Bytes(bytes) => self.grow(bytes.len().saturating_mul(2))?,
            _ => {}
        }
        // The indentation, or the braces.
        self.grow(4 + 2 * depth as usize)
    }

    fn plain(&self, value: &Value, depth: u32) -> Result<yaml::Value, ConvertError> {
        if depth > DEPTH {
            return Err(ConvertError::TooDeep);
        }
        self.count(value, depth)?;
        let json = self.json;
        Ok(match value {
            Value::Nil | Value::Missing => yaml::Value::Null,
            Value::Bool(value) => (*value).into(),
            Value::Int(value, IntKind::Uint64) => u64::try_from(*value).unwrap_or(u64::MAX).into(),
            Value::Int(value, _) => (*value as i64).into(),
            Value::Float(value) => (*value).into(),
            Value::String(text) => text.to_string().into(),
            Value::Bytes(bytes) if json => base64(bytes).into(),
            Value::Bytes(bytes) => {
                let items = bytes.iter().map(|byte| self.plain(&byte_value(*byte), depth + 1));
                items.collect::<Result<Vec<_>, _>>()?.into()
            }
            Value::List(_) | Value::Strings(_) | Value::Ints(_) if json && value.is_nil_list() => {
                yaml::Value::Null
            }
            Value::List(items) | Value::Strings(items) | Value::Ints(items) => {
                let items = items.iter().map(|item| self.plain(item, depth + 1));
                items.collect::<Result<Vec<_>, _>>()?.into()
            }
            Value::Dict(map) => {
                let map = map.borrow();
                let entries = map.iter().map(|(key, value)| {
                    self.string(key, depth)?;
                    Ok((key.to_string(), self.plain(value, depth + 1)?))
                });
                entries.collect::<Result<yaml::Map, ConvertError>>()?.into()
            }
            Value::Object(object) => match (
                object.members(),
                if json { object.data() } else { object.text_data() },
            ) {
                (Some(members), _) => {
                    let member =
                        |(key, value): (&str, Value)| Ok((key.to_owned(), self.plain(&value, depth + 1)?));
                    let members = members.into_iter().map(member);
                    members.collect::<Result<yaml::Map, ConvertError>>()?.into()
                }
                (None, Some(data)) => self.plain(&data, depth + 1)?,
                (None, None) => {
                    let text = object.print(self.budget)?;
                    self.plain(&Value::string(text), depth + 1)?
                }
            },
        })
    }

    /// Writes the data that [`Conversion::plain`] returns, without a copy of the value.
    fn write_json(&self, value: &Value, depth: u32, out: &mut JsonWriter) -> Result<(), ConvertError> {
        if depth > DEPTH {
            return Err(ConvertError::TooDeep);
        }
        self.count(value, depth)?;
        match value {
            Value::Nil | Value::Missing => out.null(),
            Value::Bool(value) => out.bool(*value),
            Value::Int(value, IntKind::Uint64) => out.uint(u64::try_from(*value).unwrap_or(u64::MAX)),
            Value::Int(value, _) => out.int(*value as i64),
            Value::Float(value) => {
                check_finite(*value)?;
                out.float(*value);
            }
            Value::String(text) => out.text(text),
            Value::Bytes(bytes) => out.text(&base64(bytes)),
            Value::List(_) | Value::Strings(_) | Value::Ints(_) if value.is_nil_list() => out.null(),
            Value::List(items) | Value::Strings(items) | Value::Ints(items) => {
                out.open_list();
                for (index, item) in items.iter().enumerate() {
                    out.item(index);
                    self.write_json(item, depth + 1, out)?;
                }
                out.close_list();
            }
            Value::Dict(map) => {
                out.open_map();
                for (index, (key, value)) in map.borrow().iter().enumerate() {
                    self.string(key, depth)?;
                    out.key(index, key);
                    self.write_json(value, depth + 1, out)?;
                }
                out.close_map();
            }
            Value::Object(object) => self.write_json_object(&**object, depth, out)?,
        }
        Ok(())
    }

    fn write_json_object(
        &self,
        object: &dyn Object,
        depth: u32,
        out: &mut JsonWriter,
    ) -> Result<(), ConvertError> {
        if let Some(members) = object.members() {
            out.open_map();
            for (index, (key, value)) in members.into_iter().enumerate() {
                out.key(index, key);
                self.write_json(&value, depth + 1, out)?;
            }
            out.close_map();
            return Ok(());
        }
        match object.data() {
            Some(data) => self.write_json(&data, depth + 1, out),
            None => {
                let text = object.print(self.budget)?;
                self.write_json(&Value::string(text), depth + 1, out)
            }
        }
    }
}

fn byte_value(byte: u8) -> Value {
    Value::Int(byte.into(), IntKind::Uint8)
}

pub(crate) fn base64(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_that_of_the_converted_value() {
        let nested = Value::dict([
            (
                "b",
                Value::list(vec![Value::Nil, Value::Bool(true), Value::string("<a>\n\"é\"")]),
            ),
            (
                "a",
                Value::dict([
                    ("x", Value::Float(1.5)),
                    ("y", Value::Float(-3.0)),
                    ("z", Value::Float(-0.0)),
                ]),
            ),
            ("c", Value::Bytes(b"\xff\x00".to_vec().into())),
            ("d", Value::Int(u64::MAX.into(), IntKind::Uint64)),
            ("e", Value::Int((-7).into(), IntKind::Int64)),
            ("f", Value::Float(1e21)),
            ("g", Value::list(Vec::new())),
            ("h\u{2028}", Value::dict::<&str>([])),
        ]);
        let budget = Budget::default();
        let converted = nested.to_yaml(&budget).unwrap();
        for (html, expected) in [
            (true, yaml::print::json_html(&converted)),
            (false, yaml::print::json(&converted)),
        ] {
            assert_eq!(nested.to_json(JsonWriter::go(html), &budget).unwrap(), expected);
        }
        assert_eq!(
            Value::list(vec![Value::Float(f64::NEG_INFINITY)]).to_json(JsonWriter::go(true), &budget),
            Err(ConvertError::NotJson("-Inf"))
        );
    }

    #[test]
    fn indented_json_has_a_line_for_each_item() {
        let nested = Value::dict([
            (
                "a",
                Value::list(vec![Value::string("<["), Value::list(Vec::new())]),
            ),
            ("b", Value::dict([("c", Value::dict::<&str>([]))])),
        ]);
        let expected = [
            "{",
            r#"  "a": ["#,
            r#"    "\u003c[","#,
            r"    []",
            r"  ],",
            r#"  "b": {"#,
            r#"    "c": {}"#,
            r"  }",
            "}",
        ];
        let budget = Budget::default();
        assert_eq!(
            nested.to_json(JsonWriter::go_indented(), &budget).unwrap(),
            expected.join("\n")
        );
    }
}

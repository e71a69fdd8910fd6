//! A JSON object, also as the wrapper of binary files.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess, Visitor},
};
use yaml::print::json_sorted_html;

use super::loaded::Loaded;
use crate::{
    Error,
    document::{Branch, Item, Value},
};

const FORMAT: &str = "JSON object";
const DATA: &str = "data";

pub(super) fn load(bytes: &[u8]) -> Result<Option<Loaded>, Error> {
    // The parser's message names line and column, and may repeat a word of the file.
    let wrong = |error: &serde_json::Error| {
        let (line, column) = (error.line(), error.column());
        Error::syntax(
            FORMAT,
            format!("line {line} column {column} is no JSON that can be read"),
        )
    };
    let mut value = serde_json::from_slice(bytes).map_err(|error| wrong(&error))?;
    restore(&mut value, &mut numbers(bytes).into_iter());
    let Value::Map(mut branch) = value else {
        return Err(Error::syntax(FORMAT, "it is another value"));
    };
    let is_metadata = |item: &Item| matches!(item, Item::Entry(key, _) if key == "sops");
    let mut metadata = branch.extract_if(.., |item| is_metadata(item));
    let first = metadata.next();
    if metadata.next().is_some() {
        return Err(Error::Metadata("`sops` is there twice".to_owned()));
    }
    drop(metadata);
    let Some(Item::Entry(_, metadata)) = first else {
        return Ok(None);
    };
    Ok(Some(Loaded {
        metadata: plain(metadata),
        documents: vec![branch],
    }))
}

/// Returns all numbers of a JSON document, in order. The parser's may be off by the last bit, which the MAC would reveal.
fn numbers(text: &[u8]) -> Vec<f64> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((first, behind)) = rest.split_first() {
        let length = match first {
            b'"' => quoted(behind) + 1,
            b'-' | b'0'..=b'9' => {
                let part = |byte: &&u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
                let length = rest.iter().take_while(part).count();
                let word = rest.get(..length).and_then(|word| str::from_utf8(word).ok());
                found.extend(word.and_then(|word| word.parse::<f64>().ok()));
                length
            }
            _ => 1,
        };
        rest = rest.get(length..).unwrap_or_default();
    }
    found
}

fn quoted(text: &[u8]) -> usize {
    let mut length = 0;
    loop {
        match text.get(length) {
            None => return length,
            Some(b'"') => return length + 1,
            Some(b'\\') => length += 2,
            Some(_) => length += 1,
        }
    }
}

fn restore(value: &mut Value, numbers: &mut impl Iterator<Item = f64>) {
    match value {
        Value::Float(number) => *number = numbers.next().unwrap_or(*number),
        Value::Seq(items) => items.iter_mut().for_each(|item| restore(item, numbers)),
        Value::Map(branch) => {
            for item in branch {
                if let Item::Entry(_, value) = item {
                    restore(value, numbers);
                }
            }
        }
        _ => {}
    }
}

pub(super) fn plain(value: Value) -> yaml::Value {
    match value {
        Value::Null | Value::Comment(_) | Value::Bytes(_) => yaml::Value::Null,
        Value::Bool(flag) => yaml::Value::Bool(flag),
        Value::Int(number) => yaml::Value::Int(number),
        Value::Float(number) => yaml::Value::Float(number),
        Value::Text(text) | Value::Time(text) => yaml::Value::String(text),
        Value::Seq(items) => yaml::Value::Seq(items.into_iter().map(plain).collect()),
        Value::Map(branch) => {
            let mut map = yaml::Map::new();
            for item in branch {
                if let Item::Entry(key, value) = item {
                    map.insert(key, plain(value));
                }
            }
            yaml::Value::Map(map)
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

/// Every number is a float, and keys may be duplicate.
struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Value, E> {
        Ok(Value::Bool(flag))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(Value::Float(number as f64))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        Ok(Value::Float(number as f64))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
        Ok(Value::Float(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(Value::Seq(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut branch = Branch::new();
        while let Some((key, value)) = map.next_entry()? {
            branch.push(Item::Entry(key, value));
        }
        Ok(Value::Map(branch))
    }
}

pub(super) fn print(branch: &Branch) -> Vec<u8> {
    let mut out = String::new();
    object(branch, 0, &mut out);
    out.push('\n');
    out.into_bytes()
}

fn object(branch: &Branch, depth: usize, out: &mut String) {
    let entries = branch.iter().filter_map(|item| match item {
        Item::Entry(key, value) => Some((key, value)),
        Item::Comment(_) => None,
    });
    let mut first = true;
    out.push('{');
    for (key, value) in entries {
        begin(&mut first, depth, out);
        out.push_str(&json_sorted_html(&yaml::Value::String(key.as_str().into())));
        out.push_str(": ");
        print_value(value, depth + 1, out);
    }
    end(first, depth, '}', out);
}

fn print_value(value: &Value, depth: usize, out: &mut String) {
    let leaf = match value {
        Value::Map(branch) => return object(branch, depth, out),
        Value::Seq(items) => {
            let mut first = true;
            out.push('[');
            for item in items.iter().filter(|item| !matches!(item, Value::Comment(_))) {
                begin(&mut first, depth, out);
                print_value(item, depth + 1, out);
            }
            return end(first, depth, ']', out);
        }
        Value::Null | Value::Comment(_) => yaml::Value::Null,
        Value::Bool(flag) => yaml::Value::Bool(*flag),
        Value::Int(number) => yaml::Value::Int(*number),
        Value::Float(number) => yaml::Value::Float(*number),
        Value::Text(text) | Value::Time(text) => yaml::Value::String(text.as_str().into()),
        Value::Bytes(bytes) => yaml::Value::String(String::from_utf8_lossy(bytes).as_ref().into()),
    };
    out.push_str(&json_sorted_html(&leaf));
}

fn begin(first: &mut bool, depth: usize, out: &mut String) {
    if !std::mem::take(first) {
        out.push(',');
    }
    line(depth + 1, out);
}

fn end(empty: bool, depth: usize, bracket: char, out: &mut String) {
    if !empty {
        line(depth, out);
    }
    out.push(bracket);
}

fn line(depth: usize, out: &mut String) {
    out.push('\n');
    out.extend(std::iter::repeat_n('\t', depth));
}

pub(super) fn print_binary(branch: &Branch) -> Result<Vec<u8>, Error> {
    let data = branch.iter().find_map(|item| match item {
        Item::Entry(key, value) if key == DATA => Some(value),
        _ => None,
    });
    match data {
        Some(Value::Text(text)) => Ok(text.clone().into_bytes()),
        Some(Value::Bytes(bytes)) => Ok(bytes.clone()),
        _ => Err(Error::Print {
            format: "binary file",
            why: "it has no text under `data`",
        }),
    }
}

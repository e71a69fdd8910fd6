//! The content of a file in any format: values in order, with the comments between them.

use zeroize::Zeroize;

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    /// A string that is not UTF-8.
    Bytes(Vec<u8>),
    /// A time of day in YAML, in RFC 3339.
    Time(String),
    /// A comment between the items of a list.
    Comment(String),
    Seq(Vec<Value>),
    Map(Branch),
}

/// Entries of a map, in order; keys may be duplicate.
pub(crate) type Branch = Vec<Item>;

/// An entry of a map, or a comment between entries.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Item {
    Comment(String),
    Entry(String, Value),
}

impl Value {
    /// Creates a string, or bytes that are not UTF-8.
    pub(crate) fn text(bytes: Vec<u8>) -> Self {
        match String::from_utf8(bytes) {
            Ok(text) => Self::Text(text),
            Err(error) => Self::Bytes(error.into_bytes()),
        }
    }

    /// Returns the bytes that the MAC covers; null and comments are not covered.
    pub(crate) fn mac_bytes(&self) -> Vec<u8> {
        match self {
            Self::Bool(true) => b"True".to_vec(),
            Self::Bool(false) => b"False".to_vec(),
            Self::Int(number) => number.to_string().into_bytes(),
            Self::Float(number) => float(*number).into_bytes(),
            Self::Text(text) | Self::Time(text) => text.clone().into_bytes(),
            Self::Bytes(bytes) => bytes.clone(),
            Self::Null | Self::Comment(_) | Self::Seq(_) | Self::Map(_) => Vec::new(),
        }
    }
}

/// Returns the size of documents as they are printed, or a bit more: with four bytes of indentation for each level and line.
pub(crate) fn printed_size(documents: &[Branch]) -> u64 {
    documents.iter().map(|branch| branch_size(branch, 1)).sum()
}

fn branch_size(branch: &Branch, depth: u64) -> u64 {
    let sizes = branch.iter().map(|item| match item {
        Item::Comment(text) => text_size(text, depth),
        Item::Entry(key, value) => text_size(key, depth) + value_size(value, depth),
    });
    sizes.sum()
}

fn value_size(value: &Value, depth: u64) -> u64 {
    match value {
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) => 8 + 4 * depth,
        Value::Text(text) | Value::Time(text) | Value::Comment(text) => text_size(text, depth),
        Value::Bytes(bytes) => bytes.len() as u64 + 4 * depth,
        Value::Seq(items) => items.iter().map(|item| value_size(item, depth + 1)).sum(),
        Value::Map(branch) => branch_size(branch, depth + 1),
    }
}

fn text_size(text: &str, depth: u64) -> u64 {
    let lines = 1 + text.bytes().filter(|byte| *byte == b'\n').count() as u64;
    text.len() as u64 + 4 * depth * lines
}

/// Formats without an exponent, in as many digits as needed.
fn float(number: f64) -> String {
    if number.is_infinite() {
        return if number > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    number.to_string()
}

impl Drop for Wiped {
    fn drop(&mut self) {
        for branch in &mut self.0 {
            wipe_branch(branch);
        }
    }
}

pub(crate) struct Wiped(pub(crate) Vec<Branch>);

fn wipe_branch(branch: &mut Branch) {
    for item in branch {
        match item {
            Item::Comment(text) => text.zeroize(),
            Item::Entry(_, value) => wipe(value),
        }
    }
}

fn wipe(value: &mut Value) {
    match value {
        Value::Text(text) | Value::Time(text) | Value::Comment(text) => text.zeroize(),
        Value::Bytes(bytes) => bytes.zeroize(),
        Value::Seq(items) => items.iter_mut().for_each(wipe),
        Value::Map(branch) => wipe_branch(branch),
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mac_covers_floats_without_an_exponent() {
        for (number, text) in [
            (1e21, "1000000000000000000000"),
            (1.5e-7, "0.00000015"),
            (-0.0, "-0"),
            (f64::INFINITY, "+Inf"),
            (f64::NEG_INFINITY, "-Inf"),
            (f64::NAN, "NaN"),
        ] {
            assert_eq!(Value::Float(number).mac_bytes(), text.as_bytes());
        }
    }
}

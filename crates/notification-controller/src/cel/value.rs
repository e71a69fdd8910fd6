//! Values of expressions; copies share their content.

use std::{cmp::Ordering, collections::BTreeMap, sync::Arc};

/// A value; cheap to clone.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(Arc<str>),
    Bytes(Arc<[u8]>),
    List(Arc<Vec<Value>>),
    Map(Arc<BTreeMap<Key, Value>>),
    Optional(Option<Arc<Value>>),
    Type(&'static str),
}

/// Key of a map. Numbers are equal if their values are.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    Bool(bool),
    Number(i128),
    String(Arc<str>),
}

impl Value {
    /// Returns the value of a JSON document. Numbers are doubles, as in the original.
    pub(crate) fn from_json(json: &serde_json::Value) -> Self {
        use serde_json::Value as Json;
        match json {
            Json::Null => Self::Null,
            Json::Bool(value) => Self::Bool(*value),
            Json::Number(number) => Self::Double(number.as_f64().unwrap_or(f64::NAN)),
            Json::String(text) => Self::String(text.as_str().into()),
            Json::Array(items) => Self::List(Arc::new(items.iter().map(Self::from_json).collect())),
            Json::Object(fields) => {
                let fields = fields.iter();
                let fields =
                    fields.map(|(key, value)| (Key::String(key.as_str().into()), Self::from_json(value)));
                Self::Map(Arc::new(fields.collect()))
            }
        }
    }

    /// Returns an empty map.
    pub(crate) fn empty() -> Self {
        Self::Map(Arc::default())
    }

    /// Returns a map with these fields.
    pub(crate) fn object(fields: impl IntoIterator<Item = (String, Value)>) -> Self {
        let fields = fields.into_iter();
        Self::Map(Arc::new(
            fields
                .map(|(key, value)| (Key::String(key.into()), value))
                .collect(),
        ))
    }

    /// Returns the name of the type.
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null_type",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Uint(_) => "uint",
            Self::Double(_) => "double",
            Self::String(_) => "string",
            Self::Bytes(_) => "bytes",
            Self::List(_) => "list",
            Self::Map(_) => "map",
            Self::Optional(_) => "optional_type",
            Self::Type(_) => "type",
        }
    }

    /// Returns the key that this value is in maps; none for types that can't be one.
    pub(crate) fn key(&self) -> Option<Key> {
        Some(match self {
            Self::Bool(value) => Key::Bool(*value),
            Self::Int(value) => Key::Number((*value).into()),
            Self::Uint(value) => Key::Number((*value).into()),
            Self::Double(value) if value.fract() == 0.0 && value.abs() < 9e18 =>
            {
                #[allow(
                    clippy::cast_possible_truncation,
                    reason = "its size and fraction were checked"
                )]
                Key::Number(*value as i128)
            }
            Self::String(text) => Key::String(Arc::clone(text)),
            _ => return None,
        })
    }

    /// Returns true for zero, the empty string, list and map, false and null.
    pub(crate) fn is_zero(&self) -> bool {
        match self {
            Self::Null => true,
            Self::Bool(value) => !value,
            Self::Int(value) => *value == 0,
            Self::Uint(value) => *value == 0,
            Self::Double(value) => *value == 0.0,
            Self::String(text) => text.is_empty(),
            Self::Bytes(bytes) => bytes.is_empty(),
            Self::List(items) => items.is_empty(),
            Self::Map(fields) => fields.is_empty(),
            Self::Optional(value) => value.is_none(),
            Self::Type(_) => false,
        }
    }

    /// Compares numbers of any type, strings, bytes and booleans; none for what has no order.
    pub(crate) fn order(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Bool(a), Self::Bool(b)) => Some(a.cmp(b)),
            (Self::String(a), Self::String(b)) => Some(a.cmp(b)),
            (Self::Bytes(a), Self::Bytes(b)) => Some(a.cmp(b)),
            _ => match (self.integer(), other.integer()) {
                (Some(a), Some(b)) => Some(a.cmp(&b)),
                _ => self.number()?.partial_cmp(&other.number()?),
            },
        }
    }

    fn integer(&self) -> Option<i128> {
        match self {
            Self::Int(value) => Some((*value).into()),
            Self::Uint(value) => Some((*value).into()),
            _ => None,
        }
    }

    fn number(&self) -> Option<f64> {
        #[allow(
            clippy::cast_precision_loss,
            reason = "doubles are compared as the language says"
        )]
        match self {
            Self::Int(value) => Some(*value as f64),
            Self::Uint(value) => Some(*value as f64),
            Self::Double(value) => Some(*value),
            _ => None,
        }
    }
}

impl Key {
    /// Returns the key as a value.
    pub(crate) fn value(&self) -> Value {
        match self {
            Self::Bool(value) => Value::Bool(*value),
            Self::Number(number) => i64::try_from(*number).map_or_else(
                |_| Value::Uint(u64::try_from(*number).unwrap_or(u64::MAX)),
                Value::Int,
            ),
            Self::String(text) => Value::String(Arc::clone(text)),
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::String(text.into())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::String(text.into())
    }
}

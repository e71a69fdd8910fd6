//! Values of expressions; copies share their content.

use std::{cmp::Ordering, collections::BTreeMap, sync::Arc};

use jiff::Timestamp;

/// A value; cheap to clone.
#[derive(Debug, Clone)]
pub enum Value {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(Arc<str>),
    Bytes(Arc<[u8]>),
    /// A time of the years 1 to 9999.
    Timestamp(Timestamp),
    /// A duration in nanoseconds, at most 292 years.
    Duration(i64),
    List(Arc<Vec<Value>>),
    Map(Arc<BTreeMap<Key, Value>>),
    Optional(Option<Arc<Value>>),
    /// The name of a type.
    Type(&'static str),
}

/// The seconds of `0001-01-01T00:00:00Z` and `9999-12-31T23:59:59Z` since 1970.
const MIN_SECONDS: i64 = -62_135_596_800;
const MAX_SECONDS: i64 = 253_402_300_799;

/// Key of a map. Numbers of any type with the same value are the same key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    Bool(bool),
    Number(i128),
    String(Arc<str>),
}

impl Value {
    /// Converts a JSON document. Numbers are doubles, as in the webhooks of Flux.
    #[must_use]
    pub fn from_json(json: &serde_json::Value) -> Self {
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

    #[must_use]
    pub fn empty_map() -> Self {
        Self::Map(Arc::default())
    }

    pub fn object(fields: impl IntoIterator<Item = (String, Value)>) -> Self {
        let fields = fields.into_iter();
        Self::Map(Arc::new(
            fields
                .map(|(key, value)| (Key::String(key.into()), value))
                .collect(),
        ))
    }

    pub(crate) fn some(value: Self) -> Self {
        Self::Optional(Some(Arc::new(value)))
    }

    /// Returns a timestamp, unless its year is out of range.
    pub(crate) fn timestamp(at: Timestamp) -> Option<Self> {
        let seconds = at.as_second();
        (MIN_SECONDS..=MAX_SECONDS)
            .contains(&seconds)
            .then_some(Self::Timestamp(at))
    }

    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the name of the type in the language.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null_type",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Uint(_) => "uint",
            Self::Double(_) => "double",
            Self::String(_) => "string",
            Self::Bytes(_) => "bytes",
            Self::Timestamp(_) => "google.protobuf.Timestamp",
            Self::Duration(_) => "google.protobuf.Duration",
            Self::List(_) => "list",
            Self::Map(_) => "map",
            Self::Optional(_) => "optional_type",
            Self::Type(_) => "type",
        }
    }

    /// Returns the value as a key of a map; `None` for types that can't be a key.
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
            Self::Timestamp(at) => at.as_nanosecond() == 0,
            Self::Duration(nanos) => *nanos == 0,
            Self::List(items) => items.is_empty(),
            Self::Map(fields) => fields.is_empty(),
            Self::Optional(value) => value.is_none(),
            Self::Type(_) => false,
        }
    }

    /// Compares numbers of any type, and two strings, bytes, booleans or times; `None` for other types.
    pub(crate) fn compare(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Bool(a), Self::Bool(b)) => Some(a.cmp(b)),
            (Self::String(a), Self::String(b)) => Some(a.cmp(b)),
            (Self::Bytes(a), Self::Bytes(b)) => Some(a.cmp(b)),
            (Self::Timestamp(a), Self::Timestamp(b)) => Some(a.cmp(b)),
            (Self::Duration(a), Self::Duration(b)) => Some(a.cmp(b)),
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

/// Integers stay integers, as in objects that the Kubernetes client decodes.
impl From<&yaml::Value> for Value {
    fn from(value: &yaml::Value) -> Self {
        match value {
            yaml::Value::Null => Self::Null,
            yaml::Value::Bool(value) => Self::Bool(*value),
            yaml::Value::Int(value) => Self::Int(*value),
            yaml::Value::UInt(value) => Self::Uint(*value),
            yaml::Value::Float(value) => Self::Double(*value),
            yaml::Value::String(text) => text.as_str().into(),
            yaml::Value::Seq(items) => Self::List(Arc::new(items.iter().map(Self::from).collect())),
            yaml::Value::Map(fields) => fields.into(),
        }
    }
}

impl From<&yaml::Map> for Value {
    fn from(fields: &yaml::Map) -> Self {
        let fields = fields.iter();
        Self::object(fields.map(|(key, value)| (key.to_owned(), value.into())))
    }
}

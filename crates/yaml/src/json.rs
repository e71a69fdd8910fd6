//! Conversions between [`Value`] and serde's JSON values.

use std::fmt;

use go::strconv::Decimal;
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{self, MapAccess, SeqAccess, Visitor},
    ser::SerializeMap as _,
};

use crate::{Map, Value};

/// Any integer up to this is a float, too.
const EXACT: f64 = 9_007_199_254_740_992.0;

impl Value {
    /// Converts a float as a round through Go's JSON does: without a fraction it becomes the integer of its shortest digits
    /// if that has 64 bits.
    #[must_use]
    pub fn from_json_float(float: f64) -> Self {
        if float.fract() != 0.0 || !float.is_finite() || float.abs() >= 1e21 {
            return Self::Float(float);
        }
        if float.abs() <= EXACT {
            return Self::Int(float as i64);
        }
        let digits = Decimal::shortest(float).plain();
        let integer = digits.parse().map(Self::Int);
        integer
            .or_else(|_| digits.parse().map(Self::UInt))
            .unwrap_or(Self::Float(float))
    }

    /// Converts to a JSON value. Infinities and NaN, which JSON doesn't have, become null.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        use serde_json::Value as Json;
        match self {
            Self::Null => Json::Null,
            Self::Bool(value) => Json::Bool(*value),
            Self::Int(value) => Json::from(*value),
            Self::UInt(value) => Json::from(*value),
            Self::Float(value) => Json::from(*value),
            Self::String(text) => Json::String(text.clone()),
            Self::Seq(items) => items.iter().map(Self::to_json).collect(),
            Self::Map(map) => Json::Object(map.to_json()),
        }
    }

    #[must_use]
    pub fn from_json(json: serde_json::Value) -> Self {
        use serde_json::Value as Json;
        match json {
            Json::Null => Self::Null,
            Json::Bool(value) => Self::Bool(value),
            Json::Number(number) => number
                .as_i64()
                .map(Self::Int)
                .or_else(|| number.as_u64().map(Self::UInt))
                .or_else(|| number.as_f64().map(Self::Float))
                .unwrap_or_default(),
            Json::String(text) => Self::String(text),
            Json::Array(items) => items.into_iter().map(Self::from_json).collect(),
            Json::Object(map) => Self::Map(Map::from_json(map)),
        }
    }
}

impl Map {
    #[must_use]
    pub fn to_json(&self) -> serde_json::Map<String, serde_json::Value> {
        self.iter()
            .map(|(key, value)| (key.to_owned(), value.to_json()))
            .collect()
    }

    #[must_use]
    pub fn from_json(json: serde_json::Map<String, serde_json::Value>) -> Self {
        json.into_iter()
            .map(|(key, value)| (key, Value::from_json(value)))
            .collect()
    }
}

impl From<serde_json::Value> for Value {
    fn from(json: serde_json::Value) -> Self {
        Self::from_json(json)
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Int(value) => serializer.serialize_i64(*value),
            Self::UInt(value) => serializer.serialize_u64(*value),
            Self::Float(value) => serializer.serialize_f64(*value),
            Self::String(text) => serializer.serialize_str(text),
            Self::Seq(items) => items.serialize(serializer),
            Self::Map(map) => map.serialize(serializer),
        }
    }
}

impl Serialize for Map {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.len()))?;
        for (key, value) in self {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

impl<'de> Deserialize<'de> for Map {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::Map(map) => Ok(map),
            other => Err(de::Error::invalid_type(
                de::Unexpected::Other(other.type_name()),
                &"a map",
            )),
        }
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        Value::deserialize(deserializer)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Int(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Float(value))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_string<E>(self, text: String) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            items.push(item);
        }
        items.shrink_to_fit();
        Ok(Value::Seq(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some((key, value)) = access.next_entry::<String, Value>()? {
            map.insert(key, value);
        }
        map.shrink_to_fit();
        Ok(Value::Map(map))
    }
}

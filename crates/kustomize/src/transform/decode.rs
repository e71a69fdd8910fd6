//! Reads the configuration of a built-in generator or transformer as Go's decoders do: names in any case, null as if it were
//! missing, numbers and booleans where texts are expected; what nobody knows is passed over.

use std::fmt;

use serde::{
    Deserializer,
    de::{
        DeserializeOwned, DeserializeSeed, Error as _, Expected, IntoDeserializer, MapAccess, Unexpected,
        Visitor,
        value::{BorrowedStrDeserializer, SeqDeserializer},
    },
    forward_to_deserialize_any,
};
use yaml::Value;

use crate::{Error, error::Step};

/// Reads a configuration.
///
/// # Errors
/// When something in it is of the wrong type.
pub(crate) fn config<T: DeserializeOwned>(config: &Value) -> Result<T, Error> {
    T::deserialize(Lenient(config)).map_err(|Mismatch(problem)| {
        Error::new(
            Step::Plugin,
            format!("json: cannot unmarshal the configuration: {problem}"),
        )
    })
}

struct Lenient<'de>(&'de Value);

#[derive(Debug)]
struct Mismatch(String);

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Mismatch {}

impl serde::de::Error for Mismatch {
    fn custom<T: fmt::Display>(problem: T) -> Self {
        Self(problem.to_string())
    }

    // What is there may be secret: it is not said.
    fn invalid_type(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self(format!("expected {expected}"))
    }

    fn invalid_value(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self(format!("expected {expected}"))
    }
}

impl<'de> IntoDeserializer<'de, Mismatch> for Lenient<'de> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for Lenient<'de> {
    type Error = Mismatch;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        match self.0 {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Int(value) => visitor.visit_i64(*value),
            Value::UInt(value) => visitor.visit_u64(*value),
            Value::Float(value) => visitor.visit_f64(*value),
            Value::String(text) => visitor.visit_borrowed_str(text),
            Value::Seq(items) => visitor.visit_seq(SeqDeserializer::new(items.iter().map(Lenient))),
            Value::Map(map) => visitor.visit_map(Entries::new(map, &[])),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        match self.0 {
            Value::Null => visitor.visit_borrowed_str(""),
            Value::Bool(value) => visitor.visit_string(value.to_string()),
            Value::Int(_) | Value::UInt(_) | Value::Float(_) => {
                visitor.visit_string(yaml::print::json(self.0))
            }
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        self.deserialize_string(visitor)
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        match self.0 {
            Value::Null => visitor.visit_bool(false),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_i64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        match self.0 {
            Value::Null => visitor.visit_i64(0),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        match self.0 {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        match self.0 {
            Value::Null => visitor.visit_seq(SeqDeserializer::new(std::iter::empty::<Self>())),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        match self.0 {
            Value::Null => visitor.visit_map(Entries::none()),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Mismatch> {
        match self.0 {
            Value::Null => visitor.visit_map(Entries::none()),
            Value::Map(map) => visitor.visit_map(Entries::new(map, fields)),
            _ => Err(Mismatch::custom(format_args!("expected {name} to be a map"))),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Mismatch> {
        visitor.visit_newtype_struct(self)
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i128 u8 u16 u32 u64 u128 f32 f64 char bytes byte_buf unit unit_struct tuple tuple_struct enum
        identifier ignored_any
    }
}

/// The entries of a map, with the names of the fields that they are.
struct Entries<'de> {
    left: std::vec::IntoIter<(&'de str, &'de Value)>,
    value: Option<&'de Value>,
}

impl<'de> Entries<'de> {
    fn none() -> Self {
        Self {
            left: Vec::new().into_iter(),
            value: None,
        }
    }

    /// Of entries that are one field, the last counts.
    fn new(map: &'de yaml::Map, fields: &'static [&'static str]) -> Self {
        let mut entries: Vec<(&'de str, &'de Value)> = Vec::with_capacity(map.len());
        for (key, value) in map.iter() {
            let field = fields.iter().find(|field| field.eq_ignore_ascii_case(key));
            let key = field.map_or(key, |field| *field);
            match entries.iter_mut().find(|(other, _)| *other == key) {
                Some(entry) => entry.1 = value,
                None => entries.push((key, value)),
            }
        }
        Self {
            left: entries.into_iter(),
            value: None,
        }
    }
}

impl<'de> MapAccess<'de> for Entries<'de> {
    type Error = Mismatch;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Mismatch> {
        let Some((key, value)) = self.left.next() else {
            return Ok(None);
        };
        self.value = Some(value);
        seed.deserialize(BorrowedStrDeserializer::new(key)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Mismatch> {
        match self.value.take() {
            Some(value) => seed.deserialize(Lenient(value)),
            None => Err(Mismatch::custom("a key has no value")),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;

    use super::*;
    use crate::transform::testing;

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    struct Sample {
        some_text: String,
        texts: BTreeMap<String, String>,
        flag: bool,
        count: i64,
        list: Vec<Sample>,
        maybe: Option<Box<Sample>>,
    }

    fn sample(text: &str) -> Result<Sample, String> {
        config(&testing::config(text)).map_err(|error: Error| error.to_string())
    }

    #[test]
    fn go_is_not_strict_here() {
        let read = sample(
            "{SomeText: 1, texts: {a: true, b: null, c: x}, other: [1], flag: null, count: null, maybe: null}",
        );
        let texts = [("a", "true"), ("b", ""), ("c", "x")];
        let expected = Sample {
            some_text: "1".into(),
            texts: texts.map(|(key, text)| (key.into(), text.into())).into(),
            ..Sample::default()
        };
        assert_eq!(read.unwrap(), expected);
        let read = sample("{list: [{count: 2}, null], maybe: {flag: true}, texts: null}").unwrap();
        assert_eq!(
            read.list.iter().map(|item| item.count).collect::<Vec<_>>(),
            [2, 0]
        );
        assert!(read.maybe.unwrap().flag);
        assert_eq!(sample("{list: null}").unwrap(), Sample::default());
    }

    #[test]
    fn wrong_types_are_refused() {
        for text in [
            "{flag: 1}",
            "{count: x}",
            "{someText: [a]}",
            "{list: {}}",
            "{texts: a}",
            "[]",
        ] {
            let error = sample(text).unwrap_err();
            assert!(error.contains("cannot unmarshal"), "{text}: {error}");
        }
    }
}

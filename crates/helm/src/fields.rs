//! The fields of Go structs, read from YAML as Helm does it: keys in any case, scalars taken for texts, others ignored.

use yaml::{Map, Value};

/// The name of a value's type in the errors of Go's JSON.
pub(crate) fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Int(_) | Value::UInt(_) | Value::Float(_) => "number",
        Value::String(_) => "string",
        Value::Seq(_) => "array",
        Value::Map(_) => "object",
    }
}

/// Reads the fields of one struct.
pub(crate) struct Fields<'a> {
    pub(crate) map: &'a Map,
    pub(crate) kind: &'static str,
    /// The key under which another struct has it.
    pub(crate) above: Option<&'static str>,
}

impl<'a> Fields<'a> {
    /// A field that is set; the case of its key doesn't matter, as in Go.
    pub(crate) fn get(&self, key: &str) -> Option<&'a Value> {
        let same = |(name, _): &(&str, &Value)| name.eq_ignore_ascii_case(key);
        let found = self
            .map
            .get(key)
            .or_else(|| self.map.iter().find(same).map(|(_, value)| value));
        found.filter(|value| !value.is_null())
    }

    pub(crate) fn wrong(&self, key: &str, got: &Value, want: &str) -> String {
        let above = self.above.map_or(String::new(), |above| format!("{above}."));
        format!(
            "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {} into Go struct field {}.{above}{key} of type {want}",
            json_type(got),
            self.kind
        )
    }

    /// A text; numbers and booleans are taken for one.
    pub(crate) fn text(&self, key: &str, into: &mut String) -> Result<(), String> {
        if let Some(value) = self.get(key) {
            *into = text(value).ok_or_else(|| self.wrong(key, value, "string"))?;
        }
        Ok(())
    }

    pub(crate) fn flag(&self, key: &str, into: &mut bool) -> Result<(), String> {
        if let Some(value) = self.get(key) {
            *into = value.as_bool().ok_or_else(|| self.wrong(key, value, "bool"))?;
        }
        Ok(())
    }

    pub(crate) fn list(&self, key: &str, want: &str) -> Result<Option<&'a [Value]>, String> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        value
            .as_seq()
            .map(Some)
            .ok_or_else(|| self.wrong(key, value, want))
    }

    pub(crate) fn texts(&self, key: &str, into: &mut Option<Vec<String>>) -> Result<(), String> {
        if let Some(items) = self.list(key, "[]string")? {
            let item = |value: &Value| match value {
                Value::Null => Ok(String::new()),
                value => text(value).ok_or_else(|| self.wrong(key, value, "string")),
            };
            *into = Some(items.iter().map(item).collect::<Result<_, _>>()?);
        }
        Ok(())
    }

    /// A map of texts, in key order.
    pub(crate) fn text_map(&self, key: &str, into: &mut Option<Vec<(String, String)>>) -> Result<(), String> {
        let Some(value) = self.get(key) else { return Ok(()) };
        let map = value
            .as_map()
            .ok_or_else(|| self.wrong(key, value, "map[string]string"))?;
        let entry = |(name, value): (&str, &Value)| match value {
            Value::Null => Ok((name.to_owned(), String::new())),
            value => Ok((
                name.to_owned(),
                text(value).ok_or_else(|| self.wrong(key, value, "string"))?,
            )),
        };
        let mut entries = map.iter().map(entry).collect::<Result<Vec<_>, String>>()?;
        entries.sort();
        *into = Some(entries);
        Ok(())
    }

    /// A list of structs, each made in its turn.
    pub(crate) fn structs<T>(
        &self,
        key: &'static str,
        kind: &'static str,
        mut make: impl FnMut(&Fields<'a>) -> Result<T, String>,
    ) -> Result<Option<Vec<T>>, String> {
        let Some(items) = self.list(key, &format!("[]*{kind}"))? else {
            return Ok(None);
        };
        let item = |value: &'a Value| match value {
            Value::Map(map) => make(&Fields {
                map,
                kind: kind.rsplit('.').next().unwrap_or(kind),
                above: Some(key),
            }),
            Value::Null => Err(format!("validation: {key} must not contain empty or null nodes")),
            value => Err(self.wrong(key, value, kind)),
        };
        items.iter().map(item).collect::<Result<_, _>>().map(Some)
    }
}

/// A scalar as the text that Go's YAML makes of it for a field that is a text.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(value) => Some(value.to_string()),
        Value::Int(value) => Some(value.to_string()),
        Value::UInt(value) => Some(value.to_string()),
        Value::Float(value) => {
            // Go prints it with the precision of 32 bits.
            #[allow(clippy::cast_possible_truncation, reason = "as Go does it")]
            let short = (*value as f32).to_string().parse().unwrap_or(*value);
            Some(go::strconv::format_float(short, 'g', None))
        }
        _ => None,
    }
}

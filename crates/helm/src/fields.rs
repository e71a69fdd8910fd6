//! Fields of Go structs, decoded from YAML as Helm does: keys are compared without case, scalars are accepted as strings,
//! unknown fields are ignored.

use yaml::{Map, Value};

/// Returns the type's name in errors of Go's encoding/json.
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

#[derive(Debug, thiserror::Error)]
pub(crate) enum FieldError {
    /// The field has another type, in the words of Go.
    #[error(
        "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {got} into Go struct field {field} of type {want}"
    )]
    Type {
        got: &'static str,
        field: String,
        want: String,
    },
    #[error("validation: {0} must not contain empty or null nodes")]
    NullItem(&'static str),
}

pub(crate) struct Fields<'a> {
    pub(crate) map: &'a Map,
    pub(crate) kind: &'static str,
    /// The field of the enclosing struct that holds this one.
    pub(crate) above: Option<&'static str>,
}

impl<'a> Fields<'a> {
    /// Returns a field that is not null; keys are compared without case, as in Go.
    pub(crate) fn get(&self, key: &str) -> Option<&'a Value> {
        let same = |(name, _): &(&str, &Value)| name.eq_ignore_ascii_case(key);
        let found = self
            .map
            .get(key)
            .or_else(|| self.map.iter().find(same).map(|(_, value)| value));
        found.filter(|value| !value.is_null())
    }

    pub(crate) fn wrong(&self, key: &str, got: &Value, want: &str) -> FieldError {
        let above = self.above.map_or(String::new(), |above| format!("{above}."));
        FieldError::Type {
            got: json_type(got),
            field: format!("{}.{above}{key}", self.kind),
            want: want.to_owned(),
        }
    }

    /// Decodes a string; numbers and booleans are converted.
    pub(crate) fn text(&self, key: &str, into: &mut String) -> Result<(), FieldError> {
        if let Some(value) = self.get(key) {
            *into = text(value).ok_or_else(|| self.wrong(key, value, "string"))?;
        }
        Ok(())
    }

    pub(crate) fn flag(&self, key: &str, into: &mut bool) -> Result<(), FieldError> {
        if let Some(value) = self.get(key) {
            *into = value.as_bool().ok_or_else(|| self.wrong(key, value, "bool"))?;
        }
        Ok(())
    }

    pub(crate) fn list(&self, key: &str, want: &str) -> Result<Option<&'a [Value]>, FieldError> {
        let Some(value) = self.get(key) else {
            return Ok(None);
        };
        value
            .as_seq()
            .map(Some)
            .ok_or_else(|| self.wrong(key, value, want))
    }

    pub(crate) fn strings(&self, key: &str, into: &mut Option<Vec<String>>) -> Result<(), FieldError> {
        if let Some(items) = self.list(key, "[]string")? {
            let item = |value: &Value| match value {
                Value::Null => Ok(String::new()),
                value => text(value).ok_or_else(|| self.wrong(key, value, "string")),
            };
            *into = Some(items.iter().map(item).collect::<Result<_, _>>()?);
        }
        Ok(())
    }

    /// Decodes a map of strings, sorted by key.
    pub(crate) fn text_map(
        &self,
        key: &str,
        into: &mut Option<Vec<(String, String)>>,
    ) -> Result<(), FieldError> {
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
        let mut entries = map.iter().map(entry).collect::<Result<Vec<_>, FieldError>>()?;
        entries.sort();
        *into = Some(entries);
        Ok(())
    }

    pub(crate) fn structs<T>(
        &self,
        key: &'static str,
        kind: &'static str,
        mut make: impl FnMut(&Fields<'a>) -> Result<T, FieldError>,
    ) -> Result<Option<Vec<T>>, FieldError> {
        let Some(items) = self.list(key, &format!("[]*{kind}"))? else {
            return Ok(None);
        };
        let item = |value: &'a Value| match value {
            Value::Map(map) => make(&Fields {
                map,
                kind: kind.rsplit('.').next().unwrap_or(kind),
                above: Some(key),
            }),
            Value::Null => Err(FieldError::NullItem(key)),
            value => Err(self.wrong(key, value, kind)),
        };
        items.iter().map(item).collect::<Result<_, _>>().map(Some)
    }
}

/// Converts a scalar to a string as Go's YAML does for a field of type string.
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

//! Strict decoding of maps: every field is obeyed, refused, or unknown.

use tree::{Exceeded, TreePath};
use yaml::{Map, Value};

use crate::Error;

/// A map in a file, with its path there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fields<'a> {
    pub(crate) map: &'a Map,
    pub(crate) file: &'a TreePath,
    /// The line of the field that holds the map.
    line: u32,
    path: &'a str,
}

impl<'a> Fields<'a> {
    /// Takes a map, and refuses other types. `path` is the map's own, empty for the document.
    pub(crate) fn new(file: &'a TreePath, value: &'a Value, path: &'a str, line: u32) -> Result<Self, Error> {
        match value {
            Value::Map(map) => {
                let first = map.first().and_then(|(key, _)| map.position(key));
                Ok(Self {
                    map,
                    file,
                    line: first.map_or(line, |position| position.line),
                    path,
                })
            }
            other => {
                let what = if path.is_empty() { "the document" } else { path };
                let problem = format!("{what} is a map, not {}", other.type_name());
                Err(Error::Invalid {
                    file: file.clone(),
                    line,
                    problem,
                })
            }
        }
    }

    /// Refuses fields that are neither obeyed nor empty.
    pub(crate) fn check(&self, obeyed: &[&str], not_obeyed: &[&str]) -> Result<(), Error> {
        for (field, value) in self.map {
            let (file, line) = (self.file.clone(), self.line_of(field));
            if obeyed.contains(&field) || not_obeyed.contains(&field) && means_nothing(value) {
                continue;
            }
            let known = not_obeyed.contains(&field);
            let field = self.path_of(field);
            return Err(if known {
                Error::Unsupported { file, line, field }
            } else {
                Error::UnknownField { file, line, field }
            });
        }
        Ok(())
    }

    /// Returns the line of a field, or of the map if the field is missing.
    pub(crate) fn line_of(&self, field: &str) -> u32 {
        self.map
            .position(field)
            .map_or(self.line, |position| position.line)
    }

    pub(crate) fn line(&self) -> u32 {
        self.line
    }

    /// Returns the path of a field in the file.
    pub(crate) fn path_of(&self, field: &str) -> String {
        if self.path.is_empty() {
            field.to_owned()
        } else {
            format!("{}.{field}", self.path)
        }
    }

    /// Returns the error of an exceeded budget in a field.
    pub(crate) fn exceeded(&self, field: &str, source: Exceeded) -> Error {
        Error::Budget {
            operation: format!("{}: {}", self.file, self.path_of(field)),
            source,
        }
    }

    pub(crate) fn invalid(&self, field: &str, problem: impl Into<String>) -> Error {
        Error::Invalid {
            file: self.file.clone(),
            line: self.line_of(field),
            problem: problem.into(),
        }
    }

    fn wrong_type(&self, field: &str, expected: &str, found: &Value) -> Error {
        self.invalid(
            field,
            format!("{} is {expected}, not {}", self.path_of(field), found.type_name()),
        )
    }

    /// Returns a string; other scalars become strings, as in the original's reader.
    pub(crate) fn string(&self, field: &str) -> Result<Option<String>, Error> {
        match self.map.get(field) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => scalar_text(value)
                .map(Some)
                .ok_or_else(|| self.wrong_type(field, "text", value)),
        }
    }

    /// Returns a string that is not empty.
    pub(crate) fn filled_string(&self, field: &str) -> Result<Option<String>, Error> {
        Ok(self.string(field)?.filter(|text| !text.is_empty()))
    }

    pub(crate) fn required(&self, field: &str) -> Result<String, Error> {
        self.filled_string(field)?
            .ok_or_else(|| self.invalid(field, format!("{} is required", self.path_of(field))))
    }

    /// Returns a list of strings; a single string is one, too.
    pub(crate) fn string_or_strings(&self, field: &str) -> Result<Vec<String>, Error> {
        match self.map.get(field) {
            Some(Value::Seq(_)) => self.strings(field),
            _ => Ok(self.filled_string(field)?.into_iter().collect()),
        }
    }

    pub(crate) fn boolean(&self, field: &str) -> Result<bool, Error> {
        match self.map.get(field) {
            None | Some(Value::Null) => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(other) => Err(self.wrong_type(field, "true or false", other)),
        }
    }

    pub(crate) fn strings(&self, field: &str) -> Result<Vec<String>, Error> {
        let text =
            |item: &Value| scalar_text(item).ok_or_else(|| self.wrong_type(field, "a list of text", item));
        self.seq(field)?.iter().map(text).collect()
    }

    pub(crate) fn seq(&self, field: &str) -> Result<&'a [Value], Error> {
        match self.map.get(field) {
            None | Some(Value::Null) => Ok(&[]),
            Some(Value::Seq(items)) => Ok(items),
            Some(other) => Err(self.wrong_type(field, "a list", other)),
        }
    }

    pub(crate) fn map(&self, field: &str) -> Result<Option<&'a Map>, Error> {
        match self.map.get(field) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Map(map)) => Ok(Some(map)),
            Some(other) => Err(self.wrong_type(field, "a map", other)),
        }
    }

    /// Returns a map of strings.
    pub(crate) fn string_map(&self, field: &str) -> Result<Vec<(String, String)>, Error> {
        let Some(map) = self.map(field)? else {
            return Ok(Vec::new());
        };
        let entry = |(key, value): (&str, &Value)| match scalar_text(value) {
            Some(text) => Ok((key.to_owned(), text)),
            None if value.is_null() => Ok((key.to_owned(), String::new())),
            None => Err(self.wrong_type(&format!("{field}.{key}"), "text", value)),
        };
        map.iter().map(entry).collect()
    }
}

fn scalar_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Int(number) => Some(number.to_string()),
        Value::UInt(number) => Some(number.to_string()),
        Value::Float(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Returns true for a field without content, or false.
pub(crate) fn means_nothing(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Seq(items) => items.is_empty(),
        Value::Map(map) => map.is_empty(),
        _ => false,
    }
}

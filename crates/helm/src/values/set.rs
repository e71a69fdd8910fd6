//! Parser of the arguments of `--set` and similar flags: `a.b=c,d[0]=e,f={g,h}`.

use std::{rc::Rc, str::FromStr as _};

use super::{ReadFile, table};
use crate::{Dict, Value, template::type_name};

const MAX_INDEX: usize = 65_536;
/// The maximum depth of a nested name.
const MAX_NAME_DEPTH: usize = 30;
/// Maximum nesting of lists and names together.
const MAX_DEPTH: usize = 200;

pub(super) enum Mode<'a> {
    Typed,
    Text,
    Json,
    /// The name of a file, whose content becomes the value.
    File(ReadFile<'a>),
    /// The rest of the argument, without escapes.
    Literal,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum SetError {
    #[error("a value nests deeper than {MAX_DEPTH}")]
    TooDeep,
    #[error("value name nested level is greater than maximum supported nested level of {MAX_NAME_DEPTH}")]
    NameTooDeep,
    #[error("key {0:?} has no value")]
    NoValue(String),
    #[error("key {0:?} has no value (cannot end with ,)")]
    EndsWithComma(String),
    #[error("key map {0:?} has no value")]
    EmptyMap(String),
    #[error("unable to parse key: interface conversion: interface {{}} is {got}, not {want}")]
    Conversion { got: String, want: &'static str },
    #[error("negative {0} index not allowed")]
    NegativeIndex(i64),
    #[error("index of {0} is greater than maximum supported index of {MAX_INDEX}")]
    IndexTooLarge(usize),
    #[error("unexpected data at end of array index: [{0}]")]
    DataAfterIndex(String),
    #[error("error parsing index: EOF")]
    UnterminatedIndex,
    #[error("error parsing index: strconv.Atoi: parsing {0:?}: invalid syntax")]
    InvalidIndex(String),
    #[error("list must terminate with '}}'")]
    UnterminatedList,
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error("EOF")]
    EmptyJson,
    #[error("{0}")]
    File(String),
}

enum Stop {
    End,
    Failed(SetError),
}

impl From<SetError> for Stop {
    fn from(error: SetError) -> Self {
        Self::Failed(error)
    }
}

/// Parses an argument and sets its values in `into`. Fails if the syntax is invalid, or an existing value has another type.
pub(super) fn parse(text: &str, into: &Dict, mode: &Mode<'_>) -> Result<(), SetError> {
    let mut parser = Parser { rest: text, mode };
    loop {
        match parser.key(into, 0, 0) {
            Ok(()) => {}
            Err(Stop::End) => return Ok(()),
            Err(Stop::Failed(error)) => return Err(error),
        }
    }
}

struct Parser<'a> {
    rest: &'a str,
    mode: &'a Mode<'a>,
}

impl Parser<'_> {
    fn next(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let next = chars.next();
        self.rest = chars.as_str();
        next
    }

    /// Reads up to one of the characters `stops` and returns it; `None` at the end of the argument.
    fn until(&mut self, stops: &[char]) -> (String, Option<char>) {
        let mut text = String::new();
        while let Some(c) = self.next() {
            if stops.contains(&c) {
                return (text, Some(c));
            }
            if c == '\\' && !matches!(self.mode, Mode::Literal) {
                match self.next() {
                    Some(escaped) => text.push(escaped),
                    None => return (text, None),
                }
            } else {
                text.push(c);
            }
        }
        (text, None)
    }

    fn key(&mut self, map: &Dict, names: usize, depth: usize) -> Result<(), Stop> {
        if depth > MAX_DEPTH {
            return Err(SetError::TooDeep.into());
        }
        let stops: &[char] = if matches!(self.mode, Mode::Literal) {
            &['=', '[', '.']
        } else {
            &['=', '[', ',', '.']
        };
        let (key, stop) = self.until(stops);
        match stop {
            None if key.is_empty() => Err(Stop::End),
            None => Err(SetError::NoValue(key).into()),
            Some('[') => {
                let index = self.index()?;
                let list = match map.borrow().get(key.as_str()) {
                    None => Vec::new(),
                    Some(Value::List(items)) => items.to_vec(),
                    Some(other) => return Err(conversion(other, "[]interface {}").into()),
                };
                let (list, result) = self.item(list, index, names, depth.saturating_add(1));
                insert(map, &key, Value::list(list));
                result
            }
            Some('=') => self.value(map, &key),
            Some('.') => self.inner(map, &key, names.saturating_add(1), depth),
            Some(_) => {
                insert(map, &key, Value::string(""));
                Err(SetError::EndsWithComma(key).into())
            }
        }
    }

    /// Parses the part after `a.`.
    fn inner(&mut self, map: &Dict, key: &str, names: usize, depth: usize) -> Result<(), Stop> {
        if names > MAX_NAME_DEPTH {
            return Err(SetError::NameTooDeep.into());
        }
        let inner = match map.borrow().get(key) {
            None => table(),
            Some(Value::Dict(inner)) => inner.clone(),
            Some(other) => return Err(conversion(other, "map[string]interface {}").into()),
        };
        let result = self.key(&inner, names, depth.saturating_add(1));
        let is_empty = inner.borrow().is_empty();
        if result.is_ok() && is_empty {
            return Err(SetError::EmptyMap(key.to_owned()).into());
        }
        if !is_empty {
            insert(map, key, Value::Dict(inner));
        }
        result
    }

    /// Parses the part after `a=`.
    fn value(&mut self, map: &Dict, key: &str) -> Result<(), Stop> {
        match self.mode {
            Mode::Json => insert(map, key, self.json()?),
            Mode::Literal => insert(map, key, Value::utf8(std::mem::take(&mut self.rest))),
            _ => match self.list()? {
                Listed::List(items) => insert(map, key, Value::list(items)),
                Listed::End => {
                    insert(map, key, Value::string(""));
                    return Err(Stop::End);
                }
                Listed::None => {
                    let (text, _) = self.until(&[',']);
                    insert(map, key, self.read(&text)?);
                }
            },
        }
        Ok(())
    }

    /// Parses the part after `[1]`. Returns the list as it is afterwards, also on failure.
    fn item(
        &mut self,
        mut list: Vec<Value>,
        index: i64,
        names: usize,
        depth: usize,
    ) -> (Vec<Value>, Result<(), Stop>) {
        let result = self.set_item(&mut list, index, names, depth);
        (list, result)
    }

    fn set_item(
        &mut self,
        list: &mut Vec<Value>,
        index: i64,
        names: usize,
        depth: usize,
    ) -> Result<(), Stop> {
        let index = usize::try_from(index).map_err(|_| SetError::NegativeIndex(index))?;
        if depth > MAX_DEPTH {
            return Err(SetError::TooDeep.into());
        }
        let (text, stop) = self.until(&['[', '.', '=']);
        if !text.is_empty() {
            let characters: Vec<String> = text.chars().map(|c| format!("{c:?}")).collect();
            let characters = characters.join(" ");
            return Err(SetError::DataAfterIndex(characters).into());
        }
        let value = match stop {
            None => return Err(Stop::End),
            Some('=') => self.item_value()?,
            Some('[') => {
                let next = self.index()?;
                let inner = match list.get(index) {
                    None | Some(Value::Nil) => Vec::new(),
                    Some(Value::List(items)) => items.to_vec(),
                    Some(other) => return Err(conversion(other, "[]interface {}").into()),
                };
                let (inner, result) = self.item(inner, next, names, depth.saturating_add(1));
                result?;
                Value::list(inner)
            }
            Some(_) => {
                let inner = match list.get(index) {
                    Some(Value::Dict(inner)) => inner.clone(),
                    _ => table(),
                };
                if let Some(item) = list.get_mut(index) {
                    *item = Value::Dict(inner.clone());
                }
                self.key(&inner, names, depth.saturating_add(1))?;
                Value::Dict(inner)
            }
        };
        if index > MAX_INDEX {
            return Err(SetError::IndexTooLarge(index).into());
        }
        if list.len() <= index {
            list.resize(index.saturating_add(1), Value::Nil);
        }
        if let Some(item) = list.get_mut(index) {
            *item = value;
        }
        Ok(())
    }

    /// Parses the part after `[1]=`.
    fn item_value(&mut self) -> Result<Value, Stop> {
        match self.mode {
            Mode::Json => Ok(self.json()?),
            Mode::Literal => Ok(Value::utf8(std::mem::take(&mut self.rest))),
            _ => match self.list()? {
                Listed::List(items) => Ok(Value::list(items)),
                Listed::End => Ok(Value::string("")),
                Listed::None => {
                    let (text, _) = self.until(&[',']);
                    Ok(self.read(&text)?)
                }
            },
        }
    }

    fn index(&mut self) -> Result<i64, Stop> {
        let (text, stop) = self.until(&[']']);
        if stop.is_none() {
            return Err(SetError::UnterminatedIndex.into());
        }
        i64::from_str(&text).map_err(|_| SetError::InvalidIndex(text).into())
    }

    fn list(&mut self) -> Result<Listed, SetError> {
        match self.rest.chars().next() {
            None => return Ok(Listed::End),
            Some('{') => self.next(),
            Some(_) => return Ok(Listed::None),
        };
        let mut items = Vec::new();
        loop {
            let (text, stop) = self.until(&[',', '}']);
            match stop {
                None => return Err(SetError::UnterminatedList),
                Some('}') => {
                    if let Some(rest) = self.rest.strip_prefix(',') {
                        self.rest = rest;
                    }
                    items.push(self.read(&text)?);
                    return Ok(Listed::List(items));
                }
                Some(_) => items.push(self.read(&text)?),
            }
        }
    }

    fn read(&self, text: &str) -> Result<Value, SetError> {
        match self.mode {
            Mode::Typed => Ok(typed(text)),
            Mode::File(read) => {
                let data = read(text).map_err(|error| SetError::File(error.to_string()))?;
                Ok(Value::bytes(&data))
            }
            Mode::Text | Mode::Json | Mode::Literal => Ok(Value::utf8(text)),
        }
    }

    /// Parses a JSON value and the comma after it; an empty value is null.
    fn json(&mut self) -> Result<Value, SetError> {
        if self.is_empty() {
            return Ok(Value::Nil);
        }
        let mut stream = serde_json::Deserializer::from_str(self.rest).into_iter::<serde_json::Value>();
        let value = match stream.next() {
            Some(Ok(value)) => value,
            Some(Err(error)) => return Err(error.into()),
            None => return Err(SetError::EmptyJson),
        };
        self.rest = self.rest.get(stream.byte_offset()..).unwrap_or_default();
        self.is_empty();
        Ok(Value::from_yaml(&yaml::Value::from_json(value)))
    }

    /// Skips white space and a comma. Returns true if there was a comma or the argument ended.
    fn is_empty(&mut self) -> bool {
        self.rest = self.rest.trim_start();
        match self.rest.strip_prefix(',') {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => self.rest.is_empty(),
        }
    }
}

enum Listed {
    List(Vec<Value>),
    None,
    End,
}

/// Converts a string to a value by the type inference of `--set`.
fn typed(text: &str) -> Value {
    let is = |word: &str| text.eq_ignore_ascii_case(word);
    if is("true") {
        Value::Bool(true)
    } else if is("false") {
        Value::Bool(false)
    } else if is("null") {
        Value::Nil
    } else if text == "0" {
        Value::int64(0)
    } else if let (false, Ok(number)) = (text.starts_with('0'), i64::from_str(text)) {
        Value::int64(number)
    } else {
        Value::utf8(text)
    }
}

/// Ignores empty names, as Helm does.
fn insert(map: &Dict, key: &str, value: Value) {
    if !key.is_empty() {
        map.borrow_mut().insert(Rc::from(key), value);
    }
}

fn conversion(value: &Value, want: &'static str) -> SetError {
    let got = match value {
        Value::Nil | Value::Missing => "nil",
        other => type_name(other),
    };
    SetError::Conversion {
        got: got.to_owned(),
        want,
    }
}

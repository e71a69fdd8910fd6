//! Between the project's values and the engine's.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use minijinja::{Error, ErrorKind, Value as Dynamic, value::ValueKind};
use yaml::{Map, Value};

use crate::account;

/// How deep a value of a template may nest when it leaves the engine.
const MAX_DEPTH: u32 = 200;

/// The variables of templates, converted once and cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Vars {
    pub(crate) values: Arc<BTreeMap<String, Dynamic>>,
}

impl Vars {
    /// Takes maps in their own order.
    #[must_use]
    pub fn new(vars: &Map) -> Self {
        Self::build(vars, false)
    }

    /// Takes maps in the order of their keys, as the variables of kluctl projects arrive.
    #[must_use]
    pub fn sorted(vars: &Map) -> Self {
        Self::build(vars, true)
    }

    fn build(vars: &Map, sorted: bool) -> Self {
        let values = vars
            .iter()
            .map(|(key, value)| (key.to_owned(), to_dynamic(value, sorted)));
        Self {
            values: Arc::new(values.collect()),
        }
    }
}

/// Converts a value of the project. Its nesting was bounded by the reader.
pub(crate) fn to_dynamic(value: &Value, sorted: bool) -> Dynamic {
    match value {
        Value::Null => Dynamic::from(()),
        Value::Bool(flag) => Dynamic::from(*flag),
        Value::Int(number) => Dynamic::from(*number),
        Value::UInt(number) => Dynamic::from(*number),
        Value::Float(number) => Dynamic::from(*number),
        Value::String(text) => Dynamic::from(text.as_str()),
        Value::Seq(items) => items
            .iter()
            .map(|item| to_dynamic(item, sorted))
            .collect::<Vec<_>>()
            .into(),
        Value::Map(map) => {
            let mut entries: Vec<(&str, &Value)> = map.iter().collect();
            if sorted {
                entries.sort_unstable_by_key(|(key, _)| *key);
            }
            let entries = entries.into_iter();
            Dynamic::from_pairs(entries.map(|(key, value)| (key, to_dynamic(value, sorted))))
        }
    }
}

/// Converts a value of a template.
pub(crate) fn from_dynamic(value: &Dynamic) -> Result<Value, Error> {
    convert_back(value, 0)
}

fn convert_back(value: &Dynamic, depth: u32) -> Result<Value, Error> {
    let text = value.as_str().map_or(0, str::len);
    account::charge(text.saturating_add(account::ENTRY))?;
    if depth > MAX_DEPTH {
        return Err(Error::new(
            ErrorKind::InvalidOperation,
            "ValueError: the value nests too deeply",
        ));
    }
    Ok(match value.kind() {
        ValueKind::Undefined => return Err(Error::from(ErrorKind::UndefinedError)),
        ValueKind::None => Value::Null,
        ValueKind::Bool => Value::Bool(value.is_true()),
        ValueKind::Number => number(value)?,
        ValueKind::String => Value::String(value.as_str().unwrap_or_default().to_owned()),
        ValueKind::Map => {
            let mut map = Map::new();
            for key in value.try_iter()?.checked() {
                let key = key?;
                map.insert(key_text(&key), convert_back(&value.get_item(&key)?, depth + 1)?);
            }
            Value::Map(map)
        }
        ValueKind::Seq | ValueKind::Iterable => {
            let items = value.try_iter()?.checked();
            Value::Seq(
                items
                    .map(|item| convert_back(&item?, depth + 1))
                    .collect::<Result<_, _>>()?,
            )
        }
        _ => {
            let message = format!("TypeError: Object of type {} is not serializable", value.kind());
            return Err(Error::new(ErrorKind::InvalidOperation, message));
        }
    })
}

fn number(value: &Dynamic) -> Result<Value, Error> {
    if value.is_integer() {
        if let Ok(number) = i64::try_from(value.clone()) {
            return Ok(Value::Int(number));
        }
        if let Ok(number) = u64::try_from(value.clone()) {
            return Ok(Value::UInt(number));
        }
    }
    f64::try_from(value.clone()).map(Value::Float)
}

/// The text of a map key, as JSON of Python writes it.
pub(crate) fn key_text(key: &Dynamic) -> String {
    match key.kind() {
        ValueKind::String => key.as_str().unwrap_or_default().to_owned(),
        ValueKind::None => "null".to_owned(),
        ValueKind::Bool => (if key.is_true() { "true" } else { "false" }).to_owned(),
        _ => key.to_string(),
    }
}

/// Merges `over` into a copy of `base`: maps key by key, everything else is replaced.
pub(crate) fn merge(base: &Dynamic, over: &Dynamic, depth: u32) -> Result<Dynamic, Error> {
    if depth > MAX_DEPTH {
        return Err(Error::new(
            ErrorKind::InvalidOperation,
            "ValueError: the value nests too deeply",
        ));
    }
    let mut entries: Vec<(Dynamic, Dynamic)> = Vec::new();
    let mut places: HashMap<Dynamic, usize> = HashMap::new();
    for key in base.try_iter()?.checked() {
        let key = key?;
        places.insert(key.clone(), entries.len());
        account::charge(account::ENTRY * 2)?;
        let value = base.get_item(&key)?;
        entries.push((key, value));
    }
    for key in over.try_iter()?.checked() {
        let key = key?;
        account::charge(account::ENTRY)?;
        let value = over.get_item(&key)?;
        match places.get(&key).and_then(|place| entries.get_mut(*place)) {
            Some((_, old)) if is_map(old) && is_map(&value) => *old = merge(old, &value, depth + 1)?,
            Some((_, old)) => *old = value,
            None => entries.push((key, value)),
        }
    }
    Ok(Dynamic::from_pairs(entries))
}

fn is_map(value: &Dynamic) -> bool {
    value.kind() == ValueKind::Map
}

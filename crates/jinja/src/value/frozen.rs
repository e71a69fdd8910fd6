//! The variables of a project, converted once and shared by all renderers.

use std::{collections::HashMap, rc::Rc, sync::Arc};

use go::strconv::Decimal;
use num_bigint::BigInt;
use yaml::{Map, Value as Yaml};

use super::{Dict, List, Str, Value};

/// An immutable value.
#[derive(Debug, Clone)]
pub(crate) enum Frozen {
    None,
    Bool(bool),
    Int(i64),
    Big(i128),
    Float(f64),
    Str(Str),
    List(Arc<[Frozen]>),
    Dict(Arc<[(Str, Frozen)]>),
}

impl Frozen {
    fn new(value: &Yaml, sorted: bool) -> Self {
        match value {
            Yaml::Null => Self::None,
            Yaml::Bool(flag) => Self::Bool(*flag),
            Yaml::Int(number) => Self::Int(*number),
            Yaml::UInt(number) => i64::try_from(*number).map_or(Self::Big(i128::from(*number)), Self::Int),
            Yaml::Float(number) if sorted => Self::json_float(*number),
            Yaml::Float(number) => Self::Float(*number),
            Yaml::String(text) => Self::Str(text.as_str().into()),
            Yaml::Seq(items) => Self::List(items.iter().map(|item| Self::new(item, sorted)).collect()),
            Yaml::Map(map) => Self::Dict(entries(map, sorted)),
        }
    }

    /// Converts a float as Python reads it from Go's JSON, where integers below 1e21 have no point and no exponent.
    fn json_float(number: f64) -> Self {
        if number.fract() != 0.0 || number.abs() >= 1e21 {
            return Self::Float(number);
        }
        match Decimal::shortest(number).plain().parse() {
            Ok(whole) => i64::try_from(whole).map_or(Self::Big(whole), Self::Int),
            Err(_) => Self::Float(number),
        }
    }

    /// Returns a mutable value of one renderer; its items stay frozen until they are used.
    pub(crate) fn thaw(&self) -> Value {
        match self {
            Self::None => Value::None,
            Self::Bool(flag) => Value::Bool(*flag),
            Self::Int(number) => Value::Int(*number),
            Self::Big(number) => Value::Big(Rc::new(BigInt::from(*number))),
            Self::Float(number) => Value::Float(*number),
            Self::Str(text) => Value::Str(text.clone()),
            Self::List(items) => Value::List(Rc::new(List::frozen(items.clone()))),
            Self::Dict(entries) => Value::Dict(Rc::new(Dict::frozen(entries.clone()))),
        }
    }
}

fn entries(map: &Map, sorted: bool) -> Arc<[(Str, Frozen)]> {
    let mut entries: Vec<(&str, &Yaml)> = map.iter().collect();
    if sorted {
        entries.sort_unstable_by_key(|(key, _)| *key);
    }
    let entries = entries.into_iter();
    entries
        .map(|(key, value)| (key.into(), Frozen::new(value, sorted)))
        .collect()
}

/// The variables of templates, converted once and cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Vars {
    pub(crate) values: Arc<HashMap<Str, Frozen>>,
}

impl Vars {
    /// Converts variables; maps keep their order.
    #[must_use]
    pub fn new(vars: &Map) -> Self {
        Self::build(vars, false)
    }

    /// Converts variables as kluctl does, by JSON: maps are sorted by key, and floats below 1e21 without a fraction are integers.
    #[must_use]
    pub fn sorted(vars: &Map) -> Self {
        Self::build(vars, true)
    }

    fn build(vars: &Map, sorted: bool) -> Self {
        let values = vars
            .iter()
            .map(|(key, value)| (key.into(), Frozen::new(value, sorted)));
        Self {
            values: Arc::new(values.collect()),
        }
    }
}

//! The shapes of files with typed fields ([`super::shapes`]), and their check: names in any case, strict types, the messages
//! of Go's decoder.

use serde::de::DeserializeOwned;
use serde_json::{Map as Object, Value as Json};
use yaml::{Map, Node, Value};

use crate::Profile;

#[derive(Debug, Clone, Copy)]
pub(crate) enum Type {
    /// A string, with the name of its type in messages.
    Text(&'static str),
    Bool,
    /// An integer, with the name of its type in messages.
    Int(&'static str),
    /// A map of any keys, with the name of its own type, if it has one.
    MapOf(Option<&'static str>, &'static Type),
    AnyMap,
    /// A list, with the name of its own type, if it has one.
    List(Option<&'static str>, &'static Type),
    /// A map of known keys.
    Struct(&'static Struct),
    /// A map of known keys that may be missing. Null is refused as an item of a list.
    Optional(&'static Struct),
}

/// A map of known keys.
#[derive(Debug)]
pub(crate) struct Struct {
    /// For messages.
    pub(crate) package: &'static str,
    /// For messages.
    pub(crate) name: &'static str,
    /// The types whose fields are written as if they were its own.
    pub(crate) embedded: &'static [&'static Struct],
    pub(crate) fields: &'static [Field],
}

#[derive(Debug)]
pub(crate) struct Field {
    /// As documented.
    pub(crate) name: &'static str,
    pub(crate) of: Type,
    /// The first version that knows it.
    pub(crate) since: Profile,
}

/// The strictness of a decoder.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    /// Unknown fields are errors; otherwise they are ignored.
    pub(crate) strict: bool,
    /// Numbers and booleans become strings where needed.
    pub(crate) coerce: bool,
    /// The version whose fields are known.
    pub(crate) profile: Profile,
}

/// A value of the wrong type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mismatch {
    /// In the words of Go's decoder.
    pub(crate) problem: String,
    /// The key of the outermost map above it, as written; empty if the whole document is wrong.
    pub(crate) key: String,
}

pub(crate) fn check(value: &Value, of: &Type, rules: Rules) -> Result<Json, Mismatch> {
    let mut checker = Checker {
        rules,
        path: Vec::new(),
        owner: "",
        key: String::new(),
        first: None,
    };
    let json = checker.value(value, of, rules.coerce);
    match checker.first {
        None => Ok(json),
        Some(mismatch) => Err(mismatch),
    }
}

pub(crate) fn decode<T: DeserializeOwned>(value: &Value, of: &Type, rules: Rules) -> Result<T, Mismatch> {
    typed(check(value, of, rules)?)
}

pub(crate) fn typed<T: DeserializeOwned>(json: Json) -> Result<T, Mismatch> {
    serde_json::from_value(json).map_err(|error| Mismatch {
        problem: format!("json: {error}"),
        key: String::new(),
    })
}

/// Walks a value. Like Go's decoder it continues after a mistake and reports the first one, with keys in bytewise order.
struct Checker {
    rules: Rules,
    path: Vec<&'static str>,
    /// The innermost struct.
    owner: &'static str,
    key: String,
    first: Option<Mismatch>,
}

impl Checker {
    fn value(&mut self, value: &Value, of: &Type, coerce: bool) -> Json {
        match (of, value) {
            (_, Value::Null) => empty(of),
            (Type::Text(_), Value::String(text)) => Json::from(text.as_str()),
            (Type::Text(_), Value::Bool(_) | Value::Int(_) | Value::UInt(_) | Value::Float(_)) if coerce => {
                Json::from(as_text(value))
            }
            (Type::Bool, Value::Bool(value)) => Json::from(*value),
            (Type::Int(_), Value::Int(value)) => Json::from(*value),
            (Type::AnyMap, Value::Map(map)) => Json::Object(map.to_json()),
            (Type::MapOf(_, of), Value::Map(map)) => {
                let entries = sorted(map).into_iter();
                Json::Object(
                    entries
                        .map(|(key, value)| self.entry(key, value, of, coerce))
                        .collect(),
                )
            }
            (Type::List(_, of), Value::Seq(items)) => {
                items.iter().map(|item| self.item(item, of, coerce)).collect()
            }
            (Type::Struct(of) | Type::Optional(of), Value::Map(map)) => self.object(map, of, coerce),
            _ => {
                self.mismatch(value, of);
                Json::Null
            }
        }
    }

    fn entry(&mut self, key: &str, value: &Value, of: &Type, coerce: bool) -> (String, Json) {
        self.enter(key);
        (key.to_owned(), self.value(value, of, coerce))
    }

    /// Records a key of the outermost map.
    fn enter(&mut self, key: &str) {
        if self.path.is_empty() {
            key.clone_into(&mut self.key);
        }
    }

    /// Checks an item of a list; the original can't continue without one that it follows a pointer to.
    fn item(&mut self, item: &Value, of: &Type, coerce: bool) -> Json {
        if item.is_null() && matches!(of, Type::Optional(_)) {
            self.report(format!("json: null in a list of {}", of.name()));
        }
        self.value(item, of, coerce)
    }

    fn object(&mut self, map: &Map, of: &'static Struct, coerce: bool) -> Json {
        let (depth, owner) = (self.path.len(), self.owner);
        let mut object = Object::new();
        for (key, value) in sorted(map) {
            self.enter(key);
            let Some(field) = of.find(key, self.rules.profile, &mut self.path) else {
                if self.rules.strict {
                    self.report(format!("json: unknown field {}", Json::from(key)));
                }
                continue;
            };
            // Go's conversion to strings uses the embedded type, not the field's.
            let coerce = coerce && self.path.len() == depth;
            self.path.push(field.name);
            self.owner = of.name;
            if !value.is_null() {
                let checked = self.value(value, &field.of, coerce);
                put(&mut object, field.name, checked);
            }
            self.path.truncate(depth);
            self.owner = owner;
        }
        Json::Object(object)
    }

    fn mismatch(&mut self, value: &Value, of: &Type) {
        let found = match value {
            Value::Null => "null".to_owned(),
            Value::Bool(_) => "bool".to_owned(),
            // For integers, only floats and numbers beyond the range are wrong.
            Value::Int(_) | Value::UInt(_) | Value::Float(_) if matches!(of, Type::Int(_)) => {
                format!("number {}", value.to_json())
            }
            Value::Int(_) | Value::UInt(_) | Value::Float(_) => "number".to_owned(),
            Value::String(_) => "string".to_owned(),
            Value::Seq(_) => "array".to_owned(),
            Value::Map(_) => "object".to_owned(),
        };
        let target = match self.path.as_slice() {
            [] => "value".to_owned(),
            path => format!("struct field {}.{}", self.owner, path.join(".")),
        };
        self.report(format!(
            "json: cannot unmarshal {found} into Go {target} of type {}",
            of.name()
        ));
    }

    fn report(&mut self, problem: String) {
        let key = &self.key;
        self.first.get_or_insert_with(|| Mismatch {
            problem,
            key: key.clone(),
        });
    }
}

impl Struct {
    /// Finds the field of a key, which is written as documented or else in any case. `trail` gets the names of the structs
    /// through which it is embedded.
    fn find(
        &'static self,
        key: &str,
        profile: Profile,
        trail: &mut Vec<&'static str>,
    ) -> Option<&'static Field> {
        let folded = fold(key);
        self.find_by(&|name| name == key, profile, trail)
            .or_else(|| self.find_by(&|name| fold(name) == folded, profile, trail))
    }

    fn find_by(
        &'static self,
        is_key: &dyn Fn(&str) -> bool,
        profile: Profile,
        trail: &mut Vec<&'static str>,
    ) -> Option<&'static Field> {
        let known = |field: &&Field| field.since <= profile && is_key(field.name);
        if let Some(field) = self.fields.iter().find(known) {
            return Some(field);
        }
        self.embedded.iter().find_map(|embedded| {
            trail.push(embedded.name);
            let field = embedded.find_by(is_key, profile, trail);
            if field.is_none() {
                trail.pop();
            }
            field
        })
    }
}

impl Type {
    fn name(&self) -> String {
        match self {
            Self::Text(name) | Self::Int(name) | Self::List(Some(name), _) | Self::MapOf(Some(name), _) => {
                (*name).to_owned()
            }
            Self::Bool => "bool".to_owned(),
            Self::AnyMap => "map[string]interface {}".to_owned(),
            Self::MapOf(None, of) => format!("map[string]{}", of.name()),
            Self::List(None, Self::Optional(of)) => format!("[]*{}.{}", of.package, of.name),
            Self::List(None, of) => format!("[]{}", of.name()),
            Self::Struct(of) | Self::Optional(of) => format!("{}.{}", of.package, of.name),
        }
    }
}

/// Returns the value that Go's decoder makes of null.
fn empty(of: &Type) -> Json {
    match of {
        Type::Text(_) => Json::from(""),
        Type::Bool => Json::from(false),
        Type::Int(_) => Json::from(0),
        Type::MapOf(..) | Type::AnyMap | Type::Struct(_) | Type::Optional(_) => Json::Object(Object::new()),
        Type::List(..) => Json::Array(Vec::new()),
    }
}

/// Sets a field. One that was set in another case of letters is replaced, but maps are joined.
fn put(object: &mut Object<String, Json>, name: &str, value: Json) {
    match (object.get_mut(name), value) {
        (Some(Json::Object(old)), Json::Object(new)) => old.extend(new),
        (Some(old), value) => *old = value,
        (None, value) => {
            object.insert(name.to_owned(), value);
        }
    }
}

/// Formats a number or a boolean as a string: numbers with the digits of single precision.
fn as_text(value: &Value) -> String {
    let value = match value {
        Value::Float(float) => {
            let digits = (*float as f32).to_string();
            Value::Float(digits.parse().unwrap_or(*float))
        }
        other => other.clone(),
    };
    Node::from_value(&value).as_text().unwrap_or_default().to_owned()
}

fn sorted(map: &Map) -> Vec<(&str, &Value)> {
    let mut entries: Vec<_> = map.iter().collect();
    entries.sort_unstable_by_key(|(key, _)| *key);
    entries
}

/// Folds the case of a key as Go does: two letters beyond ASCII have partners in it.
fn fold(key: &str) -> String {
    let fold = |letter: char| match letter {
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        other => other.to_ascii_lowercase(),
    };
    key.chars().map(fold).collect()
}

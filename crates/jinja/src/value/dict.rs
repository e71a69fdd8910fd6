//! Dictionaries in insertion order; equal numbers of different types are the same key.

use std::{
    cell::{Ref, RefCell},
    hash::{Hash, Hasher},
    sync::Arc,
};

use indexmap::{Equivalent, IndexMap};

use super::{
    Object, Str, Undef, Value, bury, compare::numbers_equal, frozen::Frozen, number, origin::Origin,
};
use crate::exc::{R, type_error};

pub(crate) type DictMap = IndexMap<Key, Value>;

/// The maximum number of parts of a tuple that is a key, nested ones included.
const MAX_KEY_PARTS: u32 = 10_000;

#[derive(Clone)]
pub(crate) struct Key(Value);

impl Key {
    /// Returns the key and the bytes that each use of it hashes, which `Rt::key` counts. Fails
    /// for values that Python can't hash.
    pub(crate) fn sized(value: &Value) -> R<(Self, usize)> {
        let (mut left, mut bytes) = (MAX_KEY_PARTS, 0);
        check(value, &mut left, &mut bytes)?;
        Ok((Self(value.clone()), bytes))
    }

    pub(crate) fn value(&self) -> &Value {
        &self.0
    }
}

impl From<Str> for Key {
    fn from(text: Str) -> Self {
        Self(Value::Str(text))
    }
}

impl From<&str> for Key {
    fn from(text: &str) -> Self {
        Self(Value::str(text))
    }
}

fn check(value: &Value, left: &mut u32, bytes: &mut usize) -> R<()> {
    *left = match left.checked_sub(1) {
        Some(left) => left,
        None => return type_error("the tuple is too large for a key"),
    };
    match value {
        Value::List(_) | Value::Dict(_) => type_error(format!("unhashable type: '{}'", value.type_name())),
        Value::Undefined(why) if !matches!(**why, Undef::Nothing { .. }) => why.fail(),
        Value::Tuple(tuple) => tuple.items.iter().try_for_each(|item| check(item, left, bytes)),
        other => {
            let size = match other {
                Value::Str(text) | Value::Markup(text) => text.len(),
                Value::Bytes(data) => data.len(),
                Value::Big(number) => usize::try_from(number.bits() / 8).unwrap_or(usize::MAX),
                _ => 8,
            };
            *bytes = bytes.saturating_add(size);
            Ok(())
        }
    }
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        hash(&self.0, state);
    }
}

fn hash<H: Hasher>(value: &Value, state: &mut H) {
    match value {
        Value::Str(text) | Value::Markup(text) => text.hash(state),
        Value::Bool(flag) => i64::from(*flag).hash(state),
        Value::Int(number) => number.hash(state),
        Value::Float(float) => match number::exact(*float) {
            Some(whole) => hash(&whole, state),
            None => float.to_bits().hash(state),
        },
        Value::Big(number) => number.hash(state),
        Value::Bytes(bytes) => bytes.hash(state),
        Value::Tuple(tuple) => tuple.items.iter().for_each(|item| hash(item, state)),
        Value::Object(object) => match &**object {
            Object::Date(date) => date.hashed().hash(state),
            Object::Delta(delta) => delta.hash(state),
            _ => value.address().hash(state),
        },
        other => other.address().hash(state),
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        equal(&self.0, &other.0)
    }
}

impl Eq for Key {}

fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Str(a) | Value::Markup(a), Value::Str(b) | Value::Markup(b)) => a == b,
        (Value::Bytes(a), Value::Bytes(b)) => a == b,
        (Value::Tuple(a), Value::Tuple(b)) => {
            a.items.len() == b.items.len() && a.items.iter().zip(&b.items).all(|(a, b)| equal(a, b))
        }
        (Value::Range(a), Value::Range(b)) => a == b,
        _ => numbers_equal(a, b).unwrap_or_else(|| a.same(b)),
    }
}

/// A string for lookups, without making a key of it.
struct Text<'a>(&'a str);

impl Hash for Text<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl Equivalent<Key> for Text<'_> {
    fn equivalent(&self, key: &Key) -> bool {
        key.0.as_str().is_some_and(|text| **text == *self.0)
    }
}

/// A dictionary; one from a variable is converted at its first use.
pub(crate) struct Dict {
    entries: RefCell<Entries>,
    origin: Origin,
}

enum Entries {
    Frozen(Arc<[(Str, Frozen)]>),
    Ready(DictMap),
}

impl Dict {
    pub(crate) fn new(map: DictMap) -> Self {
        Self {
            entries: RefCell::new(Entries::Ready(map)),
            origin: Origin::here(),
        }
    }

    pub(crate) fn frozen(entries: Arc<[(Str, Frozen)]>) -> Self {
        Self {
            entries: RefCell::new(Entries::Frozen(entries)),
            origin: Origin::VARIABLES,
        }
    }

    /// Returns true if the running template made the dictionary.
    pub(crate) fn is_new(&self) -> bool {
        self.origin.is_new()
    }

    fn thaw(&self) {
        let frozen = match &*self.entries.borrow() {
            Entries::Frozen(entries) => entries.clone(),
            Entries::Ready(_) => return,
        };
        let map = frozen
            .iter()
            .map(|(key, value)| (Key::from(key.clone()), value.thaw()));
        *self.entries.borrow_mut() = Entries::Ready(map.collect());
    }

    /// Reads the entries, which must not change meanwhile.
    pub(crate) fn read<T>(&self, read: impl FnOnce(&DictMap) -> T) -> T {
        self.thaw();
        let entries: Ref<'_, Entries> = self.entries.borrow();
        match &*entries {
            Entries::Ready(map) => read(map),
            Entries::Frozen(_) => read(&DictMap::new()),
        }
    }

    /// Changes the entries. The change must not access the dictionary itself.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut DictMap) -> T) -> T {
        self.thaw();
        match &mut *self.entries.borrow_mut() {
            Entries::Ready(map) => change(map),
            Entries::Frozen(_) => change(&mut DictMap::new()),
        }
    }

    pub(crate) fn len(&self) -> usize {
        match &*self.entries.borrow() {
            Entries::Ready(map) => map.len(),
            Entries::Frozen(entries) => entries.len(),
        }
    }

    pub(crate) fn get(&self, key: &Key) -> Option<Value> {
        self.read(|map| map.get(key).cloned())
    }

    pub(crate) fn get_str(&self, key: &str) -> Option<Value> {
        self.read(|map| map.get(&Text(key)).cloned())
    }

    pub(crate) fn at(&self, index: usize) -> Option<(Value, Value)> {
        self.read(|map| {
            map.get_index(index)
                .map(|(key, value)| (key.0.clone(), value.clone()))
        })
    }

    pub(crate) fn insert(&self, key: Key, value: Value) -> Option<Value> {
        self.change(|map| map.insert(key, value))
    }

    pub(crate) fn copy(&self) -> DictMap {
        self.read(DictMap::clone)
    }

    pub(crate) fn keys(&self) -> Vec<Value> {
        self.read(|map| map.keys().map(|key| key.0.clone()).collect())
    }

    pub(crate) fn pairs(&self) -> Vec<(Value, Value)> {
        self.read(|map| {
            map.iter()
                .map(|(key, value)| (key.0.clone(), value.clone()))
                .collect()
        })
    }
}

impl Drop for Dict {
    fn drop(&mut self) {
        if let Entries::Ready(map) = self.entries.get_mut()
            && !map.is_empty()
        {
            bury(
                std::mem::take(map)
                    .into_iter()
                    .flat_map(|(key, value)| [key.0, value]),
            );
        }
    }
}

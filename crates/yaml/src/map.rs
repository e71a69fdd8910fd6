//! The map type.

use std::fmt;

use foldhash::fast::RandomState;
use indexmap::{IndexMap, map};

use crate::Value;

/// A position in a source document; line and column (in characters) count from 1. Positions never take part in comparisons.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Position {
    pub line: u32,
    pub column: u32,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// A map with string keys that keeps the order of insertion and the positions of its entries. Two maps are equal if they
/// hold equal values under the same keys; neither order nor positions count.
#[derive(Clone, Default)]
pub struct Map {
    // Boxed, so that a list of small values stays small.
    entries: Box<IndexMap<String, (Value, Option<Position>), RandomState>>,
}

impl Map {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    pub(crate) fn with_capacity(entries: usize) -> Self {
        Self {
            entries: Box::new(IndexMap::with_capacity_and_hasher(
                entries,
                RandomState::default(),
            )),
        }
    }

    /// Frees unused capacity, of which thousands of small maps mostly consist.
    pub(crate) fn shrink_to_fit(&mut self) {
        self.entries.shrink_to_fit();
    }

    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.entries.get(key).map(|(value, _)| value)
    }

    pub fn get_mut(&mut self, key: &str) -> Option<&mut Value> {
        self.entries.get_mut(key).map(|(value, _)| value)
    }

    #[must_use]
    pub fn get_str(&self, key: &str) -> Option<&str> {
        self.get(key)?.as_str()
    }

    #[must_use]
    pub fn get_map(&self, key: &str) -> Option<&Map> {
        self.get(key)?.as_map()
    }

    #[must_use]
    pub fn first(&self) -> Option<(&str, &Value)> {
        self.iter().next()
    }

    /// Sets `key` without moving an existing entry. Returns the old value.
    pub fn insert(&mut self, key: impl Into<String>, value: impl Into<Value>) -> Option<Value> {
        self.entries
            .insert(key.into(), (value.into(), None))
            .map(|(old, _)| old)
    }

    /// Sets `key` as [`Map::insert`] does, with the position of the entry.
    pub fn insert_at(
        &mut self,
        key: impl Into<String>,
        value: impl Into<Value>,
        position: Position,
    ) -> Option<Value> {
        self.entries
            .insert(key.into(), (value.into(), Some(position)))
            .map(|(old, _)| old)
    }

    /// Removes `key` and returns its value; the others keep their order.
    pub fn remove(&mut self, key: &str) -> Option<Value> {
        self.entries.shift_remove(key).map(|(value, _)| value)
    }

    pub fn clear(&mut self) {
        self.entries.clear();
    }

    #[must_use]
    pub fn contains_key(&self, key: &str) -> bool {
        self.entries.contains_key(key)
    }

    #[must_use]
    pub fn position(&self, key: &str) -> Option<Position> {
        self.entries.get(key)?.1
    }

    /// Returns the map under `key`, which is inserted if the key is missing or null; `None` if the value has another type.
    pub fn get_or_insert_map(&mut self, key: &str) -> Option<&mut Map> {
        let slot = &mut self.entries.entry(key.to_owned()).or_default().0;
        if slot.is_null() {
            *slot = Value::Map(Self::new());
        }
        slot.as_map_mut()
    }

    pub fn iter(&self) -> Iter<'_> {
        Iter {
            inner: self.entries.iter(),
        }
    }

    pub fn iter_mut(&mut self) -> IterMut<'_> {
        IterMut {
            inner: self.entries.iter_mut(),
        }
    }

    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &str> + ExactSizeIterator {
        self.entries.keys().map(String::as_str)
    }

    pub fn values(&self) -> impl DoubleEndedIterator<Item = &Value> + ExactSizeIterator {
        self.entries.values().map(|(value, _)| value)
    }

    pub fn values_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut Value> + ExactSizeIterator {
        self.entries.values_mut().map(|(value, _)| value)
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub fn retain(&mut self, mut keep: impl FnMut(&str, &mut Value) -> bool) {
        self.entries.retain(|key, (value, _)| keep(key, value));
    }

    pub(crate) fn into_entries(self) -> impl Iterator<Item = (String, Value, Option<Position>)> {
        self.entries
            .into_iter()
            .map(|(key, (value, position))| (key, value, position))
    }

    /// Sorts the entries by key, bytewise.
    pub fn sort_keys(&mut self) {
        self.entries.sort_unstable_keys();
    }
}

impl PartialEq for Map {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().all(|(key, value)| other.get(key) == Some(value))
    }
}

impl fmt::Debug for Map {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<K: Into<String>, V: Into<Value>> FromIterator<(K, V)> for Map {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut map = Self::new();
        map.extend(entries);
        map
    }
}

impl<K: Into<String>, V: Into<Value>> Extend<(K, V)> for Map {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        for (key, value) in entries {
            self.insert(key, value);
        }
    }
}

impl<K: Into<String>, V: Into<Value>, const N: usize> From<[(K, V); N]> for Map {
    fn from(entries: [(K, V); N]) -> Self {
        entries.into_iter().collect()
    }
}

#[derive(Debug, Clone)]
pub struct Iter<'a> {
    inner: map::Iter<'a, String, (Value, Option<Position>)>,
}

impl<'a> Iterator for Iter<'a> {
    type Item = (&'a str, &'a Value);

    fn next(&mut self) -> Option<Self::Item> {
        self.inner.next().map(|(key, (value, _))| (key.as_str(), value))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.inner.size_hint()
    }
}

impl DoubleEndedIterator for Iter<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.inner
            .next_back()
            .map(|(key, (value, _))| (key.as_str(), value))
    }
}

impl ExactSizeIterator for Iter<'_> {}

#[derive(Debug)]
pub struct IterMut<'a> {
    inner: map::IterMut<'a, String, (Value, Option<Position>)>,
}

impl<'a> Iterator for IterMut<'a> {
    type Item = (&'a str, &'a mut Value);

    fn next(&mut self) -> Option<Self::Item> {
        self.inner.next().map(|(key, (value, _))| (key.as_str(), value))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.inner.size_hint()
    }
}

impl ExactSizeIterator for IterMut<'_> {}

#[derive(Debug)]
pub struct IntoIter {
    inner: map::IntoIter<String, (Value, Option<Position>)>,
}

impl Iterator for IntoIter {
    type Item = (String, Value);

    fn next(&mut self) -> Option<Self::Item> {
        self.inner.next().map(|(key, (value, _))| (key, value))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.inner.size_hint()
    }
}

impl ExactSizeIterator for IntoIter {}

impl IntoIterator for Map {
    type Item = (String, Value);
    type IntoIter = IntoIter;

    fn into_iter(self) -> IntoIter {
        IntoIter {
            inner: self.entries.into_iter(),
        }
    }
}

impl<'a> IntoIterator for &'a Map {
    type Item = (&'a str, &'a Value);
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

impl<'a> IntoIterator for &'a mut Map {
    type Item = (&'a str, &'a mut Value);
    type IntoIter = IterMut<'a>;

    fn into_iter(self) -> IterMut<'a> {
        self.iter_mut()
    }
}

//! Maps of nodes.

use super::{Node, Scalar, Text};
use crate::{Map, Position};

/// The entries of a map in order, in which a key may occur twice and may be any scalar.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Mapping {
    entries: Vec<Entry>,
}

/// One entry of a [`Mapping`]. Entries are equal if key and value are; positions don't count.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The position of the key in the source.
    pub position: Position,
    /// The key of the entry.
    pub key: Scalar,
    /// The value of the entry.
    pub value: Node,
}

impl Entry {
    /// Makes an entry without a position, with a string as its key.
    pub fn new(key: impl Into<Text>, value: Node) -> Self {
        Self {
            position: Position::default(),
            key: Scalar::string(key),
            value,
        }
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key && self.value == other.value
    }
}

impl Mapping {
    /// Makes an empty map.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    pub(super) fn from_map(map: &Map) -> Self {
        map.iter()
            .map(|(key, value)| Entry {
                position: map.position(key).unwrap_or_default(),
                ..Entry::new(key, Node::from_value(value))
            })
            .collect()
    }

    /// Returns the number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns true if there are no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Iterates over the keys and their values, in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&str, &Node)> + ExactSizeIterator {
        self.entries.iter().map(|entry| (&*entry.key.text, &entry.value))
    }

    /// Iterates as [`Mapping::iter`] does, with values to change.
    pub fn iter_mut(&mut self) -> impl DoubleEndedIterator<Item = (&str, &mut Node)> + ExactSizeIterator {
        self.entries
            .iter_mut()
            .map(|entry| (&*entry.key.text, &mut entry.value))
    }

    /// Returns the entries in order.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Returns the entries in order, for changes.
    pub fn entries_mut(&mut self) -> &mut Vec<Entry> {
        &mut self.entries
    }

    /// Returns the entries in order, without copying.
    #[must_use]
    pub fn into_entries(self) -> Vec<Entry> {
        self.entries
    }

    /// Iterates over the keys, in order.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &str> + ExactSizeIterator {
        self.entries.iter().map(|entry| &*entry.key.text)
    }

    /// Iterates over the values in order.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &Node> + ExactSizeIterator {
        self.entries.iter().map(|entry| &entry.value)
    }

    /// Iterates over the values in order, to change them.
    pub fn values_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut Node> + ExactSizeIterator {
        self.entries.iter_mut().map(|entry| &mut entry.value)
    }

    /// Returns the value of the first entry with this key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.iter()
            .find_map(|(name, value)| (name == key).then_some(value))
    }

    /// Returns the value of the first entry with this key, for changes.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Node> {
        self.iter_mut()
            .find_map(|(name, value)| (name == key).then_some(value))
    }

    /// Returns true if there is an entry whose key is this string, whatever its value.
    #[must_use]
    pub fn contains_key(&self, key: &str) -> bool {
        self.keys().any(|name| name == key)
    }

    /// Sets the value of the first entry with this key, which keeps its place, or appends an entry.
    pub fn set(&mut self, key: &str, value: Node) {
        match self.get_mut(key) {
            Some(slot) => *slot = value,
            None => self.push(Entry::new(key, value)),
        }
    }

    /// Appends an entry without a check for equal keys.
    pub fn push(&mut self, entry: Entry) {
        // Most maps get one or two entries more than they were read with: doubling would leave half of the memory unused.
        if self.entries.len() == self.entries.capacity() {
            self.entries.reserve_exact(self.entries.len() / 4 + 1);
        }
        self.entries.push(entry);
    }

    /// Removes all entries with this key and returns the value of the first; the others keep their order.
    pub fn remove(&mut self, key: &str) -> Option<Node> {
        let is_key = |entry: &Entry| &*entry.key.text == key;
        let first = self.entries.iter().position(is_key)?;
        let value = self.entries.remove(first).value;
        self.entries.retain(|entry| !is_key(entry));
        Some(value)
    }

    /// Keeps the entries for which `keep` is true, in their order.
    pub fn retain(&mut self, mut keep: impl FnMut(&str, &mut Node) -> bool) {
        self.entries
            .retain_mut(|entry| keep(&entry.key.text, &mut entry.value));
    }
}

impl From<Vec<Entry>> for Mapping {
    fn from(entries: Vec<Entry>) -> Self {
        Self { entries }
    }
}

impl FromIterator<Entry> for Mapping {
    fn from_iter<I: IntoIterator<Item = Entry>>(entries: I) -> Self {
        Self {
            entries: entries.into_iter().collect(),
        }
    }
}

/// Appends the entries as they come, without looking for equal keys.
impl<K: Into<Text>> FromIterator<(K, Node)> for Mapping {
    fn from_iter<I: IntoIterator<Item = (K, Node)>>(entries: I) -> Self {
        entries
            .into_iter()
            .map(|(key, value)| Entry::new(key, value))
            .collect()
    }
}

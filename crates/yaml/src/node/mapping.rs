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
    /// Of the key in the source.
    pub position: Position,
    pub key: Scalar,
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

    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&str, &Node)> + ExactSizeIterator {
        self.entries.iter().map(|entry| (&*entry.key.text, &entry.value))
    }

    pub fn iter_mut(&mut self) -> impl DoubleEndedIterator<Item = (&str, &mut Node)> + ExactSizeIterator {
        self.entries
            .iter_mut()
            .map(|entry| (&*entry.key.text, &mut entry.value))
    }

    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    pub fn entries_mut(&mut self) -> &mut Vec<Entry> {
        &mut self.entries
    }

    #[must_use]
    pub fn into_entries(self) -> Vec<Entry> {
        self.entries
    }

    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &str> + ExactSizeIterator {
        self.entries.iter().map(|entry| &*entry.key.text)
    }

    pub fn values(&self) -> impl DoubleEndedIterator<Item = &Node> + ExactSizeIterator {
        self.entries.iter().map(|entry| &entry.value)
    }

    pub fn values_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut Node> + ExactSizeIterator {
        self.entries.iter_mut().map(|entry| &mut entry.value)
    }

    /// Returns the value of the first entry with this key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.iter()
            .find_map(|(name, value)| (name == key).then_some(value))
    }

    pub fn get_mut(&mut self, key: &str) -> Option<&mut Node> {
        self.iter_mut()
            .find_map(|(name, value)| (name == key).then_some(value))
    }

    #[must_use]
    pub fn contains_key(&self, key: &str) -> bool {
        self.keys().any(|name| name == key)
    }

    /// Sets the value of the first entry with this key, or appends an entry.
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

    /// Removes all entries with this key and returns the value of the first.
    pub fn remove(&mut self, key: &str) -> Option<Node> {
        let is_key = |entry: &Entry| &*entry.key.text == key;
        let first = self.entries.iter().position(is_key)?;
        let value = self.entries.remove(first).value;
        self.entries.retain(|entry| !is_key(entry));
        Some(value)
    }

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

/// Appends the entries in order, without a check for equal keys.
impl<K: Into<Text>> FromIterator<(K, Node)> for Mapping {
    fn from_iter<I: IntoIterator<Item = (K, Node)>>(entries: I) -> Self {
        entries
            .into_iter()
            .map(|(key, value)| Entry::new(key, value))
            .collect()
    }
}

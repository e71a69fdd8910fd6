//! The types that readers can make of documents.

use crate::{Map, Position, Value, node::Text};

/// A type that documents can be read into: a [`Value`], or a type of the caller, without a detour over a value.
pub trait Build: Sized {
    /// A map in construction.
    type Map;

    /// Makes null, a boolean, a number, or a string in the notation of one of these.
    fn scalar(scalar: Value) -> Self;

    fn text(text: Text) -> Self;

    fn list(items: Vec<Self>) -> Self;

    fn map(map: Self::Map) -> Self;

    /// Takes a value apart, for merge keys.
    fn open(self) -> Opened<Self>;

    fn start(entries: usize) -> Self::Map;

    /// Sets an entry, and replaces another one with its key.
    fn insert(map: &mut Self::Map, key: Text, value: Self, at: Position);

    /// Returns the position of the entry with a key, if it is known; `None` for a missing entry.
    fn find(map: &Self::Map, key: &str) -> Option<Option<Position>>;

    fn entries(map: Self::Map) -> Vec<(Text, Self, Option<Position>)>;
}

#[derive(Debug)]
pub enum Opened<T: Build> {
    Map(T::Map),
    List(Vec<T>),
    Scalar,
}

impl Build for Value {
    type Map = Map;

    fn scalar(scalar: Value) -> Self {
        scalar
    }

    fn text(text: Text) -> Self {
        Self::String(text.into())
    }

    fn list(items: Vec<Self>) -> Self {
        Self::Seq(items)
    }

    fn map(map: Map) -> Self {
        Self::Map(map)
    }

    fn open(self) -> Opened<Self> {
        match self {
            Self::Map(map) => Opened::Map(map),
            Self::Seq(items) => Opened::List(items),
            _ => Opened::Scalar,
        }
    }

    fn start(entries: usize) -> Map {
        Map::with_capacity(entries)
    }

    fn insert(map: &mut Map, key: Text, value: Self, at: Position) {
        map.insert_at(String::from(key), value, at);
    }

    fn find(map: &Map, key: &str) -> Option<Option<Position>> {
        map.contains_key(key).then(|| map.position(key))
    }

    fn entries(map: Map) -> Vec<(Text, Self, Option<Position>)> {
        let entries = map.into_entries();
        entries.map(|(key, value, at)| (key.into(), value, at)).collect()
    }
}

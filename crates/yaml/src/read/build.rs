//! The types that readers can make of documents.

use crate::{Map, Position, Value, node::Text};

/// A type that documents can be read into: a [`Value`], or the type that the caller works with, without a detour over one.
pub trait Build: Sized {
    /// A map that is being made.
    type Map;

    /// Null, a truth value or a number, or a text that isn't written like that.
    fn scalar(scalar: Value) -> Self;

    /// A text.
    fn text(text: Text) -> Self;

    /// A list.
    fn list(items: Vec<Self>) -> Self;

    /// A map that is complete.
    fn map(map: Self::Map) -> Self;

    /// The opposite of all these, for merge keys.
    fn open(self) -> Opened<Self>;

    /// A map that will have about so many entries.
    fn start(entries: usize) -> Self::Map;

    /// Puts an entry into a map, in place of another one with its key.
    fn insert(map: &mut Self::Map, key: Text, value: Self, at: Position);

    /// Returns the position of the entry with a key, if that is known; `None` if there is no such entry.
    fn find(map: &Self::Map, key: &str) -> Option<Option<Position>>;

    /// The entries of a map.
    fn entries(map: Self::Map) -> Vec<(Text, Self, Option<Position>)>;
}

/// The content of something that was built.
#[derive(Debug)]
pub enum Opened<T: Build> {
    /// A map.
    Map(T::Map),
    /// A list.
    List(Vec<T>),
    /// Anything else.
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

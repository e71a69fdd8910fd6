//! From composed nodes to values: the meaning of scalars and keys, merge keys, and keys that are set twice.

use super::{
    build::{Build, Opened},
    dialect::{Dialect, Duplicates},
};
use crate::{
    Error, Position, Problem, Value,
    node::{Content, Entry, Mapping, Node, Scalar},
};

/// Constructs a value of a node. Composed nodes are never too deep for the recursion.
pub(super) fn value<T: Build>(node: Node, dialect: &Dialect) -> Result<T, Error> {
    match node.content {
        Content::Scalar(text) => scalar(text, node.position, dialect),
        Content::Seq(items) => {
            let mut values = Vec::with_capacity(items.len());
            for item in items {
                values.push(value(item, dialect)?);
            }
            Ok(T::list(values))
        }
        Content::Map(mapping) => map::<T>(mapping, dialect).map(T::map),
    }
}

fn scalar<T: Build>(scalar: Scalar, at: Position, dialect: &Dialect) -> Result<T, Error> {
    match (dialect.scalar)(&scalar).map_err(|problem| error(at, problem))? {
        None => Ok(T::text(scalar.text)),
        Some(Value::Float(float)) if !dialect.not_finite && !float.is_finite() => {
            let name = if float.is_nan() {
                "NaN"
            } else if float > 0.0 {
                "+Inf"
            } else {
                "-Inf"
            };
            Err(error(at, Problem::NotFinite(name)))
        }
        Some(value) => Ok(T::scalar(value)),
    }
}

fn map<T: Build>(mapping: Mapping, dialect: &Dialect) -> Result<T::Map, Error> {
    let mut own = T::start(mapping.len());
    let mut merged = None;
    for entry in mapping.into_entries() {
        let Entry {
            position: at,
            key,
            value: node,
        } = entry;
        if key.is_merge() {
            let from = value(node, dialect)?;
            let into = match dialect.duplicates {
                Duplicates::InOrder => &mut own,
                _ => merged.get_or_insert_with(|| T::start(0)),
            };
            merge::<T>(into, from, at, dialect)?;
            continue;
        }
        let key = (dialect.key)(key).map_err(|problem| error(at, problem))?;
        let value = value(node, dialect)?;
        refuse_duplicate::<T>(&own, &key, at, dialect)?;
        T::insert(&mut own, key, value, at);
    }
    match merged {
        Some(merged) => join::<T>(merged, own, dialect),
        None => Ok(own),
    }
}

/// Adds the value of a merge key to `merged`, where an earlier map of a list wins over a later one.
fn merge<T: Build>(merged: &mut T::Map, from: T, at: Position, dialect: &Dialect) -> Result<(), Error> {
    let refused = || error(at, Problem::Merge);
    let maps = match from.open() {
        Opened::Map(map) => vec![map],
        Opened::List(items) => items
            .into_iter()
            .map(|item| match item.open() {
                Opened::Map(map) => Ok(map),
                _ => Err(refused()),
            })
            .collect::<Result<_, _>>()?,
        Opened::Scalar => return Err(refused()),
    };
    for map in maps.into_iter().rev() {
        for (key, value, position) in T::entries(map) {
            refuse_overlap::<T>(merged, &key, at, dialect)?;
            T::insert(merged, key, value, position.unwrap_or(at));
        }
    }
    Ok(())
}

/// Puts the merged entries first, overridden by the map's own.
fn join<T: Build>(mut merged: T::Map, own: T::Map, dialect: &Dialect) -> Result<T::Map, Error> {
    for (key, value, position) in T::entries(own) {
        let position = position.unwrap_or_default();
        refuse_overlap::<T>(&merged, &key, position, dialect)?;
        T::insert(&mut merged, key, value, position);
    }
    Ok(merged)
}

fn refuse_overlap<T: Build>(map: &T::Map, key: &str, at: Position, dialect: &Dialect) -> Result<(), Error> {
    if dialect.merge_overlaps {
        Ok(())
    } else {
        refuse_duplicate::<T>(map, key, at, dialect)
    }
}

fn refuse_duplicate<T: Build>(map: &T::Map, key: &str, at: Position, dialect: &Dialect) -> Result<(), Error> {
    if matches!(dialect.duplicates, Duplicates::LastWins | Duplicates::InOrder) {
        return Ok(());
    }
    let Some(first) = T::find(map, key) else {
        return Ok(());
    };
    let key = key.to_owned();
    let problem = match dialect.duplicates {
        Duplicates::RefusedByLine => Problem::KeyDefined {
            key,
            line: first.unwrap_or_default().line,
        },
        _ => Problem::DuplicateKey { key, first },
    };
    Err(error(at, problem))
}

/// Makes an error, with the position unless it is the default.
fn error(at: Position, problem: Problem) -> Error {
    Error::new((at != Position::default()).then_some(at), problem)
}

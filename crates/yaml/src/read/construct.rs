//! From composed nodes to values: what scalars and keys mean, merge keys, and keys that are set twice.

use super::dialect::{Dialect, Duplicates};
use crate::{
    Error, Map, Position, Problem, Value,
    node::{Content, Entry, Mapping, Node, Scalar},
};

/// The value of a node. Composed nodes are never too deep for the recursion.
pub(super) fn value(node: Node, dialect: &Dialect) -> Result<Value, Error> {
    match node.content {
        Content::Scalar(text) => scalar(text, node.position, dialect),
        Content::Seq(items) => {
            let mut values = Vec::with_capacity(items.len());
            for item in items {
                values.push(value(item, dialect)?);
            }
            Ok(Value::Seq(values))
        }
        Content::Map(mapping) => map(mapping, dialect).map(Value::Map),
    }
}

fn scalar(scalar: Scalar, at: Position, dialect: &Dialect) -> Result<Value, Error> {
    match (dialect.scalar)(scalar).map_err(|problem| error(at, problem))? {
        Value::Float(float) if !dialect.not_finite && !float.is_finite() => {
            let name = if float.is_nan() {
                "NaN"
            } else if float > 0.0 {
                "+Inf"
            } else {
                "-Inf"
            };
            Err(error(at, Problem::NotFinite(name)))
        }
        value => Ok(value),
    }
}

fn map(mapping: Mapping, dialect: &Dialect) -> Result<Map, Error> {
    let mut own = Map::with_capacity(mapping.len());
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
                _ => merged.get_or_insert_default(),
            };
            merge(into, from, at, dialect)?;
            continue;
        }
        let key = (dialect.key)(key).map_err(|problem| error(at, problem))?;
        let value = value(node, dialect)?;
        refuse_duplicate(&own, &key, at, dialect)?;
        own.insert_at(key, value, at);
    }
    match merged {
        Some(merged) => join(merged, own, dialect),
        None => Ok(own),
    }
}

/// Adds what a merge key names to `merged`, where an earlier map of a list wins over a later one.
fn merge(merged: &mut Map, from: Value, at: Position, dialect: &Dialect) -> Result<(), Error> {
    let refused = || error(at, Problem::Merge);
    let maps = match from {
        Value::Map(map) => vec![map],
        Value::Seq(items) => items
            .into_iter()
            .map(|item| {
                if let Value::Map(map) = item {
                    Ok(map)
                } else {
                    Err(refused())
                }
            })
            .collect::<Result<_, _>>()?,
        _ => return Err(refused()),
    };
    for map in maps.into_iter().rev() {
        for (key, value, position) in map.into_entries() {
            refuse_overlap(merged, &key, at, dialect)?;
            merged.insert_at(key, value, position.unwrap_or(at));
        }
    }
    Ok(())
}

/// The merged entries first, overridden by the map's own.
fn join(mut merged: Map, own: Map, dialect: &Dialect) -> Result<Map, Error> {
    for (key, value, position) in own.into_entries() {
        let position = position.unwrap_or_default();
        refuse_overlap(&merged, &key, position, dialect)?;
        merged.insert_at(key, value, position);
    }
    Ok(merged)
}

fn refuse_overlap(map: &Map, key: &str, at: Position, dialect: &Dialect) -> Result<(), Error> {
    if dialect.merge_overlaps {
        Ok(())
    } else {
        refuse_duplicate(map, key, at, dialect)
    }
}

fn refuse_duplicate(map: &Map, key: &str, at: Position, dialect: &Dialect) -> Result<(), Error> {
    let refused = !matches!(dialect.duplicates, Duplicates::LastWins | Duplicates::InOrder);
    if !refused || !map.contains_key(key) {
        return Ok(());
    }
    let (key, first) = (key.to_owned(), map.position(key));
    let problem = match dialect.duplicates {
        Duplicates::RefusedByLine => Problem::KeyDefined {
            key,
            line: first.unwrap_or_default().line,
        },
        _ => Problem::DuplicateKey { key, first },
    };
    Err(error(at, problem))
}

/// An error at a place, when the node has one.
fn error(at: Position, problem: Problem) -> Error {
    Error::new((at != Position::default()).then_some(at), problem)
}

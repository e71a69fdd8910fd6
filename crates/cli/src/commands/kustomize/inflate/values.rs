//! Merges `valuesInline` and a values file as kustomize does.

use bytes::Bytes;
use tree::Budget;
use yaml::{Map, Node, Value};

/// Formats values as a values file for Helm.
pub(super) fn to_file(values: &Map) -> Bytes {
    yaml::print::json(&Value::Map(values.clone())).into()
}

#[derive(Debug, thiserror::Error)]
pub(super) enum MergeError {
    #[error(transparent)]
    Yaml(#[from] yaml::Error),
    #[error("values must be a map")]
    NotAMap,
    #[error("could not merge values: \"{key}\" is {first} in one place and {second} in the other")]
    TypeMismatch {
        key: String,
        first: &'static str,
        second: &'static str,
    },
}

/// Merges a values file with the inline values; `inline_wins` decides their precedence.
pub(super) fn merged(
    file: &[u8],
    inline: &Map,
    inline_wins: bool,
    budget: &Budget,
) -> Result<Bytes, MergeError> {
    let node = yaml::read::node(file, budget)?;
    let mut node = node.unwrap_or_else(Node::map);
    if inline_wins {
        drop_empty(&mut node);
    }
    let of_file = match node.into_value()? {
        Value::Map(map) => map,
        Value::Null => Map::new(),
        _ => return Err(MergeError::NotAMap),
    };
    let (mut below, above) = if inline_wins {
        (of_file, inline.clone())
    } else {
        (inline.clone(), of_file)
    };
    merge(&mut below, &above)?;
    Ok(to_file(&below))
}

/// Drops entries without a value; explicit nulls stay.
fn drop_empty(node: &mut Node) {
    let Some(map) = node.as_map_mut() else { return };
    map.retain(|_, value| {
        !value
            .as_scalar()
            .is_some_and(|scalar| scalar.is_null() && scalar.text.is_empty())
    });
    map.values_mut().for_each(drop_empty);
}

/// Merges `above` into `below`: maps recursively, nulls remove entries, other values replace.
fn merge(below: &mut Map, above: &Map) -> Result<(), MergeError> {
    for (key, value) in above {
        match (below.get_mut(key), value) {
            (_, Value::Null) => {
                below.remove(key);
            }
            (Some(Value::Map(below)), Value::Map(above)) => merge(below, above)?,
            (None | Some(Value::Null), value) => {
                below.insert(key, without_nulls(value));
            }
            (Some(old), value) if kind(old) != kind(value) => {
                return Err(MergeError::TypeMismatch {
                    key: key.to_owned(),
                    first: kind(old),
                    second: kind(value),
                });
            }
            (Some(old), value) => *old = value.clone(),
        }
    }
    Ok(())
}

/// Returns a copy without null entries.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Map(map) => {
            let mut values = Map::new();
            for (key, value) in map.iter().filter(|(_, value)| !value.is_null()) {
                values.insert(key, without_nulls(value));
            }
            Value::Map(values)
        }
        other => other.clone(),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Map(_) => "a map",
        Value::Seq(_) => "a list",
        _ => "a scalar",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both(file: &str, inline: &str, over: bool) -> Result<String, String> {
        let budget = Budget::default();
        let inline = yaml::read::kustomize(inline, &budget).unwrap().value;
        let merged = merged(file.as_bytes(), inline.as_map().unwrap(), over, &budget);
        let merged = merged.map_err(|error| error.to_string())?;
        Ok(String::from_utf8(merged.to_vec())
            .unwrap()
            .split_whitespace()
            .collect())
    }

    #[test]
    fn precedence_is_selectable_and_null_removes() {
        let file = "a: {x: 1, y: 2}\nb: [1]\nc: red\nd:\ne: null\nf: yes\n";
        let inline = "{a: {x: 3, z: {q: null}}, b: [2], c: null, g: new}";
        assert_eq!(
            both(file, inline, true).unwrap(),
            r#"{"a":{"x":3,"y":2,"z":{}},"b":[2],"e":null,"f":"yes","g":"new"}"#
        );
        assert_eq!(
            both(file, inline, false).unwrap(),
            r#"{"a":{"x":1,"z":{"q":null},"y":2},"b":[1],"c":"red","g":"new","f":"yes"}"#
        );
        assert_eq!(both("", "{a: 1}", true).unwrap(), r#"{"a":1}"#);
        let error = both("a: 1\n", "{a: {}}", true).unwrap_err();
        assert!(
            error.contains("\"a\" is a scalar in one place and a map"),
            "{error}"
        );
        assert!(
            both("[1]\n", "{a: 1}", true)
                .unwrap_err()
                .contains("must be a map")
        );
    }
}

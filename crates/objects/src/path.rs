//! Paths of fields, and their canonical form.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use yaml::Value;

/// One step into a value.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Key {
    /// The name is shared by all paths through the field: it may be long, and they may be many.
    Field(Arc<str>),
    Index(usize),
}

impl Key {
    /// Returns the bytes that the key takes in a path and in its canonical form.
    pub(crate) fn bytes(&self) -> usize {
        let name = match self {
            Self::Field(name) => name.len(),
            Self::Index(_) => 0,
        };
        size_of::<Self>() + name
    }
}

pub type Path = Vec<Key>;

impl From<&str> for Key {
    fn from(name: &str) -> Self {
        Self::Field(name.into())
    }
}

impl From<usize> for Key {
    fn from(index: usize) -> Self {
        Self::Index(index)
    }
}

/// Returns the canonical form of a path, as in `spec.ports[0].port` or `metadata.labels["a/b"]`.
#[must_use]
pub fn canonical(path: &[Key]) -> String {
    let mut text = String::new();
    for key in path {
        push_key(&mut text, key);
    }
    text
}

fn push_key(text: &mut String, key: &Key) {
    match key {
        Key::Index(index) => text.push_str(&format!("[{index}]")),
        Key::Field(name) if is_identifier(name) => {
            if !text.is_empty() {
                text.push('.');
            }
            text.push_str(name);
        }
        Key::Field(name) => {
            if text.is_empty() {
                text.push('$');
            }
            let quote = if name.contains('"') { '\'' } else { '"' };
            text.push_str(&format!("[{quote}{name}{quote}]"));
        }
    }
}

/// At least two characters, none of them special: a single letter is written in brackets.
fn is_identifier(name: &str) -> bool {
    name.len() >= 2
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && !name.starts_with(|first: char| first.is_ascii_digit())
}

#[must_use]
pub fn get<'a>(value: &'a Value, path: &[Key]) -> Option<&'a Value> {
    path.iter().try_fold(value, |value, key| match key {
        Key::Field(name) => value.get(name),
        Key::Index(index) => value.as_seq()?.get(*index),
    })
}

fn get_mut<'a>(value: &'a mut Value, path: &[Key]) -> Option<&'a mut Value> {
    path.iter().try_fold(value, |value, key| match key {
        Key::Field(name) => value.get_mut(name),
        Key::Index(index) => value.as_seq_mut()?.get_mut(*index),
    })
}

/// Replaces the value at a path, if there is one.
pub fn set(value: &mut Value, path: &[Key], new: Value) {
    if let Some(old) = get_mut(value, path) {
        *old = new;
    }
}

/// Removes the values at the paths; missing ones are skipped.
pub fn remove_all(value: &mut Value, paths: Vec<Path>) {
    let mut of_parents: BTreeMap<Path, BTreeSet<Key>> = BTreeMap::new();
    for mut path in paths {
        if let Some(last) = path.pop() {
            of_parents.entry(path).or_default().insert(last);
        }
    }
    // From the end, so that the remaining indexes stay valid.
    for (parent, keys) in of_parents.iter().rev() {
        match get_mut(value, parent) {
            Some(Value::Map(map)) => match keys.first() {
                Some(Key::Field(name)) if keys.len() == 1 => drop(map.remove(name)),
                _ => map.retain(|name, _| !keys.contains(&Key::from(name))),
            },
            Some(Value::Seq(items)) => {
                let mut index = 0;
                items.retain(|_| {
                    index += 1;
                    !keys.contains(&Key::Index(index - 1))
                });
            }
            _ => {}
        }
    }
}

/// Returns the paths of all leaves: scalars, and maps and lists without members.
#[must_use]
pub fn leaves(value: &Value) -> Vec<Path> {
    let mut found = Vec::new();
    let collected: Result<(), std::convert::Infallible> = each_leaf(value, &mut |path, _| {
        found.push(path.to_vec());
        Ok(())
    });
    let Ok(()) = collected;
    found
}

/// Calls `visit` with the path of each leaf and its canonical form, until the first error. It holds one path at a time.
pub fn each_leaf<E>(value: &Value, visit: &mut impl FnMut(&[Key], &str) -> Result<(), E>) -> Result<(), E> {
    visit_leaves(value, &mut Vec::new(), &mut String::new(), visit)
}

fn visit_leaves<E>(
    value: &Value,
    at: &mut Path,
    text: &mut String,
    visit: &mut impl FnMut(&[Key], &str) -> Result<(), E>,
) -> Result<(), E> {
    let mut member = |key: Key, member: &Value| {
        let length = text.len();
        push_key(text, &key);
        at.push(key);
        let visited = visit_leaves(member, at, text, visit);
        at.pop();
        text.truncate(length);
        visited
    };
    match value {
        Value::Map(map) if !map.is_empty() => {
            let mut members = map.iter();
            members.try_for_each(|(name, value)| member(Key::from(name), value))
        }
        Value::Seq(items) if !items.is_empty() => {
            let mut members = items.iter().enumerate();
            members.try_for_each(|(index, value)| member(Key::Index(index), value))
        }
        _ => visit(at, text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn keys(path: &serde_json::Value) -> Path {
        path.as_array()
            .unwrap()
            .iter()
            .map(|key| {
                key.as_u64()
                    .map_or_else(|| Key::from(key.as_str().unwrap()), |i| Key::Index(i as usize))
            })
            .collect()
    }

    #[test]
    fn canonical_quotes_special_names() {
        for (path, expected) in [
            (
                json!(["metadata", "labels", "example.com/tag-0"]),
                r#"metadata.labels["example.com/tag-0"]"#,
            ),
            (json!(["a", "spec"]), r#"$["a"].spec"#),
            (json!(["spec", "ports", 0, "port"]), "spec.ports[0].port"),
            (json!(["data", "a"]), r#"data["a"]"#),
            (json!(["data", "1a"]), r#"data["1a"]"#),
            (json!(["data", "a\"b"]), "data['a\"b']"),
            (json!(["_x", "y_2"]), "_x.y_2"),
            (json!([]), ""),
        ] {
            assert_eq!(canonical(&keys(&path)), expected);
        }
    }

    #[test]
    fn remove_all_removes_several_items_of_one_list() {
        let mut value = Value::from_json(json!({"l": [0, 1, 2, 3], "m": {"a": 1, "b": 2}}));
        let paths = [
            json!(["l", 0]),
            json!(["l", 2]),
            json!(["l", 9]),
            json!(["m", "a"]),
            json!(["x", "y"]),
            json!([]),
        ];
        remove_all(&mut value, paths.iter().map(keys).collect());
        assert_eq!(value, Value::from_json(json!({"l": [1, 3], "m": {"b": 2}})));
    }

    #[test]
    fn leaves_returns_all_leaf_paths() {
        let value = Value::from_json(json!({"aa": {"bb": 1, "cc": {}}, "dd": [[], {"ee": null}]}));
        let found: Vec<_> = leaves(&value).iter().map(|path| canonical(path)).collect();
        assert_eq!(found, ["aa.bb", "aa.cc", "dd[0]", "dd[1].ee"]);
    }
}

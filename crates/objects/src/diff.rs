//! Comparison of two states of an object.
//!
//! Maps are compared by key. Lists are multisets: their order does not count, and items without an equal on the other side are
//! compared by position.

use std::{collections::HashMap, fmt::Write as _};

use yaml::{Map, Value};

use crate::{
    path::{self, Key, Path},
    secrets,
    unified::unified_diff,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChangeKind {
    Delete,
    Insert,
    Update,
}

impl ChangeKind {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Delete => "delete",
            Self::Insert => "insert",
            Self::Update => "update",
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    pub kind: ChangeKind,
    pub path: Path,
    /// The value before; absent if it was missing.
    pub old: Option<Value>,
    /// The value after; absent if it is missing.
    pub new: Option<Value>,
    pub masked: bool,
}

impl Change {
    #[must_use]
    pub fn json_path(&self) -> String {
        path::canonical(&self.path)
    }

    /// Formats the change: deleted lines begin with `-`, inserted ones with `+`.
    #[must_use]
    pub fn unified(&self) -> String {
        let displayed = |value: &Value| match self.masked {
            true => displayed(&obfuscated(value)),
            false => displayed(value),
        };
        let lines = |sign: &str, text: &str| format!("{sign}{}", text.replace('\n', &format!("\n{sign}")));
        match (&self.old, &self.new) {
            (Some(old), Some(new)) => {
                let (old, new) = (displayed(old), displayed(new));
                if old.contains('\n') || new.contains('\n') {
                    unified_diff(&old, &new)
                } else {
                    format!("-{old}\n+{new}")
                }
            }
            (Some(old), None) => lines("-", &displayed(old)),
            (None, Some(new)) => lines("+", &displayed(new)),
            (None, None) => String::new(),
        }
    }

    /// Returns the form of results.
    #[must_use]
    pub fn to_value(&self) -> Value {
        let mut map = Map::new();
        map.insert("type", self.kind.as_str());
        map.insert("jsonPath", self.json_path());
        if let Some(old) = &self.old {
            map.insert("oldValue", old.clone());
        }
        if let Some(new) = &self.new {
            map.insert("newValue", new.clone());
        }
        map.insert("unifiedDiff", self.unified());
        Value::Map(map)
    }
}

/// Replaces each masked value by its mark in results, and keeps the keys of maps.
fn obfuscated(value: &Value) -> Value {
    match value {
        Value::Null => Value::Null,
        Value::Map(map) => {
            let mut marked = Map::new();
            for (key, value) in map {
                marked.insert(key, obfuscated(value));
            }
            Value::Map(marked)
        }
        _ => Value::from(format!("{} (obfuscated)", secrets::MASK)),
    }
}

/// Formats a value as Go does: numbers are floats.
fn displayed(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Map(_) | Value::Seq(_) => yaml::print::goyaml(value).trim_end().to_owned(),
        other => match other.as_f64() {
            Some(number) => go::strconv::format_float(number, 'g', None),
            None => other.as_bool().unwrap_or_default().to_string(),
        },
    }
}

/// Returns the changes from `old` to `new`, both normalised, ordered by path.
#[must_use]
pub fn changes(old: &Value, new: &Value) -> Vec<Change> {
    let mut found = Vec::new();
    compare(&mut Path::new(), old, new, &mut found);
    found.sort_by_cached_key(|change| (change.json_path(), change.kind));
    found
}

fn compare(at: &mut Path, old: &Value, new: &Value, found: &mut Vec<Change>) {
    match (old, new) {
        (Value::Map(old), Value::Map(new)) => compare_maps(at, old, new, found),
        (Value::Seq(old), Value::Seq(new)) => compare_lists(at, old, new, found),
        _ if fingerprint(old) == fingerprint(new) => {}
        _ => found.push(Change {
            kind: ChangeKind::Update,
            path: at.clone(),
            old: Some(old.clone()),
            new: Some(new.clone()),
            masked: false,
        }),
    }
}

/// Compares the values of one key, at least one of which exists.
fn compare_at(at: &mut Path, key: Key, old: Option<&Value>, new: Option<&Value>, found: &mut Vec<Change>) {
    at.push(key);
    match (old, new) {
        (Some(old), Some(new)) => compare(at, old, new, found),
        (Some(old), None) => {
            found.push(Change {
                kind: ChangeKind::Delete,
                path: at.clone(),
                old: Some(old.clone()),
                new: None,
                masked: false,
            });
        }
        (None, Some(new)) => {
            found.push(Change {
                kind: ChangeKind::Insert,
                path: at.clone(),
                old: None,
                new: Some(new.clone()),
                masked: false,
            });
        }
        (None, None) => {}
    }
    at.pop();
}

fn compare_maps(at: &mut Path, old: &Map, new: &Map, found: &mut Vec<Change>) {
    for (name, value) in old {
        compare_at(at, Key::from(name), Some(value), new.get(name), found);
    }
    for (name, value) in new.iter().filter(|(name, _)| !old.contains_key(name)) {
        compare_at(at, Key::from(name), None, Some(value), found);
    }
}

fn compare_lists(at: &mut Path, old: &[Value], new: &[Value], found: &mut Vec<Change>) {
    let (old_left, new_left) = unmatched(old, new);
    for index in 0..old.len().max(new.len()) {
        let of = |list: &'_ [Value], left: &[bool]| match left.get(index) {
            Some(true) => list.get(index).cloned(),
            _ => None,
        };
        compare_at(
            at,
            Key::Index(index),
            of(old, &old_left).as_ref(),
            of(new, &new_left).as_ref(),
            found,
        );
    }
}

/// Returns a flag for each item of both lists: true if it has no equal in the other list.
fn unmatched(old: &[Value], new: &[Value]) -> (Vec<bool>, Vec<bool>) {
    let mut available: HashMap<String, Vec<usize>> = HashMap::new();
    for (index, item) in new.iter().enumerate().rev() {
        available.entry(fingerprint(item)).or_default().push(index);
    }
    let mut new_left = vec![true; new.len()];
    let old_left = old
        .iter()
        .map(
            |item| match available.get_mut(&fingerprint(item)).and_then(Vec::pop) {
                Some(index) => {
                    if let Some(left) = new_left.get_mut(index) {
                        *left = false;
                    }
                    false
                }
                None => true,
            },
        )
        .collect();
    (old_left, new_left)
}

/// Returns a string that is equal for exactly the values that count as equal.
fn fingerprint(value: &Value) -> String {
    match value {
        Value::Null => "~".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::UInt(value) => value.to_string(),
        Value::Float(value) => value.to_string(),
        Value::String(text) => format!("{text:?}"),
        Value::Seq(items) => {
            let mut items: Vec<_> = items.iter().map(fingerprint).collect();
            items.sort_unstable();
            format!("[{}]", items.join(","))
        }
        Value::Map(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_unstable_by_key(|(name, _)| *name);
            let mut text = String::from("{");
            for (name, value) in entries {
                let _ = write!(text, "{name:?}:{},", fingerprint(value));
            }
            text.push('}');
            text
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value as Json, json};

    #[track_caller]
    fn check(old: Json, new: Json, expected: &[&str]) {
        let found: Vec<_> = changes(&Value::from_json(old), &Value::from_json(new))
            .iter()
            .map(|change| {
                let value = |value: &Option<Value>| {
                    value
                        .as_ref()
                        .map_or_else(|| "-".to_owned(), |v| format!("{v:?}"))
                };
                format!(
                    "{} {} {} {}",
                    change.kind.as_str(),
                    change.json_path(),
                    value(&change.old),
                    value(&change.new)
                )
            })
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn changes_compares_maps_by_key() {
        check(json!({"aa": 1}), json!({"aa": 1}), &[]);
        check(
            json!({"aa": 1, "bb": {"cc": 1}}),
            json!({"aa": 2, "dd": {}}),
            &["update aa 1 2", r#"delete bb {"cc": 1} -"#, "insert dd - {}"],
        );
        check(json!({"aa": null}), json!({}), &["delete aa null -"]);
        check(
            json!({"aa": {"bb": 1}}),
            json!({"aa": [1]}),
            &[r#"update aa {"bb": 1} [1]"#],
        );
        check(json!({"aa": 1}), json!({"aa": "1"}), &[r#"update aa 1 "1""#]);
    }

    #[test]
    fn lists_are_multisets() {
        check(json!([1, 2, 3]), json!([3, 1, 2]), &[]);
        check(json!([1, 2, 3]), json!([1, 3]), &["delete [1] 2 -"]);
        check(
            json!([1, 2, 3]),
            json!([3, 9]),
            &["delete [0] 1 -", "update [1] 2 9"],
        );
        check(json!([1, 1]), json!([1]), &["delete [1] 1 -"]);
        check(
            json!([{"k": "x"}, {"k": "y"}, {"k": "z"}]),
            json!([{"k": "q"}, {"k": "y"}]),
            &[r#"update [0]["k"] "x" "q""#, r#"delete [2] {"k": "z"} -"#],
        );
        check(
            json!([{"k": "x", "v": 1}, {"k": "y", "v": 2}]),
            json!([{"k": "y", "v": 9}, {"k": "x", "v": 1}]),
            &[
                r#"insert [0] - {"k": "y", "v": 9}"#,
                r#"delete [1] {"k": "y", "v": 2} -"#,
            ],
        );
        check(
            json!([[1, 2], {"aa": [3, 4]}]),
            json!([{"aa": [4, 3]}, [2, 1]]),
            &[],
        );
    }

    #[test]
    fn changes_of_long_lists_take_no_square_time() {
        let list: Vec<u32> = (0..50_000).collect();
        let mut other = list.clone();
        other.reverse();
        check(json!(list), json!(other), &[]);
    }

    #[test]
    fn unified_formats_values() {
        for (old, new, expected) in [
            (json!({"aa": 1}), json!({"aa": 2}), "-1\n+2"),
            (
                json!({"aa": 1_234_567}),
                json!({"aa": true}),
                "-1.234567e+06\n+true",
            ),
            (json!({"aa": null}), json!({"aa": 100_000}), "-<nil>\n+100000"),
            (json!({"aa": "x\ny"}), json!({}), "-x\n-y"),
            (
                json!({}),
                json!({"aa": {"bb": 1, "cc": ["d"]}}),
                "+bb: 1\n+cc:\n+- d",
            ),
            (
                json!({"aa": "l1\nl2\n"}),
                json!({"aa": "l1\nl3\n"}),
                "@@ -1,2 +1,2 @@\n l1\n-l2\n+l3\n",
            ),
        ] {
            let found = changes(&Value::from_json(old), &Value::from_json(new));
            assert_eq!(found[0].unified(), expected);
        }
    }
}

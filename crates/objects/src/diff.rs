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

/// Bytes of the paths of an object's changes. Each path repeats the keys above its change, so one long key above many changes would
/// take many times the size of the object.
const PATHS_BYTES: usize = 8 << 20;

/// Returns the changes from `old` to `new`, both normalised, ordered by path. If their paths take more than [`PATHS_BYTES`], the changes
/// are whole top-level fields.
#[must_use]
pub fn changes(old: &Value, new: &Value) -> Vec<Change> {
    let mut comparison = Comparison::default();
    comparison.values(old, new);
    let mut found = match comparison.path_bytes > PATHS_BYTES {
        true => whole_fields(old, new),
        false => comparison.found,
    };
    found.sort_by_cached_key(|change| (change.json_path(), change.kind));
    found
}

/// Returns a change for each top-level field that differs.
fn whole_fields(old: &Value, new: &Value) -> Vec<Change> {
    let mut comparison = Comparison::default();
    match (old, new) {
        (Value::Map(old), Value::Map(new)) => {
            comparison.entries(old, new, |comparison, old, new| {
                if old.map(fingerprint) != new.map(fingerprint) {
                    comparison.push_whole(old, new);
                }
            });
        }
        _ => comparison.push_whole(Some(old), Some(new)),
    }
    comparison.found
}

#[derive(Default)]
struct Comparison {
    at: Path,
    found: Vec<Change>,
    /// Bytes of the paths of all changes, also of those that were not stored because of it.
    path_bytes: usize,
}

impl Comparison {
    fn values(&mut self, old: &Value, new: &Value) {
        match (old, new) {
            (Value::Map(old), Value::Map(new)) => self.entries(old, new, Self::options),
            (Value::Seq(old), Value::Seq(new)) => self.lists(old, new),
            _ if fingerprint(old) == fingerprint(new) => {}
            _ => self.push(Some(old), Some(new)),
        }
    }

    fn options(&mut self, old: Option<&Value>, new: Option<&Value>) {
        match (old, new) {
            (Some(old), Some(new)) => self.values(old, new),
            (None, None) => {}
            _ => self.push(old, new),
        }
    }

    /// Stores the change at the present path, unless the paths are too long already.
    fn push(&mut self, old: Option<&Value>, new: Option<&Value>) {
        self.path_bytes += self.at.iter().map(Key::bytes).sum::<usize>();
        if self.path_bytes <= PATHS_BYTES {
            self.push_whole(old, new);
        }
    }

    fn push_whole(&mut self, old: Option<&Value>, new: Option<&Value>) {
        let kind = match (old, new) {
            (_, None) => ChangeKind::Delete,
            (None, Some(_)) => ChangeKind::Insert,
            (Some(_), Some(_)) => ChangeKind::Update,
        };
        self.found.push(Change {
            kind,
            path: self.at.clone(),
            old: old.cloned(),
            new: new.cloned(),
            masked: false,
        });
    }

    /// Compares the values of one key.
    fn at(
        &mut self,
        key: Key,
        old: Option<&Value>,
        new: Option<&Value>,
        compare: impl Fn(&mut Self, Option<&Value>, Option<&Value>),
    ) {
        self.at.push(key);
        compare(self, old, new);
        self.at.pop();
    }

    fn entries(&mut self, old: &Map, new: &Map, compare: impl Fn(&mut Self, Option<&Value>, Option<&Value>)) {
        for (name, value) in old {
            self.at(Key::from(name), Some(value), new.get(name), &compare);
        }
        for (name, value) in new.iter().filter(|(name, _)| !old.contains_key(name)) {
            self.at(Key::from(name), None, Some(value), &compare);
        }
    }

    fn lists(&mut self, old: &[Value], new: &[Value]) {
        let (old_left, new_left) = unmatched(old, new);
        for index in 0..old.len().max(new.len()) {
            let differing = |left: &[bool]| left.get(index).copied().unwrap_or_default();
            let old = old.get(index).filter(|_| differing(&old_left));
            let new = new.get(index).filter(|_| differing(&new_left));
            self.at(Key::Index(index), old, new, Self::options);
        }
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
    fn long_key_above_many_changes_is_one_change() {
        let key = "k".repeat(100_000);
        let object = |value: u32| {
            let fields: serde_json::Map<String, Json> = (0..1000)
                .map(|index| (format!("a{index}"), json!(value)))
                .collect();
            Value::from_json(json!({ "spec": { &key: fields }, "kind": "A" }))
        };
        let (old, new) = (object(1), object(2));
        let found = changes(&old, &new);
        let paths: Vec<String> = found.iter().map(Change::json_path).collect();
        assert_eq!(paths, ["spec"]);
        assert_eq!(found[0].new.as_ref(), new.get("spec"));
        let few = changes(
            &Value::from_json(json!({ &key: { "aa": 1 } })),
            &Value::from_json(json!({ &key: {} })),
        );
        assert_eq!(few[0].path.len(), 2);
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

//! Helm's validation of the metadata in the entries of an index.

use std::collections::BTreeSet;

use yaml::{Map, Value};

/// Returns true if Helm keeps an entry of an index. Its version is checked elsewhere, where entries are sorted.
pub(super) fn is_valid(entry: &Map) -> bool {
    is_name(&super::text(entry, "name"))
        && matches!(
            super::text(entry, "type").as_str(),
            "" | "application" | "library"
        )
        && items(entry, "maintainers").all(|item| item.as_map().is_some())
        && has_valid_dependencies(entry)
}

/// Returns true for a name that is neither empty nor a path. Helm removes control characters before.
fn is_name(name: &str) -> bool {
    !name.chars().all(char::is_control) && !name.contains('/') && !matches!(name, "." | "..")
}

fn items<'m>(entry: &'m Map, key: &str) -> impl Iterator<Item = &'m Value> {
    let list = entry.get(key).and_then(Value::as_seq);
    list.unwrap_or_default().iter()
}

/// Checks dependencies up to the first whose name or alias another one has: some servers drop aliases, so Helm ignores that, and the
/// dependencies after it.
fn has_valid_dependencies(entry: &Map) -> bool {
    let mut known = BTreeSet::new();
    for item in items(entry, "dependencies") {
        let Some(dependency) = item.as_map() else {
            return false;
        };
        let alias = super::text(dependency, "alias");
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        if !alias.chars().all(is_allowed) {
            return false;
        }
        let key = match alias.is_empty() {
            true => super::text(dependency, "name"),
            false => alias,
        };
        if !known.insert(key) {
            return true;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_dropped_as_by_helm() {
        for (fields, valid) in [
            (r#""name": "a""#, true),
            (r#""name": "a", "apiVersion": "v9", "type": "library""#, true),
            (r#""name": "a", "type": "application", "appVersion": 1.5"#, true),
            (r#""name": "a b", "type": null"#, true),
            (r#""type": "application""#, false),
            (r#""name": """#, false),
            (r#""name": null"#, false),
            (r#""name": "\u0000\u0007""#, false),
            (r#""name": "../a""#, false),
            (r#""name": "a/b""#, false),
            (r#""name": "a/""#, false),
            (r#""name": "..""#, false),
            (r#""name": "a", "type": "plugin""#, false),
            (r#""name": "a", "type": "Application""#, false),
            (r#""name": "a", "type": "library ""#, false),
            (r#""name": "a", "maintainers": [{"name": "m"}, {}]"#, true),
            (r#""name": "a", "maintainers": [null]"#, false),
            (r#""name": "a", "maintainers": null, "dependencies": null"#, true),
            (r#""name": "a", "dependencies": [null]"#, false),
            (
                r#""name": "a", "dependencies": [{"name": "b", "alias": "c_1-D"}]"#,
                true,
            ),
            (
                r#""name": "a", "dependencies": [{"name": "b", "alias": "c.d"}]"#,
                false,
            ),
            (
                r#""name": "a", "dependencies": [{"name": "b", "alias": "c/d"}]"#,
                false,
            ),
            (
                r#""name": "a", "dependencies": [{"name": "b"}, {"name": "b"}]"#,
                true,
            ),
            (
                r#""name": "a", "dependencies": [{"name": "b"}, {"name": "c", "alias": "b"}, {"alias": "."}]"#,
                true,
            ),
            (
                r#""name": "a", "dependencies": [{"name": "b"}, {"alias": "."}, {"name": "b"}]"#,
                false,
            ),
        ] {
            let text = format!("{{{fields}}}");
            let entry: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(is_valid(entry.as_map().unwrap()), valid, "{text}");
        }
    }
}

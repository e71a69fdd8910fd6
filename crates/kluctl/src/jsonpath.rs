//! The paths of `targetPath`: fields and indexes.

use yaml::{Map, Value};

/// Wraps a value so that it stands at `path` of a map. The message of a failure doesn't repeat the path.
pub(crate) fn wrap(path: &str, value: Value) -> Result<Map, String> {
    let steps = parse(path)?;
    let mut wrapped = value;
    for step in steps.into_iter().rev() {
        let mut map = Map::new();
        map.insert(step, wrapped);
        wrapped = Value::Map(map);
    }
    match wrapped {
        Value::Map(map) => Ok(map),
        _ => Err("the path is empty".to_owned()),
    }
}

/// The fields of a path: `a.b`, `$.a['b c'].d`.
fn parse(path: &str) -> Result<Vec<String>, String> {
    let mut steps = Vec::new();
    let mut rest = path
        .strip_prefix('$')
        .or_else(|| path.strip_prefix('@'))
        .unwrap_or(path);
    rest = rest.strip_prefix('.').unwrap_or(rest);
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('[') {
            let (name, after) = quoted(after)?;
            steps.push(name.to_owned());
            rest = after;
        } else {
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            let (name, after) = rest.split_at(end);
            let plain = |letter: char| letter.is_alphanumeric() || letter == '_';
            if name.is_empty() || !name.chars().all(plain) {
                return Err(format!("{name:?} is no plain field name: write it as ['...']"));
            }
            steps.push(name.to_owned());
            rest = after;
        }
        if let Some(after) = rest.strip_prefix('.') {
            if after.is_empty() || after.starts_with(['.', '[']) {
                return Err("a field name is missing after a dot".to_owned());
            }
            rest = after;
        } else if !rest.is_empty() && !rest.starts_with('[') {
            return Err("a dot is missing between two fields".to_owned());
        }
    }
    if steps.is_empty() {
        Err("the path names no field".to_owned())
    } else {
        Ok(steps)
    }
}

fn quoted(text: &str) -> Result<(&str, &str), String> {
    let found = ['\'', '"'].iter().find_map(|quote| {
        let (name, after) = text.strip_prefix(*quote)?.split_once(*quote)?;
        Some((name, after.strip_prefix(']')?))
    });
    found.ok_or_else(|| "only fields are supported yet, no indexes, wildcards or filters".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_nest() {
        for (path, expected) in [
            ("a", r#"{"a":1}"#),
            ("a.b.c", r#"{"a":{"b":{"c":1}}}"#),
            ("$.a['b c'].d", r#"{"a":{"b c":{"d":1}}}"#),
            ("$[\"a-b\"]", r#"{"a-b":1}"#),
        ] {
            let wrapped = wrap(path, Value::from(1)).unwrap();
            assert_eq!(Value::Map(wrapped).to_json().to_string(), expected, "{path}");
        }
        for path in [
            "", "$", "a..b", "a.", "a[0]", "a.*", "a-b", "..a", "['a", "['a']b",
        ] {
            assert!(wrap(path, Value::Null).is_err(), "{path}");
        }
    }
}

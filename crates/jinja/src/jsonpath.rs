//! The JSON paths of `get_var`: fields, quoted fields, indexes and wildcards.

use minijinja::{Error, Value as Dynamic, value::ValueKind};

use crate::functions::fail;

/// One step of a path.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    Field(String),
    Index(i64),
    Any,
}

/// Looks up a variable; of several paths the first that leads somewhere counts.
pub(crate) fn get_var(vars: &Dynamic, path: &Dynamic, default: Option<Dynamic>) -> Result<Dynamic, Error> {
    let paths: Vec<Dynamic> = match path.kind() {
        ValueKind::Seq => path.try_iter()?.checked().collect::<Result<_, _>>()?,
        _ => vec![path.clone()],
    };
    for path in paths {
        let steps = steps(&path)?;
        let mut matches = find(vars, &steps);
        match matches.len() {
            0 => {}
            1 => return Ok(matches.remove(0)),
            _ => {
                return Err(fail(
                    "Exception: Only simple jsonpath supported in get_dict_value",
                ));
            }
        }
    }
    Ok(default.unwrap_or_else(|| Dynamic::from(())))
}

fn steps(path: &Dynamic) -> Result<Vec<Step>, Error> {
    if let Some(text) = path.as_str() {
        return parse(text);
    }
    let keys: Vec<Dynamic> = path.try_iter()?.checked().collect::<Result<_, _>>()?;
    let step = |key: &Dynamic| match key.as_i64() {
        Some(index) => Step::Index(index),
        None => Step::Field(key.to_string()),
    };
    Ok(keys.iter().map(step).collect())
}

fn parse(path: &str) -> Result<Vec<Step>, Error> {
    let bad = |why: &str| fail(format!("Exception: Invalid json path '{path}'. Error={why}"));
    let mut steps = Vec::new();
    let mut rest = path.trim();
    if let Some(after) = rest.strip_prefix('$') {
        rest = after.strip_prefix('.').unwrap_or(after);
        if rest.is_empty() {
            return if after.is_empty() {
                Ok(steps)
            } else {
                Err(bad("Parse error near the end of string!"))
            };
        }
    }
    loop {
        if let Some(after) = rest.strip_prefix('[') {
            let (inner, after) = bracket(after).ok_or_else(|| bad("Parse error near the end of string!"))?;
            steps.push(inner);
            rest = after;
        } else {
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            let (name, after) = rest.split_at(end);
            let plain = |letter: char| letter.is_alphanumeric() || "_-@*".contains(letter);
            if name.is_empty() || !name.chars().all(plain) {
                return Err(bad("Parse error near the end of string!"));
            }
            match name {
                "*" => steps.push(Step::Any),
                name if name.contains('*') => return Err(bad("patterns in names are not supported yet")),
                name => steps.push(Step::Field(name.to_owned())),
            }
            rest = after;
        }
        if rest.is_empty() {
            return Ok(steps);
        }
        if let Some(after) = rest.strip_prefix('.') {
            if after.is_empty() || after.starts_with('.') {
                return Err(bad("Parse error near the end of string!"));
            }
            rest = after;
        }
    }
}

/// Reads what is between brackets, and what comes after them.
fn bracket(text: &str) -> Option<(Step, &str)> {
    for quote in ['\'', '"'] {
        if let Some(quoted) = text.strip_prefix(quote) {
            let (name, after) = quoted.split_once(quote)?;
            return Some((Step::Field(name.to_owned()), after.strip_prefix(']')?));
        }
    }
    let (inner, after) = text.split_once(']')?;
    match inner.trim() {
        "*" => Some((Step::Any, after)),
        number => Some((Step::Index(number.parse().ok()?), after)),
    }
}

fn find(vars: &Dynamic, steps: &[Step]) -> Vec<Dynamic> {
    let mut found = vec![vars.clone()];
    for step in steps {
        found = found.iter().flat_map(|value| children(value, step)).collect();
    }
    found
}

fn children(value: &Dynamic, step: &Step) -> Vec<Dynamic> {
    let child = match (step, value.kind()) {
        (Step::Field(name), ValueKind::Map) => value.get_attr(name).ok(),
        (Step::Index(index), ValueKind::Seq) => value.get_item(&Dynamic::from(*index)).ok(),
        (Step::Any, ValueKind::Map) => {
            let keys = value.try_iter().into_iter().flatten();
            return keys.filter_map(|key| value.get_item(&key).ok()).collect();
        }
        (Step::Any, ValueKind::Seq) => return value.try_iter().into_iter().flatten().collect(),
        _ => None,
    };
    child.filter(|child| !child.is_undefined()).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn get(path: &str) -> Result<String, Error> {
        let inner = Dynamic::from_pairs([("b", Dynamic::from(1)), ("c", Dynamic::from(vec![1, 2]))]);
        let vars = Dynamic::from_pairs([("a", inner)]);
        get_var(&vars, &Dynamic::from(path), Some(Dynamic::from("none"))).map(|found| found.to_string())
    }

    #[test]
    fn fields_quotes_indexes_and_wildcards() {
        for (path, expected) in [
            ("a.b", "1"),
            ("$.a.b", "1"),
            ("a['b']", "1"),
            ("a[\"b\"]", "1"),
            ("a.c[1]", "2"),
            ("a.c[9]", "none"),
            ("a.b.c", "none"),
            ("missing-x", "none"),
            ("a.c", "[1, 2]"),
        ] {
            assert_eq!(get(path).unwrap(), expected, "{path}");
        }
        for path in ["a..", "a.*", "", "a.", "a[", "a['b", "a[x]", "a.b c", "a.b*"] {
            assert!(get(path).is_err(), "{path}");
        }
    }
}

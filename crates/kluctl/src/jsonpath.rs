//! The paths of `targetPath`: where a value is put in an empty map.

use yaml::{Map, Value};

/// Errors of setting a value at a path. The messages don't repeat the path.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The path is not valid.
    Parse(String),
    /// The path is empty.
    Set(String),
}

/// A step of a path.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    Field(String),
    Index(i64),
    /// The path may match several places; names the kind of step.
    Several(&'static str),
}

/// Maximum number of steps of a path: the maximum depth of YAML.
const MAX_STEPS: usize = 100;
/// Maximum index up to which a list is padded with nulls.
const MAX_INDEX: i64 = 1_000;

/// Wraps a value so that it stands at `path` of a map.
pub(crate) fn wrap(path: &str, value: Value) -> Result<Map, Failure> {
    let steps = parse(path).map_err(Failure::Parse)?;
    let set = |why: String| Err(Failure::Set(why));
    match steps.last() {
        None => return set("can not set with an expression ending with a Root".to_owned()),
        Some(Step::Several(kind @ ("Filter" | "Slice"))) => {
            return set(format!("can not set with an expression ending with a {kind}"));
        }
        _ => {}
    }
    // What the path says before each step, for messages.
    let mut before = String::new();
    let mut places = Vec::new();
    for step in &steps {
        places.push(before.clone());
        match step {
            Step::Field(name) if before.is_empty() => before.push_str(name),
            Step::Field(name) => before.push_str(&format!(".{name}")),
            Step::Index(index) => before.push_str(&format!("[{index}]")),
            Step::Several(_) => before.push_str("[*]"),
        }
    }
    let mut wrapped = value;
    let last = steps.len() - 1;
    for (at, (step, place)) in steps.iter().zip(&places).enumerate().rev() {
        match step {
            Step::Field(name) => {
                let mut map = Map::new();
                map.insert(name.as_str(), wrapped);
                wrapped = Value::Map(map);
            }
            Step::Index(index) if *index < 0 => {
                return set(format!(
                    "can not deduce the length of the array to add at '{place}'"
                ));
            }
            Step::Index(index) if at != last => {
                return set(format!("can not follow a <nil> at '{place}[{index}]'"));
            }
            Step::Index(index) if *index > MAX_INDEX => {
                return set(format!("an index is at most {MAX_INDEX}"));
            }
            Step::Index(index) => {
                let mut list = vec![Value::Null; usize::try_from(*index).unwrap_or_default()];
                list.push(wrapped);
                wrapped = Value::Seq(list);
            }
            Step::Several(_) => return set(format!("can not deduce what element to add at '{place}'")),
        }
    }
    match wrapped {
        Value::Map(map) => Ok(map),
        _ => set("can not follow a map at '$'".to_owned()),
    }
}

/// The steps of a path: `a.b`, `$.a['b c'].d[0]`.
fn parse(path: &str) -> Result<Vec<Step>, String> {
    let mut steps = Vec::new();
    let mut rest = path
        .strip_prefix('$')
        .or_else(|| path.strip_prefix('@'))
        .unwrap_or(path);
    if path.is_empty() {
        return Err("the path is empty".to_owned());
    }
    // `..x` leads to the first place where a field can be: the root.
    rest = rest
        .strip_prefix("..")
        .or_else(|| rest.strip_prefix('.'))
        .unwrap_or(rest);
    while !rest.is_empty() {
        if steps.len() >= MAX_STEPS {
            return Err(format!("it has more than {MAX_STEPS} steps"));
        }
        if let Some(after) = rest.strip_prefix('[') {
            let (step, after) = bracket(after)?;
            steps.push(step);
            rest = after;
        } else {
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            let (name, after) = rest.split_at(end);
            let plain = |letter: char| letter.is_alphanumeric() || letter == '_';
            steps.push(match name {
                "*" => Step::Several("Wildcard"),
                name if !name.is_empty() && name.chars().all(plain) => Step::Field(name.to_owned()),
                _ => return Err(format!("{name:?} is not a plain field name: write it as ['...']")),
            });
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
    Ok(steps)
}

/// Parses a step in brackets, and returns the rest of the path.
fn bracket(text: &str) -> Result<(Step, &str), String> {
    for quote in ['\'', '"'] {
        let quoted = text.strip_prefix(quote).and_then(|text| text.split_once(quote));
        if let Some((name, after)) = quoted
            && let Some(after) = after.strip_prefix(']')
        {
            return Ok((Step::Field(name.to_owned()), after));
        }
    }
    let (inside, after) = text.split_once(']').ok_or("a bracket is not closed")?;
    let step = match inside.trim() {
        "*" => Step::Several("Wildcard"),
        filter if filter.starts_with('?') => Step::Several("Filter"),
        slice if slice.contains(':') => Step::Several("Slice"),
        union if union.contains(',') => Step::Several("Union"),
        index => {
            let index = index.parse();
            Step::Index(index.map_err(|_| format!("[{inside}] is neither an index nor a quoted field"))?)
        }
    };
    Ok((step, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_create_maps_and_pad_lists() {
        for (path, expected) in [
            ("a", r#"{"a":1}"#),
            ("a.b.c", r#"{"a":{"b":{"c":1}}}"#),
            ("$.a['b c'].d", r#"{"a":{"b c":{"d":1}}}"#),
            ("$[\"a-b\"]", r#"{"a-b":1}"#),
            ("..x", r#"{"x":1}"#),
            ("list[0]", r#"{"list":[1]}"#),
            ("a.list[1]", r#"{"a":{"list":[null,1]}}"#),
        ] {
            let wrapped = wrap(path, Value::from(1)).unwrap();
            assert_eq!(Value::Map(wrapped).to_json().to_string(), expected, "{path}");
        }
    }

    #[test]
    fn paths_are_limited_in_depth() {
        assert!(wrap(&format!("a{}", ".a".repeat(99)), Value::Null).is_ok());
        let failed = wrap(&format!("a{}", ".a".repeat(1_000_000)), Value::Null).unwrap_err();
        assert_eq!(failed, Failure::Parse("it has more than 100 steps".to_owned()));
    }

    #[test]
    fn ambiguous_paths_are_refused() {
        for (path, expected) in [
            ("$", "can not set with an expression ending with a Root"),
            (
                "a[?(@.b==1)]",
                "can not set with an expression ending with a Filter",
            ),
            ("a[0:2]", "can not set with an expression ending with a Slice"),
            ("list[*]", "can not deduce what element to add at 'list'"),
            ("a.*", "can not deduce what element to add at 'a'"),
            ("a[0,1]", "can not deduce what element to add at 'a'"),
            ("a[-1]", "can not deduce the length of the array to add at 'a'"),
            ("list[0].a", "can not follow a <nil> at 'list[0]'"),
            ("a[1001]", "an index is at most 1000"),
            ("[0]", "can not follow a map at '$'"),
        ] {
            let failed = wrap(path, Value::Null).unwrap_err();
            assert_eq!(failed, Failure::Set(expected.to_owned()), "{path}");
        }
        for path in ["", "a..b", "a.", "a-b", "['a", "['a']b", "a[x]"] {
            assert!(
                matches!(wrap(path, Value::Null), Err(Failure::Parse(_))),
                "{path}"
            );
        }
    }
}

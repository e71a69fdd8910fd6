//! Sets a value at a path of an empty map, as `targetPath` of variable sources does.

use yaml::{Map, Value};

use super::{Segment, Selector, WrapError};

/// The maximum number of steps: as deep as a YAML file nests.
const MAX_STEPS: usize = 100;
/// The maximum index of a list that is filled with nulls.
const MAX_INDEX: i64 = 1_000;

/// A step of a path.
enum Step<'s> {
    Field(&'s str),
    Index(i64),
    /// More than one field or item; the kind of the step in ojg.
    Several(&'static str),
}

pub(super) fn wrap(segments: &[Segment], value: Value) -> Result<Map, WrapError> {
    let steps = steps(segments);
    if steps.len() > MAX_STEPS {
        return Err(WrapError::TooManySteps(MAX_STEPS));
    }
    match steps.last() {
        None => return Err(WrapError::Ending("Root")),
        Some(Step::Several(kind @ ("Filter" | "Slice"))) => return Err(WrapError::Ending(kind)),
        _ => {}
    }
    // The path before each step, for messages.
    let mut before = String::new();
    let mut prefixes = Vec::new();
    for step in &steps {
        prefixes.push(before.clone());
        match step {
            Step::Field(name) if before.is_empty() => before.push_str(name),
            Step::Field(name) => before.push_str(&format!(".{name}")),
            Step::Index(index) => before.push_str(&format!("[{index}]")),
            Step::Several(_) => before.push_str("[*]"),
        }
    }
    let mut wrapped = value;
    let last = steps.len() - 1;
    for (at, (step, prefix)) in steps.iter().zip(prefixes).enumerate().rev() {
        match step {
            Step::Field(name) => {
                let mut map = Map::new();
                map.insert(*name, wrapped);
                wrapped = Value::Map(map);
            }
            Step::Index(index) if *index < 0 => return Err(WrapError::Length(prefix)),
            Step::Index(index) if at != last => {
                return Err(WrapError::Missing(format!("{prefix}[{index}]")));
            }
            Step::Index(index) if *index > MAX_INDEX => return Err(WrapError::IndexTooLarge(MAX_INDEX)),
            Step::Index(index) => {
                let mut list = vec![Value::Null; usize::try_from(*index).unwrap_or_default()];
                list.push(wrapped);
                wrapped = Value::Seq(list);
            }
            Step::Several(_) => return Err(WrapError::Ambiguous(prefix)),
        }
    }
    match wrapped {
        Value::Map(map) => Ok(map),
        _ => Err(WrapError::RootIndex),
    }
}

fn steps(segments: &[Segment]) -> Vec<Step<'_>> {
    // `..x` matches the first map that can have the field: the root.
    let segments = match segments {
        [Segment::Descendants, rest @ ..] => rest,
        all => all,
    };
    segments.iter().map(step).collect()
}

fn step(segment: &Segment) -> Step<'_> {
    let Segment::Children(selectors) = segment else {
        return Step::Several("Descent");
    };
    match selectors.as_slice() {
        [Selector::Name(name)] => Step::Field(name),
        [Selector::Index(index)] => Step::Index(*index),
        [Selector::Filter(_)] => Step::Several("Filter"),
        [Selector::Slice { .. }] => Step::Several("Slice"),
        [Selector::Wildcard] => Step::Several("Wildcard"),
        _ => Step::Several("Union"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jsonpath::{JsonPath, JsonPathError};

    fn wrapped(path: &str, value: Value) -> Result<Map, WrapError> {
        JsonPath::parse(path).unwrap().wrap(value)
    }

    #[test]
    fn wrap_nests_fields_and_fills_lists() {
        for (path, expected) in [
            ("a", r#"{"a":1}"#),
            ("a.b.c", r#"{"a":{"b":{"c":1}}}"#),
            ("$.a['b c'].d", r#"{"a":{"b c":{"d":1}}}"#),
            ("$[\"a-b\"]", r#"{"a-b":1}"#),
            ("..x", r#"{"x":1}"#),
            ("list[0]", r#"{"list":[1]}"#),
            ("a.list[1]", r#"{"a":{"list":[null,1]}}"#),
        ] {
            let wrapped = wrapped(path, Value::from(1)).unwrap();
            assert_eq!(Value::Map(wrapped).to_json().to_string(), expected, "{path}");
        }
    }

    #[test]
    fn wrap_refuses_more_steps_than_the_limit() {
        assert!(wrapped(&format!("a{}", ".a".repeat(99)), Value::Null).is_ok());
        assert_eq!(
            wrapped(&format!("a{}", ".a".repeat(100)), Value::Null),
            Err(WrapError::TooManySteps(100))
        );
        let long = JsonPath::parse(&format!("a{}", ".a".repeat(1_000_000)));
        assert_eq!(long.unwrap_err(), JsonPathError::TooLong);
    }

    #[test]
    fn wrap_refuses_paths_of_no_single_place() {
        for (path, expected) in [
            ("$", "can not set with an expression ending with a Root"),
            (
                "a[?(@.b==1)]",
                "can not set with an expression ending with a Filter",
            ),
            ("a[0:2]", "can not set with an expression ending with a Slice"),
            ("list[*]", "can not deduce what element to add at 'list'"),
            ("a.*", "can not deduce what element to add at 'a'"),
            ("a..b", "can not deduce what element to add at 'a'"),
            ("a[0,1]", "can not deduce what element to add at 'a'"),
            ("a[-1]", "can not deduce the length of the array to add at 'a'"),
            ("list[0].a", "can not follow a <nil> at 'list[0]'"),
            ("a[1001]", "an index is at most 1000"),
            ("[0]", "can not follow a map at '$'"),
        ] {
            let error = wrapped(path, Value::Null).unwrap_err();
            assert_eq!(error.to_string(), expected, "{path}");
        }
        for path in ["", "a.", "a-b", "['a", "['a']b", "a[x]"] {
            assert!(JsonPath::parse(path).is_err(), "{path}");
        }
    }
}

//! The arguments of a target.

use tree::{Budget, TreePath};
use yaml::{Map, Value};

use crate::{ArgumentError, Error, files, merge, project::Argument};

/// Maximum number of parts in the name of an argument, between dots.
const MAX_NESTING: usize = 100;

/// Adds an argument of a command line, `name=value`, to others. Dots of the name nest. The value is YAML; with an `@` before
/// it, `read` reads it from a file (`\@` is a literal `@`).
pub fn add_argument(
    args: &mut Map,
    argument: &str,
    read: &dyn Fn(&str) -> Result<Vec<u8>, ArgumentError>,
    budget: &Budget,
) -> Result<(), ArgumentError> {
    let in_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '/' | '-');
    let parts = argument
        .split_once('=')
        .filter(|(name, _)| name.chars().all(in_name));
    let (name, text) = parts.ok_or_else(|| {
        ArgumentError::new(format!(
            "invalid --arg argument. Must be --arg=some_var_name=value, not '{argument}'"
        ))
    })?;
    let text = match (text.strip_prefix('@'), text.strip_prefix("\\@")) {
        (Some(file), _) => read(file)?,
        (_, Some(rest)) => format!("@{rest}").into_bytes(),
        _ => text.as_bytes().to_vec(),
    };
    let value = yaml::read::goyaml(text, budget);
    let value = value.map_err(|error| {
        ArgumentError::new(format!("the value of --arg {name} is not valid YAML: {error}"))
    })?;
    let mut path: Vec<&str> = name.split('.').take(MAX_NESTING + 1).collect();
    if path.len() > MAX_NESTING {
        return Err(ArgumentError::new(format!(
            "the name of an argument has more than {MAX_NESTING} parts"
        )));
    }
    let last = path.pop().unwrap_or_default();
    let map = path.into_iter().try_fold(args, |map, part| {
        if map.get(part).is_none_or(|value| value.as_map().is_none()) {
            map.insert(part, Map::new());
        }
        map.get_or_insert_map(part)
    });
    if let Some(map) = map {
        map.insert(last, value.value);
    }
    Ok(())
}

/// Adds the arguments of a YAML file to others: maps are merged, other values replaced.
pub fn add_arguments_file(
    args: &mut Map,
    file: &TreePath,
    text: &[u8],
    budget: &Budget,
) -> Result<(), Error> {
    match files::parse(file, text, budget)? {
        Value::Null => {}
        Value::Map(more) => merge::deep(args, &more),
        other => {
            let problem = format!("arguments are a map, not {}", other.type_name());
            return Err(Error::Invalid {
                file: file.clone(),
                line: 1,
                problem,
            });
        }
    }
    Ok(())
}

/// Merges the arguments: the declared defaults, then the target's, then the given ones. Fails if an argument without a
/// default has no value. A default goes under the name as it is written: dots nest for the check of required arguments only.
pub(crate) fn compute(declared: &[Argument], target: &Map, given: &Map) -> Result<Map, Error> {
    let mut args = Map::new();
    for argument in declared {
        if let Some(default) = &argument.default {
            let mut one = Map::new();
            one.insert(argument.name.clone(), default.clone());
            merge::deep(&mut args, &one);
        }
    }
    merge::deep(&mut args, target);
    merge::deep(&mut args, given);
    for argument in declared {
        if argument.default.is_none() && !has(&args, &argument.name) {
            return Err(Error::MissingArgument(argument.name.clone()));
        }
    }
    Ok(args)
}

fn has(args: &Map, name: &str) -> bool {
    let mut parts = name.split('.');
    let first = parts.next().and_then(|part| args.get(part));
    parts
        .fold(first, |value: Option<&Value>, part| {
            value.and_then(|value| value.get(part))
        })
        .is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(text: &str) -> Map {
        match yaml::read::goyaml(text, &tree::Budget::default()).unwrap().value {
            Value::Map(map) => map,
            _ => Map::new(),
        }
    }

    #[test]
    fn arg_flags_nest_by_dots_and_parse_yaml() {
        let read = |file: &str| match file {
            "f" => Ok(b"{b: 1}".to_vec()),
            _ => Err(ArgumentError::new(format!("no {file}"))),
        };
        let mut args = Map::new();
        let mut add = |argument: &str| add_argument(&mut args, argument, &read, &Budget::default());
        for argument in ["a=1", "b.c=[x]", "b.d=@f", "a=true", "e=", "g=k=v", "b.c.d=1"] {
            add(argument).unwrap();
        }
        let name = "invalid --arg argument. Must be --arg=some_var_name=value, not 'a b=1'";
        assert_eq!(add("a b=1").unwrap_err().to_string(), name);
        assert!(add("novalue").is_err() && add("x=@g").is_err() && add("x={a: [}").is_err());
        let deep = format!("{}a=1", "a.".repeat(1_000_000));
        assert!(
            add(&deep)
                .unwrap_err()
                .to_string()
                .contains("more than 100 parts")
        );
        // As in the original, an escaped value is YAML, too.
        assert!(add("x=\\@home").is_err());
        assert_eq!(args, map("{a: true, b: {c: {d: 1}, d: {b: 1}}, e: null, g: k=v}"));
    }

    fn declared(name: &str, default: Option<i64>) -> Argument {
        Argument {
            name: name.to_owned(),
            default: default.map(Value::from),
        }
    }

    #[test]
    fn later_arguments_win_and_required_ones_must_be_set() {
        let declared = [
            declared("a", Some(1)),
            declared("b.c", None),
            declared("d.e", Some(4)),
        ];
        let args = compute(&declared, &map("{a: 2, b: {c: 2}}"), &map("{a: 3}")).unwrap();
        assert_eq!(args, map("{a: 3, d.e: 4, b: {c: 2}}"));
        let error = compute(&declared, &map("b: {d: 1}"), &Map::new()).unwrap_err();
        assert_eq!(error.to_string(), "required argument b.c not set");
    }
}

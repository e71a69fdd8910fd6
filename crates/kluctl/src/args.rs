//! The arguments of a target.

use yaml::{Map, Value};

use crate::{Error, merge, project::Argument};

/// Defaults, then the target's arguments, then those from outside; every argument without a default must be there.
///
/// A default goes under the name as it is written: dots nest for the check of required arguments only.
pub(crate) fn compute(declared: &[Argument], target: &Map, outside: &Map) -> Result<Map, Error> {
    let mut args = Map::new();
    for argument in declared {
        if let Some(default) = &argument.default {
            let mut one = Map::new();
            one.insert(argument.name.clone(), default.clone());
            merge::deep(&mut args, &one);
        }
    }
    merge::deep(&mut args, target);
    merge::deep(&mut args, outside);
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

    fn declared(name: &str, default: Option<i64>) -> Argument {
        Argument {
            name: name.to_owned(),
            default: default.map(Value::from),
        }
    }

    #[test]
    fn later_ones_win_and_required_ones_must_be_there() {
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

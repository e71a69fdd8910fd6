//! `to_yaml` and `from_yaml`.

use yaml::{Map, Value as Yaml};

use crate::{
    eval::call::{Args, Cx},
    exc::{R, raise},
    format::repr,
    rt::{ENTRY, Rt},
    value::{Value, frozen::from_yaml as convert},
};

/// How deep a value may nest.
const MAX_DEPTH: usize = 200;

pub(super) fn to_yaml(cx: &Cx<'_>, value: Value, args: Args) -> R<Value> {
    args.none("to_yaml")?;
    let plain = plain(cx.rt, &value, &mut Vec::new())?;
    cx.rt.text(yaml::print::pyyaml(&plain))
}

/// A value of the project. What is there twice is printed twice.
fn plain(rt: &Rt, value: &Value, path: &mut Vec<usize>) -> R<Yaml> {
    rt.step(1)?;
    rt.alloc(ENTRY + value.as_str().map_or(0, |text| text.len()))?;
    let address = value.address();
    if path.contains(&address) && address != 0 {
        return raise("RepresenterError", "a value that holds itself can't be written");
    }
    if path.len() > MAX_DEPTH {
        return raise("RecursionError", "maximum recursion depth exceeded");
    }
    let refused = |kind: &str| {
        raise(
            "RepresenterError",
            format!("('cannot represent an object', {kind})"),
        )
    };
    Ok(match value {
        Value::None => Yaml::Null,
        Value::Bool(flag) => Yaml::Bool(*flag),
        Value::Int(number) => Yaml::Int(*number),
        Value::Big(number) => match u64::try_from(&**number) {
            Ok(number) => Yaml::UInt(number),
            Err(_) => return raise("RepresenterError", "an integer beyond 64 bits can't be written"),
        },
        Value::Float(number) => Yaml::Float(*number),
        Value::Str(text) => Yaml::String(text.to_string()),
        Value::List(_) | Value::Tuple(_) => {
            path.push(address);
            let items = crate::value::iter::collect(rt, value)?;
            let items: R<Vec<Yaml>> = items.iter().map(|item| plain(rt, item, path)).collect();
            path.pop();
            Yaml::Seq(items?)
        }
        Value::Dict(dict) => {
            path.push(address);
            let mut map = Map::new();
            for (key, item) in dict.pairs() {
                map.insert(key_text(rt, &key)?, plain(rt, &item, path)?);
            }
            path.pop();
            Yaml::Map(map)
        }
        Value::Undefined(_) => return refused("Undefined"),
        other => return refused(other.type_name()),
    })
}

fn key_text(rt: &Rt, key: &Value) -> R<String> {
    match key {
        Value::Str(text) => Ok(text.to_string()),
        Value::None => Ok("null".to_owned()),
        Value::Bool(flag) => Ok(flag.to_string()),
        other => repr::text(rt, other),
    }
}

pub(super) fn from_yaml(cx: &Cx<'_>, value: Value, args: Args) -> R<Value> {
    args.none("from_yaml")?;
    let Some(text) = value.defined()?.as_str() else {
        return raise(
            "AttributeError",
            format!("'{}' object has no attribute 'read'", value.type_name()),
        );
    };
    // Two bytes can be an item of a list.
    cx.rt.alloc(text.len().saturating_mul(ENTRY))?;
    cx.rt.step(text.len() as u64 / 4)?;
    match yaml::read::pyyaml(&**text, &cx.rt.budget()) {
        Ok(document) => Ok(convert(&document.value)),
        Err(error) => match error.exceeded() {
            Some(exceeded) => Err(exceeded.clone().into()),
            None => raise("ScannerError", error.to_string()),
        },
    }
}

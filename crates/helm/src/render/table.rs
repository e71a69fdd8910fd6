//! The methods of `chartutil.Values`, a map of values.

use tree::Budget;

use crate::{
    Dict, Value, sigs_yaml,
    template::{FunctionError, Signature, Type},
};

pub(super) fn signature(name: &str) -> Option<Signature> {
    match name {
        "AsMap" | "YAML" => Some(Signature::fixed(&[])),
        "Table" | "PathValue" => Some(Signature::fixed(&[Type::String])),
        "Encode" => Some(Signature::fixed(&[Type::Object("io.Writer")])),
        _ => None,
    }
}

/// Calls a method. `values` makes values of a map, `inner` returns the map of such.
pub(super) fn call(
    map: &Dict,
    name: &str,
    arguments: &[Value],
    budget: &Budget,
    values: impl FnOnce(Dict) -> Value,
    inner: fn(&Value) -> Option<Dict>,
) -> Option<Result<Value, FunctionError>> {
    signature(name)?;
    let path = match arguments {
        [Value::String(path)] => path.as_ref(),
        _ => "",
    };
    Some(match name {
        "AsMap" => Ok(Value::Dict(map.clone())),
        "YAML" => yaml(map, budget),
        "Table" => table(map, path, inner).map(values).map_err(Into::into),
        "PathValue" => path_value(map, path, inner).map_err(Into::into),
        _ => Err("runtime error: invalid memory address or nil pointer dereference".into()),
    })
}

fn yaml(map: &Dict, budget: &Budget) -> Result<Value, FunctionError> {
    let data = Value::Dict(map.clone()).to_yaml(budget)?;
    let text = sigs_yaml::print(data)?;
    if text.len() as u64 > budget.limits().bytes {
        return Err(format!("the YAML of {} bytes is over the limit", text.len()).into());
    }
    Ok(Value::utf8(&text))
}

/// Returns the map at a path of keys.
fn table(map: &Dict, path: &str, inner: fn(&Value) -> Option<Dict>) -> Result<Dict, String> {
    path.split('.').try_fold(map.clone(), |map, key| {
        let found = map.borrow().get(key).cloned();
        let found = found.as_ref().and_then(|value| match value {
            Value::Dict(map) => Some(map.clone()),
            other => inner(other),
        });
        found.ok_or_else(|| format!("{} is not a table", go::strconv::quote(key)))
    })
}

/// Returns the value at a path of keys, which is not a map.
fn path_value(map: &Dict, path: &str, inner: fn(&Value) -> Option<Dict>) -> Result<Value, String> {
    if path.is_empty() {
        return Err("YAML path cannot be empty".to_owned());
    }
    let (above, key) = match path.rsplit_once('.') {
        Some((above, key)) => (table(map, above, inner).ok(), key),
        None => (Some(map.clone()), path),
    };
    let found = above.and_then(|map| map.borrow().get(key).cloned());
    let found = found.filter(|value| !matches!(value, Value::Dict(_)));
    found.ok_or_else(|| format!("{} is not a value", go::strconv::quote(key)))
}

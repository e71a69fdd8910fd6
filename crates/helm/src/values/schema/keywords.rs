//! The keywords of each draft, and the shapes of their values.

use serde_json::Value as Json;

use super::{
    Draft,
    compare::{plain, quote},
};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Schema,
    Schemas,
    SchemaMap,
    SchemaOrSchemas,
    Count,
    Number,
    /// A number above zero.
    Positive,
    Flag,
    /// Strings without duplicates.
    Strings,
    /// As [`Shape::Strings`], at least one.
    SomeStrings,
    Text,
    List,
    /// A list of at least one value, without duplicates.
    Distinct,
    Types,
    Pattern,
    Dependencies,
    StringsMap,
}

/// Returns the shape that the value of a keyword must have; `None` for keywords that the draft doesn't know.
pub(super) fn shape(keyword: &str, draft: Draft) -> Option<Shape> {
    use Shape as S;
    Some(match keyword {
        "additionalProperties" | "not" => S::Schema,
        "additionalItems" if draft < Draft::D2020 => S::Schema,
        "propertyNames" | "contains" if draft >= Draft::D6 => S::Schema,
        "if" | "then" | "else" if draft >= Draft::D7 => S::Schema,
        "unevaluatedProperties" | "unevaluatedItems" | "contentSchema" if draft >= Draft::D2019 => S::Schema,
        "items" if draft >= Draft::D2020 => S::Schema,
        "items" => S::SchemaOrSchemas,
        "prefixItems" if draft >= Draft::D2020 => S::Schemas,
        "allOf" | "anyOf" | "oneOf" => S::Schemas,
        "properties" | "patternProperties" | "definitions" => S::SchemaMap,
        "$defs" | "dependentSchemas" if draft >= Draft::D2019 => S::SchemaMap,
        // Later drafts know it for schemas of earlier ones.
        "dependencies" => S::Dependencies,
        "dependentRequired" if draft >= Draft::D2019 => S::StringsMap,
        "minContains" | "maxContains" if draft >= Draft::D2019 => S::Count,
        "minItems" | "maxItems" | "minLength" | "maxLength" | "minProperties" | "maxProperties" => S::Count,
        "exclusiveMinimum" | "exclusiveMaximum" if draft == Draft::D4 => S::Flag,
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => S::Number,
        "multipleOf" => S::Positive,
        "uniqueItems" => S::Flag,
        "readOnly" | "writeOnly" if draft >= Draft::D7 => S::Flag,
        "deprecated" if draft >= Draft::D2019 => S::Flag,
        "required" if draft == Draft::D4 => S::SomeStrings,
        "required" => S::Strings,
        "enum" if draft < Draft::D2019 => S::Distinct,
        "enum" => S::List,
        "examples" if draft >= Draft::D7 => S::List,
        "type" => S::Types,
        "pattern" => S::Pattern,
        "$ref" | "$schema" | "format" | "title" | "description" => S::Text,
        "id" if draft == Draft::D4 => S::Text,
        "$id" if draft >= Draft::D6 => S::Text,
        "$comment" | "contentEncoding" | "contentMediaType" if draft >= Draft::D7 => S::Text,
        "$anchor" if draft >= Draft::D2019 => S::Text,
        "$dynamicAnchor" if draft >= Draft::D2020 => S::Text,
        _ => return None,
    })
}

pub(super) fn kind(value: &Json) -> &'static str {
    match value {
        Json::Null => "null",
        Json::Bool(_) => "boolean",
        Json::Number(_) => "number",
        Json::String(_) => "string",
        Json::Array(_) => "array",
        Json::Object(_) => "object",
    }
}

/// Checks that values are strings without duplicates. Returns the first problem, with the index of its item.
pub(super) fn strings(value: &Json) -> Result<(), (Option<usize>, String)> {
    let Json::Array(items) = value else {
        return Err((None, format!("got {}, want array", kind(value))));
    };
    match items.iter().enumerate().find(|(_, item)| !item.is_string()) {
        Some((n, item)) => Err((Some(n), format!("got {}, want string", kind(item)))),
        None => distinct(items).map_err(|words| (None, words)),
    }
}

/// Checks that no two values are equal; numbers are equal if their values are.
fn distinct(items: &[Json]) -> Result<(), String> {
    let mut seen = std::collections::HashMap::new();
    for (n, item) in items.iter().enumerate() {
        if let Some(first) = seen.insert(canonical(item), n) {
            return Err(format!("items at {first} and {n} are equal"));
        }
    }
    Ok(())
}

/// Returns a string that is the same for equal values.
fn canonical(value: &Json) -> String {
    match value {
        Json::Number(number) => number
            .as_f64()
            .map_or_else(|| number.to_string(), |number| number.to_string()),
        Json::Array(items) => {
            let items: Vec<String> = items.iter().map(canonical).collect();
            format!("[{}]", items.join(","))
        }
        Json::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_unstable_by_key(|(key, _)| *key);
            let entry = |(key, value): (&String, &Json)| format!("{key:?}:{}", canonical(value));
            let entries: Vec<String> = entries.into_iter().map(entry).collect();
            format!("{{{}}}", entries.join(","))
        }
        Json::String(text) => format!("{text:?}"),
        Json::Null | Json::Bool(_) => value.to_string(),
    }
}

/// Returns the problem of a value that is not a list of at least one item.
pub(super) fn not_some(value: &Json) -> String {
    match value {
        Json::Array(_) => "minItems: got 0, want 1".to_owned(),
        other => format!("got {}, want array", kind(other)),
    }
}

/// Checks a value without schemas in it.
pub(super) fn check(shape: Shape, value: &Json) -> Result<(), String> {
    let wrong = |want: &str| Err(format!("got {}, want {want}", kind(value)));
    match (shape, value) {
        (Shape::Count, Json::Number(number)) => match number.as_f64() {
            Some(number) if number.fract() != 0.0 => wrong("integer"),
            Some(number) if number < 0.0 => Err(format!("minimum: got {}, want 0", plain(number))),
            _ => Ok(()),
        },
        (Shape::Positive, Json::Number(number)) => match number.as_f64() {
            Some(number) if number <= 0.0 => Err(format!("exclusiveMinimum: got {}, want 0", plain(number))),
            _ => Ok(()),
        },
        (Shape::Distinct, Json::Array(items)) if !items.is_empty() => distinct(items),
        (Shape::Number, Json::Number(_))
        | (Shape::Flag, Json::Bool(_))
        | (Shape::Text, Json::String(_))
        | (Shape::List, Json::Array(_)) => Ok(()),
        (Shape::Count, _) => wrong("integer"),
        (Shape::Number | Shape::Positive, _) => wrong("number"),
        (Shape::Flag, _) => wrong("boolean"),
        (Shape::Text, _) => wrong("string"),
        (Shape::Types, value) => types(value),
        (_, value) => Err(not_some(value)),
    }
}

/// Checks the name of a type, or a list of them.
fn types(value: &Json) -> Result<(), String> {
    const NAMES: &str =
        "value must be one of 'array', 'boolean', 'integer', 'null', 'number', 'object', 'string'";
    match value {
        Json::String(name) if is_type(name) => Ok(()),
        Json::Array(names) if names.is_empty() => Err(not_some(value)),
        Json::Array(names) if names.iter().all(|name| name.as_str().is_some_and(is_type)) => distinct(names),
        _ => Err(NAMES.to_owned()),
    }
}

fn is_type(name: &str) -> bool {
    [
        "array", "boolean", "integer", "null", "number", "object", "string",
    ]
    .contains(&name)
}

/// Returns the problem of a bound of draft 4 that is exclusive, and absent.
pub(super) fn bound_is_missing(map: &serde_json::Map<String, Json>) -> Option<String> {
    let pairs = [("exclusiveMaximum", "maximum"), ("exclusiveMinimum", "minimum")];
    let (flag, bound) = pairs
        .into_iter()
        .find(|(flag, bound)| map.contains_key(*flag) && !map.contains_key(*bound))?;
    Some(format!(
        "properties {} required, if {} exists",
        quote(bound),
        quote(flag)
    ))
}

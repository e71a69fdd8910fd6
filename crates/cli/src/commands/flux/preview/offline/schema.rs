//! Validation of values by the structural schemas of definitions, in the words of the API server. Pure.

use std::{collections::HashMap, sync::Arc};

use cel::{Program, Scope, Variables};
use go::regexp::Regexp;
use serde::Serialize;
use serde_json::{Map, Value as Json};

/// Maximum number of findings about an object.
const MOST: usize = 100;
/// Maximum length of a value in a message, in characters.
const VALUE_CHARS: usize = 80;

/// A finding about a field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Invalid {
    /// Path of the field, such as `spec.patches[0].target`; empty if the message names it, or the whole object is meant.
    pub(super) field: String,
    pub(super) message: String,
}

impl std::fmt::Display for Invalid {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.field.is_empty() {
            true => f.write_str(&self.message),
            false => write!(f, "{}: {}", self.field, self.message),
        }
    }
}

/// Removes nulls and inserts default values, as the API server does before it validates.
pub(super) fn complete(value: &mut Json, schema: &Json) {
    match value {
        Json::Object(fields) => {
            let is_nullable = |name: &str| {
                let field = field_schema(schema, name);
                field.is_none_or(|field| field.get("nullable").and_then(Json::as_bool) == Some(true))
            };
            fields.retain(|name, value| !value.is_null() || is_nullable(name));
            for (name, field) in properties(schema) {
                if let Some(default) = field.get("default").filter(|_| !fields.contains_key(name)) {
                    fields.insert(name.clone(), default.clone());
                }
            }
            for (name, value) in fields {
                if let Some(field) = field_schema(schema, name) {
                    complete(value, field);
                }
            }
        }
        Json::Array(items) => {
            if let Some(schema) = schema.get("items") {
                items.iter_mut().for_each(|item| complete(item, schema));
            }
        }
        _ => {}
    }
}

fn properties(schema: &Json) -> impl Iterator<Item = (&String, &Json)> {
    let properties = schema.get("properties").and_then(Json::as_object);
    properties.into_iter().flatten()
}

/// Returns the schema of a field; `None` if the schema says nothing about it.
fn field_schema<'s>(schema: &'s Json, name: &str) -> Option<&'s Json> {
    let named = schema
        .get("properties")
        .and_then(|properties| properties.get(name));
    named.or_else(|| {
        schema
            .get("additionalProperties")
            .filter(|schema| schema.is_object())
    })
}

/// Validates values. Patterns and expressions are compiled once.
#[derive(Debug, Default)]
pub(super) struct Validator {
    patterns: HashMap<String, Option<Arc<Regexp>>>,
    rules: HashMap<String, Option<Arc<Program>>>,
}

impl Validator {
    /// Returns the findings about a completed value at a path.
    pub(super) fn validate(&mut self, value: &Json, schema: &Json, path: &str) -> Vec<Invalid> {
        let mut found = Vec::new();
        self.value(value, schema, path, &mut found);
        found.truncate(MOST);
        found
    }

    fn value(&mut self, value: &Json, schema: &Json, path: &str, found: &mut Vec<Invalid>) {
        if found.len() >= MOST || value.is_null() {
            return;
        }
        let expected = schema.get("type").and_then(Json::as_str).unwrap_or_default();
        if !has_type(value, expected) {
            let actual = type_name(value);
            let message =
                format!("Invalid value: {actual:?}: {path} in body must be of type {expected}: {actual:?}");
            found.push(invalid(path, message));
            return;
        }
        allowed_values(value, schema, path, found);
        match value {
            Json::Object(fields) => self.object(fields, schema, path, found),
            Json::Array(items) => {
                count(
                    items.len(),
                    schema,
                    ("minItems", "maxItems", "items"),
                    path,
                    found,
                );
                if let Some(schema) = schema.get("items") {
                    for (at, item) in items.iter().enumerate() {
                        self.value(item, schema, &format!("{path}[{at}]"), found);
                    }
                }
            }
            Json::String(text) => self.text(text, schema, path, found),
            Json::Number(number) => bounds(number.as_f64().unwrap_or_default(), schema, path, found),
            _ => {}
        }
        self.expressions(value, schema, path, found);
    }

    fn object(&mut self, fields: &Map<String, Json>, schema: &Json, path: &str, found: &mut Vec<Invalid>) {
        let required = schema
            .get("required")
            .and_then(Json::as_array)
            .into_iter()
            .flatten();
        for name in required.filter_map(Json::as_str) {
            if !fields.contains_key(name) {
                found.push(invalid(&below(path, name), "Required value".to_owned()));
            }
        }
        count(
            fields.len(),
            schema,
            ("minProperties", "maxProperties", "entries"),
            path,
            found,
        );
        let keeps = |keyword: &str| schema.get(keyword).and_then(Json::as_bool) == Some(true);
        let is_open = keeps("x-kubernetes-preserve-unknown-fields") || keeps("additionalProperties");
        // The API server itself checks these.
        let is_own = |name: &str| path.is_empty() && ["apiVersion", "kind", "metadata"].contains(&name);
        for (name, value) in fields {
            match field_schema(schema, name) {
                Some(schema) => self.value(value, schema, &below(path, name), found),
                None if is_open || is_own(name) => {}
                None => {
                    let path = below(path, name);
                    found.push(invalid(&path, format!("unknown field {path:?}")));
                }
            }
        }
    }

    fn text(&mut self, text: &str, schema: &Json, path: &str, found: &mut Vec<Invalid>) {
        count(
            text.chars().count(),
            schema,
            ("minLength", "maxLength", "characters"),
            path,
            found,
        );
        let value = Json::from(text);
        if let Some(pattern) = schema.get("pattern").and_then(Json::as_str)
            && self
                .pattern(pattern)
                .is_some_and(|pattern| !pattern.is_match(text))
        {
            let message = format!(
                "Invalid value: {}: {path} in body should match '{pattern}'",
                abbreviated(&value)
            );
            found.push(invalid(path, message));
        }
        if schema.get("format").and_then(Json::as_str) == Some("date-time")
            && text.parse::<jiff::Timestamp>().is_err()
        {
            let message = format!(
                "Invalid value: {}: {path} in body must be of type date-time",
                abbreviated(&value)
            );
            found.push(invalid(path, message));
        }
    }

    fn pattern(&mut self, pattern: &str) -> Option<Arc<Regexp>> {
        let compiled = self
            .patterns
            .entry(pattern.to_owned())
            .or_insert_with(|| Regexp::compile(pattern).ok().map(Arc::new));
        compiled.clone()
    }

    fn rule(&mut self, rule: &str) -> Option<Arc<Program>> {
        let compiled = self.rules.entry(rule.to_owned()).or_insert_with(|| {
            let program = Program::compile(rule, Scope::Declared(&["self"]));
            program.ok().map(Arc::new)
        });
        compiled.clone()
    }

    /// Evaluates the rules about a value. Rules about changes need an older object, and are left out.
    fn expressions(&mut self, value: &Json, schema: &Json, path: &str, found: &mut Vec<Invalid>) {
        let rules = schema.get("x-kubernetes-validations").and_then(Json::as_array);
        for rule in rules.into_iter().flatten() {
            let text = rule.get("rule").and_then(Json::as_str).unwrap_or_default();
            let Some(program) = self.rule(text) else { continue };
            // Integers stay integers.
            let own = yaml::Value::from_json(value.clone());
            let variables = Variables::new().with("self", &own);
            let message = match program.is_true(&variables) {
                Ok(true) => continue,
                Ok(false) => match rule.get("message").and_then(Json::as_str) {
                    Some(message) => message.to_owned(),
                    None => format!("failed rule: {text}"),
                },
                Err(error) => format!("rule {text:?} can't be evaluated: {error}"),
            };
            found.push(invalid(
                path,
                format!("Invalid value: {:?}: {message}", type_name(value)),
            ));
        }
    }
}

/// Checks that a value is one of an enumeration.
fn allowed_values(value: &Json, schema: &Json, path: &str, found: &mut Vec<Invalid>) {
    let Some(allowed) = schema.get("enum").and_then(Json::as_array) else {
        return;
    };
    if !allowed.contains(value) {
        let allowed: Vec<String> = allowed.iter().map(Json::to_string).collect();
        let message = format!(
            "Unsupported value: {}: supported values: {}",
            abbreviated(value),
            allowed.join(", ")
        );
        found.push(invalid(path, message));
    }
}

fn invalid(field: &str, message: String) -> Invalid {
    Invalid {
        field: field.to_owned(),
        message,
    }
}

fn below(path: &str, name: &str) -> String {
    match path.is_empty() {
        true => name.to_owned(),
        false => format!("{path}.{name}"),
    }
}

/// Formats a value for a message, not in full if it is long.
fn abbreviated(value: &Json) -> String {
    let text = value.to_string();
    match text.char_indices().nth(VALUE_CHARS) {
        Some((at, _)) => format!("{}...", text.get(..at).unwrap_or_default()),
        None => text,
    }
}

fn type_name(value: &Json) -> &'static str {
    match value {
        Json::Null => "null",
        Json::Bool(_) => "boolean",
        Json::Number(number) if number.is_f64() => "number",
        Json::Number(_) => "integer",
        Json::String(_) => "string",
        Json::Array(_) => "array",
        Json::Object(_) => "object",
    }
}

fn has_type(value: &Json, expected: &str) -> bool {
    match expected {
        "" => true,
        "number" => value.is_number(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        expected => type_name(value) == expected,
    }
}

/// Checks a length by two keywords of a schema.
fn count(
    length: usize,
    schema: &Json,
    (least, most, unit): (&str, &str, &str),
    path: &str,
    found: &mut Vec<Invalid>,
) {
    let limit = |keyword: &str| schema.get(keyword).and_then(Json::as_u64);
    let length = length as u64;
    if let Some(least) = limit(least).filter(|least| length < *least) {
        let message =
            format!("Invalid value: {path} in body should have at least {least} {unit}, and has {length}");
        found.push(invalid(path, message));
    }
    if let Some(most) = limit(most).filter(|most| length > *most) {
        let message = format!("Too long: may not have more than {most} {unit}, and has {length}");
        found.push(invalid(path, message));
    }
}

fn bounds(number: f64, schema: &Json, path: &str, found: &mut Vec<Invalid>) {
    let limit = |keyword: &str| schema.get(keyword).and_then(Json::as_f64);
    if let Some(least) = limit("minimum").filter(|least| number < *least) {
        let message =
            format!("Invalid value: {number}: {path} in body should be greater than or equal to {least}");
        found.push(invalid(path, message));
    }
    if let Some(most) = limit("maximum").filter(|most| number > *most) {
        let message =
            format!("Invalid value: {number}: {path} in body should be less than or equal to {most}");
        found.push(invalid(path, message));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(schema: &Json, value: &Json) -> Vec<String> {
        let mut value = value.clone();
        complete(&mut value, schema);
        let found = Validator::default().validate(&value, schema, "spec");
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn each_keyword_is_checked() {
        let integer = json!({ "type": "integer", "minimum": 1, "maximum": 3 });
        for (schema, value, expected) in [
            (
                json!({ "type": "boolean" }),
                json!("yes"),
                "spec: Invalid value: \"string\": spec in body must be of type boolean: \"string\"",
            ),
            (
                json!({ "type": "string", "enum": ["a", "b"] }),
                json!("c"),
                "spec: Unsupported value: \"c\": supported values: \"a\", \"b\"",
            ),
            (
                json!({ "type": "string", "pattern": "^[a-z]+$" }),
                json!("A"),
                "spec: Invalid value: \"A\": spec in body should match '^[a-z]+$'",
            ),
            (
                json!({ "type": "string", "maxLength": 2 }),
                json!("äöü"),
                "spec: Too long: may not have more than 2 characters, and has 3",
            ),
            (
                json!({ "type": "string", "format": "date-time" }),
                json!("now"),
                "spec: Invalid value: \"now\": spec in body must be of type date-time",
            ),
            (
                integer.clone(),
                json!(0),
                "spec: Invalid value: 0: spec in body should be greater than or equal to 1",
            ),
            (
                integer.clone(),
                json!(4),
                "spec: Invalid value: 4: spec in body should be less than or equal to 3",
            ),
            (
                integer,
                json!(1.5),
                "spec: Invalid value: \"number\": spec in body must be of type integer: \"number\"",
            ),
            (
                json!({ "type": "array", "minItems": 1 }),
                json!([]),
                "spec: Invalid value: spec in body should have at least 1 items, and has 0",
            ),
            (
                json!({ "type": "object", "properties": { "a": { "type": "string" } }, "required": ["a"] }),
                json!({ "a": null }),
                "spec.a: Required value",
            ),
            (
                json!({ "type": "object", "properties": {} }),
                json!({ "b": 1 }),
                "spec.b: unknown field \"spec.b\"",
            ),
        ] {
            assert_eq!(found(&schema, &value), [expected], "{schema} {value}");
        }
        let open = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
        assert_eq!(found(&open, &json!({ "a": { "b": 1 } })), [""; 0]);
        let map = json!({ "type": "object", "additionalProperties": { "type": "string" } });
        assert_eq!(found(&map, &json!({ "a": 1 })).len(), 1);
    }

    #[test]
    fn rules_see_default_values() {
        let schema = json!({
            "type": "object", "properties": { "kind": { "type": "string", "default": "a" } },
            "x-kubernetes-validations": [{ "rule": "self.kind == 'a'", "message": "kind must be a" }],
        });
        assert_eq!(found(&schema, &json!({})), [""; 0]);
        assert_eq!(
            found(&schema, &json!({ "kind": "b" })),
            ["spec: Invalid value: \"object\": kind must be a"]
        );
    }

    #[test]
    fn patterns_and_rules_of_the_definitions_compile() {
        fn each(schema: &Json, check: &mut dyn FnMut(&Json)) {
            check(schema);
            let below = properties(schema).map(|(_, schema)| schema);
            let others = ["items", "additionalProperties"].into_iter();
            let others = others.filter_map(|keyword| schema.get(keyword));
            below.chain(others).for_each(|schema| each(schema, check));
        }
        let (mut patterns, mut rules) = (0, 0);
        for definition in api::crd::all() {
            let definition = serde_json::to_value(definition).unwrap();
            for version in definition["spec"]["versions"].as_array().unwrap() {
                each(&version["schema"]["openAPIV3Schema"], &mut |schema| {
                    let mut validator = Validator::default();
                    if let Some(pattern) = schema["pattern"].as_str() {
                        patterns += 1;
                        assert!(validator.pattern(pattern).is_some(), "{pattern}");
                    }
                    for rule in schema["x-kubernetes-validations"]
                        .as_array()
                        .into_iter()
                        .flatten()
                    {
                        rules += 1;
                        let rule = rule["rule"].as_str().unwrap();
                        assert!(
                            rule.contains("oldSelf") || validator.rule(rule).is_some(),
                            "{rule}"
                        );
                    }
                });
            }
        }
        assert!(patterns > 50 && rules > 5, "{patterns} patterns, {rules} rules");
    }
}

//! The renders that the specs of KluctlDeployments describe, for their controllers and for previews. Pure.

pub mod flux;
pub mod gitops;

use serde_json::Value as Json;
use yaml::{Map, Value};

/// Returns the arguments of a spec.
fn args(given: Option<&serde_json::Map<String, Json>>) -> Map {
    let args = Json::Object(given.cloned().unwrap_or_default());
    match Value::from_json(args) {
        Value::Map(map) => map,
        _ => Map::new(),
    }
}

fn filled(text: Option<&String>) -> Option<String> {
    text.filter(|text| !text.is_empty()).cloned()
}

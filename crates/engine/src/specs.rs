//! The specs of KluctlDeployments: the renders that they describe, and the faults of invalid fields, for their controllers, previews and checks
//! of manifests without a cluster. Pure.

pub mod flux;
pub mod gitops;

use serde_json::Value as Json;
use yaml::{Map, Value};

/// Value of `spec.deployMode` that deploys all objects, the default.
pub const FULL_DEPLOY: &str = "full-deploy";
/// Value of `spec.deployMode` that only replaces the images of deployed objects.
pub const POKE_IMAGES: &str = "poke-images";

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

//! Tests of the pages in `docs/spec/`: every example is valid against the schema, field by field.

use ::tree::{Budget, Limits};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use serde_json::Value;

use crate::tree;

/// Returns the objects in the fenced YAML blocks of a page.
fn examples(page: &str) -> Vec<Value> {
    let budget = Budget::new(Limits::default());
    let blocks = page
        .split("```yaml\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next());
    let parse = |block: &str| yaml::read::goyaml_all(block, &budget).unwrap();
    blocks
        .flat_map(parse)
        .map(|document| document.value.to_json())
        .collect()
}

/// Returns the schema of a property or of a map's value.
fn inner<'a>(schema: &'a JSONSchemaProps, key: &str) -> Option<&'a JSONSchemaProps> {
    if let Some(found) = schema
        .properties
        .as_ref()
        .and_then(|properties| properties.get(key))
    {
        return Some(found);
    }
    match &schema.additional_properties {
        Some(JSONSchemaPropsOrBool::Schema(found)) => Some(found),
        _ => None,
    }
}

fn assert_known(path: &str, value: &Value, schema: &JSONSchemaProps) {
    if schema.x_kubernetes_preserve_unknown_fields == Some(true) {
        return;
    }
    match (value, &schema.items) {
        (Value::Object(map), _) => {
            for (key, value) in map {
                let path = format!("{path}.{key}");
                assert_known(
                    &path,
                    value,
                    inner(schema, key).unwrap_or_else(|| panic!("{path} is not a field")),
                );
            }
        }
        (Value::Array(items), Some(JSONSchemaPropsOrArray::Schema(schema))) => {
            items
                .iter()
                .for_each(|item| assert_known(&format!("{path}[]"), item, schema));
        }
        _ => {}
    }
}

fn spec_of<'a>(crds: &'a [CustomResourceDefinition], object: &Value) -> Option<&'a JSONSchemaProps> {
    let (group, version) = object["apiVersion"].as_str()?.split_once('/')?;
    let kind = object["kind"].as_str()?;
    let crd = crds
        .iter()
        .find(|crd| crd.spec.group == group && crd.spec.names.kind == kind)?;
    let version = crd.spec.versions.iter().find(|found| found.name == version)?;
    version
        .schema
        .as_ref()?
        .open_api_v3_schema
        .as_ref()?
        .properties
        .as_ref()?
        .get("spec")
}

#[test]
fn pages_exist_for_each_kind_with_valid_examples() {
    let crds = api::crd::all();
    for crd in &crds {
        let kind = &crd.spec.names.kind;
        let path = tree::root().join(crate::generate::page(crd));
        let objects = examples(&std::fs::read_to_string(&path).unwrap());
        assert!(
            objects.iter().any(|object| object["kind"] == kind.as_str()),
            "no example of {kind}"
        );
        for object in objects {
            if object["apiVersion"] != "v1" {
                let schema = spec_of(&crds, &object).unwrap_or_else(|| panic!("{kind}: {object}"));
                assert_known("spec", &object["spec"], schema);
                let decoded = api::crd::decode(object.clone());
                decoded
                    .unwrap_or_else(|| panic!("unknown kind: {object}"))
                    .unwrap();
            }
        }
    }
}

#[test]
#[should_panic(expected = "spec.refs is not a field")]
fn assert_known_refuses_an_unknown_field() {
    let crds = api::crd::all();
    let object: Value = serde_json::json!({ "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository", "spec": { "refs": 1 } });
    assert_known("spec", &object["spec"], spec_of(&crds, &object).unwrap());
}

//! JSON schemas of the resources, for editors and for validators without a cluster: `crds/schemas/`.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Map, Value, json};

const DRAFT: &str = "http://json-schema.org/draft-07/schema#";

/// Returns the files by name: one per served version, named as kubeconform and the schemas of Flux name them, and `all.json`, which chooses
/// one by `apiVersion` and `kind`, and accepts other resources.
pub(crate) fn files(crds: &[CustomResourceDefinition]) -> Vec<(String, Value)> {
    let mut files = Vec::new();
    let mut choices = Vec::new();
    for crd in crds {
        let newest = crd.spec.versions.first().map_or("", |version| &version.name);
        for version in &crd.spec.versions {
            let name = file_name(crd, &version.name);
            choices.push(choice(crd, &version.name, &name));
            let schema = if version.name == newest {
                whole(crd)
            } else {
                // All versions share one schema.
                json!({ "$schema": DRAFT, "$ref": file_name(crd, newest) })
            };
            files.push((name, schema));
        }
    }
    files.push((
        "all.json".to_owned(),
        json!({ "$schema": DRAFT, "type": "object", "allOf": choices }),
    ));
    files
}

fn file_name(crd: &CustomResourceDefinition, version: &str) -> String {
    let group = crd.spec.group.split('.').next().unwrap_or_default();
    format!("{}-{group}-{version}.json", crd.spec.names.kind.to_lowercase())
}

fn choice(crd: &CustomResourceDefinition, version: &str, file: &str) -> Value {
    let api_version = format!("{}/{version}", crd.spec.group);
    json!({
        "if": {
            "properties": {
                "apiVersion": { "const": api_version },
                "kind": { "const": crd.spec.names.kind },
            },
            "required": ["apiVersion", "kind"],
        },
        "then": { "$ref": file },
    })
}

/// Returns the schema of a kind, in all of its versions.
fn whole(crd: &CustomResourceDefinition) -> Value {
    let schema = crd
        .spec
        .versions
        .first()
        .and_then(|version| version.schema.as_ref())
        .and_then(|schema| schema.open_api_v3_schema.as_ref());
    let schema = serde_json::to_value(schema).unwrap_or_default();
    let Value::Object(mut root) = strict(schema) else {
        return Value::Null;
    };
    let versions = crd.spec.versions.iter();
    let versions: Vec<_> = versions
        .map(|version| format!("{}/{}", crd.spec.group, version.name))
        .collect();
    if let Some(Value::Object(fields)) = root.get_mut("properties") {
        fields.insert(
            "apiVersion".to_owned(),
            json!({ "type": "string", "enum": versions }),
        );
        fields.insert(
            "kind".to_owned(),
            json!({ "type": "string", "const": crd.spec.names.kind }),
        );
        fields.insert("metadata".to_owned(), json!({ "type": "object" }));
    }
    let mut required = vec![json!("apiVersion"), json!("kind"), json!("metadata")];
    if let Some(Value::Array(others)) = root.remove("required") {
        required.extend(others);
    }
    root.insert("required".to_owned(), Value::Array(required));
    let mut all = Map::from_iter([("$schema".to_owned(), json!(DRAFT))]);
    all.extend(root);
    Value::Object(all)
}

/// Turns a schema of a definition into one that refuses unknown fields, as the API server does with `--validate=strict`.
fn strict(schema: Value) -> Value {
    let Value::Object(mut schema) = schema else {
        return schema;
    };
    let is_open = schema.get("x-kubernetes-preserve-unknown-fields") == Some(&json!(true));
    if schema.get("x-kubernetes-int-or-string") == Some(&json!(true)) {
        schema.remove("anyOf");
        schema.insert("type".to_owned(), json!(["integer", "string"]));
    }
    schema.retain(|key, _| !key.starts_with("x-kubernetes-"));
    for (key, inner) in &mut schema {
        match (key.as_str(), inner) {
            ("properties", Value::Object(fields)) => {
                fields
                    .values_mut()
                    .for_each(|field| *field = strict(field.take()));
            }
            ("items" | "additionalProperties" | "not", inner) => *inner = strict(inner.take()),
            ("allOf" | "anyOf" | "oneOf", Value::Array(list)) => {
                list.iter_mut().for_each(|one| *one = strict(one.take()));
            }
            _ => {}
        }
    }
    if schema.contains_key("properties") && !is_open {
        schema.entry("additionalProperties").or_insert(Value::Bool(false));
    }
    Value::Object(schema)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn strict_refuses_unknown_fields_but_of_open_objects() {
        let schema = json!({
            "type": "object",
            "x-kubernetes-validations": [{ "rule": "true" }],
            "properties": {
                "open": { "type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": { "a": { "type": "string" } } },
                "port": { "x-kubernetes-int-or-string": true, "anyOf": [{ "type": "integer" }, { "type": "string" }] },
                "map": { "type": "object", "additionalProperties": { "type": "object", "properties": {} } },
            },
        });
        assert_eq!(
            strict(schema),
            json!({
                "type": "object",
                "properties": {
                    "open": { "type": "object", "properties": { "a": { "type": "string" } } },
                    "port": { "type": ["integer", "string"] },
                    "map": {
                        "type": "object",
                        "additionalProperties": { "type": "object", "properties": {}, "additionalProperties": false },
                    },
                },
                "additionalProperties": false,
            })
        );
    }

    #[test]
    fn each_served_version_has_a_file_that_others_find() {
        let crds = api::crd::all();
        let files: BTreeMap<_, _> = files(&crds).into_iter().collect();
        let count: usize = crds.iter().map(|crd| crd.spec.versions.len()).sum();
        assert_eq!(files.len(), count + 1);
        let references = files.values().filter_map(|schema| schema["$ref"].as_str());
        let all = files["all.json"]["allOf"].as_array().unwrap().iter();
        let choices = all.map(|choice| choice["then"]["$ref"].as_str().unwrap());
        for file in references.chain(choices) {
            assert_eq!(files[file]["$schema"], DRAFT, "{file}");
        }
        let current = &files["gitrepository-source-v1.json"];
        let required = json!(["apiVersion", "kind", "metadata", "spec"]);
        assert_eq!(current["required"], required);
        let versions = &current["properties"]["apiVersion"]["enum"];
        assert_eq!(versions[0], "source.toolkit.fluxcd.io/v1");
        assert_eq!(
            files["gitrepository-source-v1beta1.json"]["$ref"],
            "gitrepository-source-v1.json"
        );
        // Both kinds of this name have a file.
        for file in [
            "kluctldeployment-flux-v1alpha1.json",
            "kluctldeployment-gitops-v1beta1.json",
        ] {
            assert_eq!(files[file]["properties"]["kind"]["const"], "KluctlDeployment");
        }
    }
}

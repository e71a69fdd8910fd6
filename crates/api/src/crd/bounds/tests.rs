//! Tests of the bounds.

use serde_json::{Map, json};

use super::*;
use crate::crd;

fn schema(definition: &CustomResourceDefinition) -> JSONSchemaProps {
    let version = definition.spec.versions.first().unwrap();
    version.schema.clone().unwrap().open_api_v3_schema.unwrap()
}

/// Calls `visit` for each value of a schema with its path and its parents: `None` is an item of a list.
fn walk(
    schema: &JSONSchemaProps,
    path: &mut Vec<Option<String>>,
    visit: &mut impl FnMut(&[Option<String>], &JSONSchemaProps),
) {
    visit(path, schema);
    let mut below = |step: Option<String>, schema: &JSONSchemaProps| {
        path.push(step);
        walk(schema, path, visit);
        path.pop();
    };
    for (name, inner) in schema.properties.iter().flatten() {
        below(Some(name.clone()), inner);
    }
    if let Some(JSONSchemaPropsOrArray::Schema(item)) = &schema.items {
        below(None, item);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(value)) = &schema.additional_properties {
        below(Some("key".to_owned()), value);
    }
}

fn visit_all(mut visit: impl FnMut(&CustomResourceDefinition, &[Option<String>], &JSONSchemaProps)) {
    for definition in crd::all() {
        walk(&schema(&definition), &mut Vec::new(), &mut |path, schema| {
            visit(&definition, path, schema);
        });
    }
}

/// Returns a value of the bounded size of a schema, or one more of it; `None` if the schema has no size.
fn of_size(schema: &JSONSchemaProps, more: usize) -> Option<Value> {
    let count = |bound: Option<i64>| usize::try_from(bound.unwrap()).unwrap() + more;
    if schema.type_.as_deref() == Some("string") {
        return Some("ä".repeat(count(schema.max_length)).into());
    }
    if schema.type_.as_deref() == Some("array") {
        return Some(vec![Value::Null; count(schema.max_items)].into());
    }
    schema.additional_properties.as_ref()?;
    let entries = 0..count(schema.max_properties);
    Some(
        entries
            .map(|at| (at.to_string(), Value::Null))
            .collect::<Map<_, _>>()
            .into(),
    )
}

fn wrapped(path: &[Option<String>], value: Value) -> Value {
    path.iter().rev().fold(value, |value, step| match step {
        Some(name) => json!({ name: value }),
        None => json!([value]),
    })
}

#[test]
fn every_string_list_and_map_of_the_definitions_is_bounded() {
    let mut unbounded = Vec::new();
    visit_all(|definition, path, schema| {
        let is_bounded = match schema.type_.as_deref() {
            Some("string") => schema.max_length.is_some(),
            Some("array") => schema.max_items.is_some(),
            _ if schema.additional_properties.is_some() || is_free(schema) => schema.max_properties.is_some(),
            _ => true,
        };
        if !is_bounded {
            unbounded.push(format!(
                "{} {path:?}",
                definition.metadata.name.as_deref().unwrap()
            ));
        }
    });
    assert_eq!(unbounded, [""; 0]);
}

#[test]
fn objects_are_checked_against_the_bounds_of_their_definition() {
    let mut checked = 0;
    visit_all(|definition, path, schema| {
        let (Some(Some(part)), Some(fits), Some(large)) =
            (path.first(), of_size(schema, 0), of_size(schema, 1))
        else {
            return;
        };
        let bounds = Bounds::of(definition);
        let check = |value| bounds.check(part, &wrapped(&path[1..], value));
        assert_eq!(check(fits), Ok(()), "{path:?}");
        let error = check(large).unwrap_err();
        assert_eq!(error.size, error.bound + 1, "{path:?}");
        checked += 1;
    });
    assert!(checked > 400, "{checked}");
}

#[test]
fn bounds_of_the_originals_stay() {
    let length = |kind: &str, field: &str| {
        let definition = crd::all()
            .into_iter()
            .find(|one| one.spec.names.kind == kind)
            .unwrap();
        let mut found = None;
        walk(&schema(&definition), &mut Vec::new(), &mut |path, schema| {
            if path.iter().flatten().map(String::as_str).eq(["spec", field]) {
                found = found.or(schema.max_length).or(schema.max_items);
            }
        });
        found
    };
    for (kind, field, bound) in [
        ("Provider", "address", 2048),
        ("Alert", "summary", 255),
        ("HelmChart", "valuesFiles", 100),
        ("KluctlDeployment", "target", 63),
        ("GitRepository", "interval", 20),
        ("GitRepository", "ignore", TEXT),
    ] {
        assert_eq!(length(kind, field), Some(bound), "{kind} {field}");
    }
}

#[test]
fn patterns_that_select_objects_may_be_longer_than_names() {
    let bounds = crd::bounds("kustomize.toolkit.fluxcd.io", "Kustomization").unwrap();
    let pattern = |length: usize| "x".repeat(length);
    for field in ["group", "version", "kind", "name", "namespace"] {
        let spec = |length| {
            let target = json!({ field: pattern(length) });
            [
                json!({ "patches": [{ "target": target }] }),
                json!({ "patchesJson6902": [{ "target": target }] }),
                json!({ "ignore": [{ "target": target }] }),
            ]
        };
        for fits in spec(4096) {
            assert_eq!(bounds.check("spec", &fits), Ok(()), "{field}");
        }
        for large in spec(4097) {
            assert_eq!(bounds.check("spec", &large).unwrap_err().bound, 4096, "{field}");
        }
    }
    let source = json!({ "sourceRef": { "namespace": pattern(64) } });
    assert_eq!(bounds.check("spec", &source).unwrap_err().bound, 63);
}

#[test]
fn error_names_the_field_its_size_and_its_bound() {
    let bounds = crd::bounds("flux.kluctl.io", "KluctlDeployment").unwrap();
    let images = json!({ "images": [{}, { "resultImage": "x".repeat(5000) }] });
    assert_eq!(
        bounds.check("spec", &images).unwrap_err().to_string(),
        "spec.images[1].resultImage: it has 5000 characters, and at most 4096 are allowed"
    );
    let args = json!({ "args": { "a": [{ "b": "x".repeat(FREE_BYTES) }] } });
    assert_eq!(
        bounds.check("spec", &args).unwrap_err().to_string(),
        "spec.args: it has 1048577 bytes or more, and at most 1048576 are allowed"
    );
    let args = json!({ "args": { "a": [{ "b": "x".repeat(FREE_BYTES - 100) }], "c": [1, null] } });
    assert_eq!(bounds.check("spec", &args), Ok(()));
    assert_eq!(
        bounds.check(
            "spec",
            &json!({ "args": 1, "images": "none", "path": [], "unknown": ["x"] })
        ),
        Ok(())
    );
    let alert = crd::bounds("notification.toolkit.fluxcd.io", "Alert").unwrap();
    let metadata = json!({ "eventMetadata": { "k".repeat(5000): "" } });
    let error = alert.check("spec", &metadata).unwrap_err();
    assert_eq!(
        (error.size, error.path),
        (5000, format!("spec.eventMetadata.{}", "k".repeat(64)))
    );
    assert!(crd::bounds("example.com", "Alert").is_none());
}

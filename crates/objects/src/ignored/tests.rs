use serde_json::{Value as Json, json};

use super::*;
use crate::takeover::TakenManager;

fn pointers(texts: &[&str]) -> Vec<Pointer> {
    texts.iter().map(|text| Pointer::parse(text).unwrap()).collect()
}

fn adapt(manifest: &Json, live: &Json, paths: &[&str], takeover: Option<&Takeover>) -> Option<Json> {
    let (manifest, live) = (Value::from_json(manifest.clone()), Value::from_json(live.clone()));
    adapted(&manifest, &live, &pointers(paths), ("us", takeover)).map(|adapted| adapted.to_json())
}

fn entry(manager: &str, operation: &str, fields: &Json) -> Json {
    json!({ "manager": manager, "operation": operation, "fieldsType": "FieldsV1", "fieldsV1": fields })
}

fn live(spec: &Json, managers: &[(&str, &str)], fields: &Json) -> Json {
    let entries = managers.iter();
    let entries = entries.map(|(name, operation)| entry(name, operation, &json!({ "f:spec": fields })));
    let entries: Vec<Json> = entries.collect();
    json!({ "metadata": { "managedFields": entries }, "spec": spec })
}

#[test]
fn pointers_are_parsed_and_those_of_the_identity_refused() {
    for text in ["/spec/replicas", "/metadata/labels/a~1b~0c", "/", "/a//b"] {
        assert_eq!(Pointer::parse(text).unwrap().to_string(), text);
    }
    for (text, part) in [
        ("", "covers the identity"),
        ("spec", "has to begin with '/'"),
        ("/a~2", "'~' is written as"),
        ("/a~", "'~' is written as"),
        ("/a~ä", "'~' is written as"),
        ("/metadata", "covers the identity"),
        ("/metadata/name", "covers the identity"),
        ("/kind", "covers the identity"),
    ] {
        let error = Pointer::parse(text).unwrap_err().to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
}

#[test]
fn differing_fields_are_adopted_or_left_to_their_owners() {
    let manifest = json!({ "spec": { "replicas": 1, "paused": true } });
    let fields = json!({ "f:replicas": {} });
    let spec = json!({ "replicas": 3, "paused": true });
    for (title, managers, expected) in [
        (
            "sole owner",
            &[("us", "Apply")][..],
            Some(json!({ "replicas": 3, "paused": true })),
        ),
        (
            "edited by hand",
            &[("us", "Apply"), ("hand", "Update")],
            Some(json!({ "replicas": 3, "paused": true })),
        ),
        (
            "applied by another",
            &[("us", "Apply"), ("hpa", "Apply")],
            Some(json!({ "paused": true })),
        ),
    ] {
        let found = adapt(
            &manifest,
            &live(&spec, managers, &fields),
            &["/spec/replicas"],
            None,
        );
        assert_eq!(found.map(|found| found["spec"].clone()), expected, "{title}");
    }
    let other = live(&spec, &[("hpa", "Apply")], &fields);
    assert_eq!(
        adapt(&manifest, &other, &["/spec/paused", "/spec/none"], None),
        None
    );
    let equal = live(
        &json!({ "replicas": 1, "paused": true }),
        &[("hpa", "Apply")],
        &fields,
    );
    assert_eq!(adapt(&manifest, &equal, &["/spec/replicas", "/spec"], None), None);
}

#[test]
fn managers_that_are_taken_over_are_no_others() {
    let takeover = Takeover {
        managers: vec![TakenManager {
            name: "kubectl".into(),
            is_prefix: false,
            operation: Some(Operation::Apply),
        }],
        ..Takeover::default()
    };
    let live = live(
        &json!({ "replicas": 3 }),
        &[("kubectl", "Apply")],
        &json!({ "f:replicas": {} }),
    );
    let manifest = json!({ "spec": { "replicas": 1 } });
    let found = |takeover| adapt(&manifest, &live, &["/spec/replicas"], takeover).unwrap()["spec"].clone();
    assert_eq!(found(Some(&takeover)), json!({ "replicas": 3 }));
    assert_eq!(found(None), json!({}));
}

#[test]
fn missing_fields_stay_missing_and_owned_ones_stay() {
    let fields = json!({ "f:a": {}, "f:b": {} });
    let manifest = json!({ "spec": { "a": 1, "c": { "d": 1 } } });
    let live = live(&json!({ "b": 2, "x": 5 }), &[("us", "Apply")], &fields);
    let found = adapt(
        &manifest,
        &live,
        &["/spec/a", "/spec/b", "/spec/c/d", "/spec/x"],
        None,
    );
    // The parent of "d" is new, and "x" belongs to another.
    assert_eq!(found.unwrap()["spec"], json!({ "b": 2, "c": { "d": 1 } }));
}

#[test]
fn items_of_lists_are_found_by_their_names() {
    let fields = json!({ "f:containers": {
        "k:{\"name\":\"app\"}": { ".": {}, "f:name": {}, "f:image": {} },
    } });
    let spec =
        json!({ "containers": [{ "name": "sidecar", "image": "s" }, { "name": "app", "image": "new" }] });
    let manifest = json!({ "spec": { "containers": [
        { "name": "app", "image": "old" }, { "name": "more", "image": "m" },
    ] } });
    let paths = ["/spec/containers/0/image", "/spec/containers/1/image"];
    let own = live(&spec, &[("us", "Apply")], &fields);
    let found = adapt(&manifest, &own, &paths, None).unwrap();
    let expected = json!([{ "name": "app", "image": "new" }, { "name": "more", "image": "m" }]);
    assert_eq!(found["spec"]["containers"], expected);
    let other = live(&spec, &[("us", "Apply"), ("updater", "Apply")], &fields);
    let found = adapt(&manifest, &other, &paths, None).unwrap();
    let expected = json!([{ "name": "app" }, { "name": "more", "image": "m" }]);
    assert_eq!(found["spec"]["containers"], expected);
}

#[test]
fn plain_items_are_removed_by_their_positions() {
    let live = live(
        &json!({ "args": ["x", "b", "y"] }),
        &[("other", "Apply")],
        &json!({ "f:args": { "v:\"x\"": {}, "v:\"y\"": {} } }),
    );
    let manifest = json!({ "spec": { "args": ["a", "b", "c"] } });
    let found = adapt(&manifest, &live, &["/spec/args/0", "/spec/args/2"], None).unwrap();
    assert_eq!(found["spec"]["args"], json!(["b"]));
}

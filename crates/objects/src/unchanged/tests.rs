use super::*;
use serde_json::{Value as Json, json};

/// A Deployment as the API server answers it after it was applied.
fn live() -> Json {
    let main = json!({".": {}, "f:name": {}, "f:image": {}, "f:args": {}, "f:ports": {
        "k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}},
        "k:{\"containerPort\":80,\"protocol\":\"UDP\"}": {".": {}, "f:containerPort": {}, "f:protocol": {}}}});
    let side = json!({".": {}, "f:name": {}, "f:image": {}, "f:securityContext": {}});
    let pods = json!({"f:containers": {"k:{\"name\":\"main\"}": main, "k:{\"name\":\"side\"}": side}});
    let template = json!({"f:metadata": {"f:labels": {"f:app": {}}}, "f:spec": pods});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {
            "name": "web", "namespace": "n", "uid": "u", "resourceVersion": "7", "generation": 1,
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"app": "web", "other": "x"},
            "annotations": {"deployment.kubernetes.io/revision": "1"},
            "finalizers": ["a/a", "b/b", "c/c"],
            "managedFields": [
                {"manager": "deployer", "operation": "Apply", "apiVersion": "apps/v1", "fieldsType": "FieldsV1", "fieldsV1": {
                    "f:metadata": {"f:labels": {"f:app": {}}, "f:finalizers": {"v:\"a/a\"": {}, "v:\"c/c\"": {}}},
                    "f:spec": {"f:replicas": {}, "f:selector": {}, "f:strategy": {}, "f:template": template}}},
                {"manager": "kube-controller-manager", "operation": "Update", "apiVersion": "apps/v1", "subresource": "status",
                 "fieldsType": "FieldsV1", "fieldsV1": {"f:status": {"f:replicas": {}}}},
            ],
        },
        "spec": {
            "replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "strategy": {},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"restartPolicy": "Always", "containers": [
                {"name": "main", "image": "i:1", "args": ["a", "b"], "imagePullPolicy": "Always", "ports": [
                    {"containerPort": 80, "protocol": "TCP"}, {"containerPort": 80, "protocol": "UDP"}]},
                {"name": "injected", "image": "i:9"},
                {"name": "side", "image": "i:2", "securityContext": {}}]}}},
        "status": {"replicas": 2},
    })
}

fn manifest() -> Json {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "n", "labels": {"app": "web"}, "finalizers": ["a/a", "c/c"]},
        "spec": {
            "replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "strategy": {},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [
                {"name": "main", "image": "i:1", "args": ["a", "b"], "ports": [
                    {"containerPort": 80}, {"containerPort": 80, "protocol": "UDP"}]},
                {"name": "side", "image": "i:2", "securityContext": {}}]}}},
    })
}

const MAIN: &str = "/spec/template/spec/containers/0";
const OWN: &str = "/metadata/managedFields/0";

fn with(mut object: Json, at: &str, value: Json) -> Json {
    match object.pointer_mut(at) {
        Some(found) => *found = value,
        None => {
            let (above, name) = at.rsplit_once('/').unwrap();
            object.pointer_mut(above).unwrap()[name] = value;
        }
    }
    object
}

fn without(mut object: Json, at: &str) -> Json {
    let (above, name) = at.rsplit_once('/').unwrap();
    object
        .pointer_mut(above)
        .unwrap()
        .as_object_mut()
        .unwrap()
        .remove(name)
        .unwrap();
    object
}

fn unchanged(manifest: Json, live: Json) -> bool {
    is_unchanged(&Value::from_json(manifest), &Value::from_json(live), "deployer")
}

#[test]
fn applied_manifest_is_settled() {
    assert!(unchanged(manifest(), live()));
    // Fields of others, or of nobody, do not matter.
    assert!(unchanged(manifest(), with(live(), "/spec/paused", json!(true))));
    assert!(unchanged(
        manifest(),
        with(live(), "/metadata/labels/other", json!("y"))
    ));
    assert!(unchanged(manifest(), with(live(), "/status", json!({}))));
}

#[test]
fn different_manifest_is_not_settled() {
    for (what, at, value) in [
        ("another value", "/spec/replicas", json!(3)),
        ("another type", "/spec/replicas", json!("2")),
        ("a value that is written otherwise", "/spec/replicas", json!(2.0)),
        ("a new field", "/spec/paused", json!(false)),
        ("a field that others own", "/metadata/labels/other", json!("x")),
        ("a field without a value", "/spec/replicas", Json::Null),
        ("a new field without a value", "/spec/paused", Json::Null),
        ("a whole map", "/spec/selector/matchLabels/b", json!("c")),
        ("what was empty", "/spec/strategy", json!({"type": "Recreate"})),
        ("a whole list", &format!("{MAIN}/args"), json!(["b", "a"])),
        ("a key", &format!("{MAIN}/ports/0/containerPort"), json!(81)),
        (
            "a key that had its default",
            &format!("{MAIN}/ports/0/protocol"),
            json!("TCP"),
        ),
        ("an item's field", &format!("{MAIN}/image"), json!("i:2")),
        (
            "the order of items",
            "/spec/template/spec/containers",
            json!([
            {"name": "side", "image": "i:2", "securityContext": {}},
            {"name": "main", "image": "i:1", "args": ["a", "b"], "ports": [
                {"containerPort": 80}, {"containerPort": 80, "protocol": "UDP"}]}]),
        ),
        (
            "the same item twice",
            &format!("{MAIN}/ports"),
            json!([{"containerPort": 80}, {"containerPort": 80}]),
        ),
        (
            "a new member",
            "/metadata/finalizers",
            json!(["a/a", "b/b", "c/c"]),
        ),
        (
            "the order of members",
            "/metadata/finalizers",
            json!(["c/c", "a/a"]),
        ),
        (
            "a member twice",
            "/metadata/finalizers",
            json!(["a/a", "c/c", "c/c"]),
        ),
        ("a list in place of a map", "/spec/selector", json!([])),
        ("the status", "/status", json!({"replicas": 2})),
        ("the version", "/apiVersion", json!("apps/v1beta2")),
        ("the namespace", "/metadata/namespace", json!("m")),
        ("a precondition", "/metadata/resourceVersion", json!("7")),
        ("a time", "/metadata/creationTimestamp", Json::Null),
    ] {
        assert!(!unchanged(with(manifest(), at, value), live()), "{what}");
    }
    for at in [
        "/spec/replicas",
        "/spec/strategy",
        "/metadata/labels",
        "/metadata/finalizers",
        "/spec",
    ] {
        assert!(!unchanged(without(manifest(), at), live()), "without {at}");
    }
    for item in [
        format!("{MAIN}/args"),
        format!("{MAIN}/image"),
        format!("{MAIN}/name"),
    ] {
        assert!(!unchanged(without(manifest(), &item), live()), "without {item}");
    }
}

#[test]
fn object_changed_by_others_is_not_settled() {
    for (what, at, value) in [
        ("a value", "/spec/replicas", json!(3)),
        (
            "a default of ours",
            "/spec/strategy",
            json!({"type": "RollingUpdate"}),
        ),
        ("an item", &format!("{MAIN}/image"), json!("i:2")),
        ("a list", &format!("{MAIN}/args"), json!(["a"])),
        (
            "an item that is twice",
            "/spec/template/spec/containers/1/name",
            json!("side"),
        ),
        (
            "the end of an object",
            "/metadata/deletionTimestamp",
            json!("2026-01-01T00:00:00Z"),
        ),
        ("the version", "/apiVersion", json!("apps/v1beta2")),
        ("a member", "/metadata/finalizers", json!(["a/a"])),
        ("all managers", "/metadata/managedFields", json!([])),
        (
            "our manager's name",
            &format!("{OWN}/manager"),
            json!("deployer-x"),
        ),
        ("how it was written", &format!("{OWN}/operation"), json!("Update")),
        (
            "through what it was written",
            &format!("{OWN}/subresource"),
            json!("scale"),
        ),
        (
            "in which version it was written",
            &format!("{OWN}/apiVersion"),
            json!("apps/v1beta2"),
        ),
        (
            "in which form it is told",
            &format!("{OWN}/fieldsType"),
            json!("FieldsV2"),
        ),
        (
            "fields that are no longer rendered",
            &format!("{OWN}/fieldsV1/f:spec/f:paused"),
            json!({}),
        ),
        (
            "a field below",
            &format!("{OWN}/fieldsV1/f:metadata/f:labels/f:gone"),
            json!({}),
        ),
        (
            "a field of an unknown form",
            &format!("{OWN}/fieldsV1/f:spec/i:0"),
            json!({}),
        ),
        (
            "what is below",
            &format!("{OWN}/fieldsV1/f:spec/f:selector"),
            json!({"f:matchLabels": {}}),
        ),
        (
            "another top",
            &format!("{OWN}/fieldsV1/f:data"),
            json!({"f:a": {}}),
        ),
    ] {
        assert!(!unchanged(manifest(), with(live(), at, value)), "{what}");
    }
    for at in [
        "/spec/replicas",
        "/spec/strategy",
        "/metadata/labels/app",
        "/metadata/managedFields",
        "/spec",
    ] {
        assert!(!unchanged(manifest(), without(live(), at)), "without {at}");
    }
    let unowned = format!("{OWN}/fieldsV1/f:spec/f:replicas");
    assert!(!unchanged(manifest(), without(live(), &unowned)), "a lost field");
    let mut twice = live();
    let own = twice.pointer(OWN).unwrap().clone();
    twice["metadata"]["managedFields"]
        .as_array_mut()
        .unwrap()
        .push(own);
    assert!(!unchanged(manifest(), twice));
}

#[test]
fn atomic_fields_are_known_for_built_in_kinds_only() {
    let object = |api_version: &str, spec: Json, owned: Json| {
        let manifest =
            json!({"apiVersion": api_version, "kind": "Thing", "metadata": {"name": "a"}, "spec": spec});
        let mut live = manifest.clone();
        live["metadata"]["managedFields"] = json!([{"manager": "deployer", "operation": "Apply", "apiVersion": api_version,
            "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": owned}}]);
        unchanged(manifest, live)
    };
    let rules = json!({"rules": [{"host": "a"}]});
    assert!(object(
        "networking.k8s.io/v1",
        rules.clone(),
        json!({"f:rules": {}})
    ));
    assert!(!object("example.com/v1", rules, json!({"f:rules": {}})));
    let parameters = json!({"parameters": {"a": "b"}});
    assert!(object(
        "example.com/v1",
        parameters.clone(),
        json!({"f:parameters": {"f:a": {}}})
    ));
    assert!(
        !object("storage.k8s.io/v1", parameters, json!({"f:parameters": {}})),
        "it was applied empty"
    );
    assert!(object(
        "example.com/v1",
        json!({"a": {"b": "c"}, "d": true}),
        json!({"f:a": {".": {}, "f:b": {}}, "f:d": {}})
    ));
    assert!(object(
        "example.com/v1",
        json!({"a": {}, "b": []}),
        json!({"f:a": {}, "f:b": {}})
    ));
}

#[test]
fn atomic_map_may_contain_a_default() {
    let unchanged = |field: &str, rendered: Json, found: Json| {
        let object = |value: Json| json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {field: value}});
        let mut live = object(found);
        let owned = format!("f:{field}");
        live["metadata"]["managedFields"] = json!([{"manager": "deployer", "operation": "Apply", "apiVersion": "v1",
            "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {owned: {}}}}]);
        unchanged(object(rendered), live)
    };
    let path = |version: &str| json!({"apiVersion": version, "fieldPath": "a"});
    assert!(unchanged("fieldRef", json!({"fieldPath": "a"}), path("v1")));
    assert!(unchanged("fieldRef", path("v1"), path("v1")));
    assert!(!unchanged("fieldRef", json!({"fieldPath": "a"}), path("v2")));
    assert!(!unchanged("fieldRef", json!({"fieldPath": "b"}), path("v1")));
    assert!(!unchanged("secretKeyRef", json!({"fieldPath": "a"}), path("v1")));
}

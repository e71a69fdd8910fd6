#![allow(
    clippy::needless_pass_by_value,
    reason = "a json! literal reads best by value"
)]

use serde_json::{Value as Json, json};
use yaml::Value;

use super::*;
use crate::{rules::ObjectPattern, vocabulary::tests::EXAMPLE};

fn policy(rules: &[ConflictRule]) -> Policy<'_> {
    Policy {
        vocabulary: &EXAMPLE,
        overridden: Managers {
            names: &["deployer", "kubectl", "k9s"],
            prefixes: &["kubectl-"],
        },
        rules,
    }
}

fn resolve(live: &Value, local: &Value, policy: Policy<'_>, causes: &[Cause]) -> Result<Resolution, Error> {
    ConflictTexts::of(local, policy)
        .compile()?
        .resolve(live, local, causes)
}

/// A live object whose `data` fields have these owners, as `[name, value, managers...]`.
fn live(fields: &[(&str, Json, &[&str])]) -> Value {
    let data: serde_json::Map<_, _> = fields
        .iter()
        .map(|(name, value, _)| ((*name).to_owned(), value.clone()))
        .collect();
    let mut managed = Vec::new();
    for (name, _, managers) in fields {
        for manager in *managers {
            managed.push(json!({"manager": manager, "operation": "Update",
                "fieldsV1": {"f:data": {".": {}, format!("f:{name}"): {}}}}));
        }
    }
    Value::from_json(json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "c", "managedFields": managed}, "data": data}))
}

fn local(annotations: Json, data: Json) -> Value {
    Value::from_json(json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "c", "annotations": annotations}, "data": data}))
}

fn cause(manager: &str, field: &str) -> Cause {
    Cause {
        reason: "FieldManagerConflict".to_owned(),
        message: format!("conflict with \"{manager}\" using v1"),
        field: field.to_owned(),
    }
}

#[test]
fn resolve_obeys_annotations_and_overridden_managers() {
    let left = LeftField {
        message: "conflict with \"other\" using v1".to_owned(),
        field: ".data.aa".to_owned(),
    };
    for (title, managers, annotations, kept, warned) in [
        (
            "a foreign manager keeps its field",
            &["other"][..],
            json!({}),
            false,
            true,
        ),
        (
            "kubectl-edit is overridden",
            &["kubectl-edit"][..],
            json!({}),
            true,
            false,
        ),
        ("kubectl is overridden", &["kubectl"][..], json!({}), true, false),
        ("k9s is overridden", &["k9s"][..], json!({}), true, false),
        (
            "a name with the same beginning is not",
            &["kubectlish"][..],
            json!({}),
            false,
            true,
        ),
        (
            "one overridden manager of two is enough",
            &["other", "deployer"][..],
            json!({}),
            true,
            false,
        ),
        (
            "force-apply",
            &["other"][..],
            json!({"example.com/force-apply": "true"}),
            true,
            false,
        ),
        (
            "force-apply-field",
            &["other"][..],
            json!({"example.com/force-apply-field-3": "data.aa"}),
            true,
            false,
        ),
        (
            "of another field",
            &["other"][..],
            json!({"example.com/force-apply-field": "data.bb"}),
            false,
            true,
        ),
        (
            "force-apply-manager",
            &["other"][..],
            json!({"example.com/force-apply-manager": "^oth"}),
            true,
            false,
        ),
        (
            "of another manager",
            &["other"][..],
            json!({"example.com/force-apply-manager": "^x"}),
            false,
            true,
        ),
        (
            "ignore-conflicts",
            &["other"][..],
            json!({"example.com/ignore-conflicts": "true"}),
            false,
            false,
        ),
        (
            "ignore-conflicts-field",
            &["other"][..],
            json!({"example.com/ignore-conflicts-field": "data.aa"}),
            false,
            false,
        ),
        (
            "ignore-conflicts-manager",
            &["other"][..],
            json!({"example.com/ignore-conflicts-manager-1": "o.*r"}),
            false,
            false,
        ),
        (
            "ignoring beats an overridden manager",
            &["kubectl"][..],
            json!({"example.com/ignore-conflicts": "1"}),
            false,
            false,
        ),
        (
            "ignoring beats forcing",
            &["other"][..],
            json!({"example.com/force-apply-field": "data.aa", "example.com/ignore-conflicts": "true"}),
            false,
            false,
        ),
    ] {
        let live = live(&[
            ("aa", json!("theirs"), managers),
            ("bb", json!("x"), &["deployer"]),
        ]);
        let local = local(annotations, json!({"aa": "ours", "bb": "x"}));
        let resolution = resolve(&live, &local, policy(&[]), &[cause("other", ".data.aa")]).unwrap();
        let data = resolution.patch.get("data").unwrap();
        assert_eq!(data.get("aa").is_some(), kept, "{title}");
        assert_eq!(data.get("bb"), Some(&Value::from("x")), "{title}");
        assert_eq!(
            resolution.left,
            if warned { vec![left.clone()] } else { vec![] },
            "{title}"
        );
    }
}

#[test]
fn resolve_drops_an_equal_value_without_a_warning() {
    let live = live(&[("aa", json!("same"), &["other"])]);
    let resolution = resolve(
        &live,
        &local(json!({}), json!({"aa": "same"})),
        policy(&[]),
        &[cause("other", ".data.aa")],
    )
    .unwrap();
    assert_eq!(resolution.patch.pointer(&["data", "aa"]), None);
    assert!(resolution.left.is_empty());
}

#[test]
fn resolve_finds_list_items_by_key() {
    let containers = |first: &str, image: &str| {
        let mut list = vec![
            json!({"name": "app", "image": image}),
            json!({"name": first, "image": "s"}),
        ];
        list.reverse();
        list
    };
    let live = Value::from_json(json!({
        "metadata": {"managedFields": [{"manager": "injector", "operation": "Update", "fieldsV1": {
            "f:spec": {"f:containers": {"k:{\"name\":\"app\"}": {"f:image": {}}}}}}]},
        "spec": {"containers": containers("sidecar", "theirs")},
    }));
    let local = Value::from_json(json!({"spec": {"containers": [{"name": "app", "image": "ours"}]}}));
    let resolution = resolve(
        &live,
        &local,
        policy(&[]),
        &[cause("injector", ".spec.containers[name=\"app\"].image")],
    )
    .unwrap();
    assert_eq!(
        resolution.patch,
        Value::from_json(json!({"spec": {"containers": [{"name": "app"}]}}))
    );
    assert_eq!(resolution.left.len(), 1);
}

#[test]
fn resolve_refuses_unknown_causes_fields_and_annotations() {
    let live_object = live(&[("aa", json!("theirs"), &["other"])]);
    let local_object = local(json!({}), json!({"aa": "ours"}));
    let fails = |live: &Value, local: &Value, cause: Cause| {
        resolve(live, local, policy(&[]), &[cause])
            .unwrap_err()
            .to_string()
    };
    let mut unknown = cause("other", ".data.aa");
    unknown.reason = "Nonsense".to_owned();
    assert!(fails(&live_object, &local_object, unknown).ends_with("unknown type Nonsense"));
    assert!(
        fails(&live_object, &local_object, cause("other", ".data.zz"))
            .ends_with("Could not find matching field for path '.data.zz'")
    );
    assert!(
        fails(
            &live_object,
            &local(json!({}), json!({})),
            cause("other", ".data.aa")
        )
        .ends_with("Field '.data.aa' not found in local object")
    );
    let bad = local(json!({"example.com/force-apply-field": "a-b"}), json!({"aa": 1}));
    assert!(fails(&live_object, &bad, cause("other", ".data.aa")).contains("not a valid JSON path"));
    let bad = local(
        json!({"example.com/ignore-conflicts-manager": "("}),
        json!({"aa": 1}),
    );
    assert!(fails(&live_object, &bad, cause("other", ".data.aa")).contains("not a valid regular expression"));
}

#[test]
fn resolve_refuses_an_ambiguous_path() {
    let live = Value::from_json(json!({
        "metadata": {"managedFields": [{"manager": "x", "operation": "Apply", "fieldsV1": {
            "f:data": {"f:a.b": {}, "f:a": {"f:b": {}}}}}]},
        "data": {"a.b": 1, "a": {"b": 1}},
    }));
    let error = resolve(&live, &live, policy(&[]), &[cause("x", ".data.a.b")])
        .unwrap_err()
        .to_string();
    assert!(error.ends_with("Field path '.data.a.b' is ambiguous"), "{error}");
}

#[test]
fn resolve_prefers_annotations_to_rules() {
    let live = live(&[
        ("aa", json!("theirs"), &["other"]),
        ("a", json!("theirs"), &["other"]),
    ]);
    let rule = |paths: &[&str], patterns: &[&str], managers: &[&str], action| {
        let list = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        ConflictRule {
            objects: ObjectPattern {
                kind: Some("ConfigMap".to_owned()),
                ..Default::default()
            },
            paths: list(paths),
            path_patterns: list(patterns),
            managers: list(managers),
            action,
        }
    };
    let other = ConflictRule {
        objects: ObjectPattern {
            kind: Some("Secret".to_owned()),
            ..Default::default()
        },
        ..rule(&["data.aa"], &[], &[], ConflictAction::ForceApply)
    };
    let (force, ignore) = (ConflictAction::ForceApply, ConflictAction::Ignore);
    for (title, rules, annotations, kept, warned) in [
        ("another kind", vec![other], json!({}), false, true),
        (
            "by path",
            vec![rule(&["data.aa"], &[], &[], force)],
            json!({}),
            true,
            false,
        ),
        (
            "by pattern",
            vec![rule(&[], &[r"^data\.aa"], &[], force)],
            json!({}),
            true,
            false,
        ),
        (
            "by manager",
            vec![rule(&[], &[], &["^oth"], ignore)],
            json!({}),
            false,
            false,
        ),
        (
            "the last one counts",
            vec![
                rule(&["data.aa"], &[], &[], force),
                rule(&["data.*"], &[], &[], ignore),
            ],
            json!({}),
            false,
            false,
        ),
        (
            "annotations come last",
            vec![rule(&["data.aa"], &[], &[], ignore)],
            json!({"example.com/force-apply-field": "data.aa"}),
            true,
            false,
        ),
        (
            "a rule without fields",
            vec![rule(&[], &[], &[], force)],
            json!({}),
            false,
            true,
        ),
    ] {
        let local = local(annotations, json!({"aa": "ours"}));
        let resolution = resolve(&live, &local, policy(&rules), &[cause("other", ".data.aa")]).unwrap();
        assert_eq!(
            resolution.patch.pointer(&["data", "aa"]).is_some(),
            kept,
            "{title}"
        );
        assert_eq!(!resolution.left.is_empty(), warned, "{title}");
    }
}

use api::{Event, notification::Alert};
use serde_json::{Value, json};

use super::*;

fn alert(spec: &Value) -> Alert {
    let mut spec = spec.clone();
    spec["providerRef"] = json!({"name": "p"});
    serde_json::from_value(json!({
        "apiVersion": "notification.toolkit.fluxcd.io/v1beta3", "kind": "Alert",
        "metadata": {"name": "a", "namespace": "team"}, "spec": spec,
    }))
    .unwrap()
}

fn event(change: &Value) -> Event {
    let mut event = json!({
        "involvedObject": {"apiVersion": "g/v1", "kind": "GitRepository", "name": "shop", "namespace": "team"},
        "severity": "info", "message": "stored artifact for commit 'fix'", "reason": "NewArtifact",
    });
    for (key, value) in change.as_object().unwrap() {
        match (event.get_mut(key), value) {
            (Some(Value::Object(old)), Value::Object(new)) => old.extend(new.clone()),
            _ => event[key] = value.clone(),
        }
    }
    serde_json::from_value(event).unwrap()
}

fn passes(spec: &Value, change: &Value) -> bool {
    match verdict(&alert(spec), &event(change), false) {
        Verdict::Yes => true,
        Verdict::No => false,
        Verdict::IfLabels(labels) => panic!("unexpected labels {labels:?}"),
    }
}

fn source(change: &Value) -> Value {
    let mut source = json!({"kind": "GitRepository", "name": "shop"});
    source
        .as_object_mut()
        .unwrap()
        .extend(change.as_object().unwrap().clone());
    json!({"eventSources": [source]})
}

#[test]
fn sources_select_by_kind_name_and_namespace() {
    let none = json!({});
    for (spec, change, expected) in [
        (source(&none), none.clone(), true),
        (source(&json!({"name": "*"})), none.clone(), true),
        (source(&json!({"name": "other"})), none.clone(), false),
        (source(&json!({"name": "sho*"})), none.clone(), false),
        (source(&json!({"kind": "gitrepository"})), none.clone(), false),
        (source(&json!({"kind": "Bucket"})), none.clone(), false),
        (source(&json!({"apiVersion": "elsewhere/v9"})), none.clone(), true),
        (source(&json!({"namespace": "team"})), none.clone(), true),
        (source(&json!({"namespace": "other"})), none.clone(), false),
        (
            source(&json!({"namespace": "other", "name": "*"})),
            json!({"involvedObject": {"namespace": "other"}}),
            true,
        ),
        (
            source(&json!({"name": "*"})),
            json!({"involvedObject": {"namespace": "other"}}),
            false,
        ),
        (json!({"eventSources": []}), none.clone(), false),
    ] {
        assert_eq!(passes(&spec, &change), expected, "{spec} {change}");
    }
}

#[test]
fn severity_filters_upwards() {
    for (wanted, given, expected) in [
        ("info", "info", true),
        ("info", "error", true),
        ("info", "odd", true),
        ("error", "info", false),
        ("error", "error", true),
        ("error", "odd", false),
    ] {
        let mut spec = source(&json!({}));
        spec["eventSeverity"] = wanted.into();
        assert_eq!(
            passes(&spec, &json!({"severity": given})),
            expected,
            "{wanted} {given}"
        );
    }
}

#[test]
fn a_suspended_alert_hears_nothing() {
    let mut spec = source(&json!({}));
    spec["suspend"] = true.into();
    assert!(!passes(&spec, &json!({})));
}

#[test]
fn labels_are_asked_for_only_when_all_else_fits() {
    let labelled = source(&json!({"name": "*", "matchLabels": {"tier": "web"}}));
    let compiled = alert(&labelled);
    let wanted = BTreeMap::from([("tier".to_owned(), "web".to_owned())]);
    assert_eq!(
        verdict(&compiled, &event(&json!({})), false),
        Verdict::IfLabels(vec![&wanted])
    );
    assert_eq!(
        verdict(
            &compiled,
            &event(&json!({"involvedObject": {"kind": "Bucket"}})),
            false
        ),
        Verdict::No
    );
    let mut either = labelled;
    either["eventSources"]
        .as_array_mut()
        .unwrap()
        .push(json!({"kind": "GitRepository", "name": "shop"}));
    assert_eq!(verdict(&alert(&either), &event(&json!({})), false), Verdict::Yes);
}

/// Every field is obeyed; `apiVersion` by being ignored. A new field has to be added here on purpose.
#[test]
fn each_field_of_the_schema_is_obeyed() {
    let crd = serde_json::to_value(api::crd::alert()).unwrap();
    let keys = |schema: &Value| {
        schema["properties"]
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect::<Vec<_>>()
    };
    for version in crd["spec"]["versions"].as_array().unwrap() {
        let spec = &version["schema"]["openAPIV3Schema"]["properties"]["spec"];
        let mut fields = keys(spec);
        fields.sort();
        assert_eq!(
            fields,
            [
                "eventMetadata",
                "eventSeverity",
                "eventSources",
                "exclusionList",
                "inclusionList",
                "providerRef",
                "summary",
                "suspend"
            ]
        );
        let mut fields = keys(&spec["properties"]["eventSources"]["items"]);
        fields.sort();
        assert_eq!(fields, ["apiVersion", "kind", "matchLabels", "name", "namespace"]);
    }
}

#[test]
fn other_namespaces_are_decided_first_and_from_the_spec() {
    let foreign = json!({"involvedObject": {"namespace": "other"}});
    let spec = source(&json!({"namespace": "other", "matchLabels": {"a": "b"}}));
    let alert = alert(&spec);
    assert!(matches!(
        verdict(&alert, &event(&foreign), false),
        Verdict::IfLabels(_)
    ));
    assert_eq!(
        verdict(&alert, &event(&foreign), true),
        Verdict::No,
        "no labels are read"
    );
    let spec = &alert.spec;
    assert_eq!(
        foreign_source(spec, "team").as_deref(),
        Some("spec.eventSources[0].namespace")
    );
    assert_eq!(foreign_source(spec, "other"), None);
}

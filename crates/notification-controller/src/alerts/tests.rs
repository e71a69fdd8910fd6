use api::{Event, notification::Alert};
use serde_json::{Value, json};

use super::*;

fn alert(spec: &Value) -> Compiled {
    let mut spec = spec.clone();
    spec["providerRef"] = json!({"name": "p"});
    let alert: Alert = serde_json::from_value(json!({
        "apiVersion": "notification.toolkit.fluxcd.io/v1beta3", "kind": "Alert",
        "metadata": {"name": "a", "namespace": "team"}, "spec": spec,
    }))
    .unwrap();
    Compiled::new(alert)
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
    match alert(spec).verdict(&event(change), false) {
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
fn expressions_include_and_exclude() {
    for (inclusion, exclusion, expected) in [
        (json!(["artifact"]), json!([]), true),
        (json!(["nothing", "^stored"]), json!([]), true),
        (json!(["STORED"]), json!([]), false),
        (json!(["(?i)STORED"]), json!([]), true),
        (json!(["stored"]), json!(["commit '.*'$"]), false),
        (json!([]), json!(["nothing"]), true),
        (json!(["("]), json!([]), false),
        (json!(["(", "stored"]), json!([]), true),
        (json!([]), json!(["("]), true),
    ] {
        let mut spec = source(&json!({}));
        spec["inclusionList"] = inclusion;
        spec["exclusionList"] = exclusion;
        assert_eq!(passes(&spec, &json!({})), expected, "{spec}");
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
        compiled.verdict(&event(&json!({})), false),
        Verdict::IfLabels(vec![&wanted])
    );
    assert_eq!(
        compiled.verdict(&event(&json!({"involvedObject": {"kind": "Bucket"}})), false),
        Verdict::No
    );
    let mut either = labelled;
    either["eventSources"]
        .as_array_mut()
        .unwrap()
        .push(json!({"kind": "GitRepository", "name": "shop"}));
    assert_eq!(alert(&either).verdict(&event(&json!({})), false), Verdict::Yes);
}

#[test]
fn broken_and_oversized_expressions_are_named() {
    let mut spec = source(&json!({}));
    spec["inclusionList"] = json!(["fine"]);
    spec["exclusionList"] = json!(["fine", "(unclosed"]);
    let (path, why) = broken_expression(&alert(&spec).alert.spec).unwrap();
    assert_eq!(path, "spec.exclusionList[1]");
    assert!(!why.is_empty() && !why.contains('\n'), "{why}");
    assert_eq!(
        compile("(?:a{1000}){1000}").unwrap_err(),
        "the expression is too large"
    );
    assert!(compile(&"(".repeat(60)).is_err());
}

/// Every field is obeyed; `apiVersion` by not being compared. A new one has to be added here on purpose.
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
fn lists_are_bounded_as_a_whole() {
    let large: Vec<String> = (0..8).map(|n| format!("{n}\\pL{{20}}")).collect();
    let many: Vec<String> = (0..101).map(|n| format!("expression {n}")).collect();
    let lists: [(Value, &str); 2] = [
        (large.into(), "the expressions together are too large"),
        (many.into(), "it has 101 expressions, at most 100 are allowed"),
    ];
    for (list, expected) in lists {
        let mut spec = source(&json!({}));
        spec["inclusionList"] = list.clone();
        let alert = alert(&spec);
        assert!(compile(list[0].as_str().unwrap()).is_ok());
        let (path, why) = broken_expression(&alert.alert.spec).unwrap();
        assert_eq!((path.as_str(), why.as_str()), ("spec.inclusionList", expected));
        assert_eq!(alert.verdict(&event(&json!({})), false), Verdict::No);
    }
}

#[test]
fn other_namespaces_are_decided_first_and_from_the_spec() {
    let foreign = json!({"involvedObject": {"namespace": "other"}});
    let spec = source(&json!({"namespace": "other", "matchLabels": {"a": "b"}}));
    let alert = alert(&spec);
    assert!(matches!(
        alert.verdict(&event(&foreign), false),
        Verdict::IfLabels(_)
    ));
    assert_eq!(
        alert.verdict(&event(&foreign), true),
        Verdict::No,
        "no labels are read"
    );
    let spec = &alert.alert.spec;
    assert_eq!(
        foreign_source(spec, "team").as_deref(),
        Some("spec.eventSources[0].namespace")
    );
    assert_eq!(foreign_source(spec, "other"), None);
}

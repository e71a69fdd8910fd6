use serde_json::json;
use yaml::Value;

use super::{JsonPath, JsonPathError};
use crate::path::canonical;

fn document() -> Value {
    Value::from_json(json!({
        "spec": {
            "replicas": 3,
            "list": [{"name": "aa", "v": 1}, {"name": "bb", "v": 2, "on": true}, {"name": "cc", "v": 3}],
            "a-b": "dash",
        },
        "metadata": {"labels": {"x/y": "z"}},
    }))
}

#[track_caller]
fn check(path: &str, expected: &[&str]) {
    let found = JsonPath::parse(path).unwrap().find(&document()).unwrap();
    let mut found: Vec<_> = found.iter().map(|path| canonical(path)).collect();
    found.sort();
    assert_eq!(found, expected, "{path}");
}

#[test]
fn names_match_fields() {
    check("$", &[""]);
    check("spec.replicas", &["spec.replicas"]);
    check("$.spec.replicas", &["spec.replicas"]);
    check("@.spec['a-b']", &[r#"spec["a-b"]"#]);
    check(r#"["metadata"].labels["x/y"]"#, &[r#"metadata.labels["x/y"]"#]);
    check("spec.nothing.more", &[]);
    check("metadata.*", &["metadata.labels"]);
}

#[test]
fn indexes_and_slices_match_items() {
    check("spec.list[0].name", &["spec.list[0].name"]);
    check("spec.list[-1].name", &["spec.list[2].name"]);
    check("spec.list[9]", &[]);
    check(
        "spec.list[*].v",
        &[
            r#"spec.list[0]["v"]"#,
            r#"spec.list[1]["v"]"#,
            r#"spec.list[2]["v"]"#,
        ],
    );
    check("spec.list[0,2].name", &["spec.list[0].name", "spec.list[2].name"]);
    check("spec.list[0:2].name", &["spec.list[0].name", "spec.list[1].name"]);
    check("spec.list[::2].name", &["spec.list[0].name", "spec.list[2].name"]);
}

#[test]
fn filters_match_members_that_pass() {
    check("spec.list[?(@.name=='bb')]", &["spec.list[1]"]);
    check("spec.list[?@.v > 1]", &["spec.list[1]", "spec.list[2]"]);
    check(
        "spec.list[?(@.name =~ /^[ab]/)].v",
        &[r#"spec.list[0]["v"]"#, r#"spec.list[1]["v"]"#],
    );
    check("spec.list[?(@.on)]", &["spec.list[1]"]);
    check("spec.list[?(!@.on && @.v < $.spec.replicas)]", &["spec.list[0]"]);
    check(
        "spec.list[?(@.name == 'aa' || @.v >= 3)]",
        &["spec.list[0]", "spec.list[2]"],
    );
    check("spec.list[?(@.on == true)]", &["spec.list[1]"]);
    check("spec.list[?(@.name != 'aa')]", &["spec.list[1]", "spec.list[2]"]);
}

#[test]
fn descendants_match_at_any_depth() {
    check("..replicas", &["spec.replicas"]);
    check(
        "$..name",
        &["spec.list[0].name", "spec.list[1].name", "spec.list[2].name"],
    );
    let all = JsonPath::parse("..").unwrap().find(&document()).unwrap();
    assert!(
        all.iter()
            .any(|path| canonical(path) == "metadata.labels[\"x/y\"]")
    );
    assert!(all.iter().any(Vec::is_empty));
}

#[test]
fn parse_refuses_unsupported_syntax() {
    for path in [
        "",
        "a-b",
        "a/b",
        "a.",
        "a[",
        "a['b",
        r"a['b\n']",
        "a[b]",
        "a`",
        "a.length()",
        "a[(@.length-1)]",
        "a[?(@.x ==)]",
        "a[?(@.x =~ /(/)]",
        "a[?()]",
        "a b",
        "a[1",
        "a[?(@.x == foo)]",
    ] {
        assert!(JsonPath::parse(path).is_err(), "{path}");
    }
    let deep = format!("a[?{}@.b{}]", "(".repeat(100), ")".repeat(100));
    assert!(
        JsonPath::parse(&deep)
            .unwrap_err()
            .to_string()
            .contains("nested deeper")
    );
    assert!(
        JsonPath::parse(&"a".repeat(5000))
            .unwrap_err()
            .to_string()
            .contains("longer")
    );
}

#[test]
fn find_refuses_too_many_visits() {
    let wide: Vec<u32> = (0..3000).collect();
    let bomb = JsonPath::parse("..[?(@.a || $..[?($..x)])]").unwrap();
    let error = bomb.find(&Value::from_json(json!({ "l": wide }))).unwrap_err();
    assert_eq!(error, JsonPathError::TooManyValues);
}

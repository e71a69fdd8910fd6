//! Tests of validation and its messages.

use bytes::Bytes;
use tree::{Budget, Limits};

use super::validate;
use crate::{
    Value,
    values::tests::{chart, values},
};

fn checked(schema: &str, text: &str) -> String {
    let mut one = chart("c", "{}", Vec::new());
    one.schema = Some(Bytes::from(schema.to_owned()));
    let Value::Dict(values) = values(text) else {
        panic!("no map")
    };
    validate(&one, &values, &Budget::default()).map_or_else(|error| error.to_string(), |()| "ok".to_owned())
}

#[test]
fn formats_accept_and_refuse_strings() {
    let table: &[(&str, &[&str], &[&str])] = &[
        (
            "semver",
            &["1.2.3", "0.0.0-rc.1+b-1.x"],
            &["1.2", "01.2.3", "1.2.3-01", "1.2.3-", "v1.2.3"],
        ),
        (
            "relative-json-pointer",
            &["0", "1#", "12/a/b~0"],
            &["", "#", "01", "1a", "0/~2"],
        ),
        (
            "period",
            &["P1D/2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z/P1D"],
            &["P1D", "P1D/P1D", "2026-01-02/P1D"],
        ),
    ];
    for (format, good, bad) in table {
        let schema = format!(
            r#"{{"$schema": "http://json-schema.org/draft-07/schema#", "properties": {{"a": {{"format": "{format}"}}}}}}"#
        );
        for (text, fits) in good
            .iter()
            .map(|text| (text, true))
            .chain(bad.iter().map(|text| (text, false)))
        {
            let got = checked(&schema, &format!("a: \"{text}\""));
            assert_eq!(got == "ok", fits, "{format} {text}: {got}");
        }
    }
}

#[test]
fn validate_reports_the_problems_of_values() {
    let table: &[(&str, &str, &str)] = &[
        (r#"{"properties": {"a": {"type": "integer"}}}"#, "a: 1", "ok"),
        (
            r#"{"properties": {"a": {"type": "integer"}}}"#,
            "a: 1.5",
            "- at '/a': got number, want integer",
        ),
        (
            r#"{"properties": {"a": {"type": ["string", "null"]}}}"#,
            "a: [1]",
            "- at '/a': got array, want null or string",
        ),
        (
            r#"{"required": ["a", "b"]}"#,
            "b: 1",
            "- at '': missing property 'a'",
        ),
        (
            r#"{"additionalProperties": false, "properties": {"a": true}}"#,
            "{a: 1, b: 2}",
            "- at '': additional properties 'b' not allowed",
        ),
        (
            r#"{"properties": {"a": {"enum": ["x", 1]}}}"#,
            "a: y",
            "- at '/a': value must be one of 'x', 1",
        ),
        (
            r#"{"properties": {"a": {"pattern": "^b"}}}"#,
            "a: c",
            "- at '/a': 'c' does not match pattern '^b'",
        ),
        (
            r#"{"properties": {"a": {"minimum": 3, "multipleOf": 0.5}}}"#,
            "a: 2.2",
            "- at '/a': minimum: got 2.2, want 3\n- at '/a': multipleOf: got 2.2, want 0.5",
        ),
        (
            r##"{"$ref": "#/$defs/x", "$defs": {"x": {"required": ["a"]}}}"##,
            "b: 1",
            "- at '': missing property 'a'",
        ),
        (
            r#"{"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}"#,
            "c: 1",
            "- at '': 'anyOf' failed\n  - at '': missing property 'a'\n  - at '': missing property 'b'",
        ),
        (
            r#"{"allOf": [{"required": ["a"], "properties": {"c": {"type": "string"}}}]}"#,
            "c: 1",
            "- at '': 'allOf' failed\n  - at '': validation failed\n    - at '': missing property 'a'\n    - at '/c': got number, want string",
        ),
        (
            r#"{"properties": {"a": {"minimum": 3000000}, "b": {"minLength": 12345}, "c": {"maximum": 0.00001}}}"#,
            "{a: 80000, b: x, c: 0.5}",
            "- at '/a': minimum: got 80,000, want 3×10⁰⁶\n- at '/b': minLength: got 1, want 12,345\n- at '/c': maximum: got 0.5, want 1×10⁻⁰⁵",
        ),
        (
            r#"{"properties": {"a": {"enum": ["it's", null]}, "b'~c": false}}"#,
            "{a: z, b'~c: 1}",
            "- at '/a': value must be one of 'it\\'s', <nil>\n- at '/b\\'~0c': false schema",
        ),
        (
            r#"{"properties": {"a": {"contains": {"type": "string"}, "minContains": 2}}}"#,
            "a: [1, x]",
            "- at '/a': min 2 items required to match contains schema, but matched 1 items at 1\n  - at '/a/0': got number, want string",
        ),
        (
            r#"{"properties": {"a": {"contains": {"type": "string"}}}}"#,
            "a: [1]",
            "- at '/a': no items match contains schema\n  - at '/a/0': got number, want string",
        ),
        (
            r#"{"$schema": "http://json-schema.org/draft-07/schema#", "properties": {"a": {"items": [{"type": "string"}], "additionalItems": false}}}"#,
            "a: [x, 2, 3]",
            "- at '/a': last 2 additionalItem(s) not allowed",
        ),
        (
            r#"{"propertyNames": {"pattern": "^x", "minLength": 5}}"#,
            "a: 1",
            "- at '': invalid propertyName 'a'\n  - at '': minLength: got 1, want 5\n  - at '': 'a' does not match pattern '^x'",
        ),
        (
            r#"{"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}"#,
            "{a: 1, b: 1}",
            "- at '': 'oneOf' failed, subschemas 0, 1 matched",
        ),
        (
            r#"{"if": {"required": ["a"]}, "then": {"required": ["b"]}}"#,
            "a: 1",
            "- at '': missing property 'b'",
        ),
        (
            r#"{"properties": {"a": {"items": {"type": "string"}, "uniqueItems": true}}}"#,
            "a: [x, x, 1]",
            "- at '/a': items at 0 and 1 are equal\n- at '/a/2': got number, want string",
        ),
        (
            r#"{"properties": {"a": true}, "unevaluatedProperties": false}"#,
            "{a: 1, b: 1}",
            "- at '/b': false schema",
        ),
        (
            r#"{"allOf": [{"properties": {"a": true}}], "unevaluatedProperties": false}"#,
            "a: 1",
            "ok",
        ),
        (
            r#"{"$schema": "http://json-schema.org/draft-07/schema#", "properties": {"a": {"format": "ipv4"}}}"#,
            "a: x",
            "- at '/a': 'x' is not valid ipv4",
        ),
        (r#"{"properties": {"a": {"format": "ipv4"}}}"#, "a: x", "ok"),
    ];
    for (schema, values, expected) in table {
        let got = checked(schema, values);
        let start = "values don't meet the specifications of the schema(s) in the following chart(s):\nc:\n";
        let got = got.strip_prefix(start).unwrap_or(&got).trim_end();
        assert_eq!(got, *expected, "{schema} {values}");
    }
}

#[test]
fn validate_refuses_invalid_schemas() {
    let table = [
        (r#"{"type": 5}"#, "is not valid against metaschema"),
        (
            r#"{"properties": {"a": {"type": "strin"}}}"#,
            "at '/properties/a/type'",
        ),
        (r#"{"pattern": "("}"#, "is not valid regex"),
        (
            r#"{"$ref": "https://example.com/x.json"}"#,
            "failing loading \"https://example.com/x.json\"",
        ),
        (
            r#"{"$ref": "other.json#/x"}"#,
            "failing loading \"file:///other.json\"",
        ),
        (r##"{"$ref": "#/nowhere"}"##, "not found"),
        (
            r##"{"$dynamicRef": "#a"}"##,
            "$dynamicRef of JSON Schema is not supported",
        ),
        (
            r#"{"$schema": "https://example.com/meta"}"#,
            "https://example.com/meta",
        ),
        (
            r##"{"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}"##,
            "nests deeper",
        ),
        ("{", "c:\nunexpected EOF"),
        (" ", "c:\nEOF"),
        ("{} x", "c:\ninvalid character after top-level value"),
        (
            "{x}",
            "c:\ninvalid character 'x' looking for beginning of object key string",
        ),
    ];
    for (schema, expected) in table {
        let got = checked(schema, "a: 1");
        assert!(got.contains(expected), "{schema}: {got}");
    }
}

const DRAFTS: [(u8, &str); 5] = [
    (4, "http://json-schema.org/draft-04/schema#"),
    (6, "http://json-schema.org/draft-06/schema#"),
    (7, "http://json-schema.org/draft-07/schema#"),
    (19, "https://json-schema.org/draft/2019-09/schema"),
    (20, "https://json-schema.org/draft/2020-12/schema"),
];

#[test]
fn keywords_of_each_draft_must_have_valid_values() {
    let all: &[u8] = &[4, 6, 7, 19, 20];
    let table: &[(&str, &[u8], &str)] = &[
        (r#"{"title": 1}"#, all, "/a/title': got number, want string"),
        (
            r#"{"description": 1}"#,
            all,
            "/a/description': got number, want string",
        ),
        (
            r#"{"$comment": 1}"#,
            &[7, 19, 20],
            "/a/$comment': got number, want string",
        ),
        (
            r#"{"examples": 1}"#,
            &[7, 19, 20],
            "/a/examples': got number, want array",
        ),
        (
            r#"{"readOnly": 1}"#,
            &[7, 19, 20],
            "/a/readOnly': got number, want boolean",
        ),
        (
            r#"{"deprecated": 1}"#,
            &[19, 20],
            "/a/deprecated': got number, want boolean",
        ),
        (
            r#"{"multipleOf": 0}"#,
            all,
            "/a/multipleOf': exclusiveMinimum: got 0, want 0",
        ),
        (
            r#"{"multipleOf": -1}"#,
            all,
            "/a/multipleOf': exclusiveMinimum: got -1, want 0",
        ),
        (r#"{"enum": []}"#, &[4, 6, 7], "/a/enum': minItems: got 0, want 1"),
        (
            r#"{"enum": [1, 1.0]}"#,
            &[4, 6, 7],
            "/a/enum': items at 0 and 1 are equal",
        ),
        (
            r#"{"enum": [{"a": 1, "b": 2}, 3, {"b": 2, "a": 1}]}"#,
            &[4, 6, 7],
            "/a/enum': items at 0 and 2 are equal",
        ),
        (r#"{"type": []}"#, all, "/a/type': minItems: got 0, want 1"),
        (
            r#"{"type": ["string", "string"]}"#,
            all,
            "/a/type': items at 0 and 1 are equal",
        ),
        (
            r#"{"required": ["a", "a"]}"#,
            all,
            "/a/required': items at 0 and 1 are equal",
        ),
        (
            r#"{"required": []}"#,
            &[4],
            "/a/required': minItems: got 0, want 1",
        ),
        (
            r#"{"required": [1]}"#,
            all,
            "/a/required/0': got number, want string",
        ),
        (
            r#"{"exclusiveMaximum": 1}"#,
            &[4],
            "/a': properties 'maximum' required, if 'exclusiveMaximum' exists",
        ),
        (
            r#"{"exclusiveMinimum": true, "minimum": 1}"#,
            &[6, 7, 19, 20],
            "/a/exclusiveMinimum': got boolean, want number",
        ),
        (r#"{"id": 5}"#, &[4], "/a/id': got number, want string"),
        (
            r#"{"$id": 5}"#,
            &[6, 7, 19, 20],
            "/a/$id': got number, want string",
        ),
        (
            r#"{"$anchor": 5}"#,
            &[19, 20],
            "/a/$anchor': got number, want string",
        ),
        (
            r#"{"dependencies": {"a": ["b", "b"]}}"#,
            all,
            "/a/dependencies/a': items at 0 and 1 are equal",
        ),
        (
            r#"{"dependentRequired": {"a": ["b", "b"]}}"#,
            &[19, 20],
            "/a/dependentRequired/a': items at 0 and 1 are equal",
        ),
        (
            r#"{"minLength": -1}"#,
            all,
            "/a/minLength': minimum: got -1, want 0",
        ),
        (
            r#"{"minLength": 1.5}"#,
            all,
            "/a/minLength': got number, want integer",
        ),
        (r#"{"minLength": 1.0}"#, &[], ""),
        (
            r#"{"contentEncoding": 5}"#,
            &[7, 19, 20],
            "/a/contentEncoding': got number, want string",
        ),
        (r#"{"allOf": []}"#, all, "/a/allOf': minItems: got 0, want 1"),
    ];
    for (keyword, drafts, problem) in table {
        for (draft, url) in DRAFTS {
            // The property is absent: the schema itself is invalid.
            let schema = format!(r#"{{"$schema": "{url}", "properties": {{"a": {keyword}}}}}"#);
            let got = checked(&schema, "b: 1");
            let is_refused = got.contains(&format!("- at '/properties{problem}"));
            assert_eq!(is_refused, drafts.contains(&draft), "{schema}: {got}");
        }
    }
}

#[test]
fn all_drafts_know_dependencies() {
    for (_, url) in DRAFTS {
        let schema =
            format!(r#"{{"$schema": "{url}", "dependencies": {{"x": ["z"], "w": {{"required": ["q"]}}}}}}"#);
        for (values, expected) in [
            ("x: 1", "- at '': properties 'z' required, if 'x' exists"),
            ("w: 1", "- at '': missing property 'q'"),
            ("{x: 1, z: 1, w: 1, q: 1}", "ok"),
        ] {
            let got = checked(&schema, values);
            assert!(got.contains(expected), "{schema} {values}: {got}");
        }
    }
}

/// Values that make work for a schema end it within these steps.
fn limited(schema: &str, text: &str) -> String {
    let mut one = chart("c", "{}", Vec::new());
    one.schema = Some(Bytes::from(schema.to_owned()));
    let Value::Dict(values) = values(text) else {
        panic!("no map")
    };
    let budget = Budget::new(Limits {
        steps: 2_000_000,
        bytes: 1 << 20,
        ..Limits::default()
    });
    validate(&one, &values, &budget).map_or_else(|error| error.to_string(), |()| "ok".to_owned())
}

#[test]
fn patterns_of_a_schema_share_one_limit() {
    let patterns: Vec<String> = (0..300)
        .map(|n| format!(r#""p{n}": {{"pattern": "\\pL{{90}}x{{{n}}}"}}"#))
        .collect();
    let schema = format!(r#"{{"properties": {{{}}}}}"#, patterns.join(", "));
    let error = checked(&schema, "a: 1");
    assert!(error.contains("take more than 16777216 bytes"), "{error}");
    // Usual patterns are far from it.
    let patterns: Vec<String> = (0..2000)
        .map(|n| format!(r#""p{n}": {{"pattern": "^[a-z\\w-]{{1,63}}$|^{n}$"}}"#))
        .collect();
    let schema = format!(r#"{{"properties": {{{}}}}}"#, patterns.join(", "));
    assert_eq!(checked(&schema, "p1: abc"), "ok");
    let schema = r#"{"properties": {"a": {"pattern": "\\pL{1000}"}}}"#;
    assert!(checked(schema, "a: 1").contains("take more than 16777216 bytes"));
    // Go's classes are of ASCII, and a class may be Go's only.
    assert!(checked(r#"{"properties": {"a": {"pattern": "^\\w$"}}}"#, "a: é").contains("does not match"));
}

#[test]
fn work_of_values_and_schemas_is_counted() {
    let keys = |count: usize| (0..count).map(|n| format!("k{n}: 1\n")).collect::<String>();
    let long = "a".repeat(100_000);
    let patterns: Vec<String> = (0..100)
        .map(|n| format!(r#""^(a?){{30}}(a?){{30}}b{n}$": {{}}"#))
        .collect();
    let patterns = format!(r#"{{"patternProperties": {{{}}}}}"#, patterns.join(", "));
    let names: Vec<String> = (0..50_000).map(|n| format!("\"x{n}\"")).collect();
    let names = names.join(",");
    for (schema, values, says) in [
        (
            r#"{"properties": {"a": {"pattern": "(a?){200}(a?){200}b$"}}}"#.to_owned(),
            format!("a: {long}"),
            "steps",
        ),
        (
            patterns,
            keys(1000).replace('k', "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
            "steps",
        ),
        (
            format!(r#"{{"additionalProperties": {{"enum": [{names}]}}}}"#),
            keys(1000),
            "the limit of",
        ),
        (
            format!(r#"{{"additionalProperties": {{"type": "object", "required": [{names}]}}}}"#),
            keys(1000).replace(": 1", ": {}"),
            "the limit of",
        ),
        (
            format!(r#"{{"additionalProperties": {{"const": "{long}"}}}}"#),
            keys(1000),
            "bytes of problems",
        ),
        (
            format!(
                r#"{{"additionalProperties": {{"type": [{}"string"]}}}}"#,
                r#""null","#.repeat(20_000)
            ),
            keys(1000),
            "items at 0 and 1 are equal",
        ),
    ] {
        let error = limited(&schema, &values);
        assert!(error.contains(says), "{schema:.100}: {error:.300}");
    }
    // One name for many references.
    let reference = format!(
        r##"{{"$id": "http://x/{long}", "$defs": {{"a": {{}}}}, "allOf": [{}{{}}]}}"##,
        r##"{"$ref": "#/$defs/a"},"##.repeat(5000)
    );
    assert!(limited(&reference, "a: 1").contains("steps"));
    let anchors = (0..1000)
        .map(|n| format!(r#""d{n}": {{"$anchor": "a{n}"}}"#))
        .collect::<Vec<_>>()
        .join(",");
    let named = format!(r#"{{"$id": "http://x/{long}", "$defs": {{{anchors}}}}}"#);
    assert!(limited(&named, "a: 1").contains("take more than 16777216 bytes"));
}

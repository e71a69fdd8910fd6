//! Paths that continue inside of strings.

use super::*;

/// Returns the content of `data.t` after a path below it was set.
fn set(text: &str, path: &str, options: &str) -> Result<String, String> {
    let mut resources = objects("{kind: A, metadata: {name: a}, data: {t: ''}, list: [{t: '{\"a\":1}'}]}");
    let slot = resources
        .get_mut(0)
        .unwrap()
        .node_mut()
        .pointer_mut(&["data", "t"])
        .unwrap();
    *slot = Node::string(text);
    let replacement = format!(
        "[{{sourceValue: new, targets: [{{select: {{}}, fieldPaths: ['{path}'], options: {options}}}]}}]"
    );
    run(&mut resources, &replacement, &Budget::default()).map_err(|error| error.to_string())?;
    let node = resources.get(0).unwrap().node().clone();
    let text = node
        .pointer(&["data", "t"])
        .and_then(Node::as_text)
        .map(str::to_owned);
    assert_eq!(
        node.pointer(&["list", "0", "t"]).and_then(Node::as_text),
        Some("{\"a\":1}")
    );
    Ok(text.unwrap_or_default())
}

#[test]
fn json_stays_on_one_line_with_its_keys_sorted() {
    for (text, path, expected) in [
        (r#"{"b": 1, "a": "x"}"#, "data.t.a", r#"{"a":"new","b":1}"#),
        (
            r#"[{"a": "<x>"}, 1.0, ""]"#,
            "data.t.2",
            r#"[{"a":"\u003cx\u003e"},1,"new"]"#,
        ),
        (
            r#"[{"n": "x", "v": 1e21}, {"n": "y", "v": "z"}]"#,
            "data.t.[n=y].v",
            r#"[{"n":"x","v":1e+21},{"n":"y","v":"new"}]"#,
        ),
        ("{a: x, b: yes}", "data.t.a", r#"{"a":"new","b":"yes"}"#),
        ("{\"a\":\n\"x\"}", "data.t.a", r#"{"a":"new"}"#),
    ] {
        assert_eq!(set(text, path, "{}").as_deref(), Ok(expected), "{text}");
    }
}

#[test]
fn indented_json_is_indented_by_two() {
    let text = "{\n    \"b\": [1, {}, []],\n    \"a\": \"x: [,] \\\" {\"\n}\n";
    assert_eq!(
        set(text, "data.t.c", "{create: true}").unwrap(),
        "{\n  \"a\": \"x: [,] \\\" {\",\n  \"b\": [\n    1,\n    {},\n    []\n  ],\n  \"c\": \"new\"\n}"
    );
}

#[test]
fn yaml_keeps_its_style_and_comments_and_loses_blank_lines() {
    let text = "# config\na:\n    b: 'x'   # why\n\nl: [1, 2]\n";
    assert_eq!(
        set(text, "data.t.a.b", "{}").unwrap(),
        "# config\na:\n  b: 'new' # why\nl: [1, 2]"
    );
    assert_eq!(
        set(text, "data.t.a.c.d", "{create: true}").unwrap(),
        "# config\na:\n  b: 'x' # why\n  c:\n    d: new\nl: [1, 2]"
    );
}

#[test]
fn created_scalars_resolve_from_their_content() {
    let twice = "\
- {sourceValue: word, targets: [{select: {}, fieldPaths: [data]}]}
- {sourceValue: 'true', targets: [{select: {}, fieldPaths: [data]}]}
- {sourceValue: 'null', targets: [{select: {}, fieldPaths: [data], options: {delimiter: r, index: 5}}]}
";
    let out = replaced("kind: A\ndata: {t: x}\n", twice).unwrap();
    assert!(out.contains("data: truernull\n"), "{out}");
    let empty = "[{sourceValue: '', targets: [{select: {}, fieldPaths: [data.t.a]}]}]";
    let out = replaced("kind: A\ndata: {t: '{\"a\":[],\"b\":}'}\n", empty).unwrap();
    assert!(out.contains(r#"{"a":"","b":""}"#), "{out}");
}

#[test]
fn delimiters_are_ignored_in_structured_values() {
    let changed = set("a: x:y\n", "data.t.a", "{delimiter: ':', index: 1}");
    assert_eq!(changed.unwrap(), "a: new");
}

#[test]
fn structured_paths_refuse_other_scalars() {
    for (text, path, expected) in [
        ("word", "data.t.a", "expected MappingNode but got ScalarNode"),
        ("word", "data.t.0", "expected SequenceNode but got ScalarNode"),
        ("", "data.t.a", "expected MappingNode but got"),
        (
            "a: b",
            "data.t.c",
            "unable to find field \"data.t.c\" in replacement target",
        ),
        (
            "a: [",
            "data.t.a",
            "unable to find field \"data.t.a\" in replacement target: yaml: ",
        ),
    ] {
        let error = set(text, path, "{}").unwrap_err();
        assert!(error.contains(expected), "{text}: {error}");
    }
}

#[test]
fn paths_that_lead_nowhere_change_no_structured_value() {
    assert_eq!(set("{a: 1}", "list.*.t.a", "{}").unwrap(), "{a: 1}");
    // A repeated key can't be printed as JSON.
    let twice = r#"{"a": 1, "a": 2, "b": "x"}"#;
    assert_eq!(set(twice, "data.t.b", "{}").unwrap(), twice);
    // Nor can a word with the tag of a number.
    assert_eq!(set("[1.5]", "data.t.0", "{}").unwrap(), "[1.5]");
}

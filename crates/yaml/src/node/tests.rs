use tree::{Budget, Limits};

use super::*;
use crate::{print, read};

fn node(text: &str) -> Node {
    read::node(text, &Budget::default()).unwrap().unwrap()
}

/// Reads the first document as compact JSON, or returns the error.
fn value(text: &str) -> String {
    match read::node(text, &Budget::default()).and_then(|node| node.unwrap().into_value()) {
        Ok(value) => print::json(&value),
        Err(error) => error.to_string(),
    }
}

/// Lists keys and contents of a map of scalars.
fn texts(mapping: &Mapping) -> Vec<(&str, &str)> {
    mapping
        .entries()
        .iter()
        .map(|entry| (&*entry.key.text, &*entry.value.as_scalar().unwrap().text))
        .collect()
}

#[test]
fn node_size_is_bounded() {
    assert!(size_of::<Scalar>() <= 24);
    assert!(size_of::<Node>() <= 40);
    assert!(size_of::<Entry>() <= 72);
}

#[test]
fn a_scalar_keeps_its_text_and_its_tag() {
    for (text, kept, tag, kind) in [
        ("1.10", "1.10", None, Tag::Float),
        ("0x1F", "0x1F", None, Tag::Int),
        ("1_000", "1_000", None, Tag::Int),
        ("yes", "yes", None, Tag::Str),
        ("True", "True", None, Tag::Bool),
        ("~", "~", None, Tag::Null),
        ("", "", None, Tag::Null),
        ("2020-1-2", "2020-1-2", None, Tag::Timestamp),
        ("'1'", "1", None, Tag::Str),
        ("\"~\"", "~", None, Tag::Str),
        ("|\n  12\n", "12\n", None, Tag::Str),
        ("! 12", "12", None, Tag::Int),
        ("!!str 123", "123", Some(Tag::Str), Tag::Str),
        ("!!int '3'", "3", Some(Tag::Int), Tag::Int),
        ("!!float 1", "1", Some(Tag::Float), Tag::Float),
        ("!!null x", "x", Some(Tag::Null), Tag::Null),
        ("!!bool yes", "yes", Some(Tag::Bool), Tag::Bool),
        ("!!timestamp x", "x", Some(Tag::Timestamp), Tag::Timestamp),
        ("!!binary aGVsbG8=", "aGVsbG8=", Some(Tag::Binary), Tag::Binary),
        ("!custom 1", "1", Some(Tag::Other), Tag::Other),
        ("!!set 1", "1", Some(Tag::Other), Tag::Other),
    ] {
        let node = node(&format!("a: {text}\n"));
        let scalar = node.get("a").and_then(Node::as_scalar).unwrap();
        assert_eq!((&*scalar.text, scalar.tag), (kept, tag), "{text}");
        assert_eq!(scalar.kind(), kind, "{text}");
        assert_eq!(scalar.is_null(), kind == Tag::Null, "{text}");
        assert_eq!(scalar.is_string(), kind == Tag::Str, "{text}");
    }
}

#[test]
fn scalars_keep_their_content() {
    let doc = node("{s: a, n: 12, q: '12', z: ~, l: [], m: {}}");
    let part = |key| doc.get(key).unwrap();
    assert_eq!(part("s").as_str(), Some("a"));
    assert_eq!((part("n").as_str(), part("n").as_text()), (None, Some("12")));
    assert_eq!(
        (part("q").as_str(), part("q").as_text()),
        (Some("12"), Some("12"))
    );
    assert_eq!((part("z").as_text(), part("z").is_null()), (None, true));
    assert_eq!((part("l").as_text(), part("l").is_null()), (None, false));
    let names: Vec<_> = doc.as_map().unwrap().values().map(Node::kind_name).collect();
    assert_eq!(names[3..], ["ScalarNode", "SequenceNode", "MappingNode"]);
}

#[test]
fn scalars_become_values_of_their_type() {
    for (text, expected) in [
        (
            "{a: 1.10, b: yes, c: '1', d: ~, e: 0o17}",
            r#"{"a":1.1,"b":"yes","c":"1","d":null,"e":15}"#,
        ),
        (
            "{a: 2020-1-2, b: !!str 2020-1-2}",
            r#"{"a":"2020-01-02T00:00:00Z","b":"2020-1-2"}"#,
        ),
        (
            "{a: !!binary aGVsbG8=, b: !custom 12, c: !!set [1]}",
            r#"{"a":"hello","b":"12","c":[1]}"#,
        ),
        ("a: !!int 1.0", r#"line 1, column 4: cannot read "1.0" as !!int"#),
        (
            "a: !!binary '?'",
            r#"line 1, column 4: cannot read "?" as !!binary"#,
        ),
        ("a: [1, .inf]", "line 1, column 8: unsupported value: +Inf"),
    ] {
        assert_eq!(value(text), expected, "{text}");
    }
}

#[test]
fn nodes_keep_duplicate_and_non_string_keys() {
    let text = "a: 1\nb:\n  c: 2\n  d: 3\n  c: 4\n";
    let doc = node(text);
    let b = doc.get("b").and_then(Node::as_map).unwrap();
    assert_eq!(texts(b), [("c", "2"), ("d", "3"), ("c", "4")]);
    assert_eq!(b.get("c").and_then(Node::as_text), Some("2"), "the first counts");
    let error = doc.to_value().unwrap_err();
    assert_eq!(error.message(), r#"mapping key "c" already defined at line 3"#);
    assert_eq!(error.position, Some(Position { line: 5, column: 3 }));

    for (key, found) in [
        ("1", "integer"),
        ("1.0", "number"),
        ("true", "boolean"),
        ("~", "null"),
        ("2020-01-01", "timestamp"),
        ("!!binary YQ==", "binary data"),
        ("!x a", "a scalar with a tag of its own"),
    ] {
        let text = format!("a: {{{key} : 2}}");
        let doc = node(&text);
        let entry = &doc.get("a").and_then(Node::as_map).unwrap().entries()[0];
        assert!(key.ends_with(&*entry.key.text), "{key}");
        let expected = format!("line 1, column 5: a map key must be a string, found {found}");
        assert_eq!(value(&text), expected, "{key}");
    }
    assert_eq!(value("{!!str 1: 2, yes: 3}"), r#"{"1":2,"yes":3}"#);
    for (text, found) in [("? [a]\n: 1", "list"), ("? {a: b}\n: 1", "map")] {
        let error = read::nodes(text, &Budget::default()).unwrap_err();
        assert_eq!(
            error.message(),
            format!("a map key must be a string, found {found}")
        );
    }
}

#[test]
fn merged_entries_follow_own_entries() {
    for (text, expected) in [
        ("{<<: {x: 1}, a: 2}", &[("a", "2"), ("x", "1")][..]),
        ("{a: 2, <<: {x: 1, a: 3}}", &[("a", "2"), ("x", "1")]),
        (
            "{<<: [{x: 1, y: 2}, {z: 3, x: 4}], a: 5}",
            &[("a", "5"), ("z", "3"), ("x", "1"), ("y", "2")],
        ),
        ("{<<: {x: 1, x: 2}}", &[("x", "1")]),
        ("{a: 1, <<: {a: 3}, a: 2}", &[("a", "1"), ("a", "2")]),
        ("{<<: {<<: {x: 1, y: 2}, y: 3}}", &[("y", "3"), ("x", "1")]),
        ("{<<: []}", &[]),
        ("{!!merge <<: {x: 1}}", &[("x", "1")]),
        ("{'<<': 1}", &[("<<", "1")]),
        ("{1: a, <<: {1: b, 2: c}}", &[("1", "a"), ("2", "c")]),
    ] {
        let doc = node(text);
        assert_eq!(texts(doc.as_map().unwrap()), expected, "{text}");
    }
    let doc = node("a: &a {x: 0x1}\nb: [{<<: *a, y: 2}]\n");
    let item = doc.pointer(&["b", "0"]).and_then(Node::as_map).unwrap();
    assert_eq!(texts(item), [("y", "2"), ("x", "0x1")]);

    for (text, expected) in [
        (
            "<<: {x: 1}\n<<: {y: 1}",
            r#"line 2, column 1: key "<<" is set twice in one map, first at line 1, column 1"#,
        ),
        (
            "<<: ~",
            r#"line 1, column 1: the merge key "<<" needs a map or a list of maps"#,
        ),
        (
            "a: {<<: [{x: 1}, [{y: 2}]]}",
            r#"line 1, column 5: the merge key "<<" needs a map or a list of maps"#,
        ),
    ] {
        let error = read::nodes(text, &Budget::default()).unwrap_err();
        assert_eq!(error.to_string(), expected, "{text}");
    }
}

#[test]
fn merge_marker_as_a_value_is_a_string() {
    assert_eq!(value("a: <<\nb: [<<]"), r#"{"a":"<<","b":["<<"]}"#);
    assert_eq!(
        value("a: &m <<\nb: {*m : {x: 1}}"),
        r#"{"a":"<<","b":{"<<":{"x":1}}}"#
    );
}

#[test]
fn aliases_copy_their_anchor() {
    let mut doc = node("a: &a {x: 1.0}\nb: *a\nc: [*a]\n");
    assert_eq!(doc.get("a"), doc.get("b"));
    assert_eq!(doc.get("b").map(|b| b.position.line), Some(2), "where it stands");
    doc.pointer_mut(&["c", "0"]).unwrap().set("x", Node::plain("2"));
    assert_eq!(
        doc.to_value().map(|value| print::json(&value)).unwrap(),
        r#"{"a":{"x":1},"b":{"x":1},"c":[{"x":2}]}"#
    );
}

#[test]
fn nodes_drop_null_documents() {
    let budget = Budget::default();
    let all = read::nodes("# c\n---\n~\n---\na: 1\n---\n---\n- b\n", &budget).unwrap();
    let lines: Vec<_> = all.iter().map(|node| node.position.line).collect();
    assert_eq!(lines, [5, 8]);
    for empty in ["", "# only a comment", "---\n", "~\n---\na: 1"] {
        assert_eq!(read::node(empty, &budget).unwrap(), None, "{empty:?}");
    }
    assert!(
        read::node("a: 1\n---\n]", &budget).is_ok(),
        "later documents are not looked at"
    );
    assert!(read::nodes("a: 1\n---\n]", &budget).is_err());
}

#[test]
fn nodes_fail_beyond_the_limits() {
    let limits = Limits {
        alias_bytes: 1000,
        yaml_depth: 10,
        ..Limits::default()
    };
    let merges = (1..12).fold("a0: &a0 {k: v}\n".to_owned(), |text, n| {
        let before = n - 1;
        text + &format!("a{n}: &a{n} {{<<: *a{before}, x{n}: *a{before}}}\n")
    });
    for text in [merges, "[".repeat(11)] {
        let error = read::nodes(&text, &Budget::new(limits.clone())).unwrap_err();
        assert!(error.exceeded().is_some(), "{error}");
    }
}

#[test]
fn set_keeps_the_position_of_an_entry() {
    let mut doc = node("{a: 1, b: 2, a: 3}");
    assert!(doc.set("b", Node::string("x")));
    assert!(doc.set("a", Node::null()));
    assert!(doc.set("c", Node::seq(vec![])));
    let expected: Mapping = [
        ("a", Node::null()),
        ("b", Node::string("x")),
        ("a", Node::plain("3")),
        ("c", Node::seq(vec![])),
    ]
    .into_iter()
    .collect();
    let map = doc.as_map_mut().unwrap();
    assert_eq!(
        map.iter().collect::<Vec<_>>(),
        expected.iter().collect::<Vec<_>>()
    );
    assert_eq!(map.remove("a"), Some(Node::null()), "the first of both");
    assert_eq!(map.keys().collect::<Vec<_>>(), ["b", "c"]);
    assert_eq!(map.remove("a"), None);
    map.retain(|key, value| key != "b" && !value.is_null());
    assert!((map.len() == 1, map.contains_key("c"), map.is_empty()) == (true, true, false));
    assert!(!Node::string("x").set("a", Node::null()), "no map");
    assert_eq!(Node::map().remove("a"), None);
}

#[test]
fn values_survive_a_round_trip_through_nodes() {
    let json = r#"{"s":"1","t":"2020-01-01","n":null,"b":true,"i":-1,"u":18446744073709551615,"f":1.5,"g":1e+30,"l":[{"<<":"x"}]}"#;
    let value: Value = serde_json::from_str(json).unwrap();
    let node = Node::from_value(&value);
    assert_eq!(node.get("i"), Some(&Scalar::tagged("-1", Tag::Int).into()));
    assert_eq!(node.get("f").and_then(Node::as_text), Some("1.5"));
    assert_eq!(node.get("t").and_then(Node::as_str), Some("2020-01-01"));
    assert!(node.get("n").is_some_and(Node::is_null));
    assert_eq!(node.to_value(), Ok(value.clone()));
    assert_eq!(node.into_value(), Ok(value));

    let error = Node::from_value(&Value::Float(f64::INFINITY))
        .to_value()
        .unwrap_err();
    assert_eq!(error.to_string(), "unsupported value: +Inf", "it has no place");
    let read = read::kustomize("a: 1\nb: 2", &Budget::default()).unwrap().value;
    let entries = Node::from_value(&read).as_map().unwrap().entries().to_vec();
    assert_eq!(
        entries[1].position,
        Position { line: 2, column: 1 },
        "positions are kept"
    );
}

#[test]
fn node_equality_ignores_positions() {
    assert_eq!(node("{a: [1, x]}"), node("a:\n- 1\n- x\n"));
    for other in ["{a: [1, 'x']}", "{a: [x, 1]}", "{a: [1, x], a: 1}"] {
        assert_ne!(node("{a: [1, x]}"), node(other), "{other}");
    }
}

#[test]
fn empty_nulls_in_flow_collections_become_strings() {
    for (text, expected) in [
        ("a: \nb: null\n", r#"{"a":null,"b":null}"#),
        (
            "a: {b: , c: null, d: ~, e: ''}",
            r#"{"a":{"b":"","c":null,"d":null,"e":""}}"#,
        ),
        ("a: [{b: }]\nc: \n", r#"{"a":[{"b":""}],"c":null}"#),
        ("{a}", r#"{"a":""}"#),
        ("a: {b: !!null }", r#"{"a":{"b":null}}"#),
    ] {
        assert!(node(text).get("a").is_some(), "{text}");
        assert_eq!(
            crate::print::json(&node(text).to_value().unwrap()),
            expected,
            "{text}"
        );
    }
    assert!(node("{a: }").get("a").is_some_and(Node::is_null));
}

mod limits;

use super::*;
use crate::print;

type Read = fn(&str, &Budget) -> Result<Document, Error>;

/// Reads the value of `a: TEXT` as compact JSON with sorted keys, or returns the message of the error.
fn scalar(read: Read, text: &str) -> String {
    match read(&format!("a: {text}"), &Budget::default()) {
        Ok(document) => match document.value.get("a") {
            Some(Value::Float(float)) if !float.is_finite() => format!("{float:?}"),
            Some(Value::Float(float)) => format!("{float:?}f"),
            Some(value) => print::json_sorted(value),
            None => "nothing".to_owned(),
        },
        Err(error) => error.message(),
    }
}

const NAN: &str = "unsupported value: NaN";
const INF: &str = "unsupported value: +Inf";

/// Plain scalars: the string, then its value for goyaml, kustomize and pyyaml. A float ends in `f`.
const SCALARS: &[(&str, &str, &str, &str)] = &[
    ("", "null", "null", "null"),
    ("~", "null", "null", "null"),
    ("Null", "null", "null", "null"),
    ("nULL", r#""nULL""#, r#""nULL""#, r#""nULL""#),
    ("true", "true", "true", "true"),
    ("False", "false", "false", "false"),
    ("yes", "true", r#""yes""#, "true"),
    ("NO", "false", r#""NO""#, "false"),
    ("On", "true", r#""On""#, "true"),
    ("off", "false", r#""off""#, "false"),
    ("y", "true", r#""y""#, r#""y""#),
    ("N", "false", r#""N""#, r#""N""#),
    ("yEs", r#""yEs""#, r#""yEs""#, r#""yEs""#),
    ("1", "1", "1", "1"),
    ("+1", "1", "1", "1"),
    ("-1", "-1", "-1", "-1"),
    ("-0", "0", "0", "0"),
    ("017", "15", "15", "15"),
    ("0o17", "15", "15", r#""0o17""#),
    ("0o8", r#""0o8""#, r#""0o8""#, r#""0o8""#),
    ("08", "8", "8", r#""08""#),
    ("0x1F", "31", "31", "31"),
    ("0X1F", "31", "31", r#""0X1F""#),
    ("0x", r#""0x""#, r#""0x""#, r#""0x""#),
    ("0x+1", r#""0x+1""#, r#""0x+1""#, r#""0x+1""#),
    ("0b101", "5", "5", "5"),
    ("-0b101", "-5", "-5", "-5"),
    ("1_000", "1000", "1000", "1000"),
    ("_1", r#""_1""#, r#""_1""#, r#""_1""#),
    (
        "9223372036854775807",
        "9223372036854775807",
        "9223372036854775807",
        "9223372036854775807",
    ),
    (
        "18446744073709551615",
        "18446744073709551615",
        "18446744073709551615",
        "18446744073709551615",
    ),
    (
        "-9223372036854775808",
        "-9223372036854775808",
        "-9223372036854775808",
        "-9223372036854775808",
    ),
    (
        "18446744073709551616",
        "1.8446744073709552e19f",
        "1.8446744073709552e19f",
        "1.8446744073709552e19f",
    ),
    (
        "-9223372036854775809",
        "-9.223372036854776e18f",
        "-9.223372036854776e18f",
        "-9.223372036854776e18f",
    ),
    (
        "12345678901234567890.0",
        "12345678901234567000",
        "12345678901234567000",
        "1.2345678901234567e19f",
    ),
    ("1.0", "1", "1", "1.0f"),
    ("1.50", "1.5f", "1.5f", "1.5f"),
    (".5", "0.5f", "0.5f", "0.5f"),
    ("+.5", "0.5f", "0.5f", r#""+.5""#),
    ("5.", "5", "5", "5.0f"),
    (".", r#"".""#, r#"".""#, r#"".""#),
    (".e3", r#"".e3""#, r#"".e3""#, r#"".e3""#),
    ("1e3", "1000", "1000", r#""1e3""#),
    ("1.0e3", "1000", "1000", r#""1.0e3""#),
    ("1.0e+3", "1000", "1000", "1000.0f"),
    ("1e3a", r#""1e3a""#, r#""1e3a""#, r#""1e3a""#),
    ("1e20", "1e20f", "1e20f", r#""1e20""#),
    ("1e400", r#""1e400""#, r#""1e400""#, r#""1e400""#),
    ("-0.0", "0", "0", "-0.0f"),
    (".inf", INF, INF, "inf"),
    (
        "-.INF",
        "unsupported value: -Inf",
        "unsupported value: -Inf",
        "-inf",
    ),
    (".nan", NAN, NAN, "NaN"),
    ("NaN", r#""NaN""#, r#""NaN""#, r#""NaN""#),
    ("1:30", r#""1:30""#, r#""1:30""#, "90"),
    ("-1:30", r#""-1:30""#, r#""-1:30""#, "-90"),
    ("1:60", r#""1:60""#, r#""1:60""#, r#""1:60""#),
    ("01:30", r#""01:30""#, r#""01:30""#, r#""01:30""#),
    ("1:30.5", r#""1:30.5""#, r#""1:30.5""#, "90.5f"),
    ("12:30:45", r#""12:30:45""#, r#""12:30:45""#, "45045"),
    (
        "2020-01-02",
        r#""2020-01-02""#,
        r#""2020-01-02T00:00:00Z""#,
        r#""2020-01-02""#,
    ),
    (
        "2020-1-2",
        r#""2020-1-2""#,
        r#""2020-01-02T00:00:00Z""#,
        r#""2020-1-2""#,
    ),
    (
        "2020-02-30",
        r#""2020-02-30""#,
        r#""2020-02-30""#,
        r#""2020-02-30""#,
    ),
    (
        "2020-1-2 3:04:05",
        r#""2020-1-2 3:04:05""#,
        r#""2020-01-02T03:04:05Z""#,
        r#""2020-01-02 03:04:05""#,
    ),
    (
        "2020-01-02T03:04:05.60+02:00",
        r#""2020-01-02T03:04:05.60+02:00""#,
        r#""2020-01-02T03:04:05.6+02:00""#,
        r#""2020-01-02 03:04:05.600000+02:00""#,
    ),
    ("=", r#""=""#, r#""=""#, r#""=""#),
    ("<<", r#""<<""#, r#""<<""#, r#""<<""#),
    ("'yes'", r#""yes""#, r#""yes""#, r#""yes""#),
    (r#""1""#, r#""1""#, r#""1""#, r#""1""#),
    ("!!str 1", r#""1""#, r#""1""#, r#""1""#),
    ("!!int '3'", "3", "3", "3"),
    ("!!float 1", "1", "1", "1.0f"),
    (
        "!!int x",
        r#"cannot read "x" as !!int"#,
        r#"cannot read "x" as !!int"#,
        r#"cannot read "x" as !!int"#,
    ),
    (
        "!!binary aGVsbG8=",
        r#""hello""#,
        r#""hello""#,
        "the tag !!binary is not supported",
    ),
    (
        "!custom 1",
        r#""1""#,
        r#""1""#,
        "the tag !custom is not supported",
    ),
    ("|\n  x", r#""x""#, r#""x""#, r#""x""#),
];

#[test]
fn plain_scalars_resolve_by_dialect() {
    for (text, go, kust, python) in SCALARS {
        assert_eq!(scalar(|t, b| goyaml(t, b), text), *go, "goyaml: {text}");
        assert_eq!(scalar(|t, b| kustomize(t, b), text), *kust, "kustomize: {text}");
        assert_eq!(scalar(|t, b| pyyaml(t, b), text), *python, "pyyaml: {text}");
    }
}

/// Reads the first document as JSON in the order of its keys, or returns the error with its position.
fn json(read: Read, text: &str) -> String {
    match read(text, &Budget::default()) {
        Ok(document) => print::json(&document.value),
        Err(error) => error.to_string(),
    }
}

#[test]
fn keys_become_strings_or_errors() {
    let text = "yes: 1\nn: 2\n3: 4\n1.5: 5\n0x10: 6\n";
    assert_eq!(
        json(|t, b| goyaml(t, b), text),
        r#"{"true":1,"false":2,"3":4,"1.5":5,"16":6}"#
    );
    assert_eq!(
        json(|t, b| pyyaml(t, b), text),
        r#"{"True":1,"n":2,"3":4,"1.5":5,"16":6}"#
    );
    assert_eq!(
        json(|t, b| kustomize(t, b), "yes: 1\nn: 2\n3: 4\n"),
        "line 3, column 1: a map key must be a string, found integer"
    );
    for (text, found) in [("~: 1", "null"), ("? [a]\n: 1", "list"), ("? {a: b}\n: 1", "map")] {
        assert!(
            json(|t, b| goyaml(t, b), text).ends_with(&format!("found {found}")),
            "{text}"
        );
    }
    assert!(json(|t, b| kustomize(t, b), "2020-01-01: 1").ends_with("found timestamp"));
    assert_eq!(
        json(|t, b| kustomize(t, b), "'2020-01-01': 1"),
        r#"{"2020-01-01":1}"#
    );
}

#[test]
fn duplicate_keys_are_errors_except_in_python() {
    let text = "a: 1\nb:\n  c: 1\n  c: 2\n";
    let expected = r#"line 4, column 3: key "c" is set twice in one map, first at line 3, column 3"#;
    assert_eq!(json(|t, b| goyaml(t, b), text), expected);
    assert_eq!(json(|t, b| kustomize(t, b), text), expected);
    assert_eq!(json(|t, b| pyyaml(t, b), text), r#"{"a":1,"b":{"c":2}}"#);
    assert!(
        json(|t, b| goyaml(t, b), "y: 1\nyes: 2\n").contains("set twice"),
        "both are true"
    );
}

#[test]
fn merge_keys_follow_the_rules_of_their_dialect() {
    let simple = "a: &a {x: 1}\nb: {<<: *a, w: 2}\n";
    let overlap = "a: &a {x: 1, z: 3}\nb: {x: 2, <<: *a}\n";
    let list = "a: &a {x: 1}\nb: &b {x: 2, w: 3}\nc: {<<: [*a, *b]}\n";
    for (read, strict) in [
        ((|t, b| goyaml(t, b)) as Read, true),
        (|t, b| kustomize(t, b), false),
        (|t, b| pyyaml(t, b), false),
    ] {
        assert_eq!(json(read, simple), r#"{"a":{"x":1},"b":{"x":1,"w":2}}"#);
        if strict {
            assert!(json(read, overlap).contains(r#"key "x" is set twice"#));
            assert!(json(read, list).contains(r#"key "x" is set twice"#));
        } else {
            assert_eq!(json(read, overlap), r#"{"a":{"x":1,"z":3},"b":{"x":2,"z":3}}"#);
            assert_eq!(
                json(read, list),
                r#"{"a":{"x":1},"b":{"x":2,"w":3},"c":{"x":1,"w":3}}"#
            );
        }
        assert!(json(read, "a: &a [1]\nb: {<<: *a}\n").contains("needs a map or a list of maps"));
        assert_eq!(
            json(read, "a: {'<<': {b: 1}}"),
            r#"{"a":{"<<":{"b":1}}}"#,
            "a quoted one is a key"
        );
    }
}

#[test]
fn readers_select_documents() {
    let budget = Budget::default();
    let text = "# comment\n---\na: 1\n---\n\n---\n~\n...\n---\nb: 2\n";
    assert_eq!(print::json(&goyaml(text, &budget).unwrap().value), r#"{"a":1}"#);
    let all = goyaml_all(text, &budget).unwrap();
    assert_eq!(
        all.iter().map(|d| print::json(&d.value)).collect::<Vec<_>>(),
        [r#"{"a":1}"#, r#"{"b":2}"#]
    );
    assert_eq!(all[1].position, Position { line: 10, column: 1 });
    assert_eq!(kustomize_all(text, &budget).unwrap().len(), 2);
    for empty in ["", "# only a comment", "---\n", "\n\n", "\u{feff}"] {
        assert_eq!(goyaml(empty, &budget).unwrap().value, Value::Null, "{empty:?}");
        assert!(goyaml_all(empty, &budget).unwrap().is_empty(), "{empty:?}");
        assert_eq!(pyyaml(empty, &budget).unwrap().value, Value::Null, "{empty:?}");
    }
    assert_eq!(
        pyyaml("a: 1\n---\nb: 2", &budget).unwrap_err().to_string(),
        "line 3, column 1: expected a single document in the stream, but found another document"
    );
    assert_eq!(
        print::json(&goyaml("a: 1\n---\n]broken", &budget).unwrap().value),
        r#"{"a":1}"#
    );
    assert!(
        goyaml("a\nb: 1", &budget).is_err(),
        "the first document is read to its end"
    );
}

#[test]
fn anchors_do_not_outlive_their_document() {
    assert!(json(|t, b| goyaml(t, b), "a: &x 1\nb: *x\nc: &x 2\nd: *x").contains(r#""b":1,"c":2,"d":2"#));
    let error = goyaml_all("a: &x 1\n---\nb: *x\n", &Budget::default()).unwrap_err();
    assert_eq!(error.to_string(), r#"line 3, column 4: unknown anchor "x""#);
    assert!(
        json(|t, b| goyaml(t, b), "&a [*a]").contains("unknown anchor"),
        "nothing holds itself"
    );
}

#[test]
fn maps_record_the_positions_of_entries() {
    let document = goyaml("a:\n  b: 1\n  'ü': {c: 2}\n", &Budget::default()).unwrap();
    let a = document.value.get("a").and_then(Value::as_map).unwrap();
    assert_eq!(a.position("b"), Some(Position { line: 2, column: 3 }));
    let inner = a.get_map("ü").unwrap();
    assert_eq!(
        inner.position("c"),
        Some(Position { line: 3, column: 9 }),
        "columns count characters"
    );
}

#[test]
fn readers_decode_utf8_and_utf16() {
    let budget = Budget::default();
    let utf16 = |bytes: fn(u16) -> [u8; 2]| -> Vec<u8> {
        "\u{feff}ä: 😀\n".encode_utf16().flat_map(bytes).collect()
    };
    for bytes in [
        "ä: 😀\n".as_bytes().to_vec(),
        "\u{feff}ä: 😀\n".as_bytes().to_vec(),
        utf16(u16::to_le_bytes),
        utf16(u16::to_be_bytes),
    ] {
        assert_eq!(
            print::json(&goyaml(&bytes, &budget).unwrap().value),
            r#"{"ä":"😀"}"#,
            "{bytes:?}"
        );
    }
    for (bytes, message) in [
        (
            &b"a: b\nc: \xff"[..],
            "line 2, column 4: the text is not valid UTF-8",
        ),
        (b"\xff\xfea", "the text is not valid UTF-16"),
        (b"\xfe\xff\xd8\x00", "the text is not valid UTF-16"),
        (
            b"a: b\n\xc3\xbc\x01",
            "line 2, column 2: control character U+0001 is not allowed",
        ),
        (
            b"a: \x7f",
            "line 1, column 4: control character U+007F is not allowed",
        ),
    ] {
        assert_eq!(goyaml(bytes, &budget).unwrap_err().to_string(), message);
    }
}

#[test]
fn syntax_errors_have_a_position() {
    for (text, message) in [
        (
            "a: 1\n  b: 2\n",
            "line 2, column 4: mapping values are not allowed in this context",
        ),
        ("a: [1, 2\n", "line 2, column 1: did not find expected ',' or ']'"),
        ("a: \"x", "line 1, column 6: found unexpected end of stream"),
        (
            "\ta: 1",
            "line 1, column 1: found character that cannot start any token",
        ),
        (
            "a: @x",
            "line 1, column 4: found character that cannot start any token",
        ),
        (
            "%YAML 1.2\n---\na",
            "line 1, column 1: found incompatible YAML document (%YAML 1.2)",
        ),
        ("a: [!x,b]", "line 2, column 1: did not find expected ',' or ']'"),
        ("\"\\", "line 1, column 3: "),
    ] {
        let error = json(|t, b| goyaml(t, b), text);
        assert!(error.starts_with(message), "{text:?}: {error}");
    }
    assert_eq!(json(|t, b| kustomize(t, b), "%YAML 1.2\n---\na"), r#""a""#);
}

#[test]
fn block_scalars_at_the_end_need_no_line_break() {
    for (text, expected) in [
        ("a: |\n  x", r#"{"a":"x"}"#),
        ("a: |\n  x\n", r#"{"a":"x\n"}"#),
        ("a: |-\n  x", r#"{"a":"x"}"#),
        ("a: |+\n  x", r#"{"a":"x"}"#),
        ("a: |+\n  x\n  ", r#"{"a":"x\n"}"#),
        ("a: |\n  x\n  ", r#"{"a":"x\n"}"#),
        ("a: |\n  x\n    ", r#"{"a":"x\n  "}"#),
        ("a: >\n  x\n  y", r#"{"a":"x y"}"#),
        ("a: |\n  x\n# c", r#"{"a":"x\n"}"#),
        ("a: |\n  x\nb: z", r#"{"a":"x\n","b":"z"}"#),
        ("a: |", r#"{"a":""}"#),
        ("- |\n  x\n- |\n  y", r#"["x\n","y"]"#),
    ] {
        assert_eq!(json(|t, b| goyaml(t, b), text), expected, "{text:?}");
    }
}

#[test]
fn lenient_reader_keeps_the_last_duplicate() {
    let read = |text: &str| {
        let document = super::goyaml_lenient(text, &Budget::default()).unwrap();
        document.value.to_json().to_string()
    };
    assert_eq!(read("a: 1\nb: yes\na: 2"), r#"{"a":2,"b":true}"#);
    // A merge key counts, too.
    assert_eq!(read("a: 1\n<<: {a: 2}"), r#"{"a":2}"#);
    assert_eq!(read("<<: {a: 2}\na: 1"), r#"{"a":1}"#);
    assert_eq!(read("<<: [{a: 1}, {a: 2, b: 3}]"), r#"{"a":1,"b":3}"#);
}

#[test]
fn float_reader_keeps_the_sign_of_zero() {
    for (text, negative) in [("-0.0", true), ("-0", false), ("'-0.0'", false), ("0.0", false)] {
        let value: Value = goyaml_floats_as(text, &Budget::default()).unwrap().unwrap();
        let found = matches!(value, Value::Float(zero) if zero == 0.0 && zero.is_sign_negative());
        assert_eq!(found, negative, "{text}");
    }
}

#[test]
fn written_keeps_documents_and_comments() {
    let text = "# top\na: 1 # behind\nb: 'x # y'\n---\n# two\n<<: {c: 1}\n---\n";
    let written = written(text, &Budget::default()).unwrap();
    let comments: Vec<_> = written
        .comments
        .iter()
        .map(|comment| (comment.position.line, comment.text.as_str(), comment.alone))
        .collect();
    assert_eq!(
        comments,
        [(1, " top", true), (2, " behind", false), (5, " two", true)]
    );
    assert_eq!(written.documents.len(), 3);
    assert_eq!(
        written.documents[1].as_map().unwrap().keys().collect::<Vec<_>>(),
        ["<<"]
    );
    assert!(written.documents[2].is_null());
}

use super::*;
use crate::Map;

fn value(json: &str) -> Value {
    serde_json::from_str(json).unwrap()
}

#[test]
fn printers_lay_out_maps_and_lists() {
    let nested = value(
        r#"{"b": [1, [2, [3]], {"x": 1, "y": [4]}], "a": {"m": {"k": "v"}, "e": {}, "l": []}, "n": null, "t": true}"#,
    );
    let expected = "a:\n  e: {}\n  l: []\n  m:\n    k: v\nb:\n- 1\n- - 2\n  - - 3\n- x: 1\n  \"y\":\n  - 4\n\"n\": null\nt: true\n";
    assert_eq!(goyaml(&nested), expected);
    let printed = "b:\n- 1\n- - 2\n  - - 3\n- x: 1\n  \"y\":\n  - 4\na:\n  m:\n    k: v\n  e: {}\n  l: []\n\"n\": null\nt: true\n";
    assert_eq!(kustomize(&nested), printed);
    assert_eq!(
        pyyaml(&nested),
        printed.replace("\"y\"", "y").replace("\"n\"", "n")
    );
    for (scalar, go, python) in [
        (value("{}"), "{}\n", "{}\n"),
        (value("[]"), "[]\n", "[]\n"),
        (value("5"), "5\n", "5\n...\n"),
        (value("null"), "null\n", "null\n...\n"),
        (value(r#""x""#), "x\n", "x\n...\n"),
        (value(r#""5""#), "\"5\"\n", "'5'\n"),
        (value(r#""a\nb""#), "|-\n  a\n  b\n", "|-\n  a\n  b\n"),
    ] {
        assert_eq!(goyaml(&scalar), go);
        assert_eq!(pyyaml(&scalar), python);
    }
    assert_eq!(all([&value("1"), &value(r#"{"a":2}"#)], goyaml), "1\n---\na: 2\n");
}

/// Printed strings: the string, then go-yaml's output, then PyYAML's.
const STRINGS: &[(&str, &str, &str)] = &[
    ("a", "a", "a"),
    ("", r#""""#, "''"),
    ("yes", r#""yes""#, "'yes'"),
    ("y", r#""y""#, "y"),
    ("null", r#""null""#, "'null'"),
    ("~", r#""~""#, "'~'"),
    ("1", r#""1""#, "'1'"),
    ("1_000", r#""1_000""#, "'1_000'"),
    ("1e3", r#""1e3""#, "1e3"),
    ("0o7", r#""0o7""#, "0o7"),
    ("0x1F", r#""0x1F""#, "'0x1F'"),
    (".inf", r#"".inf""#, "'.inf'"),
    ("12:30:45", r#""12:30:45""#, "'12:30:45'"),
    ("190:20:30.15", r#""190:20:30.15""#, "'190:20:30.15'"),
    ("2020-01-01", r#""2020-01-01""#, "'2020-01-01'"),
    ("2020-02-30", "2020-02-30", "'2020-02-30'"),
    ("=", "=", "'='"),
    ("<<", "<<", "'<<'"),
    ("NaN", "NaN", "NaN"),
    ("-", "'-'", "'-'"),
    ("- a", "'- a'", "'- a'"),
    ("-a", "-a", "-a"),
    ("? a", "'? a'", "'? a'"),
    ("?a", "?a", "?a"),
    ("a: b", "'a: b'", "'a: b'"),
    (":a", ":a", ":a"),
    ("a:", "'a:'", "'a:'"),
    ("a #b", "'a #b'", "'a #b'"),
    ("a#b", "a#b", "a#b"),
    ("#a", "'#a'", "'#a'"),
    ("*a", "'*a'", "'*a'"),
    ("{a", "'{a'", "'{a'"),
    ("a]b,c", "a]b,c", "a]b,c"),
    ("@a", "'@a'", "'@a'"),
    ("it's", "it's", "it's"),
    ("'q'", "'''q'''", "'''q'''"),
    (" a", "' a'", "' a'"),
    ("a ", "'a '", "'a '"),
    ("---", "'---'", "'---'"),
    ("... a", "'... a'", "'... a'"),
    ("a\\b", "a\\b", "a\\b"),
    ("a\tb", r#""a\tb""#, r#""a\tb""#),
    ("a\r\nb", r#""a\r\nb""#, r#""a\r\nb""#),
    ("\u{1}", r#""\x01""#, r#""\x01""#),
    ("é", "é", r#""\xE9""#),
    ("绿", "绿", r#""\u7EFF""#),
    ("\u{a0}x", "\u{a0}x", r#""\_x""#),
    ("\u{feff}", r#""\uFEFF""#, r#""\uFEFF""#),
    ("a\u{2028}", "'a\u{2028}'", r#""a\L""#),
    ("😀", r#""\U0001F600""#, r#""\U0001F600""#),
    ("a\nb", "|-\n  a\n  b", "|-\n  a\n  b"),
    ("a\nb\n", "|\n  a\n  b\n", "|\n  a\n  b\n"),
    ("a\n\n\nb", "|-\n  a\n\n\n  b", "|-\n  a\n\n\n  b"),
    ("\na", "|2-\n\n  a", "|2-\n\n  a"),
    ("  a\nb", "|2-\n    a\n  b", "|2-\n    a\n  b"),
    ("a \nb", r#""a \nb""#, r#""a \nb""#),
    ("a\nb ", r#""a\nb ""#, r#""a\nb ""#),
];

#[test]
fn printers_quote_ambiguous_strings() {
    for (text, go, python) in STRINGS {
        let map = Value::Map(Map::from([("k", *text)]));
        let line = |text: &str| format!("k: {}\n", text.strip_suffix('\n').unwrap_or(text));
        assert_eq!(goyaml(&map), line(go), "goyaml: {text:?}");
        assert_eq!(kustomize(&map), line(go), "kustomize: {text:?}");
        assert_eq!(pyyaml(&map), line(python), "pyyaml: {text:?}");
    }
    let two_breaks = Value::Map(Map::from([("k", "a\n\n")]));
    assert_eq!(goyaml(&two_breaks), "k: |+\n  a\n\n");
    assert_eq!(
        pyyaml(&two_breaks),
        "k: |+\n  a\n\n...\n",
        "later blank lines would be content"
    );
}

#[test]
fn printers_fold_long_lines_at_blanks() {
    let words = "word ".repeat(17) + "end";
    let folded = format!("k: {}\n", "word ".repeat(16).trim_end());
    let map = |text: &str| Value::Map(Map::from([("k", text)]));
    assert_eq!(goyaml(&map(&words)), format!("{folded}  word end\n"));
    assert_eq!(pyyaml(&map(&words)), format!("{folded}  word end\n"));
    let quoted = goyaml(&map(&format!("# {words}")));
    assert_eq!(
        quoted,
        format!("k: '# {}\n  word end'\n", "word ".repeat(16).trim_end())
    );
    let tabs = goyaml(&map(&format!("\t{words}")));
    assert_eq!(
        tabs,
        format!("k: \"\\t{}\n  word end\"\n", "word ".repeat(16).trim_end())
    );
    let tabs = pyyaml(&map(&format!("\t{words}")));
    assert_eq!(
        tabs,
        format!("k: \"\\t{}\\\n  \\ word end\"\n", "word ".repeat(16).trim_end())
    );
    let whole = "x".repeat(200);
    assert_eq!(goyaml(&map(&whole)), format!("k: {whole}\n"));
}

#[test]
fn printers_write_long_keys_explicitly() {
    let key = |length: usize| "k".repeat(length);
    let map = |key: &str| Value::Map(Map::from([(key, Value::from(vec![Value::Int(1)]))]));
    assert_eq!(goyaml(&map(&key(128))), format!("{}:\n- 1\n", key(128)));
    assert_eq!(goyaml(&map(&key(129))), format!("? {}\n: - 1\n", key(129)));
    assert_eq!(pyyaml(&map(&key(122))), format!("{}:\n- 1\n", key(122)));
    assert_eq!(pyyaml(&map(&key(123))), format!("? {}\n: - 1\n", key(123)));
    assert_eq!(goyaml(&map("a\nb")), "? |-\n  a\n  b\n: - 1\n");
    assert_eq!(goyaml(&map("")), "\"\":\n- 1\n");
    assert_eq!(pyyaml(&map("")), "? ''\n: - 1\n");
}

#[test]
fn go_printer_sorts_keys_naturally() {
    let keys = [
        "z10", "z2", "a", "Z", "_", "1", "10", "2", "a1", "ä", "-", "z01", "z1",
    ];
    let map: Map = keys.iter().map(|key| (*key, 0)).collect();
    let printed = goyaml(&Value::Map(map));
    let order: Vec<&str> = printed
        .lines()
        .map(|line| line.trim_end_matches(": 0").trim_matches(['"', '\'']))
        .collect();
    assert_eq!(
        order,
        [
            "-", "_", "1", "2", "10", "Z", "a", "a1", "z1", "z01", "z2", "z10", "ä"
        ]
    );
    // A cyclic order must not panic.
    let circle: Map = (0..300)
        .flat_map(|n| [format!("{n}x"), format!("{n}2"), n.to_string()])
        .map(|k| (k, 0))
        .collect();
    assert_eq!(goyaml(&Value::Map(circle.clone())).lines().count(), circle.len());
}

#[test]
fn printers_write_shortest_floats() {
    for (float, go, python, go_json, python_json) in [
        (1.5, "1.5", "1.5", "1.5", "1.5"),
        (1.0, "1", "1.0", "1", "1.0"),
        (123_456.5, "123456.5", "123456.5", "123456.5", "123456.5"),
        (
            1_234_567.5,
            "1.2345675e+06",
            "1234567.5",
            "1234567.5",
            "1234567.5",
        ),
        (0.0001, "0.0001", "0.0001", "0.0001", "0.0001"),
        (0.00001, "1e-05", "1.0e-05", "0.00001", "1e-05"),
        (1e-7, "1e-07", "1.0e-07", "1e-7", "1e-07"),
        (1.5e-7, "1.5e-07", "1.5e-07", "1.5e-7", "1.5e-07"),
        (1e20, "1e+20", "1.0e+20", "100000000000000000000", "1e+20"),
        (1e21, "1e+21", "1.0e+21", "1e+21", "1e+21"),
        (-2.5e300, "-2.5e+300", "-2.5e+300", "-2.5e+300", "-2.5e+300"),
        (
            1e15,
            "1e+15",
            "1000000000000000.0",
            "1000000000000000",
            "1000000000000000.0",
        ),
        (
            // Halfway between two of equally many digits.
            8_736_727_055_464_130.0 / 8.0,
            "1.0920908819330162e+15",
            "1092090881933016.2",
            "1092090881933016.2",
            "1092090881933016.2",
        ),
        (1e16, "1e+16", "1.0e+16", "10000000000000000", "1e+16"),
        (0.0, "0", "0.0", "0", "0.0"),
        (f64::INFINITY, "+.inf", ".inf", "null", "Infinity"),
        (f64::NEG_INFINITY, "-.inf", "-.inf", "null", "-Infinity"),
        (f64::NAN, ".nan", ".nan", "null", "NaN"),
    ] {
        let list = Value::from(vec![Value::Float(float)]);
        assert_eq!(goyaml(&list), format!("- {go}\n"));
        assert_eq!(pyyaml(&list), format!("- {python}\n"));
        assert_eq!(json(&list), format!("[{go_json}]"));
        assert_eq!(super::python_json(&list), format!("[{python_json}]"));
    }
}

#[test]
fn json_printers_follow_their_originals() {
    let value = value(
        r#"{"b": "<é&\u2028\u007f", "a": ["😀", "\u0001\n\t\b\f\"\\"], "c": {}, "d": 18446744073709551615}"#,
    );
    let list = r#"["😀","\u0001\n\t\b\f\"\\"]"#;
    assert_eq!(
        json(&value),
        format!("{{\"b\":\"<é&\\u2028\u{7f}\",\"a\":{list},\"c\":{{}},\"d\":18446744073709551615}}")
    );
    assert!(json_html(&value).starts_with("{\"b\":\"\\u003cé\\u0026\\u2028"));
    assert!(json_sorted(&value).starts_with(&format!("{{\"a\":{list},\"b\":\"<é&\\u2028")));
    assert!(json_sorted_html(&value).contains("\"b\":\"\\u003cé\\u0026\\u2028"));
    assert_eq!(
        super::python_json(&value),
        r#"{"b": "<\u00e9&\u2028\u007f", "a": ["\ud83d\ude00", "\u0001\n\t\b\f\"\\"], "c": {}, "d": 18446744073709551615}"#
    );
}

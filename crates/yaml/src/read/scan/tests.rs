use tree::Budget;

use crate::{Document, Error, print, read};

fn json(read: fn(&str, &Budget) -> Result<Document, Error>, text: &str) -> String {
    match read(text, &Budget::default()) {
        Ok(document) => print::json_sorted(&document.value).replace(['\n', ' '], ""),
        Err(_) => "error".to_owned(),
    }
}

/// Documents, with their values for go-yaml 2, go-yaml 3 and PyYAML.
const DOCUMENTS: &[(&str, [&str; 3])] = &[
    // Escapes.
    (r#""it\'s""#, [r#""it's""#, r#""it's""#, "error"]),
    (r#""a\/b""#, ["error", r#""a/b""#, r#""a/b""#]),
    (r#""\q""#, ["error"; 3]),
    (r#""\xe9\u00e9""#, [r#""éé""#; 3]),
    // Colons and question marks in brackets.
    (
        "[http:, x]",
        [r#"["http:","x"]"#, r#"["http:","x"]"#, r#"[{"http":null},"x"]"#],
    ),
    (
        "{a:, b: c}",
        [
            r#"{"a:":null,"b":"c"}"#,
            r#"{"a:":null,"b":"c"}"#,
            r#"{"a":null,"b":"c"}"#,
        ],
    ),
    ("[a:[b]]", ["error", "error", r#"[{"a":["b"]}]"#]),
    ("{a:}", [r#"{"a:":null}"#, r#"{"a:":null}"#, r#"{"a":null}"#]),
    ("[a?b]", ["error"; 3]),
    ("a?b", [r#""a?b""#; 3]),
    // Tags.
    ("[!, x]", [r#"["x"]"#, r#"["x"]"#, "error"]),
    ("[!a,b]", ["error"; 3]),
    ("!a]", [r#""""#, r#""""#, "error"]),
    ("! 1", [r#""1""#, "1", "1"]),
    ("! \"1\"", [r#""1""#, "\"1\"", "1"]),
    ("!!str%20x", [r#""""#, r#""""#, "error"]),
    ("!a%zz b", ["error"; 3]),
    // Tabs.
    ("a:\tb", [r#"{"a":"b"}"#, r#"{"a":"b"}"#, "error"]),
    ("a: b\tc", [r#"{"a":"b\tc"}"#, r#"{"a":"b\tc"}"#, "error"]),
    ("[a,\tb]", [r#"["a","b"]"#, r#"["a","b"]"#, "error"]),
    ("a: |\n  \tx\n", ["error", "error", r#"{"a":"\tx\n"}"#]),
    ("a: >\n  \tx\n  y\n", ["error", "error", r#"{"a":"\tx\ny\n"}"#]),
    ("a: |\n  x\n  \ty\n", [r#"{"a":"x\n\ty\n"}"#; 3]),
    // Directives.
    ("%FOO x\n---\na", ["error", "error", r#""a""#]),
    ("%YAML 1.0\n---\na", ["error", "error", r#""a""#]),
    ("%TAG !x! tag:yaml.org,2002:\n---\n!x!str 1", [r#""1""#; 3]),
    // Documents.
    ("a\n--- b: @", [r#""a""#, "error", "error"]),
    ("a: |\n  x\n...\n", [r#"{"a":"x\n"}"#; 3]),
    ("\n\u{feff}a", ["\"\u{feff}a\""; 3]),
    // Empty brackets as keys.
    ("{}: x", ["{}", "error", "error"]),
    ("[] : x", ["[]", "error", "error"]),
    ("{}: {}\na: b", ["{}", "error", "error"]),
    ("{a: b}: x", ["error"; 3]),
    ("&a {}: x", ["error"; 3]),
    ("a: b\n{}: x", ["error"; 3]),
    ("- {}: x", ["error"; 3]),
    ("[{}: x]", ["error"; 3]),
    ("[[]]", ["[[]]"; 3]),
    ("a: {b: [], c: {}}", [r#"{"a":{"b":[],"c":{}}}"#; 3]),
    // Keys.
    ("\"a\nb\": c", ["error"; 3]),
    ("a\nb", [r#""ab""#; 3]),
    ("a: b: c", ["error"; 3]),
    ("? a\n: b", [r#"{"a":"b"}"#; 3]),
    ("\"\\", ["error"; 3]),
    ("|0\n x", ["error"; 3]),
    ("|#\n x", [r#""x""#, r#""x""#, "error"]),
    ("| #\n x", [r#""x""#; 3]),
];

#[test]
fn readers_split_documents_as_their_originals_do() {
    for (text, expected) in DOCUMENTS {
        let found = [
            json(|t, b| read::goyaml(t, b), text),
            json(|t, b| read::kustomize(t, b), text),
            json(|t, b| read::pyyaml(t, b), text),
        ];
        assert_eq!(found, *expected, "{text:?}");
    }
}

#[test]
fn keys_have_at_most_1024_characters() {
    for (letter, length, fits) in [("a", 1024, true), ("a", 1025, false), ("é", 1024, true)] {
        let text = format!("\"{}\": b", letter.repeat(length - 2));
        assert_eq!(
            json(|t, b| read::goyaml(t, b), &text) != "error",
            fits,
            "{letter} {length}"
        );
    }
}

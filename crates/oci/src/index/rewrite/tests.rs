//! An index in YAML and in JSON becomes the same JSON.

use serde_json::{Value, json};

use super::*;
use crate::index::stored_entries;

fn rewritten(text: &str, limits: &Limits) -> Result<(Value, usize), String> {
    let mut out = Vec::new();
    let versions = rewrite(text.as_bytes(), &mut out, "http://h/index.yaml", limits);
    let versions = versions.map_err(|error| error.to_string())?;
    Ok((serde_json::from_slice(&out).unwrap(), versions))
}

const YAML: &str = "apiVersion: v1
entries:
  alpha:
  - description: |
      entries:
        redis: x
    name: a
    version: 1.0.0
    urls: [a.tgz]
  - name: a
    version: 1.10.0
  - name: a
    version: none
  - just a string
  - {name: ../a, version: 1.11.0}
  - {name: a, version: 1.12.0, type: plugin}
  \"b\\\"eta\":
    - {name: a, version: 2.0.0, digest: aa}
  empty: []
  nothing:
generated: \"2020-01-01T00:00:00Z\"
";

#[test]
fn index_in_yaml_and_in_json_is_the_same_as_json() {
    let entries = json!({
        "alpha": [
            {"name": "a", "version": "1.10.0"},
            {"description": "entries:\n  redis: x\n", "name": "a", "version": "1.0.0", "urls": ["a.tgz"]},
        ],
        "b\"eta": [{"name": "a", "version": "2.0.0", "digest": "aa"}],
        "empty": [], "nothing": [],
    });
    let expected = json!({"apiVersion": "v1", "entries": entries, "generated": "2020-01-01T00:00:00Z"});
    let (found, versions) = rewritten(YAML, &Limits::default()).unwrap();
    assert_eq!((&found, versions), (&expected, 3));
    // Written again, it stays the same; so does one whose fields come first.
    let (again, _) = rewritten(&found.to_string(), &Limits::default()).unwrap();
    assert_eq!(again, expected);
    let first = r#"{"apiVersion": "v1", "x": {"apiVersion": "v9"}, "generated": "", "entries": {"a": null, "b": [{"name": "a", "version": "1"}]}}"#;
    let (found, versions) = rewritten(first, &Limits::default()).unwrap();
    let expected =
        json!({"apiVersion": "v1", "entries": {"b": [{"name": "a", "version": "1"}]}, "generated": ""});
    assert_eq!((found, versions), (expected, 1));
}

#[test]
fn charts_of_a_written_index_are_found() {
    let mut out = Vec::new();
    rewrite(YAML.as_bytes(), &mut out, "u", &Limits::default()).unwrap();
    let found = stored_entries(out.as_slice(), "u", "b\"eta", &Limits::default()).unwrap();
    assert_eq!(found.unwrap()[0].version, "2.0.0");
}

#[test]
fn invalid_indexes_are_named() {
    let limits = Limits {
        entry_bytes: 40,
        index_bytes: 1000,
        ..Limits::default()
    };
    let long = format!(
        "apiVersion: v1\nentries:\n  a:\n  - name: a\n    version: {}\n",
        "1".repeat(60)
    );
    let large = format!(
        "apiVersion: v1\nentries:\n{}",
        "  a:\n  - name: a\n    version: 1\n".repeat(80)
    );
    for (text, why) in [
        ("entries: {}\n", "no API version specified"),
        ("{\"entries\": {}}", "no API version specified"),
        ("apiVersion: v1\n", "no entries"),
        ("", "no entries"),
        ("apiVersion: v1\nentries:\n  a: text\n", "no list"),
        ("{\"apiVersion\": \"v1\", \"entries\": {\"a\": [", "too early"),
        (long.as_str(), "40 bytes of the entries of one chart"),
        (large.as_str(), "1000 bytes of an index"),
    ] {
        let error = rewritten(text, &limits).unwrap_err();
        assert!(error.contains(why), "{text}: {error}");
    }
}

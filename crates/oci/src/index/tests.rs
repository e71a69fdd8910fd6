//! One chart of an index, in pieces of any size.

use testkit::archive::gzip;

use super::*;
use crate::{Limits, index::MAX_VALUES};

const HELM: &str = "apiVersion: v1
entries:
  alpha:
  - apiVersion: v2
    description: |
      entries:
        redis:
        - name: a
          version: 9.9.9
    name: alpha
    urls: [alpha-1.0.0.tgz]
    version: 1.0.0
  redis:
  - apiVersion: v2
    digest: aa
    name: redis
    urls:
    - charts/redis-1.0.0.tgz
    version: 1.0.0
  - name: ../redis
    version: 9.0.0
  - {name: redis, type: plugin, version: 9.0.0}

  - name: a
    version: 2.0.0
    urls:
    - https://h/redis-2.0.0.tgz
  - name: a
    version: none
  \"redis-cluster\":
  - name: a
    version: 3.0.0
generated: \"2020-01-01T00:00:00Z\"
";

const WIDE: &str = "# made by hand
generated: x
entries:   # charts

    'redis':
        - name: a
          version: \"1.0.0\"
          digest: aa
          urls: [charts/redis-1.0.0.tgz]
        - {name: a, version: 2.0.0, urls: [https://h/redis-2.0.0.tgz]}
";

const FLOW: &str = "entries:
  redis: [{name: a, version: 1.0.0, digest: aa, urls: [charts/redis-1.0.0.tgz]}, {name: a, version: 2.0.0, urls: [https://h/redis-2.0.0.tgz]}]
  other: []
";

const JSON: &str = r#"{"x": {"redis": [1]}, "generated": "entries", "entries": {"a\"": ["redis", {"redis": [{"name": "a", "version": "8.0.0"}]}],
 "redis": [{"name": "a", "version": "1.0.0", "digest": "aa", "urls": ["charts/redis-1.0.0.tgz"]},
  {"name": "a", "version": "2.0.0", "description": "]}\"", "urls": ["https://h/redis-2.0.0.tgz"]}], "z": []}}"#;

fn read_with(text: &[u8], step: usize, packed: bool, limits: &Limits) -> Result<Option<Vec<Entry>>, String> {
    let mut stream = Stream::new("redis", "http://h/index.yaml", packed, limits);
    for piece in text.chunks(step) {
        match stream.push(piece) {
            Ok(true) => {}
            Ok(false) => break,
            Err(error) => return Err(error.to_string()),
        }
    }
    stream.finish().map_err(|error| error.to_string())
}

fn read(text: &str) -> Result<Option<Vec<Entry>>, String> {
    read_with(text.as_bytes(), 7, false, &Limits::default())
}

#[test]
fn a_chart_is_found_however_the_index_is_written() {
    let entry = |version: &str, url: &str, digest: &str| Entry {
        version: version.to_owned(),
        urls: vec![url.to_owned()],
        digest: digest.to_owned(),
        created: None,
    };
    let expected = Some(vec![
        entry("2.0.0", "https://h/redis-2.0.0.tgz", ""),
        entry("1.0.0", "charts/redis-1.0.0.tgz", "aa"),
    ]);
    for text in [HELM, WIDE, FLOW, JSON] {
        for step in [1, 2, 3, 64, 100_000] {
            let found = read_with(text.as_bytes(), step, false, &Limits::default()).unwrap();
            assert_eq!(found, expected, "{step}: {text}");
            let found = read_with(&gzip(text.as_bytes()), step, true, &Limits::default()).unwrap();
            assert_eq!(found, expected, "packed {step}: {text}");
        }
        let windows = text.replace('\n', "\r\n");
        assert_eq!(read(&windows).unwrap(), expected, "{windows}");
        assert_eq!(read(text.trim_end()).unwrap(), expected, "{text}");
    }
}

#[test]
fn a_digest_of_digits_is_one() {
    let text = "entries:\n  redis:\n  - {name: a, version: 1, digest: 1234567890, urls: [a.tgz]}\n";
    let found = read(text).unwrap().unwrap();
    assert_eq!(
        (found[0].version.as_str(), found[0].digest.as_str()),
        ("1", "1234567890")
    );
}

#[test]
fn texts_may_have_line_ends_of_unicode() {
    let text = "entries:\n  redis:\n  - description: |2+\n\n\u{2028}    urls: [a.tgz]\n    name: a\n    version: 1.0.0\n  z:\n  - a: |\n      b\u{85}    version: 2.0.0\n";
    let found = read(text).unwrap().unwrap();
    assert_eq!((found.len(), found[0].version.as_str()), (1, "1.0.0"));
}

#[test]
fn an_index_without_the_chart_is_still_one() {
    for text in [
        "entries:\n  a:\n  - name: a\n    version: 1.0.0\n",
        "entries: {}\n",
        "entries:\nx: {}\n",
        "entries:\n",
        r#"{"entries": {}}"#,
        r#"{"entries": {"a": [{"redis": []}]}, "more": {"redis": []}}"#,
    ] {
        assert_eq!(read(text), Ok(None), "{text}");
    }
}

#[test]
fn invalid_indexes_are_named() {
    for (text, why) in [
        ("", "no entries"),
        ("<html>\n<body>entries: x</body></html>\n", "no entries"),
        ("{\"error\": \"x\"}", "no entries"),
        ("entries: &a {redis: []}\n", "neither YAML in blocks nor JSON"),
        ("entries:\n    a:\n  redis:\n", "indented alike"),
        ("entries:\n  what\n", "something else"),
        ("entries:\n  redis:\n    version: 1\n", "no list"),
        ("entries:\n  redis:\n  - {\n", "can't be read"),
        ("{\"entries\": {\"redis\": 1}}", "no list"),
        ("{\"entries\": {\"a\": [", "too early"),
        ("{}}", "too often"),
    ] {
        let error = read(text).unwrap_err();
        assert!(error.contains(why), "{text:?}: {error}");
    }
    let cut = gzip(HELM.as_bytes());
    let error = read_with(&cut[..20], 4, true, &Limits::default()).unwrap_err();
    assert!(
        error.contains("unpacked") || error.contains("no entries"),
        "{error}"
    );
}

#[test]
fn limits_hold() {
    let limits = Limits {
        index_bytes: 1 << 20,
        entry_bytes: 1000,
        ..Limits::default()
    };
    let long = format!(
        "entries:\n  redis:\n  - name: a\n    version: 1.0.0\n    description: {}\n",
        "x".repeat(2000)
    );
    let error = read_with(long.as_bytes(), 100, false, &limits).unwrap_err();
    assert!(error.contains("1000 bytes of the entries"), "{error}");
    let json = format!("{{\"entries\": {{\"redis\": [\"{}\"]}}}}", "x".repeat(2000));
    let error = read_with(json.as_bytes(), 100, false, &limits).unwrap_err();
    assert!(error.contains("1000 bytes of the entries"), "{error}");
    // Other charts may be of any size, if the whole index is below its limit.
    let other = long.replace("redis", "other");
    assert_eq!(read_with(other.as_bytes(), 100, false, &limits), Ok(None));
    let bomb = gzip(format!("entries:\n  a: {}", "x".repeat(4 << 20)).as_bytes());
    let error = read_with(&bomb, 1000, true, &limits).unwrap_err();
    assert!(error.contains("1048576 bytes of an index"), "{error}");
}

#[test]
fn entries_with_too_many_values_are_refused_before_they_are_parsed() {
    for item in ["- {}\n", "- []\n", "- a\n"] {
        let error = parse(item.repeat(MAX_VALUES + 1).as_bytes(), "u")
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("larger than the limit of 1000000 values in the entries"),
            "{error}"
        );
    }
    let json = format!("[{}{{}}]", "{},".repeat(MAX_VALUES));
    assert!(parse(json.as_bytes(), "u").is_err());
    let real = "- {name: a, version: 1.0.0, urls: [a], digest: b}\n".repeat(1000);
    assert_eq!(parse(real.as_bytes(), "u").unwrap().len(), 1000);
}

//! The bounds of paths and patterns: with strings at their limits, no call takes unbounded work.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use go::regexp::{Pattern, PatternQuota, RegexpError};
use serde_json::json;
use testkit::fuzz::{self, Random};
use yaml::Value;

use crate::{
    Error, Ignore, ObjectRef,
    conflict::{self, Cause},
    jsonpath::{JsonPath, JsonPathError, Meter},
    managed::{self, Element},
    normalize,
    path::{self, Key},
    rules::IgnoreRule,
    vocabulary::{Managers, tests::EXAMPLE},
};

/// Limit of one call, for a debug build on a busy machine. Without bounds, calls take minutes.
const TIME: Duration = Duration::from_secs(30);

fn timed<T>(call: impl FnOnce() -> T) -> T {
    let started = Instant::now();
    let result = call();
    assert!(started.elapsed() < TIME, "{:?}", started.elapsed());
    result
}

fn annotated(name: &str, values: impl IntoIterator<Item = String>) -> Value {
    let values = values.into_iter().enumerate();
    let annotations: serde_json::Map<_, _> = values
        .map(|(number, value)| (format!("{name}-{number}"), json!(value)))
        .collect();
    Value::from_json(json!({"kind": "A", "metadata": {"annotations": annotations}, "spec": {"aa": 1}}))
}

#[test]
fn matches_below_a_long_key_do_not_copy_it() {
    let key = "k".repeat(500_000);
    let items: Vec<_> = (0..50_000).collect();
    let object = Value::from_json(json!({"data": {&key: items}}));
    for (text, expected) in [("$..*", Err(JsonPathError::TooManyValues)), ("$..x", Ok(0))] {
        let path = JsonPath::parse(text).unwrap();
        let found = timed(|| path.find(&object)).map(|found| found.len());
        assert_eq!(found, expected, "{text}");
    }
    let one = JsonPath::parse("data.*[7]").unwrap().find(&object).unwrap();
    assert_eq!(
        one,
        [vec![Key::from("data"), Key::from(key.as_str()), Key::Index(7)]]
    );
}

#[test]
fn filters_neither_copy_nor_compare_large_values_for_free() {
    let items: Vec<_> = (0..20_000).map(|number| json!({"n": number, "t": "a"})).collect();
    let object = Value::from_json(json!({"items": items, "more": items}));
    let path = JsonPath::parse("items[?(@ == $)].n").unwrap();
    assert_eq!(timed(|| path.find(&object)), Ok(Vec::new()));
    let error = JsonPath::parse("items[?($.items == $.more)].n")
        .unwrap()
        .find(&object);
    assert_eq!(error, Err(JsonPathError::TooManyValues));
}

#[test]
fn searches_are_charged_as_the_product_of_text_and_size() {
    let object = Value::from_json(json!({"items": vec![json!({"text": "a".repeat(100_000)}); 40]}));
    let large = JsonPath::parse("items[?(@.text =~ /(?:a?){900}(?:a?){900}b$/)]").unwrap();
    let found = timed(|| large.find(&object));
    assert_eq!(found, Err(JsonPathError::TooMuchMatching));
    let small = JsonPath::parse("items[?(@.text =~ /^a+$/)]").unwrap();
    assert_eq!(small.find(&object).unwrap().len(), 40);
}

#[test]
fn paths_and_patterns_of_an_object_share_their_bounds() {
    let keys = (0..3000).map(|number| (format!("key{number}"), json!(number)));
    let data: serde_json::Map<_, _> = keys.collect();
    let object = Value::from_json(json!({"kind": "A", "metadata": {}, "data": data}));
    let paths = annotated(
        "example.com/ignore-diff-field",
        (0..5000).map(|_| "$..x".to_owned()),
    );
    let mut ignore = Ignore::of(&paths, &EXAMPLE, &[]).unwrap();
    let refused = timed(|| normalize(&object, &mut ignore)).unwrap_err();
    assert!(refused.to_string().contains("too many values"), "{refused}");
    let few = annotated(
        "example.com/ignore-diff-field",
        (0..50).map(|_| "$..x".to_owned()),
    );
    let mut ignore = Ignore::of(&few, &EXAMPLE, &[]).unwrap();
    let states = (1..1000).find(|_| normalize(&object, &mut ignore).is_err());
    assert!(
        states.is_some_and(|states| (2..50).contains(&states)),
        "all states share them: {states:?}"
    );
    let name = "example.com/ignore-diff-field-regex";
    let patterns = annotated(name, (0..5000).map(|number| format!("\\pL{{10}}{number}")));
    let refused = timed(|| Ignore::of(&patterns, &EXAMPLE, &[])).unwrap_err();
    assert!(refused.to_string().contains("too many"), "{refused}");
    let few = annotated(name, (0..100).map(|number| format!("^data\\.key{number}$")));
    let normal = normalize(&object, &mut Ignore::of(&few, &EXAMPLE, &[]).unwrap()).unwrap();
    assert_eq!(
        normal.get("data").and_then(Value::as_map).map(yaml::Map::len),
        Some(2900)
    );
}

#[test]
fn paths_and_fields_share_the_names_above_them() {
    let shared = |one: &Key, other: &Key| match (one, other) {
        (Key::Field(one), Key::Field(other)) => Arc::ptr_eq(one, other),
        _ => false,
    };
    let key = "k".repeat(300_000);
    let items: Vec<_> = (0..30_000).collect();
    let leaves = path::leaves(&Value::from_json(json!({"a": {&key: items}})));
    assert_eq!(leaves.len(), 30_000);
    assert!(leaves.iter().all(|leaf| shared(&leaf[1], &leaves[0][1])));
    let names: serde_json::Map<_, _> = (0..30_000)
        .map(|number| (format!("f:{number}"), json!({})))
        .collect();
    let tree = json!({format!("f:{key}"): names});
    let entry = json!({"manager": "m", "operation": "Apply", "fieldsV1": tree});
    let owners = managed::managed_fields(&Value::from_json(json!({"metadata": {"managedFields": [entry]}})));
    let (first, last) = (&owners[0].fields[0][0], &owners[0].fields[29_999][0]);
    assert!(matches!((first, last), (Element::Name(one), Element::Name(other)) if Arc::ptr_eq(one, other)));
}

#[test]
fn leaves_below_a_long_key_are_searched_within_bounds() {
    let key = "k".repeat(200_000);
    let items: Vec<_> = (0..20_000).collect();
    let object = Value::from_json(json!({"kind": "A", "metadata": {}, "data": {key: items}}));
    let local = annotated("example.com/ignore-diff-field-regex", ["nothing".to_owned()]);
    let mut ignore = Ignore::of(&local, &EXAMPLE, &[]).unwrap();
    let refused = timed(|| normalize(&object, &mut ignore)).unwrap_err();
    assert!(matches!(refused, Error::Pattern { .. }) && refused.to_string().contains("too much text"));
}

#[test]
fn patterns_are_bounded_before_they_are_parsed() {
    for pattern in [
        "\\w".repeat(40_000),
        "[\\pL]".repeat(10_000),
        "a".repeat(1 << 20),
        "\\pL{1000}".to_owned(),
    ] {
        let error = timed(|| Pattern::compile(&pattern).err());
        assert_eq!(error, Some(RegexpError::TooLarge));
    }
    let mut quota = PatternQuota::default();
    let refused = (0..10_000).find_map(|_| quota.compile("a+").err());
    assert_eq!(refused, Some(RegexpError::TooMany));
}

#[test]
fn many_conflicts_of_one_object_are_resolved_without_a_product() {
    const FIELDS: usize = 5000;
    let keys = |value: &str| -> serde_json::Map<_, _> {
        (0..FIELDS)
            .map(|number| (format!("key{number}"), json!(value)))
            .collect()
    };
    let owned: serde_json::Map<_, _> = (0..FIELDS)
        .map(|number| (format!("f:key{number}"), json!({})))
        .collect();
    let entries = vec![json!({"manager": "other", "operation": "Apply", "fieldsV1": {"f:data": owned}}); 4];
    let live = Value::from_json(json!({"metadata": {"managedFields": entries}, "data": keys("a")}));
    let local = Value::from_json(json!({"data": keys("b")}));
    let causes: Vec<_> = (0..FIELDS)
        .map(|number| Cause {
            reason: "FieldManagerConflict".to_owned(),
            message: "conflict".to_owned(),
            field: format!(".data.key{number}"),
        })
        .collect();
    let policy = conflict::Policy {
        vocabulary: &EXAMPLE,
        overridden: Managers::default(),
        rules: &[],
    };
    let mut resolver = conflict::ConflictTexts::of(&local, policy).compile().unwrap();
    let resolution = timed(|| resolver.resolve(&live, &local, &causes)).unwrap();
    assert_eq!(resolution.left.len(), FIELDS);
    let left = resolution.patch.get("data").and_then(Value::as_map);
    assert!(left.is_none_or(yaml::Map::is_empty));
}

#[test]
fn many_items_of_a_list_are_removed_in_one_pass() {
    let items: Vec<_> = (0..100_000).collect();
    let mut value = Value::from_json(json!({"l": items, "m": {"a": 1, "b": {"c": 1}}}));
    let mut paths: Vec<_> = (0..99_999)
        .map(|index| vec![Key::from("l"), Key::Index(index)])
        .collect();
    for text in [&["m", "a"][..], &["m", "b", "c"], &["m", "b"]] {
        paths.push(text.iter().map(|name| Key::from(*name)).collect());
    }
    timed(|| path::remove_all(&mut value, paths));
    assert_eq!(value, Value::from_json(json!({"l": [99_999], "m": {}})));
}

/// Returns a string at the limit of its length: a piece that is repeated.
fn long(random: &mut Random, pieces: &[&str]) -> String {
    let piece = random.text(pieces, 1..6);
    let most = 4096 / piece.len().max(1);
    let count = *random.pick(&[1, 8, 64, most, most + 1]);
    format!(
        "{}{}",
        random.pick(&["", "$", "a", "$..a"]),
        piece.repeat(count.max(1))
    )
}

#[test]
fn fuzz_texts_at_the_limits_take_bounded_work() {
    const PIECES: &[&str] = &[
        "..",
        "*",
        "[*]",
        ".a",
        "[0]",
        "[-1]",
        "[::1]",
        "[?(@.a)]",
        "[?($..a)]",
        "[?(@ == $)]",
        "[?(@.a =~ /a?b/)]",
        "[?(!@.a)]",
        "['a','a','a']",
        "(a?)",
        "{9}",
        "\\w",
        "\\pL",
        "(?i)",
        "|",
        "a",
        "(",
        ")",
        "+",
        "&& @.a ",
    ];
    let items: Vec<_> = (0..40)
        .map(|number| json!({"a": {"a": number}, "b": "a".repeat(50)}))
        .collect();
    let object = Value::from_json(json!({"kind": "A", "a": items, "metadata": {"name": "n", "a": [[[1]]]}}));
    fuzz::run("limits of objects", |random| {
        let text = long(random, PIECES);
        random.note("text", &text);
        let mut meter = Meter::default();
        timed(|| {
            if let Ok(path) = JsonPath::parse(&text) {
                let _ = path.find_within(&object, &mut meter);
            }
            if let Ok(pattern) = Pattern::compile(&text) {
                let _ = meter.is_match(&pattern, &"ab".repeat(5000));
            }
            let rule = IgnoreRule {
                paths: vec![text.clone(); 3],
                path_patterns: vec![text.clone(); 3],
                ..IgnoreRule::default()
            };
            if let Ok(mut ignore) = Ignore::of(&object, &EXAMPLE, &[rule]) {
                let _ = normalize(&object, &mut ignore);
            }
            let _ = (managed::element(&text), ObjectRef::of(&object));
        });
    });
}

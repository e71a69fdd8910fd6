//! Random values for the charts in Go modules, rendered by this crate and by Helm: both must give the same objects, or fail
//! with the same message. `WEIR_FUZZ_VALUES` is their number; `make test` fetches nothing and tries none.

use std::{
    fs,
    path::{Path, PathBuf},
};

use testkit::fuzz::{Comparison, Random};
use tree::Budget;
use yaml::{Map, Value};

use crate::modules::{charts, difference, ours, theirs};

/// Strings that a template or parser may take for another type.
const TEXTS: &str = "¦x¦a: b¦{{ .Release.Name }}¦two\nlines\n¦é€¦1e3¦0x1F¦yes¦on¦null¦~¦012¦1.0¦- a¦# c¦'q'¦\"dq\"¦  lead¦\
    trail ¦a\tb¦*star¦&amp¦@at¦%p¦true¦123456789012345678901¦100m¦1Gi¦300s¦v1.2.3¦sha256:abc¦10.0.0.0/8¦a,b,c¦key=val¦\
    [1,2]¦{a: b}¦|¦2001-01-01¦!x¦deep\n\n  indented\n¦\\n¦$(x)¦${Y}¦tcp://1.2.3.4:80";
/// Further values, as YAML.
const OTHERS: &str = "null¦true¦false¦0¦1¦-1¦2¦80¦65536¦2147483648¦9007199254740993¦1.5¦1e21¦0.1¦1000000¦[]¦{}¦[a]¦{a: b}¦\
    [a, 'b: c']¦[{name: n, value: v}]¦[1, 2]¦[{host: h, paths: [/]}]¦[{key: k, operator: Exists}]¦[null]¦{a: {b: c}}¦\
    {x-y: 1, b: true}¦{z: '1', a: '2'}¦{enabled: true}¦{limits: {cpu: 100m, memory: 1}}¦{nothing: null}¦{a: [b]}";

fn word(random: &mut Random, words: &'static str) -> &'static str {
    let words: Vec<&str> = words.split('¦').collect();
    random.pick::<&str>(&words)
}

fn parsed(text: &str) -> Value {
    let text = text.as_bytes().to_vec();
    yaml::read::goyaml_lenient(text, &Budget::default())
        .map(|read| read.value)
        .unwrap_or_default()
}

/// The values of a chart, each with its path.
type Paths = Vec<(Vec<String>, Value)>;

/// Returns a replacement of a value, mostly of its type.
fn another(random: &mut Random, old: &Value) -> Value {
    match old {
        Value::Bool(on) if !random.one_in(8) => (!on).into(),
        Value::String(_) if !random.one_in(5) => word(random, TEXTS).into(),
        _ => parsed(word(random, OTHERS)),
    }
}

/// Collects the paths of a map, and of nested maps.
fn paths(value: &Value, above: &[String], found: &mut Paths) {
    let Value::Map(map) = value else { return };
    for (key, value) in map.iter() {
        let mut key_path = above.to_vec();
        key_path.push(key.to_owned());
        paths(value, &key_path, found);
        found.push((key_path, value.clone()));
    }
}

fn put(map: &mut Map, key_path: &[String], value: Value) {
    let [key, rest @ ..] = key_path else { return };
    if rest.is_empty() {
        map.insert(key.clone(), value);
        return;
    }
    let mut below = match map.get(key) {
        Some(Value::Map(below)) => below.clone(),
        _ => Map::default(),
    };
    put(&mut below, rest, value);
    map.insert(key.clone(), Value::Map(below));
}

/// Returns the values of a chart, subcharts included.
fn defaults(chart: &Path) -> Paths {
    let read = |dir: &Path| parsed(&fs::read_to_string(dir.join("values.yaml")).unwrap_or_default());
    let mut found = Vec::new();
    let inner = fs::read_dir(chart.join("charts")).into_iter().flatten();
    let mut inner: Vec<PathBuf> = inner.filter_map(|entry| Some(entry.ok()?.path())).collect();
    inner.sort();
    for dir in inner {
        let name = dir.file_name().map(|name| name.to_string_lossy().into_owned());
        paths(&read(&dir), name.as_slice(), &mut found);
    }
    paths(&read(chart), &[], &mut found);
    found
}

/// Sorts the lines of an error: Helm reports some problems in the random order of its maps.
fn sorted(outcome: Result<String, String>) -> Result<String, String> {
    outcome.map_err(|words| {
        let mut lines: Vec<&str> = words.lines().map(str::trim).collect();
        lines.sort_unstable();
        lines.join("\n")
    })
}

#[test]
fn random_values_render_as_in_the_original() {
    let comparison = Comparison::from_environment("WEIR_FUZZ_VALUES", 0);
    if !comparison.asked {
        testkit::skipped::note("charts with random values", "WEIR_FUZZ_VALUES is not set");
        return;
    }
    let helm = testkit::oracle::helm().unwrap();
    let charts: Vec<(PathBuf, Paths)> = charts()
        .into_iter()
        .map(|chart| (chart.clone(), defaults(&chart)))
        .filter(|(_, known)| !known.is_empty())
        .collect();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("values.yaml");
    let mut failed = 0;
    let differences = comparison.differences("values", |random| {
        let (chart, known) = random.pick(&charts);
        let mut values = Map::default();
        for _ in 0..*random.pick(&[1, 1, 2, 3, 5, 8, 15, 30]) {
            let (key_path, old) = random.pick(known);
            let new = another(random, old);
            put(&mut values, key_path, new);
        }
        let text = yaml::print::goyaml(&Value::Map(values));
        random.note("chart", chart);
        random.note("values", &text);
        fs::write(&file, &text).unwrap();
        let original = [(); 2].map(|()| sorted(theirs(&helm, chart, &file)));
        failed += u64::from(original[0].is_err());
        let found = difference(&sorted(ours(chart, &text)), &original);
        assert!(found.is_none(), "{}", found.unwrap_or_default());
    });
    let tally = format!("{failed} renders fail with helm, too");
    comparison.conclude("helm-values", tally, &differences);
}

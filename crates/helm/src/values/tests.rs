use bytes::Bytes;
use tree::Budget;

use super::*;
use crate::{
    Chart,
    chart::{Dependency, File},
};

fn merged(sources: &Sources) -> String {
    let read = |name: &str| match name {
        "file" => Ok(Bytes::from("of\na file")),
        name => Err(format!("open {name}: no such file or directory").into()),
    };
    match sources.merge(Some(&read), HelmVersion::V3, &Budget::default()) {
        Ok(values) => format!("{:?}", Value::Dict(values)),
        Err(error) => error.to_string(),
    }
}

fn strings(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

#[test]
fn set_infers_types() {
    let table: &[(&[&str], &str)] = &[
        (
            &["a=1,b=true,c=null,d=0,e=01,f=1.5,g=,h=-3"],
            r#"{"a": 1, "b": true, "c": nil, "d": 0, "e": "01", "f": "1.5", "g": "", "h": -3}"#,
        ),
        (&["a=TRUE,b=Null,c=False"], r#"{"a": true, "b": nil, "c": false}"#),
        (&["a= 1 , b=x"], r#"{" b": "x", "a": " 1 "}"#),
        (
            &["a=+5,b=1_000,c=9999999999999999999"],
            r#"{"a": 5, "b": "1_000", "c": "9999999999999999999"}"#,
        ),
        (
            &["a.b=c,a.d={x,1,true},e[1]=f,g[0].h=i,g[0].j=k"],
            r#"{"a": {"b": "c", "d": ["x", 1, true]}, "e": [nil, "f"], "g": [{"h": "i", "j": "k"}]}"#,
        ),
        (&[r"a\.b=c\,d,e=f\=g"], r#"{"a.b": "c,d", "e": "f=g"}"#),
        (&["a=1,"], r#"{"a": 1}"#),
        (&["a={x,y},b=1"], r#"{"a": ["x", "y"], "b": 1}"#),
        (&["a={}"], r#"{"a": [""]}"#),
        (&["a[0][1]=2,a[0][0]=1"], r#"{"a": [[1, 2]]}"#),
        (&["a[0].b=1,a[2].c=1"], r#"{"a": [{"b": 1}, nil, {"c": 1}]}"#),
        (&["a[0]={1,2},b=3"], r#"{"a": [[1, 2]], "b": 3}"#),
        (&["a[0]=,b=2"], r#"{"a": [""], "b": 2}"#),
        (&["=1,b=2"], r#"{"b": 2}"#),
        (&[r"a=\"], r#"{"a": ""}"#),
        (&["a[0]"], r#"{"a": []}"#),
        (&["a[0].=1"], r#"{"a": [{}]}"#),
        (&[""], "{}"),
        (&["a.b.c=1,a.b=2"], r#"{"a": {"b": 2}}"#),
        (&["a.b=1", "a.c=2"], r#"{"a": {"b": 1, "c": 2}}"#),
    ];
    for (set, expected) in table {
        let sources = Sources {
            set: strings(set),
            ..Sources::default()
        };
        assert_eq!(merged(&sources), *expected, "{set:?}");
    }
}

#[test]
fn set_refuses_invalid_settings() {
    let table: &[(&[&str], &str)] = &[
        (&["a"], "key \"a\" has no value"),
        (&["a,b=1"], "key \"a\" has no value (cannot end with ,)"),
        (&["a.b"], "key \"b\" has no value"),
        (&["a.=1"], "key map \"a\" has no value"),
        (
            &["a[x]=1"],
            "error parsing index: strconv.Atoi: parsing \"x\": invalid syntax",
        ),
        (&["a[0"], "error parsing index: EOF"),
        (&["a[-1]=1"], "negative -1 index not allowed"),
        (&["a[0]b=1"], "unexpected data at end of array index: ['b']"),
        (
            &["a[99999]=1"],
            "index of 99999 is greater than maximum supported index of 65536",
        ),
        (&["a={x,y"], "list must terminate with '}'"),
        (
            &["a=1", "a.b=2"],
            "unable to parse key: interface conversion: interface {} is int64, not map[string]interface {}",
        ),
        (
            &["a=null", "a.b=2"],
            "unable to parse key: interface conversion: interface {} is nil, not map[string]interface {}",
        ),
        (
            &["a=1", "a[0]=2"],
            "unable to parse key: interface conversion: interface {} is int64, not []interface {}",
        ),
    ];
    for (set, expected) in table {
        let sources = Sources {
            set: strings(set),
            ..Sources::default()
        };
        assert_eq!(
            merged(&sources),
            format!("failed parsing --set data: {expected}"),
            "{set:?}"
        );
    }
    let deep = Sources {
        set: vec![format!("{}=1", ["a"; 40].join("."))],
        ..Sources::default()
    };
    assert!(merged(&deep).contains("greater than maximum supported nested level of 30"));
    let deep = Sources {
        set: vec![format!("a{}=1", "[0]".repeat(100_000))],
        ..Sources::default()
    };
    assert!(merged(&deep).contains("nests deeper than 200"));
}

#[test]
fn set_string_json_and_file_have_their_own_types() {
    let json = |text: &str| Sources {
        json: strings(&[text]),
        ..Sources::default()
    };
    assert_eq!(
        merged(&json(r#"a={"b":[1,2.5,null]},c="x",d=,e=1"#)),
        r#"{"a": {"b": [1.0, 2.5, nil]}, "c": "x", "d": nil, "e": 1.0}"#
    );
    assert_eq!(
        merged(&json(r#"a[1]={"x":1}, b = 2"#)),
        r#"{" b ": 2.0, "a": [nil, {"x": 1.0}]}"#
    );
    assert_eq!(merged(&json("a={")), "failed parsing --set-json data a={");
    let text = Sources {
        string: strings(&["a=1,b=null,c={1,true}"]),
        ..Sources::default()
    };
    assert_eq!(merged(&text), r#"{"a": "1", "b": "null", "c": ["1", "true"]}"#);
    let literal = Sources {
        literal: strings(&[r"a=b,c={d},e\n", "d.b[1]=x=y"]),
        ..Sources::default()
    };
    assert_eq!(
        merged(&literal),
        r#"{"a": "b,c={d},e\\n", "d": {"b": [nil, "x=y"]}}"#
    );
    let file = Sources {
        file: strings(&["a=file,b[0]=file"]),
        ..Sources::default()
    };
    assert_eq!(merged(&file), r#"{"a": "of\na file", "b": ["of\na file"]}"#);
    let missing = Sources {
        file: strings(&["a=none"]),
        ..Sources::default()
    };
    assert_eq!(
        merged(&missing),
        "failed parsing --set-file data: open none: no such file or directory"
    );
}

#[test]
fn settings_override_files() {
    let file = |name: &str, text: &'static str| (name.to_owned(), Bytes::from(text));
    let sources = Sources {
        files: vec![
            file("a.yaml", "m: {a: 1, b: [1]}\nk: x"),
            file("b.yaml", "m: {b: [2], c: null}\nk: {o: 1}"),
        ],
        set: strings(&["m.a=3"]),
        ..Sources::default()
    };
    assert_eq!(
        merged(&sources),
        r#"{"k": {"o": 1.0}, "m": {"a": 3, "b": [2.0], "c": nil}}"#
    );
    let list = Sources {
        files: vec![file("x.yaml", "[1]")],
        ..Sources::default()
    };
    assert_eq!(
        merged(&list),
        "failed to parse x.yaml: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal array into Go value \
         of type map[string]interface {}"
    );
}

pub(super) fn values(text: &str) -> Value {
    read_map(text.as_bytes(), &Budget::default()).unwrap()
}

pub(super) fn chart(name: &str, defaults: &str, dependencies: Vec<Chart>) -> Chart {
    let mut chart = Chart {
        values: values(defaults),
        dependencies,
        ..Chart::default()
    };
    chart.metadata.name = name.to_owned();
    chart
}

fn coalesced(chart: &Chart, over: &str) -> (String, Vec<String>) {
    let Value::Dict(over) = values(over) else {
        panic!("no map")
    };
    let mut warnings = Vec::new();
    let values = match coalesce_last(chart, &over, HelmVersion::V3, &mut warnings) {
        Ok(values) => format!("{:?}", Value::Dict(values)),
        Err(error) => error.to_string(),
    };
    (values, warnings)
}

#[test]
fn values_override_defaults() {
    let one = chart(
        "c",
        "{a: 1, m: {x: 1, w: 2, z: {}}, gone: 1, t: {a: 1}, s: 1}",
        Vec::new(),
    );
    let (values, warnings) = coalesced(
        &one,
        "{m: {w: null, z: 5}, gone: null, t: {}, s: {b: 1}, own: null}",
    );
    assert_eq!(
        values,
        r#"{"a": 1.0, "m": {"x": 1.0, "z": 5.0}, "own": nil, "s": {"b": 1.0}, "t": {"a": 1.0}}"#
    );
    assert_eq!(
        warnings,
        [
            "warning: cannot overwrite table with non table for c.m.z (map[])",
            "warning: skipped value for c.s: Not a table."
        ]
    );
}

#[test]
fn nulls_drop_keys_of_subcharts() {
    let values = "{in: {gone: null, a: {x: null, t: null}, deep: {p: null}}}";
    // Rendering consumes the values of charts.
    let inner = || {
        chart(
            "in",
            "{nested: {k: 1}, a: {o: 1, t: {z: 1}}, own: null}",
            Vec::new(),
        )
    };
    for (over, expected) in [
        (
            "{}",
            r#""a": {"o": 1.0}, "deep": {"p": nil}, "global": {}, "gone": nil, "nested": {"k": 1.0}, "own": nil"#,
        ),
        (
            "{in: {nested: null}}",
            r#""a": {"o": 1.0}, "deep": {"p": nil}, "global": {}, "gone": nil, "own": nil"#,
        ),
        (
            "{in: {none: null, a: {o: null, none: null}}}",
            r#""a": {}, "deep": {"p": nil}, "global": {}, "gone": nil, "nested": {"k": 1.0}, "none": nil, "own": nil"#,
        ),
    ] {
        let (values, warnings) = coalesced(&chart("out", values, vec![inner()]), over);
        assert_eq!(values, format!(r#"{{"in": {{{expected}}}}}"#), "{over}");
        assert!(warnings.is_empty(), "{warnings:?}");
    }
    // Nulls of the outermost chart stay, as with 3.19.4.
    let (values, _) = coalesced(
        &chart("out", "{a: {o: 1}}", Vec::new()),
        "{a: {o: null, x: null}}",
    );
    assert_eq!(values, r#"{"a": {"x": nil}}"#);
}

#[test]
fn subcharts_get_their_values_and_globals() {
    let inner = chart("in", "{x: 1, z: 1, global: {a: {deep: 1}}}", Vec::new());
    let outer = chart("out", "{in: {x: 2}, global: {a: {b: 1}, c: 1}}", vec![inner]);
    let (values, _) = coalesced(&outer, "{in: {z: 3}, global: {c: 2}}");
    assert_eq!(
        values,
        r#"{"global": {"a": {"b": 1.0}, "c": 2.0}, "in": {"global": {"a": {"b": 1.0, "deep": 1.0}, "c": 2.0}, "x": 2.0, "z": 3.0}}"#
    );
    for (over, expected) in [
        ("text", "%!t(string=text)"),
        ("true", "true"),
        ("[1, {a: b}]", "[%!t(float64=1) map[%!t(string=a):%!t(string=b)]]"),
    ] {
        let (error, _) = coalesced(&outer, &format!("{{in: {over}}}"));
        assert_eq!(error, format!("type mismatch on in: {expected}"));
    }
}

/// Returns a chart with dependencies, each with further fields of its entry.
fn asking(names: &[(&str, &str)], defaults: &str) -> Chart {
    let mut asked = String::from("apiVersion: v2\nname: root\nversion: 1.0.0\ndependencies:\n");
    let mut files = vec![("values.yaml".to_owned(), defaults.to_owned())];
    for (name, entry) in names {
        asked.push_str(&format!(
            "- {{name: {name}, version: 1.x.x, repository: '', {entry}}}\n"
        ));
        let path = |file: &str| format!("charts/{name}/{file}");
        files.push((
            path("Chart.yaml"),
            format!("apiVersion: v2\nname: {name}\nversion: 1.2.0\n"),
        ));
        files.push((
            path("values.yaml"),
            format!("own: {name}\nexports: {{data: {{from: {name}}}}}\nt: {{k: 1}}\n"),
        ));
    }
    files.push(("Chart.yaml".to_owned(), asked));
    let file = |(name, text): (String, String)| File {
        name,
        data: Bytes::from(text),
    };
    Chart::from_files(
        files.into_iter().map(file).collect(),
        HelmVersion::V3,
        &Budget::default(),
    )
    .unwrap()
}

fn processed(mut chart: Chart, over: &str) -> (Vec<String>, String, Vec<String>) {
    let Value::Dict(over) = values(over) else {
        panic!("no map")
    };
    let mut warnings = Vec::new();
    process_dependencies(
        &mut chart,
        &over,
        HelmVersion::V3,
        &mut warnings,
        &Budget::default(),
    )
    .unwrap();
    let names = chart
        .dependencies
        .iter()
        .map(|inner| inner.name().to_owned())
        .collect();
    (names, format!("{:?}", chart.values), warnings)
}

#[test]
fn conditions_override_tags() {
    let names = [
        ("a", "condition: 'a.use,b.use'"),
        ("b", "tags: [t, u]"),
        ("c", "condition: c.use, tags: [t]"),
        ("d", "alias: e"),
    ];
    let table = [
        ("{}", vec!["a", "b", "c", "e"]),
        ("{a: {use: false}}", vec!["b", "c", "e"]),
        ("{b: {use: false}}", vec!["b", "c", "e"]),
        ("{tags: {t: false}}", vec!["a", "e"]),
        (
            "{tags: {t: false, u: true}, c: {use: true}}",
            vec!["a", "b", "c", "e"],
        ),
        ("{a: {use: 'no'}, tags: {t: x}}", vec!["a", "b", "c", "e"]),
    ];
    for (over, expected) in table {
        let (names, _, warnings) = processed(asking(&names, "{}"), over);
        assert_eq!(names, expected, "{over}");
        assert_eq!(warnings.is_empty(), !over.contains("no"), "{over} {warnings:?}");
    }
}

#[test]
fn import_values_do_not_override_the_parent() {
    let names = [("a", "import-values: [data, {child: t, parent: into.here}, none]")];
    let (_, values, warnings) = processed(asking(&names, "{from: root, into: {x: 1}}"), "{}");
    assert!(values.contains(r#""from": "root""#), "{values}");
    assert!(
        values.contains(r#""into": {"here": {"k": 1.0}, "x": 1.0}"#),
        "{values}"
    );
    assert_eq!(
        warnings,
        ["Warning: ImportValues missing table: \"none\" is not a table"]
    );
    // A copy prevents that a map contains itself.
    let names = [(
        "a",
        "import-values: [{child: exports.data, parent: k}, {child: exports, parent: k}]",
    )];
    let (_, values, _) = processed(asking(&names, "{}"), "{}");
    assert!(
        values.contains(r#""k": {"data": {"from": "a"}, "from": "a"}"#),
        "{values}"
    );
}

#[test]
fn copies_of_aliased_charts_are_limited() {
    // Each level has the next one eight times.
    let list = format!("a: [{}1]", "1, ".repeat(9_999));
    let mut inner = chart("c0", &list, Vec::new());
    inner.metadata.version = "1.0.0".to_owned();
    for level in 1..8 {
        let mut outer = chart(&format!("c{level}"), "a: 1", vec![inner]);
        let one = |_| {
            std::rc::Rc::new(std::cell::RefCell::new(Dependency {
                name: format!("c{}", level - 1),
                version: "*".to_owned(),
                ..Dependency::default()
            }))
        };
        outer.metadata.version = "1.0.0".to_owned();
        outer.metadata.dependencies = Some((0..8).map(one).collect());
        inner = outer;
    }
    let budget = Budget::default();
    let error =
        process_dependencies(&mut inner, &table(), HelmVersion::V3, &mut Vec::new(), &budget).unwrap_err();
    assert!(
        error.to_string().contains("make more than 2000000 copies"),
        "{error}"
    );
}

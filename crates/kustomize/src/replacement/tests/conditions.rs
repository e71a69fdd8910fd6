//! Paths, and the conditions in them.

use super::*;

#[test]
fn paths_are_split_at_dots() {
    for (path, expected) in [
        ("a.b", &["a", "b"][..]),
        (".a.b", &["a", "b"]),
        ("a", &["a"]),
        ("", &[""]),
        ("a..b.", &["a", "", "b", ""]),
        ("a.b\\.c.d", &["a", "b.c", "d"]),
        ("a.[b.c/d].e", &["a", "b.c/d", "e"]),
        ("a.[b]", &["a", "[b]"]),
        ("a.[k=v.w].e", &["a", "[k=v.w]", "e"]),
        ("a.[k=v]", &["a", "[k=v]"]),
        ("a.[b.c", &["a", "b.c"]),
        ("a.[=x.y", &["a", "[=x.y"]),
        ("a.*.0.-", &["a", "*", "0", "-"]),
    ] {
        assert_eq!(lookup::split(path), expected, "{path}");
    }
}

const LISTS: &str = "\
kind: A
metadata:
  name: a
  annotations: {example.com/port: '1'}
web:
- {name: web, v: 1}
- {name: 'web2', v: 2}
- {other: x, v: 3}
args: [-jar, '7', seven]
nested: [[1, 2], [3]]
port: {8080: http}
empty: []
";

fn source(path: &str) -> Result<String, String> {
    let text = format!(
        "[{{source: {{fieldPath: '{path}'}}, targets: [{{select: {{}}, fieldPaths: [new], options: {{create: true}}}}]}}]"
    );
    let mut resources = objects(LISTS);
    run(&mut resources, &text, &Budget::default()).map_err(|error| error.to_string())?;
    let value = resources.get(0).unwrap().node().get("new").unwrap().clone();
    let printed = yaml::print::json(&value.into_value().unwrap());
    Ok(printed)
}

#[test]
fn sources_are_followed_exactly() {
    for (path, expected) in [
        ("web.[name=web].v", "1"),
        ("web.[name=web2].v", "2"),
        ("web.0.name", "\"web\""),
        ("web.-.v", "3"),
        ("web. [name=web] .v", "1"),
        ("web..0.v", "1"),
        ("args.[=-jar]", "\"-jar\""),
        ("args.[=7]", "7"),
        ("nested.0", "[1,2]"),
        ("nested.1.0", "3"),
        ("metadata.annotations.[example.com/port]", "1"),
        ("metadata.annotations.example\\.com/port", "1"),
    ] {
        assert_eq!(source(path).as_deref(), Ok(expected), "{path}");
    }
    for (path, expected) in [
        ("web.[name=we].v", "is missing for replacement source"),
        ("web.7", "is missing for replacement source"),
        ("empty", "is missing for replacement source"),
        ("web.*.v", "wildcard is not supported in PathGetter"),
        ("web.-1", "array index -1 cannot be negative"),
        ("port.8080", "expected SequenceNode but got MappingNode"),
        ("web.name", "expected MappingNode but got SequenceNode"),
        (
            "web.[name]",
            "list path element must contain fieldName=fieldValue",
        ),
        ("empty.-", "the list has no last item"),
    ] {
        let error = source(path).unwrap_err();
        assert!(error.contains(expected), "{path}: {error}");
    }
}

/// Sets the path of a target to 0, and returns the object.
fn target(path: &str) -> Result<String, String> {
    let text = format!("[{{sourceValue: '0', targets: [{{select: {{}}, fieldPaths: ['{path}']}}]}}]");
    let mut resources = objects(LISTS);
    run(&mut resources, &text, &Budget::default()).map_err(|error| error.to_string())?;
    let key = lookup::split(path).remove(0);
    let value = resources.get(0).unwrap().node().get(&key).unwrap().clone();
    Ok(yaml::print::json(&value.into_value().unwrap()))
}

#[test]
fn the_conditions_of_targets_are_patterns_found_anywhere() {
    for (path, expected) in [
        (
            "web.[name=web].v",
            r#"[{"name":"web","v":0},{"name":"web2","v":0},{"other":"x","v":3}]"#,
        ),
        (
            "web.[name=^web$].v",
            r#"[{"name":"web","v":0},{"name":"web2","v":2},{"other":"x","v":3}]"#,
        ),
        (
            "web.[name=2].v",
            r#"[{"name":"web","v":1},{"name":"web2","v":0},{"other":"x","v":3}]"#,
        ),
        (
            "web.*.v",
            r#"[{"name":"web","v":0},{"name":"web2","v":0},{"other":"x","v":0}]"#,
        ),
        (
            "web.*.other",
            r#"[{"name":"web","v":1},{"name":"web2","v":2},{"other":"0","v":3}]"#,
        ),
        ("args.[=-jar]", r#"["0","7","seven"]"#),
        ("args.[=7]", r#"["-jar","0","seven"]"#),
        ("args.[=7].ignored", r#"["-jar","0","seven"]"#),
        ("nested.*.0", "[[0,2],[0]]"),
        ("nested.*.*", "[[0,0],[0]]"),
    ] {
        assert_eq!(target(path).as_deref(), Ok(expected), "{path}");
    }
    // A quoted string is compared with its quotes.
    for path in [
        "web.[name=^web2$].v",
        "args.[=^7$]",
        "args.-",
        "empty.*",
        "web.[nope=x].v",
    ] {
        let error = target(path).unwrap_err();
        assert!(error.contains("unable to find field"), "{path}: {error}");
    }
}

#[test]
fn fields_created_below_null_are_lost() {
    let set = |objects: &str, path: &str| {
        let text = format!(
            "[{{sourceValue: x, targets: [{{select: {{}}, fieldPaths: [{path}], options: {{create: true}}}}]}}]"
        );
        replaced(objects, &text).map_err(|error| error.to_string())
    };
    assert_eq!(set("kind: A\nz: null\n", "z.x").unwrap(), "kind: A\nz: null\n");
    let error = set("kind: A\nz:\n", "z.0").unwrap_err();
    assert!(
        error.contains("wrong node kind: expected SequenceNode but got"),
        "{error}"
    );
}

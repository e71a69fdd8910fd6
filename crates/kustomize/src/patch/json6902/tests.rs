use super::*;
use crate::testing;

fn patched(object: &str, patch: &str) -> Result<String, String> {
    let budget = Budget::default();
    let object = yaml::read::node(object, &budget).unwrap().unwrap();
    let patch = JsonPatch::parse(patch, &budget).map_err(|error| error.to_string())?;
    let patched = patch
        .apply(&object, false, &testing::run(&budget), &TreePath::root())
        .map_err(|error| error.to_string())?;
    Ok(yaml::print::json_sorted(&patched.0.to_value().unwrap()))
}

#[test]
fn operations_change_maps_and_lists() {
    let object = "{a: {b: 1}, l: [x, y, z], 'k/~': t}";
    for (patch, expected) in [
        (
            "- {op: add, path: /a/c, value: {d: [1]}}",
            r#"{"a":{"b":1,"c":{"d":[1]}},"k/~":"t","l":["x","y","z"]}"#,
        ),
        (
            "- {op: add, path: /l/1, value: w}",
            r#"{"a":{"b":1},"k/~":"t","l":["x","w","y","z"]}"#,
        ),
        (
            "- {op: add, path: /l/-, value: w}",
            r#"{"a":{"b":1},"k/~":"t","l":["x","y","z","w"]}"#,
        ),
        (
            "- {op: add, path: /l/-1, value: w}",
            r#"{"a":{"b":1},"k/~":"t","l":["x","y","z","w"]}"#,
        ),
        (
            "- {op: add, path: /l/3, value: w}",
            r#"{"a":{"b":1},"k/~":"t","l":["x","y","z","w"]}"#,
        ),
        (
            "- {op: replace, path: /l/-1, value: w}",
            r#"{"a":{"b":1},"k/~":"t","l":["x","y","w"]}"#,
        ),
        (
            "- {op: remove, path: /l/-3}",
            r#"{"a":{"b":1},"k/~":"t","l":["y","z"]}"#,
        ),
        (
            "- {op: remove, path: /k~1~0}",
            r#"{"a":{"b":1},"l":["x","y","z"]}"#,
        ),
        (
            "- {op: replace, path: /new, value: 1}",
            r#"{"a":{"b":1},"k/~":"t","l":["x","y","z"],"new":1}"#,
        ),
        (
            "- {op: replace, path: /a}",
            r#"{"a":null,"k/~":"t","l":["x","y","z"]}"#,
        ),
        (
            "- {op: move, from: /a/b, path: /l/0}",
            r#"{"a":{},"k/~":"t","l":[1,"x","y","z"]}"#,
        ),
        (
            "- {op: copy, from: /a/b, path: /c}",
            r#"{"a":{"b":1},"c":1,"k/~":"t","l":["x","y","z"]}"#,
        ),
        (
            "- {op: copy, from: /none, path: /c}",
            r#"{"a":{"b":1},"c":null,"k/~":"t","l":["x","y","z"]}"#,
        ),
        ("- {op: replace, path: '', value: {o: 1}}", r#"{"o":1}"#),
        (
            r#"[{"op": "remove", "path": "/l"}, {"op": "remove", "path": "/a"}]"#,
            r#"{"k/~":"t"}"#,
        ),
        (
            "- {op: test, path: /a, value: {b: 1.0}}\n- {op: remove, path: /l}",
            r#"{"a":{"b":1},"k/~":"t"}"#,
        ),
        (
            "- {op: test, path: /none, value: null}\n- {op: remove, path: /l}",
            r#"{"a":{"b":1},"k/~":"t"}"#,
        ),
    ] {
        assert_eq!(patched(object, patch).as_deref(), Ok(expected), "{patch}");
    }
}

#[test]
fn inapplicable_operations_are_errors() {
    let object = "{spec: {m: {x: 1}, l: [1]}, n: null}";
    for (patch, words) in [
        ("- {op: foo, path: /a}", "Unexpected kind: foo"),
        ("- {path: /a}", "Unexpected kind: unknown"),
        ("- {op: add, value: 1}", "add operation failed to decode path: "),
        ("- {op: move, path: /a}", "move operation failed to decode from: "),
        (
            "- {op: add, path: /spec/l/9, value: 1}",
            "error in add for path: '/spec/l/9': Unable to access invalid index: 9",
        ),
        (
            "- {op: add, path: /spec/l/x, value: 1}",
            "value was not a proper array index: 'x': strconv.Atoi: parsing \"x\"",
        ),
        (
            "- {op: add, path: /n/x, value: 1}",
            "add operation does not apply: doc is missing path: \"/n/x\": missing value",
        ),
        (
            "- {op: add, path: '', value: {}}",
            "add operation does not apply: doc is missing path: \"\": missing value",
        ),
        (
            "- {op: remove, path: /spec/nope}",
            "error in remove for path: '/spec/nope': Unable to remove nonexistent key: nope: missing value",
        ),
        (
            "- {op: remove, path: /nope/x}",
            "remove operation does not apply: doc is missing path: \"/nope/x\"",
        ),
        (
            "- {op: replace, path: /spec/l/4, value: 1}",
            "doc is missing key: /spec/l/4: missing value",
        ),
        (
            "- {op: replace, path: /nope/a, value: 1}",
            "doc is missing path: /nope/a: missing value",
        ),
        (
            "- {op: replace, path: '', value: 1}",
            "replace operation value must be object or array",
        ),
        (
            "- {op: replace, path: '', value: []}",
            "cannot unmarshal array into Go value of type map[string]interface {}",
        ),
        (
            "- {op: test, path: /spec/m/x, value: '1'}",
            "testing value /spec/m/x failed: test failed",
        ),
        (
            "- {op: test, path: /spec/m}",
            "testing value /spec/m failed: test failed",
        ),
        (
            "- {op: move, from: /a, path: /b}",
            "error in move for path: 'a': Unable to remove nonexistent key: a",
        ),
        (
            "- {op: copy, from: /a/b, path: /b}",
            "copy operation does not apply: doc is missing from path: /a/b",
        ),
        (
            "{op: add, path: /a}",
            "cannot unmarshal object into Go value of type jsonpatch.Patch",
        ),
        (
            "- x",
            "cannot unmarshal string into Go value of type jsonpatch.Operation",
        ),
        ("[{op: add, path: /a}]", "key must be a string"),
    ] {
        let problem = patched(object, patch).unwrap_err();
        assert!(problem.contains(words), "{patch}: {problem}");
    }
}

#[test]
fn numbers_become_doubles_and_texts_stay() {
    let object = "{a: 12345678901234567890, b: '012', c: 1e3, d: 0.1, e: 2020-01-01, f: 1.10, g: 1234567}";
    let expected = concat!(
        r#"{"a":12345678901234567000,"b":"012","c":1000,"d":0.1,"#,
        r#""e":"2020-01-01T00:00:00Z","f":1.1,"g":1234567,"h":9007199254740992}"#
    );
    assert_eq!(
        patched(object, "- {op: add, path: /h, value: 9007199254740993}").as_deref(),
        Ok(expected)
    );
}

#[test]
fn patch_without_documents_has_no_operations() {
    let budget = Budget::default();
    assert!(JsonPatch::parse("# nothing", &budget).unwrap().is_missing());
    assert!(JsonPatch::parse("", &budget).is_err());
    let empty = JsonPatch::parse("[]", &budget).unwrap();
    assert!(empty.is_empty() && !empty.is_missing());
}

#[test]
fn copy_operations_end_at_a_limit() {
    let twice = "- {op: copy, from: /a, path: /b}\n- {op: copy, from: /b, path: /a/-}\n";
    let object = yaml::read::node("{a: []}", &Budget::default()).unwrap().unwrap();
    let budget = Budget::new(tree::Limits {
        bytes: 10_000,
        ..tree::Limits::default()
    });
    let patch = JsonPatch::parse(&twice.repeat(40), &budget).unwrap();
    let ended = patch.apply(&object, false, &testing::run(&budget), &TreePath::root());
    assert!(ended.unwrap_err().exceeded().is_some());
    let deeper = "- {op: copy, from: /a, path: /a/a}\n";
    let problem = patched("{a: {}}", &deeper.repeat(200)).unwrap_err();
    assert_eq!(problem, "the patch nests more than 100 levels");
}

#[test]
fn copied_annotations_have_no_bookkeeping() {
    let budget = Budget::default();
    let object = yaml::read::node("{metadata: {annotations: {a: b}}, l: []}", &budget)
        .unwrap()
        .unwrap();
    for (patch, expected, is_kept) in [
        (
            "- {op: copy, from: /metadata/annotations, path: /spec}",
            r#"{"l":[],"metadata":{"annotations":{"a":"b"}},"spec":{"a":"b"}}"#,
            true,
        ),
        (
            "- {op: copy, from: /metadata, path: /l/-}",
            r#"{"l":[{"annotations":{"a":"b"}}],"metadata":{"annotations":{"a":"b"}}}"#,
            true,
        ),
        (
            "- {op: move, from: /metadata/annotations, path: /spec}",
            r#"{"l":[],"metadata":{},"spec":{"a":"b"}}"#,
            false,
        ),
    ] {
        let patch = JsonPatch::parse(patch, &budget).unwrap();
        let (patched, kept) = patch
            .apply(&object, true, &testing::run(&budget), &TreePath::root())
            .unwrap();
        let json = yaml::print::json_sorted(&patched.to_value().unwrap());
        assert_eq!((json.as_str(), kept), (expected, is_kept));
    }
}

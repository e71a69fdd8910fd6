use std::time::Instant;

use serde_json::json;
use testkit::fuzz;

use super::*;

const NAMES: [&str; 2] = ["res", "req"];

fn values() -> [Value; 2] {
    let res = json!({"kind": "GitRepository", "metadata": {"name": "shop", "namespace": "apps", "labels": {"env": "prod"}}});
    let req = json!({"ref": "refs/heads/main", "number": 7, "tags": ["v1", "v2"], "pusher": {"name": "éva"}, "none": null});
    [Value::from_json(&res), Value::from_json(&req)]
}

fn run(text: &str) -> Result<bool, String> {
    let program = Program::compile_bool(text, &NAMES).map_err(|error| error.to_string())?;
    program.holds(&values()).map_err(|error| error.to_string())
}

#[test]
fn expressions_have_the_values_of_the_language() {
    for text in [
        "req.ref == 'refs/heads/main' && res.metadata.name == \"shop\"",
        "req.number == 7 && req.number > 6.5 && req.number != 8u",
        "1 + 2 * 3 == 7 && (1 + 2) * 3 == 9 && 7 % 4 == 3 && -7 / 2 == -3 && 2 - 1 - 1 == 0",
        "'v2' in req.tags && !('v3' in req.tags) && 'env' in res.metadata.labels",
        "req.tags.exists(t, t.startsWith('v')) && req.tags.all(t, t.size() == 2) && req.tags.exists_one(t, t == 'v1')",
        "req.tags.map(t, t + '!') == ['v1!', 'v2!'] && req.tags.filter(t, t != 'v1') == ['v2']",
        "req.tags.map(t, t == 'v2', size(t)) == [2] && {'a': 1, 'b': 2}.exists(k, k == 'b')",
        "has(req.pusher.name) && !has(req.pusher.email) && size(req.pusher.name) == 3",
        "req.ref.split('/')[2] == 'main' && req.ref.substring(5, 10) == 'heads' && req.ref.indexOf('heads') == 5",
        "req.ref.lastIndexOf('/') == 10 && 'abc'.charAt(1) == 'b' && ' a '.trim() == 'a' && 'A'.lowerAscii() == 'a'",
        "'a-b-c'.replace('-', '+') == 'a+b+c' && ['a', 'b'].join(',') == 'a,b' && 'éa'.reverse() == 'aé'",
        "req.ref.matches('^refs/heads/(main|dev)$') && !req.ref.matches('tags')",
        "req.?missing.orValue('x') == 'x' && req[?'ref'].hasValue() && req.?pusher.?name.orValue('') == 'éva'",
        "optional.of(3).optMap(x, x + 1).value() == 4 && [?optional.none(), 1] == [1] && optional.none() == optional.none()",
        "sets.contains([1, 2, 3], [2]) && sets.equivalent([1, 1], [1]) && !sets.intersects([1], [2])",
        "base64.decode('aGk=') == b'hi' && base64.encode(b'hi') == 'aGk=' && string(base64.decode('aGk')) == 'hi'",
        "int('7') == 7 && string(7) == '7' && double('1.5') == 1.5 && uint(3) == 3u && bool('true') && int(2.9) == 2",
        "type(1) == int && type('') == string && dyn(1) == 1 && req.none == null",
        "true || req.missing == 1",
        "req.missing == 1 || true",
        "!(false && req.missing == 1) && !(req.missing == 1 && false)",
        "[1, 0].exists(x, 1 / x == 1) && ![0, 2].all(x, 1 / x == 1)",
        "(true ? 'a' : 'b') == 'a' && (1 < 2 ? true : false)",
        "r'\\n' == '\\\\n' && '\\u00e9' == 'é' && b'\\xff' != b'' && '''a'b''' == \"a'b\" // a comment",
        "[1, [2]] == [1, [2]] && {'a': [1]} == {'a': [1.0]} && [1] != [2] && 1 != '1'",
        "[[1], [2]].all(x, x.all(y, y > 0 && x.size() == 1))",
        "[1].all(x, [0].exists(y, y / y == 1) || x == 1)",
    ] {
        assert_eq!(run(text), Ok(true), "{text}");
    }
}

#[test]
fn what_is_wrong_is_said_before_or_while_evaluating() {
    for (text, part) in [
        ("", "expected a value"),
        ("req.ref ==", "expected a value"),
        ("a == 1", "undeclared name \"a\""),
        ("req.tags.all(t, t == x)", "undeclared name \"x\""),
        ("t == 1 || [1].all(t, true)", "undeclared name \"t\""),
        ("now() == 1", "no function \"now\""),
        ("'a'.contains()", "no function \"contains\" with 1 arguments"),
        ("'a' == 'a", "the string does not end"),
        ("req.ref", "must have the type bool"),
        ("'yes'", "must have the type bool"),
        ("true ? req.ref : true", "must have the type bool"),
        ("true true", "unexpected text"),
        ("has(req)", "has() needs a field"),
        ("req.missing == 1", "no such key: missing"),
        ("req.tags[5] == ''", "index out of range"),
        ("1 / 0 == 1", "division by zero"),
        ("9223372036854775807 + 1 == 0", "too large"),
        ("99999999999999999999 == 0", "invalid number"),
        ("1 + 'a' == 2", "not defined for int, string"),
        ("req.ref.matches('(')", "invalid regular expression"),
        ("!req.ref", "not defined for string"),
        ("!'a'.map(x, x)", "not defined for string"),
    ] {
        let error = run(text).unwrap_err();
        assert!(error.contains(part) && !error.contains('\n'), "{text}: {error}");
    }
}

#[test]
fn bombs_end_with_the_budget_or_are_refused() {
    let nested = |depth: usize| format!("{}true{}", "(".repeat(depth), ")".repeat(depth));
    let mut doubling = "'aaaaaaaa'".to_owned();
    for _ in 0..40 {
        doubling = format!("[{doubling}].map(x, x + x)[0]");
    }
    let range = "[0,1,2,3,4,5,6,7,8,9]";
    let mut loops = "true".to_owned();
    for depth in 0..12 {
        loops = format!("{range}.all(x{depth}, {loops})");
    }
    let slow = format!("'{}'.matches('(a|a?){{1000}}$')", "a".repeat(2000));
    let pattern = format!("{range}.all(x, {range}.all(y, {slow}))");
    let patterns = format!(
        "{range}.all(x, {range}.all(y, {range}.all(z, 'a'.matches('(\\\\pL{{200}}|' + string(x * 100 + y * 10 + z) + ')') || true)))"
    );
    for text in [
        nested(10_000),
        "!".repeat(10_000) + "true",
        format!("true{}", " && true".repeat(2_000)),
        format!("{doubling} == ''"),
        loops,
        pattern,
        patterns,
        "'a'".repeat(20_000),
        "[".repeat(5000),
    ] {
        let started = Instant::now();
        let error = run(&text).unwrap_err();
        assert!(
            started.elapsed().as_secs() < 5,
            "it took {:?}: {}",
            started.elapsed(),
            &text[..60]
        );
        let known = ["steps", "nested", "longer", "too large"];
        assert!(
            known.iter().any(|part| error.contains(part)),
            "{error}: {}",
            &text[..60]
        );
    }
}

#[test]
fn fuzz_expressions_end_in_bounded_time() {
    const PARTS: &[&str] = &[
        "req",
        "res",
        ".ref",
        ".tags",
        ".?x",
        "[0]",
        "[?1]",
        ".all(x, ",
        ".map(x, ",
        ".exists(x, ",
        "x",
        "(",
        ")",
        ",",
        "'a'",
        "\"",
        "1",
        "0",
        "9223372036854775807",
        "2.5",
        "3u",
        " + ",
        " - ",
        " * ",
        " / ",
        " % ",
        " == ",
        " < ",
        " in ",
        " && ",
        " || ",
        "!",
        "-",
        " ? ",
        " : ",
        "[",
        "]",
        "{",
        "}",
        "has(",
        "size(",
        "string(",
        "int(",
        ".matches(",
        ".split(",
        ".replace('', 'aa')",
        ".substring(",
        "optional.of(",
        ".orValue(",
        "base64.decode(",
        "b'\\xff'",
        "'\\u00e9'",
        "é",
        "//",
        "true",
        "null",
        "r'",
        "'''",
        ".lastIndexOf('é', 1)",
    ];
    fuzz::run("cel", |random| {
        let text = random.text(PARTS, 0..25);
        random.note("expression", &text);
        let started = Instant::now();
        if let Ok(program) = Program::compile(&text, &NAMES) {
            let _ = program.evaluate(&values());
        }
        assert!(started.elapsed().as_secs() < 5, "it took {:?}", started.elapsed());
        if let Ok(program) = Program::compile_bool(&text, &NAMES) {
            let holds = program.holds(&values());
            if let Err(EvalError::Failed(why)) = holds {
                assert!(!why.contains("not bool"), "{why}");
            }
        }
    });
}

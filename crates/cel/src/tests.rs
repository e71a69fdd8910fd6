use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use serde_json::json;

use crate::{CompileError, EvalError, Limits, Program, Scope, Value, Variables};

pub(crate) const NAMES: Scope<'_> = Scope::Declared(&["res", "req"]);
/// Limit of processor time, for a debug build.
pub(crate) const TIME: Duration = Duration::from_secs(5);

/// Returns the processor time of this thread, which other work of the machine doesn't change.
pub(crate) fn processor_time() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.try_into().unwrap(), now.tv_nsec.try_into().unwrap())
}

pub(crate) fn variables() -> Variables {
    let res = json!({"kind": "GitRepository", "metadata": {"name": "shop", "namespace": "apps", "labels": {"env": "prod"}}});
    let req = json!({"ref": "refs/heads/main", "number": 7, "tags": ["v1", "v2"], "pusher": {"name": "éva"}, "none": null});
    Variables::new()
        .with("res", Value::from_json(&res))
        .with("req", Value::from_json(&req))
}

fn run(text: &str) -> Result<bool, String> {
    let program = Program::compile_bool(text, NAMES).map_err(|error| error.to_string())?;
    program.is_true(&variables()).map_err(|error| error.to_string())
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
        r"'{a}'.matches('{a}') && !'é'.matches('\\\\w') && '['.matches('[[]')",
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
fn errors_are_found_before_or_while_evaluating() {
    for (text, part) in [
        ("", "expected a value"),
        ("req.ref ==", "expected a value"),
        ("a == 1", "undeclared reference to 'a' (in container '')"),
        ("req.tags.all(t, t == x)", "undeclared reference to 'x'"),
        ("t == 1 || [1].all(t, true)", "undeclared reference to 't'"),
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
        ("req.ref.matches('a**')", "invalid regular expression"),
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
        let started = processor_time();
        let error = run(&text).unwrap_err();
        let took = processor_time() - started;
        assert!(took < TIME, "it took {took:?}: {}", &text[..60]);
        let known = ["steps", "nested", "longer", "too large"];
        assert!(
            known.iter().any(|part| error.contains(part)),
            "{error}: {}",
            &text[..60]
        );
    }
}

#[test]
fn timestamps_and_durations_are_compared_and_computed() {
    for text in [
        "timestamp('2024-02-29T12:00:00Z') < timestamp('2024-03-01T00:00:00+02:00')",
        "timestamp('2024-01-01T00:00:00Z') + duration('36h') == timestamp('2024-01-02T12:00:00Z')",
        "timestamp('2024-01-02T00:00:00Z') - timestamp('2024-01-01T00:00:00Z') == duration('24h')",
        "timestamp('2024-01-02T00:00:00Z') - duration('1h') < timestamp('2024-01-02T00:00:00Z')",
        "duration('1h30m') > duration('45m') && duration('1h') - duration('2h') == -duration('60m')",
        "duration('1h30m').getMinutes() == 90 && duration('1500ms').getSeconds() == 1 && duration('2s').getMilliseconds() == 2000",
        "timestamp('2024-02-29T13:14:15.678Z').getFullYear() == 2024 && timestamp(0).getDayOfWeek() == 4",
        "timestamp('2024-02-29T13:14:15.678Z').getMonth() == 1 && timestamp('2024-02-29T13:14:15.678Z').getDate() == 29",
        "timestamp('2024-02-29T13:14:15.678Z').getDayOfMonth() == 28 && timestamp('2024-02-29T13:14:15.678Z').getDayOfYear() == 59",
        "timestamp('2024-02-29T13:14:15.678Z').getHours() == 13 && timestamp('2024-02-29T13:14:15.678Z').getHours('-02:30') == 10",
        "timestamp('2024-02-29T23:14:15.678Z').getDate('+01:00') == 1 && timestamp('2024-02-29T13:14:15.678Z').getMilliseconds() == 678",
        "string(timestamp('2024-01-01T00:00:00.5Z')) == '2024-01-01T00:00:00.5Z' && string(duration('1m30.5s')) == '90.5s'",
        "int(timestamp('1970-01-01T00:01:00Z')) == 60 && timestamp(60) == timestamp('1970-01-01T00:01:00Z')",
        "type(duration('1s')) != type(timestamp(0)) && timestamp(0) != duration('0s')",
        "duration('1s') in [duration('1000ms')] && [timestamp(1)].exists(t, t > timestamp(0))",
    ] {
        assert_eq!(run(text), Ok(true), "{text}");
    }
    for (text, part) in [
        (
            "timestamp('yesterday') == timestamp(0)",
            "the text is no timestamp",
        ),
        ("duration('1 hour') == duration('1h')", "the text is no duration"),
        ("timestamp(999999999999999) == timestamp(0)", "too large"),
        (
            "timestamp(0) - duration('2540400h') - duration('2540400h') - duration('2540400h') - duration('2540400h') - duration('2540400h') - duration('2540400h') - duration('2540400h') == timestamp(0)",
            "out of range",
        ),
        (
            "timestamp(0).getHours('Europe/Berlin') == 1",
            "neither UTC nor an offset",
        ),
        (
            "timestamp(0) + timestamp(0) == timestamp(0)",
            "not defined for google.protobuf.Timestamp",
        ),
        ("timestamp(0) < duration('1s')", "not defined for"),
    ] {
        let error = run(text).unwrap_err();
        assert!(error.contains(part), "{text}: {error}");
    }
}

#[test]
fn strings_are_formatted_and_quoted() {
    for text in [
        "'%s is %d %%'.format(['a', 3]) == 'a is 3 %' && 'x'.format([]) == 'x'",
        "'%s'.format([[1, 'a', true, null]]) == '[1, a, true, null]' && '%s'.format([{'b': 2, 'a': 1.5}]) == '{a: 1.5, b: 2}'",
        "'%.2f %f %.1e'.format([1.005, 2, 12345.0]) == '1.00 2.000000 1.2e+04'",
        "'%b %o %x %X'.format([5, 8, 255, -255]) == '101 10 ff -FF' && '%x'.format(['hi']) == '6869'",
        "'%s'.format([duration('90s')]) == '90s' && '%s'.format([b'hi']) == 'hi' && '%b'.format([true]) == '1'",
        "strings.quote('a\"b\\n') == '\"a\\\\\"b\\\\n\"'",
    ] {
        assert_eq!(run(text), Ok(true), "{text}");
    }
    for (text, part) in [
        ("'%d'.format(['a']) == ''", "%d is not defined for string"),
        ("'%s %s'.format(['a']) == ''", "more clauses than arguments"),
        ("'%y'.format(['a']) == ''", "unknown clause %y"),
        ("'%.999f'.format([1.0]) == ''", "invalid precision"),
        ("'%'.format(['a']) == ''", "ends after %"),
    ] {
        let error = run(text).unwrap_err();
        assert!(error.contains(part), "{text}: {error}");
    }
}

#[test]
fn lists_have_optional_ends_and_unwrapped_items() {
    for text in [
        "[1, 2].first().value() == 1 && [1, 2].last() == optional.of(2) && [].first() == optional.none()",
        "optional.of('a').value() == 'a' && optional.ofNonZeroValue('') == optional.none() && optional.of(timestamp(0)).hasValue()",
        "[optional.of(1), optional.none()].unwrapOpt() == [1] && optional.unwrap([optional.of('a')]) == ['a']",
    ] {
        assert_eq!(run(text), Ok(true), "{text}");
    }
}

fn object(text: &str) -> yaml::Map {
    yaml::Map::from_json(serde_json::from_str(text).unwrap())
}

#[test]
fn any_scope_reads_the_fields_of_an_object() {
    let object = object(
        r#"{"kind": "Deployment", "type": "Opaque", "metadata": {"generation": 3},
            "status": {"observedGeneration": 3, "conditions": [{"type": "Ready", "status": "True"}]}}"#,
    );
    let variables = Variables::from_fields(&object);
    let is_true = |text: &str| {
        let program = Program::compile(text, Scope::Any).unwrap();
        program.is_true(&variables).map_err(|error| error.to_string())
    };
    for text in [
        "status.conditions.filter(e, e.type == 'Ready').all(e, e.status == 'True')",
        "has(status.observedGeneration) && status.observedGeneration == metadata.generation",
        "metadata.generation + 1 == 4 && type == 'Opaque' && !has(metadata.labels)",
        "sets.contains([1], [1]) && status.?missing.orValue('x') == 'x' && [3].exists(kind, kind == 3)",
        "dyn(1) == 1 || string == ''",
    ] {
        assert_eq!(is_true(text), Ok(true), "{text}");
    }
    assert_eq!(
        is_true("spec.replicas == 1"),
        Err("no such attribute(s): spec.replicas".into())
    );
    assert_eq!(
        is_true("has(spec.a.b) && spec"),
        Err("no such attribute(s): spec.a.b".into())
    );
    assert_eq!(is_true("status.ready"), Err("no such key: ready".into()));
    assert_eq!(
        is_true("metadata.generation"),
        Err("the result is of the type int, not bool".into())
    );
    let program = Program::compile("status.a == [1].map(x, x)", Scope::Any).unwrap();
    assert!(program.uses("status") && !program.uses("x") && !program.uses("spec"));
}

#[test]
fn ready_expressions_compare_two_objects() {
    let dep = object(r#"{"metadata": {"generation": 2}, "status": {"lastAppliedRevision": "main@sha1:1"}}"#);
    let own = object(r#"{"metadata": {"labels": {"app": "shop"}}, "spec": {"interval": "10m"}}"#);
    let variables = Variables::new().with("self", &own).with("dep", &dep);
    let scope = Scope::Declared(&["self", "dep"]);
    let is_true = |text: &str| Program::compile_bool(text, scope).unwrap().is_true(&variables);
    assert_eq!(
        is_true(
            "dep.status.lastAppliedRevision.startsWith('main@') && duration(self.spec.interval) > duration('1m')"
        ),
        Ok(true)
    );
    // A field that does not exist yet is an error of evaluation, so that a dependency waits for it.
    assert!(matches!(
        is_true("dep.status.ready == true"),
        Err(EvalError::Failed(_))
    ));
    for (text, expected) in [
        (
            "dep.",
            "ERROR: <input>:1:5: Syntax error: no viable alternative at input '.'",
        ),
        (
            "1 ==\n other.status",
            "ERROR: <input>:2:2: undeclared reference to 'other' (in container '')",
        ),
        ("1 ==\n", "ERROR: <input>:2:1: Syntax error: expected a value"),
    ] {
        let error = Program::compile_bool(text, scope).unwrap_err();
        assert_eq!(error.located(text), expected);
    }
    for text in ["dep.status.ready", "other.status == 1", "dep.status ="] {
        let error = Program::compile_bool(text, scope).unwrap_err();
        assert!(
            matches!(error, CompileError::NotBool | CompileError::Syntax { .. }),
            "{error}"
        );
    }
}

#[test]
fn each_limit_ends_an_evaluation() {
    let evaluate = |text: &str, steps, bytes| {
        let program = Program::compile(text, NAMES).unwrap();
        program.evaluate_within(&variables(), Limits { steps, bytes })
    };
    let text = "[1, 2, 3].map(x, 'aaaaaaaaaaaaaaaa' + 'bbbbbbbbbbbbbbbb').join('')";
    assert_eq!(
        evaluate(text, 1000, 1000).unwrap().as_str(),
        Some("aaaaaaaaaaaaaaaabbbbbbbbbbbbbbbb".repeat(3).as_str())
    );
    assert_eq!(evaluate(text, 5, 1000).unwrap_err(), EvalError::Steps(5));
    assert_eq!(evaluate(text, 1000, 100).unwrap_err(), EvalError::Memory(100));
    for text in [
        "req.tags + req.tags",
        "[1, 2, 3, 4]",
        "{1: 2, 3: 4}",
        "req.ref.split('')",
        "req.ref.replace('e', 'eeeeeeeeeeeeeeeeeeeeeeeeeee')",
        "'%s%s%s%s%s'.format([req.ref, req.ref, req.ref, req.ref, req.ref])",
        "[1, 2].filter(x, x > 0)",
        "[req.ref, req.ref, req.ref, req.ref].join(req.ref)",
    ] {
        assert_eq!(
            evaluate(text, 1000, 60).unwrap_err(),
            EvalError::Memory(60),
            "{text}"
        );
        assert!(evaluate(text, 1000, 4096).is_ok(), "{text}");
    }
    // An exhausted budget is not an error that an operator may ignore.
    assert_eq!(
        evaluate("[1, 2, 3].all(x, x > 0) || true", 4, 1000).unwrap_err(),
        EvalError::Steps(4)
    );
}

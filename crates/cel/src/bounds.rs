//! The bounds of evaluations: large values cost steps in every function and operator, and evaluations share an allowance.

use std::{
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use serde_json::json;

use crate::{
    Allowance, CompileError, EvalError, Limits, Program, Scope, Value, Variables, compile_patterns,
    functions::FUNCTIONS, tests::processor_time,
};

const NAMES: Scope<'_> = Scope::Declared(&["items", "text", "other", "bytes", "long", "keys"]);
const LARGE: usize = 4 << 20;
const FEW: Limits = Limits {
    steps: 3000,
    bytes: 32 << 20,
};
/// Limit of processor time for few steps, for a debug build.
const TIME: Duration = Duration::from_millis(300);

/// Two equal large strings that share no memory, bytes, a list, and a map whose keys have a long common prefix.
fn variables() -> Variables {
    let text = "a".repeat(LARGE);
    let keys = (0..64).map(|number| (format!("{text}{number}"), Value::Int(number)));
    let json = json!((0..100_000).collect::<Vec<_>>());
    Variables::new()
        .with("items", Value::from_json(&json!((0..2000).collect::<Vec<_>>())))
        .with("text", text.as_str())
        .with("other", format!("{text}63"))
        .with("bytes", Value::Bytes(text.as_bytes().into()))
        .with("long", Value::from_json(&json))
        .with("keys", Value::object(keys))
}

fn time_of(text: &str, variables: &Variables) -> Duration {
    let program = match Program::compile(text, NAMES) {
        Ok(program) => program,
        Err(error) => panic!("{text}: {error}"),
    };
    let started = processor_time();
    let _ = program.evaluate_within(variables, FEW);
    processor_time() - started
}

#[test]
fn work_of_functions_is_charged_whatever_the_arguments() {
    let variables = variables();
    let arguments = [
        "text",
        "other",
        "bytes",
        "long",
        "keys",
        "'a'",
        "'(a|b)*c'",
        "7",
        "optional.of(text)",
    ];
    let mut slowest = (Duration::ZERO, String::new());
    for (number, (name, method, least, most)) in FUNCTIONS.iter().enumerate() {
        for count in *least..=*most {
            for (at, first) in arguments.iter().enumerate() {
                let argument = |offset: usize| arguments[(at * offset + number + offset) % arguments.len()];
                let rest: Vec<_> = (1..count).map(argument).collect();
                let call = match (method, count) {
                    (true, _) => format!("{first}.{name}({})", rest.join(", ")),
                    (false, 0) => format!("{name}()"),
                    (false, _) => format!("{name}({})", [&[*first][..], &rest].concat().join(", ")),
                };
                let text = format!("items.exists(i, [{call}] == [i])");
                let took = time_of(&text, &variables);
                slowest = slowest.max((took, text));
            }
        }
    }
    assert!(slowest.0 < TIME, "{}: {:?}", slowest.1, slowest.0);
}

#[test]
fn work_of_operators_is_charged_whatever_the_operands() {
    let variables = variables();
    for expression in [
        "items.exists(i, keys[other] == i + 1)",
        "items.exists(i, keys[?other] == i)",
        "items.exists(i, other in keys && i < 0)",
        "items.exists(i, {other: i, text: i}.size() == i)",
        "items.exists(i, bytes < bytes || i < 0)",
        "items.exists(i, text < text || i < 0)",
        "items.exists(i, text + other == 'a')",
        "items.exists(i, [text, other] == [text, 'a'] || i < 0)",
        "items.exists(i, keys == keys && i < 0)",
        "items.exists(i, long == long && i < 0)",
        "items.exists(i, i + 1 in long && i < 0)",
        "items.exists(i, long.all(x, x >= 0) && i < 0)",
        "items.exists(i, long + long == long)",
        "items.exists(i, text.matches(text))",
        "items.exists(i, 'a'.matches(text + string(i)))",
    ] {
        let took = time_of(expression, &variables);
        assert!(took < TIME, "{expression}: {took:?}");
    }
}

#[test]
fn evaluations_share_an_allowance() {
    let program = Program::compile_bool("items.all(x, items.all(y, x + y >= 0))", NAMES).unwrap();
    let variables = Variables::new().with("items", Value::from_json(&json!((0..100).collect::<Vec<_>>())));
    let limits = Limits {
        steps: 400_000,
        bytes: 1 << 20,
    };
    let mut allowance = Allowance::new(limits);
    let results: Vec<_> = (0..10)
        .map(|_| program.is_true_with(&variables, &mut allowance))
        .collect();
    let refused = Err(EvalError::AllSteps(400_000));
    assert_eq!((&results[0], &results[9]), (&Ok(true), &refused));
    assert_eq!(allowance.left().steps, 0);
    assert_eq!(program.is_true(&variables), Ok(true), "others have their own");
    let made = Program::compile("items.map(x, x)", NAMES).unwrap();
    let mut allowance = Allowance::new(Limits {
        steps: 1 << 20,
        bytes: 10_000,
    });
    let results: Vec<_> = (0..10)
        .map(|_| made.evaluate_with(&variables, &mut allowance).is_ok())
        .collect();
    assert!(results[0] && !results[9]);
}

#[test]
fn cancelled_evaluations_end_at_once() {
    let program = Program::compile_bool("items.all(x, x >= 0)", NAMES).unwrap();
    let cancelled = Arc::new(AtomicBool::new(true));
    let mut allowance = Allowance::new(Limits::default()).with_cancellation(cancelled);
    let variables = Variables::new().with("items", Value::from_json(&json!([1])));
    assert_eq!(
        program.is_true_with(&variables, &mut allowance),
        Err(EvalError::Cancelled)
    );
    assert_eq!(allowance.left(), Limits::default());
    assert_eq!(allowance.spend(1), Err(EvalError::Cancelled));
}

#[test]
fn conversions_of_values_are_charged_before_they_are_made() {
    let value = yaml::Value::from_json(json!({"a": ["x".repeat(6400), 1, {"b": null}]}));
    let limits = |steps| Limits { steps, bytes: 0 };
    let mut allowance = Allowance::new(limits(200));
    assert!(allowance.convert(&value).is_ok());
    assert_eq!(allowance.left().steps, 200 - 108);
    assert_eq!(allowance.convert(&value).err(), Some(EvalError::AllSteps(200)));
}

#[test]
fn searches_for_patterns_have_no_memory_for_groups() {
    let patterns = vec!["()(?P<x>[^a])a?a?".repeat(9); 100];
    let compiled = compile_patterns(&patterns, 1 << 20).unwrap();
    assert_eq!(compiled.group_info().slot_len(), 0);
    assert!(compiled.is_match("bbbbbbbbb") && !compiled.is_match("aa"));
}

#[test]
fn patterns_are_bounded_before_they_are_parsed() {
    // Each class of a parsed expression has kilobytes, whatever the size limit of the compiled one.
    for pattern in ["\\w".repeat(30_000), "[\\p{L}]".repeat(4000), "a".repeat(1 << 20)] {
        assert!(compile_patterns(&[&pattern], 1 << 20).is_err());
        let program = Program::compile("text.matches(other)", NAMES).unwrap();
        let variables = Variables::new().with("text", "a").with("other", pattern);
        let error = program.evaluate(&variables).unwrap_err().to_string();
        assert!(error.contains("too large"), "{error}");
    }
    assert!(compile_patterns(&["(\\w+\\s*){3}".to_owned()], 1 << 20).is_ok());
    assert!(matches!(
        Program::compile(&"a".repeat(20_000), NAMES),
        Err(CompileError::TooLarge(_))
    ));
}

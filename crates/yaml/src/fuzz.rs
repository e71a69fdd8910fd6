//! Random texts and values against every reader and printer.
//!
//! By default each test runs a few hundred fixed cases. `WEIR_FUZZ_SECONDS=60` prolongs each of them to a minute of new
//! cases; a failure names the seed, and `WEIR_FUZZ_SEED` replays it.

use std::{
    env,
    time::{Duration, Instant, SystemTime},
};

use proptest::{
    prelude::*,
    test_runner::{Config, RngAlgorithm, TestCaseResult, TestRng, TestRunner},
};
use tree::{Budget, Limits};

use crate::{Document, Error, Map, Value, print, read};

type Read = fn(&[u8], &Budget) -> Result<Document, Error>;
type Print = fn(&Value) -> String;

const DIALECTS: [(&str, Read, Print); 3] = [
    ("goyaml", |text, budget| read::goyaml(text, budget), print::goyaml),
    (
        "kustomize",
        |text, budget| read::kustomize(text, budget),
        print::kustomize,
    ),
    ("pyyaml", |text, budget| read::pyyaml(text, budget), print::pyyaml),
];

/// Runs `test` on cases of `strategy` for the time that was asked for.
fn fuzz<S: Strategy>(strategy: &S, test: impl Fn(S::Value) -> TestCaseResult) {
    let number = |name: &str| env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seconds = number("WEIR_FUZZ_SECONDS");
    let now = || {
        SystemTime::UNIX_EPOCH
            .elapsed()
            .map_or(0, |time| time.as_nanos() as u64)
    };
    let mut seed = number("WEIR_FUZZ_SEED").unwrap_or_else(|| seconds.map_or(0, |_| now()));
    let end = Instant::now() + Duration::from_secs(seconds.unwrap_or(0));
    loop {
        let bytes: Vec<u8> = seed.to_le_bytes().into_iter().cycle().take(32).collect();
        let config = Config {
            cases: 400,
            failure_persistence: None,
            ..Config::default()
        };
        let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes));
        if let Err(failure) = runner.run(strategy, &test) {
            panic!("WEIR_FUZZ_SEED={seed}: {failure}");
        }
        seed = seed.wrapping_add(1);
        if Instant::now() >= end {
            return;
        }
    }
}

/// Pieces that mean something to YAML or to one of the dialects.
const PIECES: &[&str] = &[
    "a",
    "b",
    "k",
    ": ",
    ":",
    "- ",
    "-",
    "\n",
    "\n  ",
    "\n    ",
    "\n- ",
    " ",
    "  ",
    "[",
    "]",
    "{",
    "}",
    ", ",
    ",",
    "&x ",
    "*x",
    "<<: ",
    "<<",
    "? ",
    "!!str ",
    "!!int ",
    "!!binary ",
    "!c",
    "! ",
    "|\n",
    ">\n  ",
    "|2-\n",
    "|+\n",
    "'",
    "\"",
    "\\",
    "#",
    " # c",
    "---\n",
    "...\n",
    "--- ",
    "yes",
    "n",
    "~",
    "1",
    "1.0",
    "017",
    "0o17",
    "1e3",
    "0x",
    "1_0",
    "1:30",
    "2020-01-01",
    ".inf",
    ".nan",
    "=",
    "%YAML 1.1\n",
    "%TAG ! x\n",
    "é",
    "绿",
    "😀",
    "\t",
    "\r",
    "\r\n",
    "\u{85}",
    "\u{2028}",
    "\u{feff}",
    "\u{a0}",
    "\u{7f}",
    "\0",
    "\u{ffff}",
    "@",
    "`",
    "null",
    "word word word ",
];

/// Byte order marks.
const MARKS: &[&[u8]] = &[b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf"];

fn text() -> impl Strategy<Value = String> {
    let pieces =
        || proptest::collection::vec(proptest::sample::select(PIECES), 0..12).prop_map(|all| all.concat());
    prop_oneof![
        4 => pieces(),
        2 => "[ -~\n]{0,20}",
        1 => any::<String>(),
        1 => (pieces(), 20..60usize).prop_map(|(piece, times)| piece.repeat(times)),
    ]
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let marked = (proptest::sample::select(MARKS), any::<Vec<u8>>());
    prop_oneof![
        8 => text().prop_map(String::into_bytes),
        1 => any::<Vec<u8>>(),
        1 => marked.prop_map(|(mark, rest)| [mark, &rest].concat()),
    ]
}

/// Values without whole floats: those come back as integers from all dialects but Python's.
fn value() -> impl Strategy<Value = Value> {
    let float = any::<f64>().prop_filter("finite, with a fraction", |float| {
        float.fract() != 0.0 && float.is_finite()
    });
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        float.prop_map(Value::from),
        text().prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec((text(), inner), 0..4)
                .prop_map(|all| Value::Map(all.into_iter().collect::<Map>())),
        ]
    })
}

#[test]
fn readers_answer_any_bytes() {
    fuzz(&bytes(), |bytes| {
        let limits = Limits {
            steps: 100_000,
            alias_bytes: 100_000,
            yaml_depth: 30,
            ..Limits::default()
        };
        for (name, read, print) in DIALECTS {
            match read(&bytes, &Budget::new(limits.clone())) {
                Err(error) => prop_assert!(!error.to_string().is_empty()),
                Ok(document) => {
                    let printed = print(&document.value);
                    let again = read(printed.as_bytes(), &Budget::default()).map(|document| document.value);
                    let same = again.as_ref() == Ok(&document.value)
                        || print::json(&document.value).contains("null");
                    prop_assert!(
                        same,
                        "{name}: {:?}, printed {printed:?}, read {again:?}",
                        document.value
                    );
                }
            }
        }
        // The other entries take the same way.
        let budget = Budget::new(limits);
        let _ = (
            read::goyaml_all(&bytes, &budget),
            read::kustomize_all(&bytes, &budget),
        );
        Ok(())
    });
}

#[test]
fn printed_values_read_back() {
    fuzz(&value(), |value| {
        for (name, read, print) in DIALECTS {
            let printed = print(&value);
            let again = read(printed.as_bytes(), &Budget::default()).map(|document| document.value);
            prop_assert_eq!(again, Ok(value.clone()), "{}: {:?}", name, printed);
        }
        Ok(())
    });
}

#[test]
fn goyaml_text_is_read_alike_by_kustomize() {
    fuzz(&value(), |value| {
        let printed = print::goyaml(&value);
        let again = read::kustomize(&printed, &Budget::default()).map(|document| document.value);
        prop_assert_eq!(again, Ok(value), "{:?}", printed);
        Ok(())
    });
}

#[test]
fn printed_json_reads_back() {
    fuzz(&value(), |value| {
        // What JSON text can't carry exactly through this reader is the last bit of a float.
        let expected = serde_json::to_string(&value).unwrap_or_default();
        let expected: Value = serde_json::from_str(&expected).unwrap_or_default();
        for print in [
            print::json,
            print::json_sorted,
            print::json_sorted_html,
            print::python_json,
        ] {
            let printed = print(&value);
            let again: Result<Value, _> = serde_json::from_str(&printed);
            prop_assert!(
                again.as_ref().is_ok_and(|again| near(again, &expected)),
                "{printed}"
            );
        }
        Ok(())
    });
}

fn near(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Float(a), Value::Float(b)) => a == b || ((a - b) / b).abs() < 1e-12,
        (Value::Seq(a), Value::Seq(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| near(a, b)),
        (Value::Map(a), Value::Map(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| near(a, b)))
        }
        _ => a == b,
    }
}

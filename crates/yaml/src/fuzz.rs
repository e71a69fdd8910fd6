//! Random documents and values against every reader and printer.

use testkit::fuzz::{self, Random};
use tree::{Budget, Limits};

use crate::{Document, Error, Map, Node, Value, print, read};

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

/// Strings with a meaning in YAML or one of the dialects.
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
    "!",
    "%20",
    "\\x41",
    "\"\\'\"",
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

const MARKS: &[&[u8]] = &[b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf"];

fn text(random: &mut Random) -> String {
    if random.one_in(5) {
        random.word(0..20)
    } else {
        random.text(PIECES, 0..12)
    }
}

fn bytes(random: &mut Random) -> Vec<u8> {
    let mut bytes = text(random).into_bytes();
    if random.one_in(8) {
        random.damage(&mut bytes, 3);
    }
    if random.one_in(8) {
        bytes = [random.pick(MARKS), bytes.as_slice()].concat();
    }
    bytes
}

/// Values without whole floats, which come back as integers from all dialects but Python's.
fn value(random: &mut Random, depth: usize) -> Value {
    match random.below(if depth == 0 { 8 } else { 14 }) {
        0 => Value::Null,
        1 => random.flag().into(),
        2 => random.int().into(),
        3 => random.bits().into(),
        4 => match random.float() {
            float if float.fract() == 0.0 => 0.5.into(),
            float => float.into(),
        },
        5..8 => text(random).into(),
        8..11 => random.list(0..4, |random| value(random, depth - 1)).into(),
        _ => {
            let members = random.list(0..4, |random| (text(random), value(random, depth - 1)));
            Value::Map(members.into_iter().collect::<Map>())
        }
    }
}

#[test]
fn fuzz_readers_answer_any_bytes() {
    fuzz::run("yaml readers", |random| {
        let bytes = bytes(random);
        random.note("text", &String::from_utf8_lossy(&bytes));
        let limits = Limits {
            steps: 100_000,
            alias_bytes: 100_000,
            yaml_depth: 30,
            ..Limits::default()
        };
        for (name, read, print) in DIALECTS {
            match read(&bytes, &Budget::new(limits.clone())) {
                Err(error) => assert!(!error.to_string().is_empty()),
                Ok(document) => {
                    let printed = print(&document.value);
                    let again = read(printed.as_bytes(), &Budget::default()).map(|document| document.value);
                    let same = again.as_ref() == Ok(&document.value)
                        || print::json(&document.value).contains("null");
                    assert!(
                        same,
                        "{name}: {:?}, printed {printed:?}, read {again:?}",
                        document.value
                    );
                }
            }
        }
        // The other entries are built alike.
        let budget = Budget::new(limits);
        let _ = (
            read::goyaml_all(&bytes, &budget),
            read::kustomize_all(&bytes, &budget),
            read::nodes(&bytes, &budget),
        );
        let node = read::node(&bytes, &budget).and_then(|node| node.map(Node::into_value).transpose());
        if let (Ok(value), Ok(document)) = (node, read::kustomize(&bytes, &budget)) {
            // A node's null without characters may be an empty string.
            let printed = |value: &Value| print::json(value).replace("null", r#""""#);
            let value = value.unwrap_or_default();
            assert_eq!(printed(&value), printed(&document.value), "by way of a node");
        }
    });
}

#[test]
fn fuzz_printed_values_read_back() {
    fuzz::run("yaml printers", |random| {
        let value = value(random, 4);
        random.note("value", &value);
        for (name, read, print) in DIALECTS {
            let printed = print(&value);
            let again = read(printed.as_bytes(), &Budget::default()).map(|document| document.value);
            assert_eq!(again.as_ref(), Ok(&value), "{name}: {printed:?}");
        }
        let printed = print::goyaml(&value);
        let again = read::kustomize(&printed, &Budget::default()).map(|document| document.value);
        assert_eq!(
            again.as_ref(),
            Ok(&value),
            "goyaml read by kustomize: {printed:?}"
        );
        assert_eq!(
            Node::from_value(&value).into_value(),
            Ok(value),
            "by way of a node"
        );
    });
}

#[test]
fn fuzz_printed_json_reads_back() {
    fuzz::run("json printers", |random| {
        let value = value(random, 4);
        random.note("value", &value);
        // The reader of serde_json may change the last bit of a float.
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
            assert!(
                again.as_ref().is_ok_and(|again| near(again, &expected)),
                "{printed}"
            );
        }
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

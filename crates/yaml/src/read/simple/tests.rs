//! Tests that the reader without the parser agrees with the parser.

use tree::{Budget, Limits};

use super::{
    super::{compose::Composer, events::decode, goyaml},
    *,
};

fn with_parser(text: &str, budget: &Budget) -> Result<Option<Node>, crate::Error> {
    let text = decode(text.as_bytes(), budget).unwrap();
    Composer::new(&text, &goyaml::LENIENT, budget).document()
}

fn simple(text: &str) -> Option<Simple> {
    let budget = Budget::default();
    read(&decode(text.as_bytes(), &budget).unwrap(), &|_| true, &budget)
}

/// Compares both. Returns true if the document was simple.
fn same(text: &str) -> bool {
    let Some(found) = simple(text) else { return false };
    let parsed = with_parser(text, &Budget::default()).map_err(|error| error.to_string());
    // Positions count here.
    assert_eq!(
        format!("{:?}", Ok::<_, String>(Some(found.node))),
        format!("{parsed:?}"),
        "{text}"
    );
    true
}

const LINES: &[&str] = &[
    "a: b",
    "b:",
    "c: ",
    "- d",
    "-",
    "- e: f",
    "- - g",
    "-   h: i",
    "# j",
    "",
    "  ",
    "k: |",
    "l: |-",
    "- |+",
    "m: |2",
    "n: >",
    "o: \"p\"",
    "q: 'r' # s",
    "t: 'u''v'",
    "\"w\": x",
    "'y': z",
    "a: b: c",
    "a: b#c",
    "a: b #c",
    "a:b: c",
    "a:b",
    "null: 1",
    "<<: 1",
    "~: 1",
    "a: [b, \"c\", 'd',]",
    "- [ a , b ] # c",
    "a: {}",
    "a: []x",
    "{}",
    "[]",
    "{} # b",
    "[a, 'b']",
    "{}: a",
    "[a]b",
    "a: [b: c]",
    "a: {b: c}",
    "a: *b",
    "a: &b c",
    "a: !!str b",
    "a: - b",
    "a: -b",
    "a: -",
    "? a",
    ": b",
    "a: \"b\\n\"",
    "a: \"b",
    "---",
    "--- # a",
    "...",
    "%a",
    "a:\tb",
    "\ta: b",
    "a: b\tc",
    "ä: b",
    "a: ä",
    "- ä: b",
    "a: \"ä\"",
    "1: 2",
    "y: .inf",
    "a: |#b",
    "a: | #b",
    "a: ,b",
    "a: @b",
    "a b: c",
    "$a: b",
    "a: b:",
    "a: b c",
    "- \"a\": b",
    "- a",
    "a: 'b': c",
    "- a:",
    "- -",
    "a.b/c-d: e",
    "a: <b",
    "a: =",
    "a: b ",
    "a: |  ",
    "- # a",
    "goes on",
    "and on. # till here",
    "(so, on)",
    "*on",
    "\"on\"",
    "on  ",
    "~ on: off",
];

#[test]
fn simple_reader_agrees_with_the_parser_on_pairs_of_lines() {
    let mut count = 0;
    for first in LINES {
        for second in LINES {
            for indent in ["", " ", "  ", "    "] {
                let text = format!("{first}\n{indent}{second}");
                count += usize::from(same(&text)) + usize::from(same(&format!("{text}\n")));
            }
        }
    }
    assert!(count > 5000, "{count}");
}

#[test]
fn simple_reader_agrees_with_the_parser_on_random_documents() {
    let mut seed = 7u64;
    let mut random = |below: usize| {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below
    };
    let turns = std::env::var("YAML_TEXTS").map_or(30_000, |turns| turns.parse().unwrap());
    let mut count = 0;
    for _ in 0..turns {
        let mut text = String::new();
        for _ in 0..2 + random(6) {
            let line = if random(3) > 0 {
                [random(30), LINES.len() - 1 - random(7)][usize::from(random(4) == 0)]
            } else {
                random(LINES.len())
            };
            text.push_str(&" ".repeat([0, 0, 1, 2, 2, 4][random(6)]));
            text.push_str(LINES[line]);
            text.push('\n');
        }
        if random(2) == 0 {
            text.pop();
        }
        count += usize::from(same(&text));
    }
    assert!(count > turns / 50, "{count}");
}

#[test]
fn simple_reader_accepts_usual_documents() {
    let text = "---\n# a chart\na: 1\nb:\n  - c: \"d\"\n    e: 'f'\n  - g\nh:\n- i\n\nj:\n  k: [l, m]\n  n: {} # o\np: |\n  q\n\n   r\ns: ä\n";
    assert!(same(text));
    assert!(same(text.trim_end()));
    assert!(same("a: |\n  b\n    # c\n\n# d\ne: f"));
    assert!(same("a: b, c\n  d e\n   f\n\n# g\nh:\n- i\n  j"));
}

#[test]
fn simple_reader_counts_as_many_steps_as_the_parser() {
    for text in ["a: b", "a:\n  - b\n  - c: [d, e]\n    f: {}\n", "- |\n  a\n-"] {
        let steps = simple(text).unwrap().events;
        let parsed = |steps| {
            with_parser(
                text,
                &Budget::new(Limits {
                    steps,
                    ..Limits::default()
                }),
            )
        };
        assert!(parsed(steps).is_ok() && parsed(steps - 1).is_err(), "{text}");
    }
}

#[test]
fn unwanted_entries_are_only_checked() {
    let budget = Budget::default();
    let read = |text: &str| {
        let text = decode(text.as_bytes(), &budget).unwrap();
        read(&text, &|key| key == "a", &budget).map(|found| format!("{:?}", found.node))
    };
    let wanted = read("a: {}").unwrap();
    assert_eq!(read("a: {}\nb:\n  a: [c, d]\n  e: |\n    f\n"), Some(wanted));
    for text in ["b: .inf", "b: [.nan]", "b: \"", "b: {", "b:\n- -.Inf"] {
        assert_eq!(read(text), None, "{text}");
    }
}

//! Tests of the rules.

use std::collections::BTreeSet;

use super::{Selection, is_checked, is_test, position, rules::check, subjects};

#[track_caller]
fn assert_finds(path: &str, text: &str, expected: &[&str]) {
    let tests = BTreeSet::from(["crates/x/src/fuzz.rs".to_owned(), "crates/x/src/fuzz/".to_owned()]);
    let found = check(path, text, is_test(path, &tests));
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (finding, part) in found.iter().zip(expected) {
        assert!(finding.contains(part), "{finding} does not contain {part}");
    }
}

#[test]
fn check_accepts_a_tidy_file() {
    let text = "//! Does it.\n\n/// Never `.unwrap()`s.\nfn f() -> &'static str {\n    \"call .unwrap() or panic!(\"\n}\n\n\
                #[cfg(test)]\nmod tests {\n    fn g() {\n        f().parse().unwrap();\n    }\n}\n";
    assert_finds("crates/x/src/lib.rs", text, &[]);
}

#[test]
fn check_refuses_panics_outside_tests() {
    let text = "//! X.\nfn f() {\n    g().unwrap();\n    h().expect(\"never\");\n    panic!(\"no\");\n}\n";
    let expected = ["lib.rs:3: `.unwrap()`", "lib.rs:5: `panic!("];
    assert_finds("crates/x/src/lib.rs", text, &expected);
    assert_finds("crates/x/src/tests.rs", text, &[]);
    assert_finds("crates/x/src/plan_tests.rs", text, &[]);
    assert_finds("crates/x/src/fuzz/seeds.rs", text, &[]);
    assert_finds("crates/x/tests/it/main.rs", text, &[]);
    assert_finds("crates/testkit/src/lib.rs", text, &[]);
}

#[test]
fn check_reads_production_code_below_test_items() {
    let text = "//! X.\n#[cfg(test)]\nmod tests;\n#[cfg(test)]\nuse x;\nfn f() {\n    g().unwrap();\n}\n";
    assert_finds("crates/x/src/lib.rs", text, &["lib.rs:7"]);
}

#[test]
fn check_skips_test_modules_with_attributes() {
    let text = "//! X.\n#[cfg(test)]\n#[allow(\n    clippy::all,\n    reason = \"so\"\n)]\nmod tests {\n    fn g() {\n        \
                f().unwrap();\n    }\n}\n";
    assert_finds("crates/x/src/lib.rs", text, &[]);
}

#[test]
fn check_refuses_switched_off_lints() {
    let text = "//! X.\n#[allow(clippy::unwrap_used)]\nfn f() {}\n";
    assert_finds("crates/x/src/lib.rs", text, &["`unwrap_used` must stay on"]);
}

#[test]
fn check_refuses_bad_line_ends_and_long_files() {
    assert_finds(
        "crates/x/src/lib.rs",
        "use x;\n",
        &["the first line is not a `//!`"],
    );
    assert_finds("a.md", "words \nmore\n", &["a.md:1: trailing whitespace"]);
    assert_finds("a.md", "words", &["does not end with a newline"]);
    let lines = |number: usize| format!("//! X.\n{}", "\n".repeat(number - 1));
    assert_finds("crates/x/src/a.rs", &lines(500), &[]);
    assert_finds("crates/x/src/a.rs", &lines(501), &["501 lines, at most 500"]);
    assert_finds("crates/x/src/tests.rs", &lines(700), &[]);
    assert_finds("crates/x/src/tests.rs", &lines(701), &["701 lines, at most 700"]);
    assert_finds("empty.md", "", &[]);
}

#[test]
fn check_refuses_leftovers_and_machine_paths() {
    let text = ["// FIX", "ME later, see /wo", "rk/x\n"].concat();
    assert_finds("a.md", &text, &["is left over", "is a path of one machine"]);
}

#[test]
fn is_checked_knows_our_files() {
    for path in [
        "src/a.rs",
        "Makefile",
        "deploy/Containerfile.source-controller",
        "b/c.yaml",
    ] {
        assert!(is_checked(path), "{path}");
    }
    for path in [
        "Cargo.lock",
        "x/fixtures/a.yaml",
        "x/golden/b.rs",
        "picture.png",
        "LICENSE",
    ] {
        assert!(!is_checked(path), "{path}");
    }
}

#[test]
fn subjects_have_a_greatest_length() {
    let lines = format!("aaa {}\nbbb {}\n", "x".repeat(72), "x".repeat(73));
    let found = subjects::long(&lines);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("commit bbb: "), "{found:?}");
}

#[test]
fn findings_are_selected_by_path_and_sorted_by_line() {
    let selection = Selection {
        paths: vec!["./crates/x".to_owned()],
        ..Selection::default()
    };
    assert!(selection.covers("crates/x/src/a.rs:1: no"));
    assert!(!selection.covers("crates/y/src/a.rs:1: no"));
    assert!(Selection::default().covers("commit abc: no"));
    assert!(position("a.rs:9: no") < position("a.rs:10: no"));
    assert!(position("a.rs: no: 3") < position("a.rs:1: no"));
}

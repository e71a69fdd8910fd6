//! Tests of the rules for one file.

use std::collections::BTreeSet;

use super::{is_ours, is_test, rules::check};

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
fn a_tidy_file() {
    let text = "//! Does it.\n\n/// Never `.unwrap()`s.\nfn f() -> &'static str {\n    \"call .unwrap() or panic!(\"\n}\n\n\
                #[cfg(test)]\nmod tests {\n    fn g() {\n        f().parse().unwrap();\n    }\n}\n";
    assert_finds("crates/x/src/lib.rs", text, &[]);
}

#[test]
fn what_ends_a_process() {
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
fn a_test_helper_does_not_hide_what_follows() {
    let text = "//! X.\n#[cfg(test)]\nmod tests;\n#[cfg(test)]\nuse x;\nfn f() {\n    g().unwrap();\n}\n";
    assert_finds("crates/x/src/lib.rs", text, &["lib.rs:7"]);
}

#[test]
fn a_test_module_may_have_attributes() {
    let text = "//! X.\n#[cfg(test)]\n#[allow(\n    clippy::all,\n    reason = \"so\"\n)]\nmod tests {\n    fn g() {\n        \
                f().unwrap();\n    }\n}\n";
    assert_finds("crates/x/src/lib.rs", text, &[]);
}

#[test]
fn lints_stay_on() {
    let text = "//! X.\n#[allow(clippy::unwrap_used)]\nfn f() {}\n";
    assert_finds(
        "crates/x/src/lib.rs",
        text,
        &["`unwrap_used` is not switched off"],
    );
}

#[test]
fn form() {
    assert_finds("crates/x/src/lib.rs", "use x;\n", &["the first line is no `//!`"]);
    assert_finds("a.md", "words \nmore\n", &["a.md:1: trailing whitespace"]);
    assert_finds("a.md", "words", &["the last line has no end"]);
    assert_finds("a.rs", &format!("//! X.\n{}", "\n".repeat(700)), &["701 lines"]);
    assert_finds("empty.md", "", &[]);
}

#[test]
fn leftovers_and_places() {
    let text = ["// FIX", "ME later, see /wo", "rk/x\n"].concat();
    assert_finds("a.md", &text, &["is left over", "a place on one machine"]);
}

#[test]
fn which_files() {
    for path in [
        "src/a.rs",
        "Makefile",
        "deploy/Containerfile.source-controller",
        "b/c.yaml",
    ] {
        assert!(is_ours(path), "{path}");
    }
    for path in [
        "Cargo.lock",
        "x/fixtures/a.yaml",
        "x/golden/b.rs",
        "picture.png",
        "LICENSE",
    ] {
        assert!(!is_ours(path), "{path}");
    }
}

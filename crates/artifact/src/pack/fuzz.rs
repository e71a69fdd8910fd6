//! Random ignore rules over random paths: the matcher counts its steps, at most pattern times path for each rule.

use testkit::fuzz;
use tree::{Budget, Exceeded, Limits, TreePath};

use super::{MAX_RULE_BYTES, has_long_rule, rules};

const PIECES: &[&str] = &[
    "a", "b", "*", "**", "***", "?", "/", "!", "#", "[a-", "[^", "]", "\\", " ", "\n", ".", "*a*a*a", "**/",
    "/**", "é",
];
const NAMES: &[&str] = &[
    "a",
    "b",
    "ab",
    ".",
    "..",
    "é",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "/",
    "-",
];
const STEPS: u64 = 2_000_000;

#[test]
fn fuzz_ignore_rules_end_with_the_budget() {
    fuzz::run("ignore rules", |random| {
        let mut spec = random.text(PIECES, 0..30);
        match random.below(20) {
            0 if !spec.is_empty() => spec = spec.repeat(50_000 / spec.len()),
            1 if !spec.is_empty() => spec = spec.replace('\n', "").repeat(1 + MAX_RULE_BYTES / spec.len()),
            _ => {}
        }
        let file = random.text(PIECES, 0..10);
        random.note("spec", &spec);
        if has_long_rule(&spec) {
            return;
        }
        let rules = rules(
            vec![(TreePath::confined(&random.text(NAMES, 0..3)), file)],
            Some(&spec),
        );
        let budget = Budget::new(Limits {
            steps: STEPS,
            ..Limits::default()
        });
        for _ in 0..50 {
            let path = TreePath::confined(&random.text(NAMES, 1..12));
            if path.is_root() {
                continue;
            }
            match rules.is_ignored(&path, random.flag(), &budget) {
                Ok(_) => {}
                Err(Exceeded::Limit { what, .. }) => {
                    assert_eq!(what, "steps");
                    return;
                }
                Err(other) => panic!("{other:?}"),
            }
        }
    });
}

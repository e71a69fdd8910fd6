//! Tests of the table reader and of the rules.

use std::collections::BTreeMap;

use super::{Crate, rules, table};

const PAGE: &str = "
# Architecture

| other | table |
|---|---|
| `x` | y |

## Layers

Words about it.

| crate | layer | may use |
|---|---|---|
| `tree` | L0 | |
| `yaml` | L0 | `tree` |
| `jinja` | L1 | `yaml`, `tree` |
| `git` | L2 | `tree` |
| `source-controller` | L4 | `git`, `tree` |
| `testkit` | T | |

- rules

| `not` | L9 | `here` |
";

fn crates(list: &[(&str, &[&str], &[&str])]) -> BTreeMap<String, Crate> {
    let names = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect();
    let make = |(name, uses, tests_use): &(&str, &[&str], &[&str])| {
        (
            (*name).to_owned(),
            Crate {
                uses: names(uses),
                tests_use: names(tests_use),
                own: Vec::new(),
            },
        )
    };
    list.iter().map(make).collect()
}

fn whole() -> BTreeMap<String, Crate> {
    crates(&[
        ("tree", &["bytes"], &[]),
        ("yaml", &["tree", "libyaml-safer"], &[]),
        ("jinja", &["yaml"], &["tree"]),
        ("git", &["gix", "tree"], &["testkit"]),
        ("source-controller", &["git", "kube"], &["testkit", "serde"]),
        ("testkit", &["kube"], &[]),
    ])
}

#[track_caller]
fn assert_finds(page: &str, crates: &BTreeMap<String, Crate>, expected: &[&str]) {
    let (rows, mut findings) = table::parse(page);
    findings.extend(rules::check(&rows, crates));
    assert_eq!(findings.len(), expected.len(), "{findings:#?}");
    for (finding, part) in findings.iter().zip(expected) {
        assert!(finding.contains(part), "{finding} does not contain {part}");
    }
}

#[test]
fn check_accepts_a_workspace_that_matches_the_table() {
    assert_finds(PAGE, &whole(), &[]);
}

#[test]
fn parse_reports_missing_and_broken_rows() {
    assert_finds("# Nothing", &BTreeMap::new(), &["there is no table"]);
    let broken = PAGE.replace("| `git` | L2 |", "| `git` | two |");
    assert_finds(
        &broken,
        &whole(),
        &[
            "the row `| `git`",
            "the crate `git` has no row",
            "may not use `git`",
        ],
    );
    let mut more = whole();
    more.insert("new".to_owned(), Crate::default());
    more.remove("jinja");
    assert_finds(
        PAGE,
        &more,
        &["there is no crate `jinja`", "the crate `new` has no row"],
    );
}

#[test]
fn check_refuses_dependencies_on_higher_layers() {
    let up = PAGE.replace("| `tree` | L0 | |", "| `tree` | L0 | `git` |");
    assert_finds(&up, &whole(), &["`tree` (L0) may not use `git`"]);
    let sideways = PAGE.replace(
        "| `testkit` | T | |",
        "| `other` | L2 | `git` |\n| `testkit` | T | |",
    );
    let mut more = whole();
    more.insert("other".to_owned(), Crate::default());
    assert_finds(&sideways, &more, &["`other` (L2) may not use `git`"]);
}

#[test]
fn check_refuses_dependencies_that_no_row_names() {
    let mut more = whole();
    more.insert(
        "git".to_owned(),
        crates(&[("git", &["yaml", "testkit"], &["jinja"])])["git"].clone(),
    );
    assert_finds(
        PAGE,
        &more,
        &["`git` uses `yaml`", "`git` uses `testkit`", "`git` uses `jinja`"],
    );
}

#[test]
fn check_refuses_restricted_third_party_crates() {
    let mut more = whole();
    more.insert(
        "tree".to_owned(),
        crates(&[("tree", &["kube", "kubert"], &["gix-hash"])])["tree"].clone(),
    );
    more.insert(
        "git".to_owned(),
        crates(&[("git", &["libyaml-safer"], &[])])["git"].clone(),
    );
    assert_finds(
        PAGE,
        &more,
        &[
            "`git` may not use `libyaml-safer`",
            "`tree` may not use `kube`",
            "`gix-hash`",
        ],
    );
}

#[test]
fn check_refuses_versions_outside_the_workspace_table() {
    let mut more = whole();
    more.get_mut("tree").unwrap().own.push("bytes".to_owned());
    assert_finds(PAGE, &more, &["write `bytes.workspace = true`"]);
}

//! Rules for dependencies between crates. Pure.

use std::collections::BTreeMap;

use super::{
    Crate,
    table::{Layer, Row},
};

const RESTRICTED: &[&str] = &["kube", "gix", "libyaml"];

fn may_use(restricted: &str, name: &str, layer: Layer) -> bool {
    match restricted {
        "kube" => matches!(name, "api" | "cluster" | "runtime" | "engine" | "deployer") || layer >= Layer::L4,
        "gix" => name == "git",
        _ => name == "yaml",
    }
}

pub(crate) fn check(rows: &BTreeMap<String, Row>, crates: &BTreeMap<String, Crate>) -> Vec<String> {
    let mut findings = Vec::new();
    for name in rows.keys().filter(|name| !crates.contains_key(*name)) {
        findings.push(format!("ARCHITECTURE.md: there is no crate `{name}`"));
    }
    for (name, found) in crates {
        let Some(row) = rows.get(name) else {
            findings.push(format!(
                "ARCHITECTURE.md: the crate `{name}` has no row in the layer table"
            ));
            continue;
        };
        findings.extend(uses_above(name, row, rows));
        findings.extend(within(name, row, found, crates));
        findings.extend(third_party(name, row, found));
        findings.extend(found.own.iter().map(|own| {
            format!("crates `{name}`: `{own}` has a source of its own: write `{own}.workspace = true`")
        }));
    }
    findings
}

/// Lists crates that a row allows although they are not below its layer.
fn uses_above(name: &str, row: &Row, rows: &BTreeMap<String, Row>) -> Vec<String> {
    let allowed = |layer: Layer| {
        layer < row.layer
            || row.layer == Layer::T
            || (layer == row.layer && matches!(layer, Layer::L0 | Layer::L1 | Layer::L3))
    };
    let bad = row
        .may_use
        .iter()
        .filter(|used| rows.get(*used).is_none_or(|other| !allowed(other.layer)));
    bad.map(|used| {
        format!(
            "ARCHITECTURE.md: `{name}` ({:?}) may not use `{used}`: layers look down",
            row.layer
        )
    })
    .collect()
}

/// Lists dependencies that the row does not name. Tests may use the testkit besides.
fn within(name: &str, row: &Row, found: &Crate, crates: &BTreeMap<String, Crate>) -> Vec<String> {
    let ours = |used: &&String| crates.contains_key(*used) && *used != name;
    let uses = found
        .uses
        .iter()
        .filter(ours)
        .filter(|used| !row.may_use.contains(used));
    let tests = found.tests_use.iter().filter(ours);
    let tests = tests.filter(|used| *used != "testkit" && !row.may_use.contains(used));
    uses.chain(tests)
        .map(|used| format!("`{name}` uses `{used}`, which its row in ARCHITECTURE.md does not name"))
        .collect()
}

fn third_party(name: &str, row: &Row, found: &Crate) -> Vec<String> {
    let mut findings = Vec::new();
    for used in found.uses.iter().chain(&found.tests_use) {
        for prefix in RESTRICTED {
            let matches = used == prefix
                || used
                    .strip_prefix(prefix)
                    .is_some_and(|rest| rest.starts_with(['-', '_']));
            if matches && !may_use(prefix, name, row.layer) {
                findings.push(format!(
                    "`{name}` may not use `{used}`: see the rules below the layer table"
                ));
            }
        }
    }
    findings
}

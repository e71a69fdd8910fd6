//! Memory of filters, methods and functions with large arguments. Each case runs in its own process, whose peak is measured.

use std::{env, process::Command};

use testkit::process::Usage;
use tree::{Budget, Limits};

/// The name of this test, for a process that runs one case.
const TEST: &str = "memory::filters_refuse_large_results_before_they_take_memory";
const CASE: &str = "WEIR_TEST_MEMORY_CASE";
/// The limit of one string in bytes; the arguments are nearly as large.
const LIMIT: u64 = 4 << 20;
/// The maximum peak of a process, in bytes.
const PEAK: u64 = 14 * LIMIT;

const CASES: &[&str] = &[
    "s|list",
    "('ä' * 2000000)|list",
    "s.split('a')",
    "('a ' * 2000000).split()",
    "('a\\n' * 2000000).splitlines()",
    "s|batch(1)|list",
    "range(100000000)|list",
    "range(400000)|list",
    "(range(400000)|list) * 100",
    "range(400000)|batch(1)|list",
    "range(400000)|slice(100000)|list",
    "range(400000)|map('string')|list",
    "range(400000)|map('string')|join(s)",
    "l|join",
    "l|map('upper')|list",
    "l|tojson",
    "l|to_json",
    "l|to_yaml",
    "l|string",
    "l|pprint",
    "l|map('list')|list",
    "s * 100",
    "s ~ s ~ s ~ s ~ s ~ s ~ s ~ s",
    "s|replace('a', 'bbbb')",
    "s.replace('a', 'bbbb')",
    "s|indent(100)",
    "('\\n' * 4000000)|indent(100)",
    "('<' * 4000000)|escape",
    "('<' * 4000000)|urlencode",
    "('<' * 4000000)|tojson",
    "s|wordwrap(1)",
    "s|center(100000000)",
    "'%100000000d'|format(1)",
    "'%s%s%s%s%s%s%s%s'|format(s,s,s,s,s,s,s,s)",
    "'{0}{0}{0}{0}{0}{0}'.format(s)",
    "'{:>100000000}'.format(s)",
    "s|b64encode",
    "s|upper",
    "s|title",
    "s|reverse",
    "s|unique|list",
    "s|sort",
    "s|groupby('x')|list",
    "s|wordcount",
    "s|urlize",
    "s|striptags",
    "s.encode()|list",
    "dict(a=l)|string",
    "s.zfill(100000000)",
    "s.expandtabs(100)",
    "('\\t' * 4000000).expandtabs(100)",
    "s.translate({97: 'bbbb'})",
    "s.partition('a')|list",
    "s.join(l)",
    "('[' ~ ('1,' * 1900000) ~ '1]')|from_yaml",
    "('- a\\n' * 1000000)|from_yaml",
    "('[' ~ ('{},' * 1200000) ~ '{}]')|from_yaml",
    "render('{{1}}' * 800000)",
    "render('{{ f(' ~ ('1,' * 1900000) ~ ') }}')",
    "s|slugify",
    "s|sha256",
    "10 ** 10000000",
    "(10 ** 1000000)|string",
    "s|map('upper')|list",
    "s|select|list",
    "s|first",
    "s|truncate(10)",
    "s[::-1]",
    "(s|list)[::-1]",
    "l + l + l + l",
    "namespace(a=s)",
    "s|attr('x')",
    "{'a': s, 'b': s, 'c': s}|xmlattr",
    "{'a': s, 'b': s, 'c': s}|urlencode",
    "{'a': s, 'b': s, 'c': s}|dictsort",
    "cycler(*s)",
    "dict(s|batch(2))",
    "s|min",
];

#[test]
fn filters_refuse_large_results_before_they_take_memory() {
    if let Ok(case) = env::var(CASE) {
        let template = format!("{{% set s = 'a' * 4000000 %}}{{% set l = [s] * 50 %}}{{% set x = {case} %}}");
        let limits = Limits {
            bytes: LIMIT,
            ..Limits::default()
        };
        let outcome = super::shared::render_with(&template, &Budget::new(limits));
        let usage = Usage::of(std::process::id()).unwrap();
        let error = outcome.err().map(|error| error.to_string()).unwrap_or_default();
        let error: String = error.replace('\n', " ").chars().take(300).collect();
        println!("peak {} {error}", usage.peak);
        return;
    }
    let mut failures = Vec::new();
    for case in CASES {
        let output = Command::new(env::current_exe().unwrap())
            .args([TEST, "--exact", "--nocapture"])
            .env(CASE, case)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let line = text
            .lines()
            .find_map(|line| Some(line.split_once("peak ")?.1.to_owned()));
        let (peak, error) = line
            .as_deref()
            .and_then(|line| line.split_once(' '))
            .unwrap_or(("0", "died"));
        let peak: u64 = peak.parse().unwrap();
        let is_limit = error.is_empty() || error.contains("limit of");
        if peak == 0 || peak > PEAK || !is_limit {
            failures.push(format!("{case}: {} MiB, {error}", peak >> 20));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

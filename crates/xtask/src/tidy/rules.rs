//! Rules for the text of one file. Pure.

use super::test_code::production;

const LONGEST: usize = 500;
/// Likewise of test code.
const LONGEST_TEST: usize = 700;

/// Calls that panic. `expect` is left to clippy, which tells `Result::expect` from methods of the same name.
const PANICS: &[&str] = &[
    ".unwrap()",
    "panic!(",
    "todo!(",
    "unimplemented!(",
    "unreachable!(",
];

/// Lints that stay on outside tests.
const LINTS: &[&str] = &[
    "unwrap_used",
    "expect_used",
    "clippy::panic",
    "indexing_slicing",
    "unsafe_code",
];

/// Leftovers of work in progress; assembled, so that this file does not contain them.
const LEFTOVERS: &[&str] = &[
    concat!("FIX", "ME"),
    concat!("XX", "X:"),
    concat!("<<<", "<<<<"),
    concat!(">>>", ">>>>"),
    concat!("db", "g!("),
    concat!("#[ign", "ore"),
];

const MACHINE_PATHS: &[&str] = &[concat!("/wo", "rk/"), concat!("/ho", "me/")];

pub(crate) fn check(path: &str, text: &str, is_test: bool) -> Vec<String> {
    let mut findings = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let mut find = |what: &str| findings.push(format!("{path}:{}: {what}", number + 1));
        if line.ends_with([' ', '\t', '\r']) {
            find("trailing whitespace");
        }
        for word in LEFTOVERS.iter().filter(|word| line.contains(**word)) {
            find(&format!("`{word}` is left over"));
        }
        for part in MACHINE_PATHS.iter().filter(|part| line.contains(**part)) {
            find(&format!("`{part}` is a path of one machine"));
        }
    }
    if !text.is_empty() && !text.ends_with('\n') {
        findings.push(format!("{path}: the last line does not end with a newline"));
    }
    if path.ends_with(".rs") {
        findings.extend(rust(path, text, is_test));
    }
    findings
}

fn rust(path: &str, text: &str, is_test: bool) -> Vec<String> {
    let mut findings = Vec::new();
    if !is_test && !text.starts_with("//!") {
        findings.push(format!(
            "{path}: the first line is not a `//!` comment that describes the module"
        ));
    }
    let lines = text.lines().count();
    let longest = if is_test { LONGEST_TEST } else { LONGEST };
    if lines > longest {
        findings.push(format!(
            "{path}: {lines} lines, at most {longest} are allowed: split the file"
        ));
    }
    if is_test {
        return findings;
    }
    for (number, line) in production(text).filter(|(_, line)| !line.trim_start().starts_with("//")) {
        let code = without_strings(line);
        for call in PANICS.iter().filter(|call| code.contains(**call)) {
            findings.push(format!(
                "{path}:{number}: `{call}` outside tests: return an error"
            ));
        }
        let switch = code.contains("allow(") || code.contains("expect(");
        for lint in LINTS.iter().filter(|lint| switch && code.contains(**lint)) {
            findings.push(format!("{path}:{number}: `{lint}` must stay on outside tests"));
        }
    }
    findings
}

/// Removes the contents of string literals, so that messages may contain any word. The quotes stay.
fn without_strings(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let (mut inside, mut escaped) = (false, false);
    for c in line.chars() {
        match (inside, c) {
            (true, _) if escaped => escaped = false,
            (true, '\\') => escaped = true,
            (_, '"') => {
                inside = !inside;
                out.push(c);
            }
            (true, _) => {}
            (false, _) => out.push(c),
        }
    }
    out
}

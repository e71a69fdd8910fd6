//! The rules for one file. Pure.

use super::test_code::production;

/// A file beyond this many lines wants to be several.
const LONGEST: usize = 700;

/// What ends a process instead of one object's pass. `expect` is left to clippy, which tells the method of a parser from
/// that of a result.
const PANICS: &[&str] = &[
    ".unwrap()",
    "panic!(",
    "todo!(",
    "unimplemented!(",
    "unreachable!(",
];

/// Lints that must not be switched off outside tests.
const LINTS: &[&str] = &[
    "unwrap_used",
    "expect_used",
    "clippy::panic",
    "indexing_slicing",
    "unsafe_code",
];

/// What is left over from work: assembled, so that this file does not contain it.
const LEFTOVERS: &[&str] = &[
    concat!("FIX", "ME"),
    concat!("XX", "X:"),
    concat!("<<<", "<<<<"),
    concat!(">>>", ">>>>"),
    concat!("db", "g!("),
    concat!("#[ign", "ore"),
];

/// Paths of one machine.
const PLACES: &[&str] = &[concat!("/wo", "rk/"), concat!("/ho", "me/")];

/// Lists what is untidy in a file.
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
        for place in PLACES.iter().filter(|place| line.contains(**place)) {
            find(&format!("`{place}` is a place on one machine"));
        }
    }
    if !text.is_empty() && !text.ends_with('\n') {
        findings.push(format!("{path}: the last line has no end"));
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
            "{path}: the first line is no `//!` that says what this is"
        ));
    }
    let lines = text.lines().count();
    if lines > LONGEST {
        findings.push(format!("{path}: {lines} lines, at most {LONGEST}: divide it"));
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
            findings.push(format!(
                "{path}:{number}: `{lint}` is not switched off outside tests"
            ));
        }
    }
    findings
}

/// The line without the contents of its string literals, so that messages may speak of anything. The quotes stay.
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

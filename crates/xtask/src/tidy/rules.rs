//! The rules for one file. Pure.

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
const PLACES: &[&str] = &[
    concat!("/wo", "rk/"),
    concat!("/ro", "ot/"),
    concat!("/ho", "me/"),
];

/// Lists what is untidy in a file.
pub(crate) fn check(path: &str, text: &str) -> Vec<String> {
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
        findings.extend(rust(path, text));
    }
    findings
}

fn rust(path: &str, text: &str) -> Vec<String> {
    let mut findings = Vec::new();
    if !is_test(path) && !text.starts_with("//!") {
        findings.push(format!(
            "{path}: the first line is no `//!` that says what this is"
        ));
    }
    let lines = text.lines().count();
    if lines > LONGEST {
        findings.push(format!("{path}: {lines} lines, at most {LONGEST}: divide it"));
    }
    if is_test(path) {
        return findings;
    }
    for (number, line) in production(text)
        .enumerate()
        .filter(|(_, line)| !line.trim_start().starts_with("//"))
    {
        let code = without_strings(line);
        for call in PANICS.iter().filter(|call| code.contains(**call)) {
            findings.push(format!(
                "{path}:{}: `{call}` outside tests: return an error",
                number + 1
            ));
        }
        let switch = code.contains("allow(") || code.contains("expect(");
        for lint in LINTS.iter().filter(|lint| switch && code.contains(**lint)) {
            findings.push(format!(
                "{path}:{}: `{lint}` is not switched off outside tests",
                number + 1
            ));
        }
    }
    findings
}

/// Whether a whole file is test code.
fn is_test(path: &str) -> bool {
    let helper = ["crates/testkit/", "e2e/"]
        .iter()
        .any(|dir| path.starts_with(dir));
    helper
        || path.ends_with("_tests.rs")
        || path
            .split('/')
            .any(|part| matches!(part, "tests" | "tests.rs" | "benches" | "examples"))
}

/// The lines above the test module at the end of a file. A `#[cfg(test)]` on anything else than an inline module does
/// not end the production code.
fn production(text: &str) -> impl Iterator<Item = &str> {
    let lines: Vec<&str> = text.lines().collect();
    let opens = |at: &usize| {
        lines.get(*at).is_some_and(|line| line.trim() == "#[cfg(test)]")
            && lines
                .iter()
                .skip(*at)
                .find(|line| line.trim_start().starts_with("mod "))
                .is_some_and(|line| line.trim_end().ends_with('{'))
            && lines
                .iter()
                .skip(at + 1)
                .take_while(|line| !line.trim_start().starts_with("mod "))
                .all(attribute)
    };
    let end = (0..lines.len()).find(opens).unwrap_or(lines.len());
    lines.into_iter().take(end)
}

/// Whether a line is (a part of) an attribute, as far as a reader of lines can tell.
fn attribute(line: &&str) -> bool {
    let line = line.trim();
    line.starts_with("#[") || line.ends_with(',') || line.ends_with('"') || matches!(line, ")]" | "")
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

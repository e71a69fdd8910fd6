//! The rule for overused names: a name tells its thing from others. Pure.

use std::collections::BTreeSet;

use super::{
    lexer::{Kind, Token},
    test_code::production,
};

/// Parts of names that say nothing of their thing, in lower case.
const OVERUSED: &[&str] = &[
    "acting",
    "beginning",
    "begun",
    "elsewhere",
    "fate",
    "fresh",
    "held",
    "holdings",
    "kept",
    "look",
    "looks",
    "outside",
    "patience",
    "place",
    "places",
    "room",
    "rooms",
    "settle",
    "settled",
    "settles",
    "shown",
    "standin",
    "surroundings",
    "told",
    "way",
    "ways",
    "wishes",
];

/// Like [`OVERUSED`], of two parts.
const OVERUSED_PAIRS: &[[&str; 2]] = &[["stand", "in"]];

/// Pairs of parts that are a term of the field.
const TERMS: &[[&str; 2]] = &[["in", "place"]];

/// Names that are too broad for a whole type.
const BROAD_TYPES: &[&str] = &["Memory", "Order", "Texts", "Turn", "Work"];

const DEFINITIONS: &[&str] = &[
    "struct", "enum", "union", "trait", "type", "mod", "fn", "const", "static",
];

/// Lists the overused names among the definitions of a file outside tests, and in its own name.
pub(crate) fn check(path: &str, text: &str, tokens: &[Token<'_>]) -> Vec<String> {
    let mut findings = Vec::new();
    let stem = path.rsplit('/').next().unwrap_or(path).trim_end_matches(".rs");
    if let Some(part) = overused(stem) {
        findings.push(format!(
            "{path}: `{part}` in the file's name is overused: say what is in it"
        ));
    }
    let lines: BTreeSet<usize> = production(text).map(|(number, _)| number).collect();
    for (line, keyword, name) in definitions(tokens).filter(|(line, ..)| lines.contains(line)) {
        if let Some(part) = overused(name) {
            findings.push(format!(
                "{path}:{line}: `{part}` in the name `{name}` is overused: use the field's word"
            ));
        }
        let is_type = matches!(keyword, "struct" | "enum" | "union" | "trait" | "type");
        if is_type && BROAD_TYPES.contains(&name) {
            findings.push(format!(
                "{path}:{line}: `{name}` is too broad for a type: use the field's word"
            ));
        }
    }
    findings
}

/// Returns line, keyword and name of each definition.
pub(super) fn definitions<'a>(tokens: &[Token<'a>]) -> impl Iterator<Item = (usize, &'a str, &'a str)> {
    tokens.windows(2).filter_map(|pair| match pair {
        [
            Token {
                kind: Kind::Word(keyword),
                ..
            },
            Token {
                kind: Kind::Word(name),
                line,
            },
        ] if DEFINITIONS.contains(keyword)
            && !matches!(*name, "fn" | "mut" | "unsafe" | "async" | "extern" | "_") =>
        {
            Some((*line, *keyword, *name))
        }
        _ => None,
    })
}

fn overused(name: &str) -> Option<String> {
    let parts = parts(name);
    let mut previous = "";
    for part in &parts {
        let pair = [previous, part.as_str()];
        if OVERUSED.contains(&part.as_str()) && !TERMS.contains(&pair) {
            return Some(part.clone());
        }
        if OVERUSED_PAIRS.contains(&pair) {
            return Some(pair.join("_"));
        }
        previous = part;
    }
    None
}

/// Splits `snake_case`, `CamelCase` and `UPPER_CASE` into parts in lower case.
fn parts(name: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut lower = false;
    for c in name.chars() {
        if c == '_' || c == '-' || (lower && c.is_uppercase()) {
            parts.push(String::new());
        }
        if let Some(part) = parts.last_mut().filter(|_| c.is_alphanumeric()) {
            part.extend(c.to_lowercase());
        }
        lower = c.is_lowercase();
    }
    parts.retain(|part| !part.is_empty());
    parts
}

#[cfg(test)]
mod tests {
    use super::{super::lexer, *};

    #[track_caller]
    fn assert_finds(path: &str, text: &str, expected: &[&str]) {
        let found = check(path, text, &lexer::tokens(text));
        assert_eq!(found.len(), expected.len(), "{found:#?}");
        for (finding, part) in found.iter().zip(expected) {
            assert!(finding.contains(part), "{finding} does not contain {part}");
        }
    }

    #[test]
    fn overused_parts_of_definitions_are_found() {
        let text = "struct KeptTokens;\nenum ServerPlace {}\ntrait Way {}\ntype Rooms = u8;\nmod shown;\nasync fn settle_status() {}\n\
                    const OLD_HOLDINGS: u8 = 1;\nstatic mut X: u8 = 1;\nconst fn stand_in() {}\n";
        let names = [
            "`kept` in the name `KeptTokens`",
            "2: `place`",
            "3: `way`",
            "4: `rooms`",
            "5: `shown`",
            "6: `settle`",
        ];
        assert_finds(
            "a.rs",
            text,
            &[&names[..], &["7: `holdings`", "9: `stand_in`"]].concat(),
        );
    }

    #[test]
    fn words_that_contain_an_overused_part_are_accepted() {
        let text = "fn lookup() {}\nfn replace() {}\nfn edit_in_place() {}\nstruct Placeholder;\nfn f(kept: u8) { g::<Kept>(kept) }\n\
                    fn halfway() {}\nfn refreshed() {}\n#[cfg(test)]\nmod tests {\n    fn kept() {}\n}\n";
        assert_finds("a.rs", text, &[]);
    }

    #[test]
    fn broad_types_are_found() {
        let text = "struct Work;\nenum Turn {}\ntype Memory = u8;\nstruct WorkQueue;\nfn order() {}\nstruct MemoryLimit;\n";
        assert_finds("a.rs", text, &["1: `Work`", "2: `Turn`", "3: `Memory`"]);
    }

    #[test]
    fn file_names_are_checked() {
        assert_finds("src/kept_rooms.rs", "", &["`kept` in the file's name"]);
        assert_finds("src/shown/watch.rs", "", &[]);
    }
}

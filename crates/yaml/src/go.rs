//! Errors in the words of Go's parsers, which people search for.

use crate::{Error, Problem};

/// Which of Go's parsers tells what is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GoYaml {
    /// Version 2, as sigs.k8s.io/yaml has it.
    V2,
    /// Version 3.
    V3,
}

/// What the parser itself expects; all other problems are those of its scanner.
const EXPECTED: [&str; 6] = [
    "<stream-start>",
    "<document start>",
    "node content",
    "'-' indicator",
    "key",
    "',' or",
];

impl Error {
    /// What is wrong, as Go says it.
    ///
    /// quirk: version 3 names the line where that begins which could not be read to its end. Lines count from 0 where the
    /// parser expected something else, and the first line is not named. [`Error::position`] has the right one.
    #[must_use]
    pub fn go_words(&self, version: GoYaml) -> String {
        let message = match &self.problem {
            Problem::UnknownAnchor(name) => return format!("unknown anchor '{name}' referenced"),
            Problem::ControlCharacter(_) => return "control characters are not allowed".to_owned(),
            Problem::Merge => return "map merge requires map or sequence of maps as the value".to_owned(),
            _ => self.message(),
        };
        let (words, _) = message.split_once(" while ").unwrap_or((&message, ""));
        let places = match version {
            GoYaml::V2 => [self.position, self.begin],
            GoYaml::V3 => [self.begin, self.position],
        };
        match places.into_iter().flatten().find(|at| at.line > 1) {
            None => words.to_owned(),
            Some(at) if is_the_parsers(words) => format!("line {}: {words}", at.line.saturating_sub(1)),
            Some(at) => format!("line {}: {words}", at.line),
        }
    }
}

/// Whether it is the parser that says this, and not its scanner.
fn is_the_parsers(words: &str) -> bool {
    match words.strip_prefix("did not find expected ") {
        Some(rest) => EXPECTED.iter().any(|expected| rest.starts_with(expected)),
        None => [
            "found undefined tag handle",
            "found duplicate %",
            "found incompatible YAML document",
        ]
        .iter()
        .any(|start| words.starts_with(start)),
    }
}

#[cfg(test)]
mod tests {
    use tree::Budget;

    use super::*;

    #[test]
    fn lines_are_counted_as_go_counts_them() {
        let cases = [
            (
                "x: 1\ny:\n  a: b\n  - c\n",
                "line 3: did not find expected key",
                "line 2: did not find expected key",
            ),
            (
                "x: 1\ny:\n  z: 3\n  a: b\n  - c\n",
                "line 4: did not find expected key",
                "line 2: did not find expected key",
            ),
            (
                "x:\ny: 'abc\n\n\n",
                "line 5: found unexpected end of stream",
                "line 2: found unexpected end of stream",
            ),
            (
                "x: 1\na: \"b\nc",
                "line 3: found unexpected end of stream",
                "line 2: found unexpected end of stream",
            ),
            (
                "x: 1\na\nb: [c, d",
                "line 3: could not find expected ':'",
                "line 2: could not find expected ':'",
            ),
            (
                "x: 1\ny",
                "line 3: could not find expected ':'",
                "line 2: could not find expected ':'",
            ),
            (
                "x: 1\na: [b",
                "line 2: did not find expected ',' or ']'",
                "line 1: did not find expected ',' or ']'",
            ),
            (
                "x: 1\na: b: c",
                "line 2: mapping values are not allowed in this context",
                "line 2: mapping values are not allowed in this context",
            ),
            (
                "a: @",
                "found character that cannot start any token",
                "found character that cannot start any token",
            ),
            (
                "a:\n- *x",
                "unknown anchor 'x' referenced",
                "unknown anchor 'x' referenced",
            ),
            (
                "a:\n  b\u{1}",
                "control characters are not allowed",
                "control characters are not allowed",
            ),
        ];
        for (text, two, three) in cases {
            let error = crate::read::node(text, &Budget::default()).unwrap_err();
            assert_eq!(error.go_words(GoYaml::V2), two, "{text}");
            assert_eq!(error.go_words(GoYaml::V3), three, "{text}");
        }
    }
}

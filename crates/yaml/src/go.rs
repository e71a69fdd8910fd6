//! Errors with the messages of Go's parsers, which people search for.

use crate::{Error, Problem, Value};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GoYaml {
    /// As in sigs.k8s.io/yaml.
    V2,
    V3,
}

/// Messages of the parser; all others come from its scanner.
const EXPECTED: [&str; 6] = [
    "<stream-start>",
    "<document start>",
    "node content",
    "'-' indicator",
    "key",
    "',' or",
];

impl Error {
    /// Returns the message of Go's parser for the same problem.
    ///
    /// quirk: version 3 names the line where the incomplete construct starts. Lines count from 0 in errors of the parser,
    /// and the first line is not named. [`Error::position`] has the right one.
    #[must_use]
    pub fn go_words(&self, version: GoYaml) -> String {
        let message = match &self.problem {
            Problem::UnknownAnchor(name) => return format!("unknown anchor '{name}' referenced"),
            Problem::ControlCharacter(_) => return "control characters are not allowed".to_owned(),
            Problem::DeepKey { go, .. } if version == GoYaml::V2 => return format!("invalid map key: {go}"),
            Problem::Merge => return "map merge requires map or sequence of maps as the value".to_owned(),
            _ => self.message(),
        };
        let (words, _) = message.split_once(" while ").unwrap_or((&message, ""));
        let positions = match version {
            GoYaml::V2 => [self.position, self.context],
            GoYaml::V3 => [self.context, self.position],
        };
        match positions.into_iter().flatten().find(|at| at.line > 1) {
            None => words.to_owned(),
            Some(at) if is_the_parsers(words) => format!("line {}: {words}", at.line.saturating_sub(1)),
            Some(at) => format!("line {}: {words}", at.line),
        }
    }
}

/// Formats a value in Go's syntax, as version 2 reads it.
pub(crate) fn go_syntax(value: &Value) -> String {
    let inner = |value: &Value| match value {
        Value::Null => "interface {}(nil)".to_owned(),
        value => go_syntax(value),
    };
    match value {
        Value::Seq(items) => {
            let items: Vec<String> = items.iter().map(inner).collect();
            format!("[]interface {{}}{{{}}}", items.join(", "))
        }
        Value::Map(map) => {
            let mut entries: Vec<(&str, &Value)> = map.iter().collect();
            entries.sort_unstable_by_key(|(key, _)| *key);
            let entries: Vec<String> = entries
                .into_iter()
                .map(|(key, value)| format!("{}:{}", crate::print::json(&key.into()), inner(value)))
                .collect();
            format!("map[interface {{}}]interface {{}}{{{}}}", entries.join(", "))
        }
        Value::Null => "<nil>".to_owned(),
        scalar => crate::print::json(scalar),
    }
}

/// Returns true for messages of the parser, not its scanner.
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
    fn errors_show_keys_that_are_not_strings() {
        let read = |text: &str| crate::read::goyaml_lenient(text, &Budget::default());
        for (text, key) in [
            (
                "a: {{ .b }}",
                "map[interface {}]interface {}{\".b\":interface {}(nil)}",
            ),
            (
                "? [1, {x: z}, true, 1.5]\n: 1",
                "[]interface {}{1, map[interface {}]interface {}{\"x\":\"z\"}, true, 1.5}",
            ),
        ] {
            let error = read(text).unwrap_err();
            assert_eq!(error.go_words(GoYaml::V2), format!("invalid map key: {key}"));
            assert!(!error.to_string().contains("interface"), "{error}");
        }
    }

    #[test]
    fn go_errors_count_lines_as_go_does() {
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

//! Package `regexp`: regular expressions in Go's syntax and with its errors, matched by crate regex-automata.

mod translate;

use std::ops::Range;

use regex_automata::{
    MatchKind,
    meta::{Builder, Config, Regex},
    util::{captures::Captures as Spans, syntax},
};

use crate::{bytes, strconv};

/// An invalid regular expression, in Go's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RegexpError {
    #[error("error parsing regexp: {problem}: `{at}`")]
    Syntax { problem: &'static str, at: String },
    /// The compiled expression is over 4 MiB.
    #[error("error parsing regexp: expression nests too deeply or is too large")]
    TooLarge,
}

impl RegexpError {
    /// Formats the message that `regexp.MustCompile` panics with.
    #[must_use]
    pub fn panic_message(&self, expression: &str) -> String {
        let quoted = if strconv::can_backquote(expression) {
            format!("`{expression}`")
        } else {
            strconv::quote(expression)
        };
        format!("regexp: Compile({quoted}): {self}")
    }
}

/// In bytes.
const SIZE: usize = 4 << 20;

/// A compiled regular expression in Go's syntax, made for use by one thread at a time: others wait.
///
/// ```
/// let words = go::regexp::Regexp::compile(r"(?P<first>\w)\w*")?;
/// assert_eq!(words.find("to be"), Some(0..2));
/// assert_eq!(go::regexp::Regexp::compile("a**").unwrap_err().to_string(),
///     "error parsing regexp: invalid nested repetition operator: `**`");
/// # Ok::<(), go::regexp::RegexpError>(())
/// ```
#[derive(Debug)]
pub struct Regexp(Regex);

impl Regexp {
    /// Compiles an expression. Fails if Go refuses it, or if its compiled form is over 4 MiB.
    pub fn compile(expression: &str) -> Result<Self, RegexpError> {
        if let Some(at) = expression.find(|c| bytes::invalid_byte(c).is_some()) {
            return Err(RegexpError::Syntax {
                problem: "invalid UTF-8",
                at: expression.get(at..).unwrap_or_default().to_owned(),
            });
        }
        let translated = translate::translate(expression)?;
        let config = Config::new()
            .match_kind(MatchKind::LeftmostFirst)
            .utf8_empty(true)
            .nfa_size_limit(Some(SIZE))
            // Charts search short strings, so automata that take long to make don't pay; Go has none either.
            .auto_prefilter(false)
            .hybrid(false)
            .onepass(false)
            .dfa(false)
            // Crate regex would ask the operating system for the number of processors to size its pool.
            .pool_capacity(1);
        let compiled = Builder::new()
            .configure(config)
            .syntax(syntax::Config::new().utf8(true))
            .build(&translated);
        compiled.map(Self).map_err(|_| RegexpError::TooLarge)
    }

    #[must_use]
    pub fn is_match(&self, text: &str) -> bool {
        self.0.is_match(text)
    }

    #[must_use]
    pub fn find(&self, text: &str) -> Option<Range<usize>> {
        self.0.find(text).map(|found| found.range())
    }

    /// Iterates over all matches, without overlaps.
    pub fn find_iter<'a>(&'a self, text: &'a str) -> impl Iterator<Item = Range<usize>> + 'a {
        self.0.find_iter(text).map(|found| found.range())
    }

    /// Iterates over all matches with their groups, without overlaps.
    pub fn captures_iter<'a>(&'a self, text: &'a str) -> impl Iterator<Item = Captures<'a>> + 'a {
        self.0
            .captures_iter(text)
            .map(move |spans| Captures { text, spans })
    }
}

#[derive(Debug, Clone)]
pub struct Captures<'a> {
    text: &'a str,
    spans: Spans,
}

impl<'a> Captures<'a> {
    #[must_use]
    pub fn range(&self) -> Option<Range<usize>> {
        self.spans.get_match().map(|found| found.range())
    }

    /// Returns the string of a group, empty if it is not part of the match.
    #[must_use]
    pub fn group(&self, number: usize) -> &'a str {
        let span = self.spans.get_group(number);
        span.and_then(|span| self.text.get(span.range()))
            .unwrap_or_default()
    }

    /// Returns the string of a named group, empty if it is not part of the match.
    #[must_use]
    pub fn named(&self, name: &str) -> &'a str {
        let span = self.spans.get_group_by_name(name);
        span.and_then(|span| self.text.get(span.range()))
            .unwrap_or_default()
    }
}

impl Captures<'_> {
    /// Appends a template to `out` (`Regexp.Expand`): `$1` and `${name}` are the strings of groups, `$$` is a dollar sign.
    pub fn expand(&self, template: &str, out: &mut String) {
        let mut rest = template;
        while let Some((before, after)) = rest.split_once('$') {
            out.push_str(before);
            if let Some(after) = after.strip_prefix('$') {
                out.push('$');
                rest = after;
                continue;
            }
            let braced = after.strip_prefix('{');
            let body = braced.unwrap_or(after);
            let end = body
                .find(|c: char| c != '_' && !c.is_alphanumeric())
                .unwrap_or(body.len());
            let (name, tail) = body.split_at(end);
            let tail = if braced.is_some() {
                tail.strip_prefix('}')
            } else {
                Some(tail)
            };
            let Some(tail) = tail.filter(|_| !name.is_empty()) else {
                out.push('$');
                rest = after;
                continue;
            };
            let index = name
                .parse::<usize>()
                .ok()
                .filter(|_| name == "0" || !name.starts_with('0'));
            out.push_str(match index {
                Some(index) => self.group(index),
                None => self.named(name),
            });
            rest = tail;
        }
        out.push_str(rest);
    }
}

/// Escapes all characters that have a meaning in expressions (`regexp.QuoteMeta`).
#[must_use]
pub fn quote_meta(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if r"\.+*?()|[]{}^$".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_those_of_go() {
        for (expression, expected) in [
            ("a**", "invalid nested repetition operator: `**`"),
            ("*", "missing argument to repetition operator: `*`"),
            ("(", "missing closing ): `(`"),
            (")", "unexpected ): `)`"),
            ("[a", "missing closing ]: `[a`"),
            ("[z-a]", "invalid character class range: `z-a`"),
            ("a{1001}", "invalid repeat count: `{1001}`"),
            (r"\q", r"invalid escape sequence: `\q`"),
            ("(?<>a)", "invalid named capture: `(?<>`"),
            ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
        ] {
            let error = Regexp::compile(expression).map(|_| ()).unwrap_err();
            assert_eq!(error.to_string(), format!("error parsing regexp: {expected}"));
        }
        assert_eq!(
            Regexp::compile("(((a{100}){100}){100})").map(|_| ()),
            Err(RegexpError::TooLarge)
        );
        let error = Regexp::compile("a`**").map(|_| ()).unwrap_err();
        assert_eq!(
            error.panic_message("a`**"),
            "regexp: Compile(\"a`**\"): error parsing regexp: invalid nested repetition operator: `**`"
        );
    }

    #[test]
    fn expressions_have_the_meaning_of_go() {
        for (expression, text, expected) in [
            (r"\d", "٣", None),
            (r"\bé", "é", None),
            ("a{,2}", "a{,2}", Some(0..5)),
            ("[[a]", "[", Some(0..1)),
            ("[a&&b]", "&", Some(0..1)),
            (r"\Qa.b\E", "xa.b", Some(1..4)),
            ("(?i)É", "é", Some(0..2)),
            (r"\x{e9}", "é", Some(0..2)),
            ("a|ab", "ab", Some(0..1)),
        ] {
            assert_eq!(
                Regexp::compile(expression).unwrap().find(text),
                expected,
                "{expression}"
            );
        }
    }

    #[test]
    fn templates_expand_groups() {
        let expression = Regexp::compile(r"(?P<name>\w+)=(\w*)").unwrap();
        let found = expression.captures_iter("a=b").next().unwrap();
        let mut out = String::new();
        found.expand("$2 ${name}x $namex $$ $ ${2", &mut out);
        assert_eq!(out, "b ax  $ $ ${2");
        assert_eq!(found.range(), Some(0..3));
    }

    #[test]
    fn quoted_strings_match_themselves() {
        let text = r"\.+*?()|[]{}^$ a";
        assert!(Regexp::compile(&quote_meta(text)).unwrap().is_match(text));
    }
}

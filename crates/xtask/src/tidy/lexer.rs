//! Splits Rust sources into words, marks and comments. Pure.

/// A token with the number of its first line, from 1. String and character literals are left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    pub(crate) line: usize,
    pub(crate) kind: Kind<'a>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind<'a> {
    /// A keyword, an identifier (without `r#`) or a number.
    Word(&'a str),
    Mark(char),
    /// A comment with its slashes; each line of `//` is one.
    Comment(&'a str),
}

/// Lists the tokens of a file. An unterminated literal or comment reaches to the end.
pub(crate) fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut lexer = Lexer {
        rest: text,
        line: 1,
        found: Vec::new(),
    };
    while let Some(first) = lexer.rest.chars().next() {
        lexer.step(first);
    }
    lexer.found
}

struct Lexer<'a> {
    rest: &'a str,
    line: usize,
    found: Vec<Token<'a>>,
}

impl<'a> Lexer<'a> {
    fn step(&mut self, first: char) {
        let line = self.line;
        let begins_literal = matches!(first, 'b' | 'c' | 'r' | '"' | '\'');
        let kind = if first.is_whitespace() {
            let end = self.rest.find(|c: char| !c.is_whitespace());
            self.take(end.unwrap_or(self.rest.len()));
            return;
        } else if self.rest.starts_with("//") {
            let end = self.rest.find('\n').unwrap_or(self.rest.len());
            Kind::Comment(self.take(end))
        } else if self.rest.starts_with("/*") {
            Kind::Comment(self.take(block_comment(self.rest)))
        } else if let Some(length) = begins_literal.then(|| literal(self.rest)).flatten() {
            self.take(length);
            return;
        } else if first.is_alphanumeric() || first == '_' {
            self.rest = raw_identifier(self.rest);
            Kind::Word(self.take(word(self.rest)))
        } else {
            self.take(first.len_utf8());
            Kind::Mark(first)
        };
        self.found.push(Token { line, kind });
    }

    fn take(&mut self, length: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(length);
        self.line += taken.matches('\n').count();
        self.rest = rest;
        taken
    }
}

fn word(text: &str) -> usize {
    text.find(|c: char| !c.is_alphanumeric() && c != '_')
        .unwrap_or(text.len())
}

/// Removes `r#` from a raw identifier.
fn raw_identifier(text: &str) -> &str {
    match text.strip_prefix("r#") {
        Some(rest) if rest.starts_with(|c: char| c.is_alphabetic() || c == '_') => rest,
        _ => text,
    }
}

/// Returns the length of a block comment; they nest.
fn block_comment(text: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        if rest.starts_with("/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if rest.starts_with("*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return at;
            }
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

/// Returns the length of the string or character literal that the text begins with.
fn literal(text: &str) -> Option<usize> {
    if text.starts_with('\'') {
        return character(text);
    }
    let prefix = ["br", "cr", "r", "b", "c", ""].into_iter().find(|prefix| {
        text.strip_prefix(prefix)
            .is_some_and(|rest| rest.starts_with(['"', '#', '\'']))
    })?;
    let rest = text.get(prefix.len()..)?;
    if prefix == "b" && rest.starts_with('\'') {
        return Some(1 + character(rest)?);
    }
    if prefix.ends_with('r') {
        let hashes = rest.len() - rest.trim_start_matches('#').len();
        let open = hashes + 1;
        let body = rest.get(hashes..)?.strip_prefix('"')?;
        let close = format!("\"{}", "#".repeat(hashes));
        let end = body.find(&close).map_or(body.len(), |end| end + close.len());
        return Some(prefix.len() + open + end);
    }
    let body = rest.strip_prefix('"')?;
    let mut escaped = false;
    let end = body.char_indices().find(|(_, c)| {
        let ends = *c == '"' && !escaped;
        escaped = *c == '\\' && !escaped;
        ends
    });
    Some(prefix.len() + 1 + end.map_or(body.len(), |(index, _)| index + 1))
}

/// Returns the length of a character literal; `None` for a lifetime.
fn character(text: &str) -> Option<usize> {
    let mut chars = text.char_indices().skip(1);
    let (_, first) = chars.next()?;
    let (second, next) = chars.next()?;
    match (first, next) {
        ('\\', _) => {
            let from = second + next.len_utf8();
            Some(from + text.get(from..)?.find('\'')? + 1)
        }
        (_, '\'') => Some(second + 1),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn assert_words(text: &str, expected: &[(usize, &str)]) {
        let found: Vec<_> = tokens(text)
            .into_iter()
            .filter_map(|token| match token.kind {
                Kind::Word(word) | Kind::Comment(word) => Some((token.line, word)),
                Kind::Mark(_) => None,
            })
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn tokens_leave_out_literals() {
        assert_words(
            "a(\"b \\\" c\", 'd', '\\'', b'e', b\"f\") g",
            &[(1, "a"), (1, "g")],
        );
        assert_words(
            "r#\"a \"b\" c\"# d r\"\\\" e br##\"\"#\"## f",
            &[(1, "d"), (1, "e"), (1, "f")],
        );
        assert_words("\"a\nb\" c \"never closed", &[(2, "c")]);
    }

    #[test]
    fn tokens_tell_lifetimes_from_characters() {
        assert_words(
            "&'a str, 'ä', '\\u{e4}' b'\\n' c",
            &[(1, "a"), (1, "str"), (1, "c")],
        );
        assert_words(
            "fn f<'a>(x: &'a T)",
            &[(1, "fn"), (1, "f"), (1, "a"), (1, "x"), (1, "a"), (1, "T")],
        );
    }

    #[test]
    fn tokens_keep_comments() {
        assert_words(
            "/// A \"b\".\nr#type // c\n/* d /* e */\nf */ g",
            &[
                (1, "/// A \"b\"."),
                (2, "type"),
                (2, "// c"),
                (3, "/* d /* e */\nf */"),
                (4, "g"),
            ],
        );
    }
}

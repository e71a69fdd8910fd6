//! Splits a template into tokens.

mod literals;
mod names;
#[cfg(test)]
mod tests;
mod token;

use literals::{number, unescaped};
pub(crate) use token::{ParseError, SyntaxError, TOKEN, Token, TokenKind};

use tree::Exceeded;

use crate::{format::repr::quoted, meter::Meter, value::char_count};

/// The longest first.
const OPERATORS: [&str; 25] = [
    "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[", "]", "(", ")", "{", "}", ">", "<",
    "=", ".", ":", "|", ",",
];

/// Reads the tokens of a template whose line ends are `\n`. An error is the last token. Tokens are counted with their part of the
/// syntax tree before they are made.
pub(crate) fn tokens(source: &str, meter: &Meter) -> Result<Vec<Token>, Exceeded> {
    let source = source.strip_suffix('\n').unwrap_or(source);
    let mut lexer = Lexer {
        source,
        rest: source,
        line: 1,
        tokens: Vec::new(),
        meter,
    };
    let end = match lexer.run() {
        Ok(()) => TokenKind::End,
        Err(ParseError::Syntax(error)) => TokenKind::Bad(error),
        Err(ParseError::Exceeded(exceeded)) => return Err(exceeded),
    };
    // The end is at the line of the last token.
    let last = lexer.tokens.last().map(|token| token.line);
    let line = last.filter(|_| end == TokenKind::End).unwrap_or(lexer.line);
    lexer.tokens.push(Token { line, kind: end });
    Ok(lexer.tokens)
}

struct Lexer<'a> {
    source: &'a str,
    rest: &'a str,
    line: u32,
    tokens: Vec<Token>,
    meter: &'a Meter,
}

/// The start of a tag.
#[derive(Clone, Copy, PartialEq)]
enum Opening {
    Variable,
    Block,
    Comment,
}

impl<'a> Lexer<'a> {
    fn push(&mut self, kind: TokenKind) -> Result<(), Exceeded> {
        self.meter.step(1)?;
        self.meter.alloc(kind.memory() as u64)?;
        self.tokens.push(Token {
            line: self.line,
            kind,
        });
        Ok(())
    }

    /// Consumes bytes and counts their lines.
    fn take(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at_checked(bytes).unwrap_or((self.rest, ""));
        self.rest = rest;
        let lines = taken.bytes().filter(|byte| *byte == b'\n').count();
        self.line = self.line.saturating_add(u32::try_from(lines).unwrap_or(u32::MAX));
        taken
    }

    fn run(&mut self) -> Result<(), ParseError> {
        while !self.rest.is_empty() {
            let (at, opening) = next_opening(self.rest);
            let sign = self.rest.as_bytes().get(at + 2).copied();
            let mut text = self.rest.get(..at).unwrap_or_default();
            if opening.is_some() && sign == Some(b'-') {
                text = text.trim_end_matches(is_space);
            }
            if !text.is_empty() {
                self.push(TokenKind::Data(text.into()))?;
            }
            self.take(at);
            let Some(opening) = opening else { return Ok(()) };
            let signed = matches!(sign, Some(b'-')) || sign == Some(b'+');
            match opening {
                Opening::Comment => self.comment()?,
                Opening::Block if self.is_raw() => self.raw()?,
                Opening::Block => {
                    self.push(TokenKind::BlockBegin)?;
                    self.take(2 + usize::from(signed));
                    self.inside(Opening::Block)?;
                }
                Opening::Variable => {
                    self.push(TokenKind::VariableBegin)?;
                    self.take(2 + usize::from(signed));
                    self.inside(Opening::Variable)?;
                }
            }
        }
        Ok(())
    }

    fn unexpected(&self, letter: char) -> SyntaxError {
        let before = self.source.len() - self.rest.len();
        let at = char_count(self.source.get(..before).unwrap_or_default());
        let letter = quoted(&letter.to_string());
        SyntaxError::new(self.line, format!("unexpected char {letter} at {at}"))
    }

    fn skip_space(&mut self) {
        let space = self.rest.len() - self.rest.trim_start_matches(is_space).len();
        self.take(space);
    }

    fn comment(&mut self) -> Result<(), ParseError> {
        let body = self.rest.get(2..).unwrap_or_default();
        let Some(end) = body.find("#}") else {
            return Err(SyntaxError::new(self.line, "Missing end of comment tag").into());
        };
        let strips = body.get(..end).is_some_and(|body| body.ends_with('-'));
        self.take(2 + end + 2);
        if strips {
            self.skip_space();
        }
        Ok(())
    }

    fn is_raw(&self) -> bool {
        raw_tag(self.rest, "raw").is_some()
    }

    fn raw(&mut self) -> Result<(), ParseError> {
        let start = self.line;
        let (length, strips) = raw_tag(self.rest, "raw").unwrap_or_default();
        self.take(length);
        if strips {
            self.skip_space();
        }
        let mut from = 0;
        loop {
            let found = self.rest.get(from..).and_then(|rest| rest.find("{%"));
            let Some(found) = found else {
                return Err(SyntaxError::new(start, "Missing end of raw directive").into());
            };
            let at = from + found;
            let tag = self.rest.get(at..).unwrap_or_default();
            let Some((length, strips)) = raw_tag(tag, "endraw") else {
                from = at + 2;
                continue;
            };
            let mut text = self.rest.get(..at).unwrap_or_default();
            if tag.as_bytes().get(2) == Some(&b'-') {
                text = text.trim_end_matches(is_space);
            }
            if !text.is_empty() {
                self.push(TokenKind::Data(text.into()))?;
            }
            self.take(at + length);
            if strips {
                self.skip_space();
            }
            return Ok(());
        }
    }

    /// Reads up to the end of a tag.
    fn inside(&mut self, opening: Opening) -> Result<(), ParseError> {
        let close = if opening == Opening::Block { "%}" } else { "}}" };
        let mut open: Vec<&'static str> = Vec::new();
        loop {
            self.skip_space();
            if self.rest.is_empty() {
                return Ok(());
            }
            if open.is_empty() {
                let signed = self
                    .rest
                    .strip_prefix('-')
                    .is_some_and(|rest| rest.starts_with(close));
                let plus = opening == Opening::Block
                    && self
                        .rest
                        .strip_prefix('+')
                        .is_some_and(|rest| rest.starts_with(close));
                if signed || plus || self.rest.starts_with(close) {
                    self.push(if opening == Opening::Block {
                        TokenKind::BlockEnd
                    } else {
                        TokenKind::VariableEnd
                    })?;
                    self.take(2 + usize::from(signed || plus));
                    if signed {
                        self.skip_space();
                    }
                    return Ok(());
                }
            }
            self.token(&mut open)?;
        }
    }

    fn token(&mut self, open: &mut Vec<&'static str>) -> Result<(), ParseError> {
        let first = self.rest.chars().next().unwrap_or_default();
        if first.is_ascii_digit() {
            // A float can't follow a point.
            let before = self.source.len() - self.rest.len();
            let after_point = self.source.get(..before).is_some_and(|text| text.ends_with('.'));
            let (kind, length) = number(self.rest, after_point)
                .map_err(|error| SyntaxError::new(self.line, error.to_string()))?;
            self.push(kind)?;
            self.take(length);
        } else if first == '_' || first.is_alphanumeric() {
            let end = self
                .rest
                .find(|letter: char| letter != '_' && !letter.is_alphanumeric());
            let name = self
                .rest
                .get(..end.unwrap_or(self.rest.len()))
                .unwrap_or_default();
            if first.is_numeric() {
                return Err(SyntaxError::new(self.line, "Invalid character in identifier").into());
            }
            self.push(TokenKind::Name(name.into()))?;
            self.take(name.len());
        } else if first == '"' || first == '\'' {
            self.string(first)?;
        } else {
            self.operator(first, open)?;
        }
        Ok(())
    }

    fn operator(&mut self, first: char, open: &mut Vec<&'static str>) -> Result<(), ParseError> {
        let operator = OPERATORS
            .iter()
            .find(|operator| self.rest.starts_with(**operator));
        let Some(operator) = operator.copied() else {
            return Err(self.unexpected(first).into());
        };
        match operator {
            "{" => open.push("}"),
            "(" => open.push(")"),
            "[" => open.push("]"),
            "}" | ")" | "]" => match open.pop() {
                None => {
                    return Err(SyntaxError::new(self.line, format!("unexpected '{operator}'")).into());
                }
                Some(expected) if expected != operator => {
                    let message = format!("unexpected '{operator}', expected '{expected}'");
                    return Err(SyntaxError::new(self.line, message).into());
                }
                Some(_) => {}
            },
            _ => {}
        }
        self.push(TokenKind::Op(operator))?;
        self.take(operator.len());
        Ok(())
    }

    fn string(&mut self, quote: char) -> Result<(), ParseError> {
        let body = self.rest.get(1..).unwrap_or_default();
        let mut escaped = false;
        let end = body.char_indices().find(|(_, letter)| {
            let ends = *letter == quote && !escaped;
            escaped = *letter == '\\' && !escaped;
            ends
        });
        let Some((end, _)) = end else {
            return Err(self.unexpected(quote).into());
        };
        let text = unescaped(body.get(..end).unwrap_or_default())
            .map_err(|error| SyntaxError::new(self.line, error.to_string()))?;
        self.push(TokenKind::String(text.into()))?;
        self.take(end + 2);
        Ok(())
    }
}

/// Returns true for the characters of Python's `\s`.
fn is_space(letter: char) -> bool {
    letter.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&letter)
}

fn next_opening(text: &str) -> (usize, Option<Opening>) {
    let mut from = 0;
    while let Some(found) = text.get(from..).and_then(|rest| rest.find('{')) {
        let at = from + found;
        let opening = match text.as_bytes().get(at + 1) {
            Some(b'{') => Some(Opening::Variable),
            Some(b'%') => Some(Opening::Block),
            Some(b'#') => Some(Opening::Comment),
            _ => None,
        };
        if opening.is_some() {
            return (at, opening);
        }
        from = at + 1;
    }
    (text.len(), None)
}

/// Returns the length of `{% raw %}`, and true if the space after it is trimmed.
fn raw_tag(text: &str, word: &str) -> Option<(usize, bool)> {
    let mut rest = text.strip_prefix("{%")?;
    rest = rest
        .strip_prefix(['-', '+'])
        .unwrap_or(rest)
        .trim_start_matches(is_space);
    rest = rest.strip_prefix(word)?.trim_start_matches(is_space);
    let signed = rest.strip_prefix('-').filter(|rest| rest.starts_with("%}"));
    let plus = rest
        .strip_prefix('+')
        .filter(|rest| word == "endraw" && rest.starts_with("%}"));
    let after = signed.or(plus).unwrap_or(rest).strip_prefix("%}")?;
    Some((text.len() - after.len(), signed.is_some()))
}

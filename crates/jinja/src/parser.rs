//! Parses tokens to statements and expressions.

mod args;
mod expr;
mod imports;
mod stmt;
#[cfg(test)]
mod tests;

pub(crate) use crate::lexer::ParseError;
use crate::{
    ast::{Name, Slot, Stmt, Template},
    lexer::{SyntaxError, TOKEN, Token, TokenKind, tokens},
    meter::Meter,
    symbols::{self, Vocabulary},
    value::Str,
};

type Parsed<T> = Result<T, ParseError>;

/// The maximum nesting of tags and brackets.
const MAX_DEPTH: u32 = 120;

/// The maximum number of operators or calls in a chain.
const MAX_CHAIN: usize = 2_000;

/// Parses a template and resolves its variables. Counts the work and the memory of the syntax tree.
pub(crate) fn parse(source: &str, vocabulary: &dyn Vocabulary, meter: &Meter) -> Parsed<Template> {
    let tokens = tokens(source, meter)?;
    let memory = tokens.len().saturating_mul(TOKEN);
    let mut parser = Parser::new(tokens, meter);
    let body = parser.subparse(&[])?;
    drop(parser);
    meter.free(memory as u64);
    symbols::resolve(body, vocabulary, meter)
}

struct Parser<'m> {
    meter: &'m Meter,
    tokens: Vec<Token>,
    at: usize,
    depth: u32,
    /// The open tags.
    tags: Vec<String>,
    /// The tags that close them.
    ends: Vec<&'static [&'static str]>,
}

const END: TokenKind = TokenKind::End;

impl<'m> Parser<'m> {
    fn new(tokens: Vec<Token>, meter: &'m Meter) -> Self {
        Self {
            meter,
            tokens,
            at: 0,
            depth: 0,
            tags: Vec::new(),
            ends: Vec::new(),
        }
    }

    fn current(&self) -> &TokenKind {
        self.tokens.get(self.at).map_or(&END, |token| &token.kind)
    }

    fn ahead(&self) -> &TokenKind {
        self.tokens.get(self.at + 1).map_or(&END, |token| &token.kind)
    }

    fn line(&self) -> u32 {
        let token = self.tokens.get(self.at).or(self.tokens.last());
        token.map_or(1, |token| token.line)
    }

    fn next(&mut self) -> TokenKind {
        let kind = self.current().clone();
        if self.at + 1 < self.tokens.len() {
            self.at += 1;
        }
        kind
    }

    fn fail<T>(&self, message: impl Into<String>) -> Parsed<T> {
        self.fail_at(self.line(), message)
    }

    /// Reports an invalid token instead of the expected one, if there is one.
    fn fail_at<T>(&self, line: u32, message: impl Into<String>) -> Parsed<T> {
        match self.current() {
            TokenKind::Bad(error) => Err(error.clone().into()),
            _ => Err(SyntaxError::new(line, message).into()),
        }
    }

    fn is_op(&self, op: &str) -> bool {
        matches!(self.current(), TokenKind::Op(found) if *found == op)
    }

    fn is_word(&self, word: &str) -> bool {
        is_word(self.current(), word)
    }

    fn skip_op(&mut self, op: &str) -> bool {
        let found = self.is_op(op);
        if found {
            self.next();
        }
        found
    }

    fn skip_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        if found {
            self.next();
        }
        found
    }

    fn expected<T>(&self, what: &str) -> Parsed<T> {
        match self.current() {
            TokenKind::End => self.fail(format!("unexpected end of template, expected '{what}'.")),
            found => self.fail(format!(
                "expected token '{what}', got {}",
                quoted(&found.describe())
            )),
        }
    }

    fn expect_op(&mut self, op: &str) -> Parsed<()> {
        if self.skip_op(op) {
            Ok(())
        } else {
            self.expected(op)
        }
    }

    fn expect_word(&mut self, word: &str) -> Parsed<()> {
        if self.skip_word(word) {
            Ok(())
        } else {
            self.expected(word)
        }
    }

    fn expect_name(&mut self) -> Parsed<Str> {
        match self.current().clone() {
            TokenKind::Name(name) => {
                self.next();
                Ok(name)
            }
            _ => self.expected("name"),
        }
    }

    fn expect_kind(&mut self, kind: &TokenKind) -> Parsed<()> {
        if self.current() == kind {
            self.next();
            Ok(())
        } else {
            self.expected(&kind.describe())
        }
    }

    /// Parses a part one level deeper.
    fn deeper<T>(&mut self, part: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= MAX_DEPTH {
            return self.fail(format!("tags and brackets nest deeper than {MAX_DEPTH} levels"));
        }
        self.depth += 1;
        let parsed = part(self);
        self.depth -= 1;
        parsed
    }

    fn check_chain(&self, length: usize) -> Parsed<()> {
        if length > MAX_CHAIN {
            return self.fail(format!("more than {MAX_CHAIN} operators in a row"));
        }
        Ok(())
    }
}

fn is_word(kind: &TokenKind, word: &str) -> bool {
    matches!(kind, TokenKind::Name(name) if **name == *word)
}

fn name(id: Str) -> Name {
    Name {
        id,
        slot: Slot::default(),
        parameter: false,
    }
}

fn quoted(text: &str) -> String {
    crate::format::repr::quoted(text)
}

type Body = Vec<Stmt>;

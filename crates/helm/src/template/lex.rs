//! Cuts the text of a template into tokens.

use super::quote::{code_point, quote};

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Error,
    Bool,
    Char,
    CharConstant,
    Complex,
    Assign,
    Declare,
    End,
    Field,
    Identifier,
    LeftDelimiter,
    LeftParen,
    Number,
    Pipe,
    RawString,
    RightDelimiter,
    RightParen,
    Space,
    String,
    Text,
    Variable,
    Keyword(Keyword),
}

/// The words that are no names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keyword {
    Block,
    Break,
    Continue,
    Dot,
    Define,
    Else,
    End,
    If,
    Nil,
    Range,
    Template,
    With,
}

impl Keyword {
    fn of(word: &str) -> Option<Self> {
        Some(match word {
            "block" => Self::Block,
            "break" => Self::Break,
            "continue" => Self::Continue,
            "define" => Self::Define,
            "else" => Self::Else,
            "end" => Self::End,
            "if" => Self::If,
            "nil" => Self::Nil,
            "range" => Self::Range,
            "template" => Self::Template,
            "with" => Self::With,
            _ => return None,
        })
    }
}

/// A piece of a template.
#[derive(Debug, Clone, Copy)]
pub(super) struct Token<'t> {
    pub(super) kind: Kind,
    /// Where it begins, in bytes.
    pub(super) at: usize,
    pub(super) text: &'t str,
}

impl Token<'_> {
    /// The token as error messages show it; `problem` is what an error is.
    pub(super) fn shown(&self, problem: &str) -> String {
        match self.kind {
            Kind::End => "EOF".to_owned(),
            Kind::Error => problem.to_owned(),
            Kind::Keyword(_) => format!("<{}>", self.text),
            _ if self.text.len() > 10 => {
                let start: String = self.text.chars().take(10).collect();
                format!("{}...", quote(&start))
            }
            _ => quote(self.text),
        }
    }
}

/// Reads tokens one after the other.
#[derive(Debug)]
pub(super) struct Lexer<'t> {
    text: &'t str,
    /// Where the token begins that is being read.
    start: usize,
    /// Where the next character is.
    next: usize,
    parens: usize,
    inside: bool,
    /// What is wrong, once a token is an error.
    pub(super) problem: String,
}

const SPACES: [char; 4] = [' ', '\t', '\r', '\n'];

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

/// Whether a byte is a character that can be part of a name.
fn is_plain_name(byte: u8) -> bool {
    byte == b'_' || byte.is_ascii_alphanumeric()
}

/// Whether a character can be part of a name.
fn is_name(c: char) -> bool {
    c == '_' || c.is_ascii_alphanumeric() || (!c.is_ascii() && (c.is_alphabetic() || c.is_numeric()))
}

/// Whether a text begins as `- ` does, which trims what comes before the action.
fn trims_left(text: &str) -> bool {
    text.strip_prefix('-')
        .is_some_and(|rest| rest.starts_with(SPACES))
}

/// Where the next `{{` is. A search for one character is much faster than one for two.
fn left_delimiter(text: &str) -> Option<usize> {
    let mut from = 0;
    loop {
        let at = from + text.get(from..)?.find('{')?;
        if text.as_bytes().get(at + 1) == Some(&b'{') {
            return Some(at);
        }
        from = at + 1;
    }
}

impl<'t> Lexer<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self {
            text,
            start: 0,
            next: 0,
            parens: 0,
            inside: false,
            problem: String::new(),
        }
    }

    /// The next token; after the last one, and after an error, [`Kind::End`] again and again.
    pub(super) fn token(&mut self) -> Token<'t> {
        if self.inside {
            self.action()
        } else {
            self.outside()
        }
    }

    fn rest(&self) -> &'t str {
        self.text.get(self.next..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn advance(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.next += c.len_utf8();
        Some(c)
    }

    /// The next byte, or the one that many behind it; zero behind the end. Most of what is read is ASCII.
    fn byte(&self, ahead: usize) -> u8 {
        let bytes = self.text.as_bytes();
        bytes.get(self.next + ahead).copied().unwrap_or_default()
    }

    fn accept(&mut self, wanted: &str) -> bool {
        let found = wanted.as_bytes().contains(&self.byte(0));
        if found {
            self.next += 1;
        }
        found
    }

    fn accept_all(&mut self, wanted: &str) {
        while self.accept(wanted) {}
    }

    fn accept_name(&mut self) {
        loop {
            while is_plain_name(self.byte(0)) {
                self.next += 1;
            }
            if self.byte(0).is_ascii() || !self.peek().is_some_and(is_name) {
                return;
            }
            self.advance();
        }
    }

    fn emit(&mut self, kind: Kind) -> Token<'t> {
        let (at, text) = (self.start, self.pending());
        self.start = self.next;
        Token { kind, at, text }
    }

    fn error(&mut self, error: String) -> Token<'t> {
        let at = self.start;
        self.text = "";
        self.next = 0;
        self.start = 0;
        self.inside = false;
        self.problem = error;
        Token {
            kind: Kind::Error,
            at,
            text: "",
        }
    }

    /// What was read of the token so far.
    fn pending(&self) -> &'t str {
        self.text.get(self.start..self.next).unwrap_or_default()
    }

    /// Text up to the next action that isn't a comment.
    fn outside(&mut self) -> Token<'t> {
        loop {
            let Some(length) = left_delimiter(self.rest()) else {
                self.next = self.text.len();
                let kind = if self.next > self.start {
                    Kind::Text
                } else {
                    Kind::End
                };
                return self.emit(kind);
            };
            if length > 0 {
                let delimiter = self.next + length;
                self.next = delimiter;
                let mut kept = self.pending();
                if trims_left(self.text.get(delimiter + 2..).unwrap_or_default()) {
                    kept = kept.trim_end_matches(SPACES);
                }
                self.next = self.start + kept.len();
                let token = self.emit(Kind::Text);
                self.next = delimiter;
                self.start = delimiter;
                if !token.text.is_empty() {
                    return token;
                }
            }
            if let Some(token) = self.left_delimiter() {
                return token;
            }
        }
    }

    /// `{{`, or nothing for a comment.
    fn left_delimiter(&mut self) -> Option<Token<'t>> {
        let begin = self.next;
        self.next += 2;
        let marker = if trims_left(self.rest()) { 2 } else { 0 };
        let after = self.text.get(self.next + marker..).unwrap_or_default();
        if after.starts_with("/*") {
            self.next += marker;
            self.start = self.next;
            return self.comment().err();
        }
        self.start = begin;
        let token = self.emit(Kind::LeftDelimiter);
        self.next += marker;
        self.start = self.next;
        self.inside = true;
        self.parens = 0;
        Some(token)
    }

    fn comment(&mut self) -> Result<(), Token<'t>> {
        self.next += 2;
        let Some(length) = self.rest().find("*/") else {
            return Err(self.error("unclosed comment".to_owned()));
        };
        self.next += length + 2;
        let Some(trims) = self.at_right_delimiter() else {
            return Err(self.error("comment ends before closing delimiter".to_owned()));
        };
        self.pass_right_delimiter(trims);
        self.start = self.next;
        Ok(())
    }

    /// Whether a right delimiter comes next, and if so, whether it trims what follows.
    fn at_right_delimiter(&self) -> Option<bool> {
        let trims = is_space(self.byte(0)) && [self.byte(1), self.byte(2), self.byte(3)] == *b"-}}";
        let ends = trims || (self.byte(0) == b'}' && self.byte(1) == b'}');
        ends.then_some(trims)
    }

    fn pass_right_delimiter(&mut self, trims: bool) {
        self.next += if trims { 4 } else { 2 };
        if trims {
            let rest = self.rest();
            self.next += rest.len() - rest.trim_start_matches(SPACES).len();
        }
    }

    fn right_delimiter(&mut self, trims: bool) -> Token<'t> {
        if trims {
            self.start += 2;
        }
        let at = self.start;
        let text = self.text.get(at..at + 2).unwrap_or_default();
        self.pass_right_delimiter(trims);
        self.start = self.next;
        self.inside = false;
        Token {
            kind: Kind::RightDelimiter,
            at,
            text,
        }
    }

    fn action(&mut self) -> Token<'t> {
        if let Some(trims) = self.at_right_delimiter() {
            if self.parens == 0 {
                return self.right_delimiter(trims);
            }
            return self.error("unclosed left paren".to_owned());
        }
        let Some(c) = self.advance() else {
            return self.error("unclosed action".to_owned());
        };
        match c {
            ' ' | '\t' | '\r' | '\n' => self.space(),
            '=' => self.emit(Kind::Assign),
            ':' if self.accept("=") => self.emit(Kind::Declare),
            ':' => self.error("expected :=".to_owned()),
            '|' => self.emit(Kind::Pipe),
            '"' => self.quoted(b'"', Kind::String, "unterminated quoted string"),
            '\'' => self.quoted(b'\'', Kind::CharConstant, "unterminated character constant"),
            '`' => self.raw_string(),
            '$' => self.field_or_variable(Kind::Variable, Kind::Variable),
            '.' if self.next < self.text.len() && !self.byte(0).is_ascii_digit() => {
                self.field_or_variable(Kind::Field, Kind::Keyword(Keyword::Dot))
            }
            '.' | '+' | '-' | '0'..='9' => self.number(),
            '(' => {
                self.parens += 1;
                self.emit(Kind::LeftParen)
            }
            ')' if self.parens == 0 => self.error("unexpected right paren".to_owned()),
            ')' => {
                self.parens -= 1;
                self.emit(Kind::RightParen)
            }
            c if is_name(c) => self.identifier(),
            c if c.is_ascii() && !c.is_ascii_control() => self.emit(Kind::Char),
            c => self.error(format!("unrecognized character in action: {}", code_point(c))),
        }
    }

    /// A run of spaces, without the one that belongs to ` -}}`.
    fn space(&mut self) -> Token<'t> {
        let mut last = self.start;
        while is_space(self.byte(0)) {
            last = self.next;
            self.next += 1;
        }
        if [self.byte(0), self.byte(1), self.byte(2)] == *b"-}}" {
            self.next = last;
            if last == self.start {
                return self.right_delimiter(true);
            }
        }
        self.emit(Kind::Space)
    }

    fn identifier(&mut self) -> Token<'t> {
        self.accept_name();
        if let Some(c) = self.unterminated() {
            return self.error(format!("bad character {}", code_point(c)));
        }
        let word = self.pending();
        let kind = match Keyword::of(word) {
            Some(keyword) => Kind::Keyword(keyword),
            None if matches!(word, "true" | "false") => Kind::Bool,
            None => Kind::Identifier,
        };
        self.emit(kind)
    }

    fn field_or_variable(&mut self, named: Kind, bare: Kind) -> Token<'t> {
        if self.unterminated().is_none() {
            return self.emit(bare);
        }
        self.accept_name();
        if let Some(c) = self.unterminated() {
            return self.error(format!("bad character {}", code_point(c)));
        }
        self.emit(named)
    }

    /// The next character, when no name may end before it.
    fn unterminated(&self) -> Option<char> {
        let byte = self.byte(0);
        let ends = is_space(byte) || matches!(byte, b'.' | b',' | b'|' | b':' | b')' | b'(');
        if ends || (byte == b'}' && self.byte(1) == b'}') {
            return None;
        }
        self.peek()
    }

    fn quoted(&mut self, end: u8, kind: Kind, unterminated: &str) -> Token<'t> {
        loop {
            let rest = self.text.as_bytes().get(self.next..).unwrap_or_default();
            let special = |byte: &u8| *byte == end || matches!(byte, b'\\' | b'\n');
            let Some(plain) = rest.iter().position(special) else {
                return self.error(unterminated.to_owned());
            };
            self.next += plain;
            match self.advance() {
                Some('\\') if self.advance().is_some_and(|c| c != '\n') => {}
                Some('\\' | '\n') => return self.error(unterminated.to_owned()),
                _ => return self.emit(kind),
            }
        }
    }

    fn raw_string(&mut self) -> Token<'t> {
        let Some(length) = self.rest().find('`') else {
            return self.error("unterminated raw quoted string".to_owned());
        };
        self.next += length + 1;
        self.emit(Kind::RawString)
    }

    fn number(&mut self) -> Token<'t> {
        self.next = self.start;
        let mut fine = self.scan_number();
        let mut kind = Kind::Number;
        if fine && matches!(self.peek(), Some('+' | '-')) {
            fine = self.scan_number() && self.pending().ends_with('i');
            kind = Kind::Complex;
        }
        if fine {
            return self.emit(kind);
        }
        let text = quote(self.pending());
        self.error(format!("bad number syntax: {text}"))
    }

    fn scan_number(&mut self) -> bool {
        self.accept("+-");
        let mut digits = "0123456789_";
        let mut exponent = "eE";
        if self.accept("0") {
            if self.accept("xX") {
                (digits, exponent) = ("0123456789abcdefABCDEF_", "pP");
            } else if self.accept("oO") {
                (digits, exponent) = ("01234567_", "");
            } else if self.accept("bB") {
                (digits, exponent) = ("01_", "");
            }
        }
        self.accept_all(digits);
        if self.accept(".") {
            self.accept_all(digits);
        }
        if self.accept(exponent) {
            self.accept("+-");
            self.accept_all("0123456789_");
        }
        self.accept("i");
        if self.peek().is_some_and(is_name) {
            self.advance();
            return false;
        }
        true
    }
}

//! Splits the source of a template into tokens.

use go::strconv::{quote, unicode_point};

use super::{
    index::short,
    node::first_field,
    token::{Keyword, Token, TokenKind},
};

#[derive(Debug)]
pub(super) struct Lexer<'t> {
    text: &'t str,
    start: usize,
    next: usize,
    parens: usize,
    inside: bool,
    spaced: bool,
    failed: bool,
    pub(super) problem: String,
}

/// Class bit of white space; the others are parts of names and characters that may follow a name.
const SPACE: u8 = 1;
const NAME: u8 = 2;
const END: u8 = 4;

/// Classes of all bytes. Most of the input is ASCII.
const CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let (mut rest, mut byte) = (classes.as_mut_slice(), 0u8);
    while let Some((class, behind)) = rest.split_first_mut() {
        *class = match byte {
            b' ' | b'\t' | b'\r' | b'\n' => SPACE | END,
            b'.' | b',' | b'|' | b':' | b')' | b'(' => END,
            b'_' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => NAME,
            _ => 0,
        };
        rest = behind;
        byte = byte.wrapping_add(1);
    }
    classes
};

fn is(byte: u8, class: u8) -> bool {
    CLASSES
        .get(usize::from(byte))
        .is_some_and(|found| found & class != 0)
}

fn is_name(c: char) -> bool {
    c == '_' || c.is_ascii_alphanumeric() || (!c.is_ascii() && (c.is_alphabetic() || c.is_numeric()))
}

fn run(bytes: &[u8], class: u8) -> usize {
    bytes.iter().take_while(|byte| is(**byte, class)).count()
}

pub(super) fn has_actions(text: &str) -> bool {
    find(text.as_bytes(), *b"{{").is_some()
}

/// Returns the offset of the first two adjacent bytes.
fn find(bytes: &[u8], pair: [u8; 2]) -> Option<usize> {
    let [first, second] = pair;
    let mut from = 0;
    loop {
        let at = from + memchr::memchr(first, bytes.get(from..)?)?;
        if bytes.get(at + 1) == Some(&second) {
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
            spaced: false,
            failed: false,
            problem: String::new(),
        }
    }

    pub(super) fn text(&self, token: Token) -> &'t str {
        token.span().of(self.text)
    }

    pub(super) fn display(&self, token: Token) -> String {
        let mut text = self.text(token);
        if token.kind == TokenKind::Field {
            // Go reads fields one by one.
            text = first_field(text);
        }
        match token.kind {
            TokenKind::End => "EOF".to_owned(),
            TokenKind::Error => self.problem.clone(),
            TokenKind::Keyword(_) => format!("<{text}>"),
            _ if text.len() > 10 => {
                let start: String = text.chars().take(10).collect();
                format!("{}...", quote(&start))
            }
            _ => quote(text),
        }
    }

    /// Returns the next token. After the last one and after an error, this is [`TokenKind::End`].
    pub(super) fn token(&mut self) -> Token {
        if self.inside {
            self.action()
        } else {
            self.text_token()
        }
    }

    fn rest(&self) -> &'t [u8] {
        self.text.as_bytes().get(self.next..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.text.get(self.next..)?.chars().next()
    }

    fn advance(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.next += c.len_utf8();
        Some(c)
    }

    /// Returns the byte `ahead` of the next one; zero after the end.
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
            self.next += run(self.rest(), NAME);
            if self.byte(0).is_ascii() || !self.peek().is_some_and(is_name) {
                return;
            }
            self.advance();
        }
    }

    fn emit(&mut self, kind: TokenKind) -> Token {
        let at = self.start;
        self.start = self.next;
        self.covering(kind, at, self.next)
    }

    fn covering(&self, kind: TokenKind, at: usize, end: usize) -> Token {
        Token {
            kind,
            spaced: self.spaced,
            at: short(at),
            end: short(end),
        }
    }

    #[cold]
    fn error(&mut self, error: String) -> Token {
        self.next = self.text.len();
        self.inside = false;
        self.failed = true;
        self.problem = error;
        self.covering(TokenKind::Error, self.start, self.start)
    }

    fn pending(&self) -> &'t str {
        self.text.get(self.start..self.next).unwrap_or_default()
    }

    /// Returns true if a left trim marker (`-` and white space) is `ahead` bytes after the current position.
    fn trims_left(&self, ahead: usize) -> bool {
        self.byte(ahead) == b'-' && is(self.byte(ahead + 1), SPACE)
    }

    /// Returns the text up to the next action that isn't a comment.
    fn text_token(&mut self) -> Token {
        loop {
            let Some(length) = find(self.rest(), *b"{{") else {
                self.next = self.text.len();
                if self.failed {
                    return self.covering(TokenKind::End, 0, 0);
                }
                let kind = if self.next > self.start {
                    TokenKind::Text
                } else {
                    TokenKind::End
                };
                return self.emit(kind);
            };
            if length > 0 {
                let (begin, delimiter) = (self.next, self.next + length);
                let mut end = delimiter;
                self.next = delimiter;
                if self.trims_left(2) {
                    let text = self.text.as_bytes().get(begin..delimiter).unwrap_or_default();
                    let spaces = text.iter().rev().take_while(|byte| is(**byte, SPACE));
                    end -= spaces.count();
                }
                self.start = delimiter;
                if end > begin {
                    return self.covering(TokenKind::Text, begin, end);
                }
            }
            if let Some(token) = self.left_delimiter() {
                return token;
            }
        }
    }

    /// Returns `{{`; `None` for a comment.
    fn left_delimiter(&mut self) -> Option<Token> {
        let begin = self.next;
        self.next += 2;
        let marker = if self.trims_left(0) { 2 } else { 0 };
        if self.byte(marker) == b'/' && self.byte(marker + 1) == b'*' {
            self.next += marker;
            self.start = self.next;
            return self.comment().err();
        }
        self.start = begin;
        let token = self.emit(TokenKind::LeftDelimiter);
        self.next += marker;
        self.start = self.next;
        self.inside = true;
        self.parens = 0;
        Some(token)
    }

    fn comment(&mut self) -> Result<(), Token> {
        self.next += 2;
        let Some(length) = find(self.rest(), *b"*/") else {
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

    /// Returns `Some` if a right delimiter comes next: true if it trims the white space after it.
    fn at_right_delimiter(&self) -> Option<bool> {
        let first = self.byte(0);
        if first == b'}' {
            return (self.byte(1) == b'}').then_some(false);
        }
        let trims = is(first, SPACE) && self.byte(1) == b'-' && self.byte(2) == b'}' && self.byte(3) == b'}';
        trims.then_some(true)
    }

    fn pass_right_delimiter(&mut self, trims: bool) {
        self.next += if trims { 4 } else { 2 };
        if trims {
            self.next += run(self.rest(), SPACE);
        }
    }

    fn right_delimiter(&mut self, trims: bool) -> Token {
        if trims {
            self.start += 2;
        }
        let at = self.start;
        self.pass_right_delimiter(trims);
        self.start = self.next;
        self.inside = false;
        self.covering(TokenKind::RightDelimiter, at, at + 2)
    }

    fn action(&mut self) -> Token {
        self.spaced = is(self.byte(0), SPACE) && self.pass_space();
        let byte = self.byte(0);
        // Most tokens don't start like a delimiter.
        if (byte == b'}' || is(byte, SPACE))
            && let Some(trims) = self.at_right_delimiter()
        {
            if self.parens == 0 {
                return self.right_delimiter(trims);
            }
            return self.error("unclosed left paren".to_owned());
        }
        if !byte.is_ascii() || self.next >= self.text.len() {
            return self.odd();
        }
        self.next += 1;
        match byte {
            b'=' => self.emit(TokenKind::Assign),
            b':' if self.accept("=") => self.emit(TokenKind::Declare),
            b':' => self.error("expected :=".to_owned()),
            b'|' => self.emit(TokenKind::Pipe),
            b'"' => self.quoted(b'"', TokenKind::String, "unterminated quoted string"),
            b'\'' => self.quoted(b'\'', TokenKind::CharConstant, "unterminated character constant"),
            b'`' => self.raw_string(),
            b'$' => self.variable(),
            b'.' if self.next < self.text.len() && !self.byte(0).is_ascii_digit() => self.fields(),
            b'.' | b'+' | b'-' | b'0'..=b'9' => self.number(),
            b'(' => {
                self.parens += 1;
                self.emit(TokenKind::LeftParen)
            }
            b')' if self.parens == 0 => self.error("unexpected right paren".to_owned()),
            b')' => {
                self.parens -= 1;
                self.emit(TokenKind::RightParen)
            }
            byte if is(byte, NAME) => self.identifier(),
            byte if !byte.is_ascii_control() => self.emit(TokenKind::Char),
            byte => self.error(format!(
                "unrecognized character in action: {}",
                unicode_point(byte.into())
            )),
        }
    }

    /// Returns a token that begins with a non-ASCII character, or none.
    fn odd(&mut self) -> Token {
        match self.advance() {
            None => self.error("unclosed action".to_owned()),
            Some(c) if is_name(c) => self.identifier(),
            Some(c) => self.error(format!("unrecognized character in action: {}", unicode_point(c))),
        }
    }

    /// Skips spaces, but not the one that belongs to ` -}}`; returns true if there were any.
    fn pass_space(&mut self) -> bool {
        let mut length = run(self.rest(), SPACE);
        if length > 0
            && self.byte(length) == b'-'
            && self.byte(length + 1) == b'}'
            && self.byte(length + 2) == b'}'
        {
            length -= 1;
        }
        self.next += length;
        self.start = self.next;
        length > 0
    }

    fn identifier(&mut self) -> Token {
        self.accept_name();
        if let Some(c) = self.unterminated() {
            return self.error(format!("bad character {}", unicode_point(c)));
        }
        let word = self.pending();
        let kind = match Keyword::of(word) {
            Some(keyword) => TokenKind::Keyword(keyword),
            None if matches!(word, "true" | "false") => TokenKind::Bool,
            None => TokenKind::Identifier,
        };
        self.emit(kind)
    }

    fn variable(&mut self) -> Token {
        self.accept_name();
        match self.unterminated() {
            Some(c) => self.error(format!("bad character {}", unicode_point(c))),
            None => self.emit(TokenKind::Variable),
        }
    }

    /// Reads `.a.b` as one token, or a single dot. Errors after the first field belong to the next token.
    fn fields(&mut self) -> Token {
        if self.unterminated().is_none() {
            return self.emit(TokenKind::Keyword(Keyword::Dot));
        }
        self.accept_name();
        if let Some(c) = self.unterminated() {
            return self.error(format!("bad character {}", unicode_point(c)));
        }
        while self.byte(0) == b'.' && !self.byte(1).is_ascii_digit() {
            let end = self.next;
            self.next += 1;
            self.accept_name();
            if self.next == end + 1 || self.unterminated().is_some() {
                self.next = end;
                break;
            }
        }
        self.emit(TokenKind::Field)
    }

    /// Returns the next character, if no name may end before it.
    fn unterminated(&self) -> Option<char> {
        let byte = self.byte(0);
        if is(byte, END) || (byte == b'}' && self.byte(1) == b'}') {
            return None;
        }
        self.peek()
    }

    fn quoted(&mut self, end: u8, kind: TokenKind, unterminated: &str) -> Token {
        loop {
            let Some(plain) = memchr::memchr3(end, b'\\', b'\n', self.rest()) else {
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

    fn raw_string(&mut self) -> Token {
        let Some(length) = memchr::memchr(b'`', self.rest()) else {
            return self.error("unterminated raw quoted string".to_owned());
        };
        self.next += length + 1;
        self.emit(TokenKind::RawString)
    }

    fn number(&mut self) -> Token {
        self.next = self.start;
        let mut fine = self.scan_number();
        let mut kind = TokenKind::Number;
        if fine && matches!(self.peek(), Some('+' | '-')) {
            fine = self.scan_number() && self.pending().ends_with('i');
            kind = TokenKind::Complex;
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

//! Tokens of expressions.

use crate::{CompileError, Value};

#[derive(Debug, Clone)]
pub(super) struct Token {
    pub(super) kind: Kind,
    /// Position in the expression, in characters from 1.
    pub(super) column: usize,
}

#[derive(Debug, Clone)]
pub(super) enum Kind {
    Name(String),
    Literal(Value),
    Sign(&'static str),
    End,
}

/// Signs, longer ones before their prefixes.
const SIGNS: &[&str] = &[
    "&&", "||", "==", "!=", "<=", ">=", "<", ">", "+", "-", "*", "/", "%", "!", "?", ":", ".", ",", "(", ")",
    "[", "]", "{", "}",
];

/// Splits an expression into tokens; the last one is the end.
pub(super) fn tokens(text: &str) -> Result<Vec<Token>, CompileError> {
    let mut lexer = Lexer {
        chars: text.chars().collect(),
        at: 0,
    };
    let mut tokens = Vec::new();
    loop {
        lexer.skip();
        let column = lexer.at + 1;
        let kind = lexer.token()?;
        let end = matches!(kind, Kind::End);
        tokens.push(Token { kind, column });
        if end {
            return Ok(tokens);
        }
    }
}

struct Lexer {
    chars: Vec<char>,
    at: usize,
}

impl Lexer {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    fn error<T>(&self, why: &str) -> Result<T, CompileError> {
        Err(CompileError::Syntax {
            column: self.at + 1,
            why: why.to_owned(),
        })
    }

    fn starts_with(&self, text: &str) -> bool {
        text.chars().enumerate().all(|(at, c)| self.peek(at) == Some(c))
    }

    fn skip(&mut self) {
        loop {
            while self.peek(0).is_some_and(char::is_whitespace) {
                self.at += 1;
            }
            if !self.starts_with("//") {
                return;
            }
            while self.peek(0).is_some_and(|c| c != '\n') {
                self.at += 1;
            }
        }
    }

    fn token(&mut self) -> Result<Kind, CompileError> {
        let Some(first) = self.peek(0) else {
            return Ok(Kind::End);
        };
        if let Some((raw, bytes, length)) = self.string_prefix() {
            self.at += length;
            return self.string(raw, bytes);
        }
        if first.is_ascii_digit() || first == '.' && self.peek(1).is_some_and(|c| c.is_ascii_digit()) {
            return self.number();
        }
        if first.is_ascii_alphabetic() || first == '_' {
            let start = self.at;
            while self
                .peek(0)
                .is_some_and(|c| c.is_ascii_alphanumeric() || c == '_')
            {
                self.at += 1;
            }
            let name: String = self.chars.iter().skip(start).take(self.at - start).collect();
            return Ok(match name.as_str() {
                "true" => Kind::Literal(Value::Bool(true)),
                "false" => Kind::Literal(Value::Bool(false)),
                "null" => Kind::Literal(Value::Null),
                _ => Kind::Name(name),
            });
        }
        match SIGNS.iter().find(|sign| self.starts_with(sign)) {
            Some(sign) => {
                self.at += sign.len();
                Ok(Kind::Sign(sign))
            }
            None => self.error("unexpected character"),
        }
    }

    /// Returns true for a raw string, true for bytes, and the length of the prefix, if a string starts here.
    fn string_prefix(&self) -> Option<(bool, bool, usize)> {
        let (mut raw, mut bytes, mut length) = (false, false, 0);
        while let Some(c) = self.peek(length).filter(|_| length < 3) {
            match c {
                'r' | 'R' if !raw => raw = true,
                'b' | 'B' if !bytes => bytes = true,
                '"' | '\'' => return Some((raw, bytes, length)),
                _ => return None,
            }
            length += 1;
        }
        None
    }

    fn string(&mut self, raw: bool, bytes: bool) -> Result<Kind, CompileError> {
        let quote = self.peek(0).unwrap_or('"');
        let long = self.peek(1) == Some(quote) && self.peek(2) == Some(quote);
        let closing = quote.to_string().repeat(if long { 3 } else { 1 });
        self.at += closing.len();
        let mut octets = Vec::new();
        loop {
            if self.starts_with(&closing) {
                self.at += closing.len();
                break;
            }
            match self.peek(0) {
                None => return self.error("the string does not end"),
                Some('\n') if !long => return self.error("the string does not end in its line"),
                Some('\\') if !raw => {
                    self.at += 1;
                    let (code, octet) = self.escape()?;
                    octets.push((code, bytes && octet));
                }
                Some(c) => {
                    self.at += 1;
                    octets.push((u32::from(c), false));
                }
            }
        }
        if bytes {
            let mut all = Vec::new();
            for (code, octet) in octets {
                match (octet, u8::try_from(code), char::from_u32(code)) {
                    (true, Ok(byte), _) => all.push(byte),
                    (_, _, Some(c)) => all.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
                    _ => return self.error("invalid character"),
                }
            }
            return Ok(Kind::Literal(Value::Bytes(all.into())));
        }
        let text: Option<String> = octets.into_iter().map(|(code, _)| char::from_u32(code)).collect();
        match text {
            Some(text) => Ok(Kind::Literal(text.into())),
            None => self.error("invalid character"),
        }
    }

    /// Reads an escape after its backslash: a character, and true if it is a single byte in bytes.
    fn escape(&mut self) -> Result<(u32, bool), CompileError> {
        let Some(c) = self.peek(0) else {
            return self.error("the string does not end");
        };
        self.at += 1;
        let plain = match c {
            'a' => '\u{7}',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\u{b}',
            '\\' | '\'' | '"' | '`' | '?' => c,
            'x' | 'X' => return Ok((self.digits(2, 16)?, true)),
            'u' => return Ok((self.digits(4, 16)?, false)),
            'U' => return Ok((self.digits(8, 16)?, false)),
            '0'..='3' => {
                self.at -= 1;
                return Ok((self.digits(3, 8)?, true));
            }
            _ => return self.error("unknown escape"),
        };
        Ok((u32::from(plain), false))
    }

    fn digits(&mut self, count: usize, radix: u32) -> Result<u32, CompileError> {
        let mut value = 0_u32;
        for _ in 0..count {
            let Some(digit) = self.peek(0).and_then(|c| c.to_digit(radix)) else {
                return self.error("an escape has too few digits");
            };
            value = value.wrapping_mul(radix).wrapping_add(digit);
            self.at += 1;
        }
        Ok(value)
    }

    fn number(&mut self) -> Result<Kind, CompileError> {
        let start = self.at;
        if self.peek(0) == Some('0') && matches!(self.peek(1), Some('x' | 'X')) {
            self.at += 2;
            let digits = self.take(|c| c.is_ascii_hexdigit());
            return self.integer(&digits, 16);
        }
        let mut text = self.take(|c| c.is_ascii_digit());
        let mut double = false;
        if self.peek(0) == Some('.') && self.peek(1).is_some_and(|c| c.is_ascii_digit()) {
            double = true;
            self.at += 1;
            text = format!("{text}.{}", self.take(|c| c.is_ascii_digit()));
        }
        let signed = usize::from(matches!(self.peek(1), Some('+' | '-')));
        if matches!(self.peek(0), Some('e' | 'E'))
            && self.peek(1 + signed).is_some_and(|c| c.is_ascii_digit())
        {
            double = true;
            let sign = self
                .peek(1)
                .filter(|_| signed == 1)
                .map(String::from)
                .unwrap_or_default();
            self.at += 1 + signed;
            text = format!("{text}e{sign}{}", self.take(|c| c.is_ascii_digit()));
        }
        if !double {
            return self.integer(&text, 10);
        }
        match text.parse() {
            Ok(value) => Ok(Kind::Literal(Value::Double(value))),
            Err(_) => {
                self.at = start;
                self.error("invalid number")
            }
        }
    }

    fn take(&mut self, wanted: impl Fn(char) -> bool) -> String {
        let start = self.at;
        while self.peek(0).is_some_and(&wanted) {
            self.at += 1;
        }
        self.chars.iter().skip(start).take(self.at - start).collect()
    }

    fn integer(&mut self, digits: &str, radix: u32) -> Result<Kind, CompileError> {
        if matches!(self.peek(0), Some('u' | 'U')) {
            self.at += 1;
            return match u64::from_str_radix(digits, radix) {
                Ok(value) => Ok(Kind::Literal(Value::Uint(value))),
                Err(_) => self.error("invalid number"),
            };
        }
        match i64::from_str_radix(digits, radix) {
            Ok(value) => Ok(Kind::Literal(Value::Int(value))),
            Err(_) => self.error("invalid number"),
        }
    }
}

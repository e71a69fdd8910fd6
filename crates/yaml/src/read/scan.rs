//! Splits documents into tokens, as the scanners of go-yaml and PyYAML do. They differ from each other, and from libyaml:
//! in escapes, tabs, tags, and the characters that end a plain scalar in brackets.

mod block;
mod cursor;
mod fetch;
mod plain;
mod properties;
mod quoted;
#[cfg(test)]
mod tests;
pub(super) mod token;

use std::collections::VecDeque;

use libyaml_safer::Mark;

use crate::Error;
use cursor::Cursor;
use token::{Kind, Token, failure};

/// The implementation whose syntax counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flavour {
    /// go-yaml, version 2.
    Go2,
    /// go-yaml, version 3.
    Go3,
    /// PyYAML, without libyaml.
    Python,
}

impl Flavour {
    pub(super) fn accepts_version(self, major: i32, minor: i32) -> bool {
        major == 1
            && match self {
                Self::Go2 => minor == 1,
                Self::Go3 => (1..=2).contains(&minor),
                Self::Python => true,
            }
    }
}

/// A token that becomes a key if a `:` follows.
#[derive(Default, Clone, Copy)]
struct SimpleKey {
    possible: bool,
    /// True if nothing else can be at this indentation.
    required: bool,
    /// True if the token is not taken before its `:` may have come.
    awaited: bool,
    /// Number of the token since the start of the stream.
    number: usize,
    /// Number of characters before it.
    index: u64,
    mark: Mark,
}

/// Longest distance in characters of a key from its `:`.
const KEY_LENGTH: u64 = 1024;

pub(super) struct Scanner<'t> {
    cursor: Cursor<'t>,
    flavour: Flavour,
    flow_level: usize,
    tokens: VecDeque<Token>,
    /// Number of tokens that were taken.
    taken: usize,
    /// True if the first token can be taken: it is not a key of which the `:` may follow.
    ready: bool,
    indents: Vec<i64>,
    /// Column of the innermost block collection; -1 outside of all.
    indent: i64,
    key_allowed: bool,
    /// One for each level of brackets, and one outside of them.
    keys: Vec<SimpleKey>,
    started: bool,
}

impl<'t> Scanner<'t> {
    pub(super) fn new(text: &'t str, flavour: Flavour) -> Self {
        Self {
            cursor: Cursor::new(text),
            flavour,
            flow_level: 0,
            tokens: VecDeque::with_capacity(16),
            taken: 0,
            ready: false,
            indents: Vec::with_capacity(16),
            indent: -1,
            key_allowed: true,
            keys: vec![SimpleKey::default()],
            started: false,
        }
    }

    pub(super) fn peek(&mut self) -> Result<&Token, Error> {
        self.fetch()?;
        let end = self.cursor.mark();
        self.tokens.front().ok_or_else(|| ended(end))
    }

    pub(super) fn take(&mut self) -> Result<Token, Error> {
        self.fetch()?;
        self.ready = false;
        self.taken += 1;
        self.tokens.pop_front().ok_or_else(|| ended(self.cursor.mark()))
    }

    fn fetch(&mut self) -> Result<(), Error> {
        // quirk: go-yaml 3 reads two more tokens, and so finds errors behind the end of a document.
        let ahead = if self.flavour == Flavour::Go3 { 2 } else { 0 };
        while !self.ready {
            self.forget_stale_keys()?;
            let number = self.taken;
            let waits_for = |key: &SimpleKey| key.possible && key.awaited && key.number == number;
            let waits = self.keys.iter().any(waits_for);
            self.ready = self.tokens.len() > ahead && !waits;
            if !self.ready {
                self.fetch_next()?;
            }
        }
        Ok(())
    }

    fn in_flow(&self) -> bool {
        self.flow_level > 0
    }

    fn is_python(&self) -> bool {
        self.flavour == Flavour::Python
    }

    fn push(&mut self, kind: Kind, start: Mark, end: Mark) {
        self.tokens.push_back(Token { kind, start, end });
    }

    /// Adds a token of some characters that are not read yet.
    fn push_next(&mut self, kind: Kind, length: usize) {
        let start = self.cursor.mark();
        self.cursor.skip(length);
        self.push(kind, start, self.cursor.mark());
    }

    /// Keys end on their line, and are not longer than [`KEY_LENGTH`].
    fn forget_stale_keys(&mut self) -> Result<(), Error> {
        for key in &mut self.keys {
            let stale = key.mark.line < self.cursor.line || key.index + KEY_LENGTH < self.cursor.index;
            if key.possible && stale {
                key.possible = false;
                if key.required {
                    return Err(missing_colon(key.mark, self.cursor.mark()));
                }
            }
        }
        Ok(())
    }

    /// Notes that the next token may be a key.
    fn save_key(&mut self) -> Result<(), Error> {
        if !self.key_allowed {
            return Ok(());
        }
        self.drop_key()?;
        let key = SimpleKey {
            possible: true,
            awaited: true,
            required: !self.in_flow() && self.indent == column(self.cursor.mark()),
            number: self.taken + self.tokens.len(),
            index: self.cursor.index,
            mark: self.cursor.mark(),
        };
        if let Some(last) = self.keys.last_mut() {
            *last = key;
        }
        Ok(())
    }

    fn drop_key(&mut self) -> Result<(), Error> {
        let now = self.cursor.mark();
        match self.keys.last_mut() {
            Some(key) if key.possible && key.required => Err(missing_colon(key.mark, now)),
            Some(key) => {
                key.possible = false;
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Starts a block collection if its column is further right than the one around it. The token goes before the one with
    /// the given number, by default to the end.
    fn roll(&mut self, mark: Mark, number: Option<usize>, kind: Kind) {
        if self.in_flow() || self.indent >= column(mark) {
            return;
        }
        self.indents.push(self.indent);
        self.indent = column(mark);
        let token = Token {
            kind,
            start: mark,
            end: mark,
        };
        self.insert(number, token);
    }

    fn insert(&mut self, number: Option<usize>, token: Token) {
        let last = self.tokens.len();
        // A token that was taken too early has nothing before it any more.
        let at = number.and_then(|number| number.checked_sub(self.taken));
        self.tokens.insert(at.unwrap_or(last).min(last), token);
    }

    /// Ends the block collections that are further right than the column.
    fn unroll(&mut self, column: i64) {
        if self.in_flow() {
            return;
        }
        while self.indent > column {
            let mark = self.cursor.mark();
            self.push(Kind::BlockEnd, mark, mark);
            self.indent = self.indents.pop().unwrap_or(-1);
        }
    }
}

fn column(mark: Mark) -> i64 {
    i64::try_from(mark.column).unwrap_or(i64::MAX)
}

fn missing_colon(key: Mark, at: Mark) -> Error {
    failure(
        "could not find expected ':'",
        at,
        ("while scanning a simple key", key),
    )
}

fn ended(at: Mark) -> Error {
    failure("the stream has ended", at, None)
}

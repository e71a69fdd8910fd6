//! Finds the next token by its first characters.

use super::{
    Scanner, SimpleKey, column,
    cursor::{is_blank, is_blankz, is_break},
    token::{Kind, Token, failure},
};
use crate::Error;

const INDICATORS: &str = "-?:,[]{}#&*!|>'\"%@`";

impl Scanner<'_> {
    pub(super) fn fetch_next(&mut self) -> Result<(), Error> {
        if !self.started {
            self.started = true;
            self.push_next(Kind::StreamStart, 0);
            return Ok(());
        }
        self.skip_to_token();
        self.forget_stale_keys()?;
        self.unroll(column(self.cursor.mark()));
        let (c, next) = (self.cursor.peek(), self.cursor.peek_at(1));
        if c == '\0' {
            return self.stream_end();
        }
        if c == '%' && self.cursor.column == 0 {
            self.end_document()?;
            return self.directive();
        }
        if self.cursor.is_document_indicator() {
            self.end_document()?;
            let start = c == '-';
            self.push_next(
                if start {
                    Kind::DocumentStart
                } else {
                    Kind::DocumentEnd
                },
                3,
            );
            return Ok(());
        }
        let flow = self.in_flow();
        match c {
            '[' => self.flow_start(Kind::FlowSequenceStart),
            '{' => self.flow_start(Kind::FlowMappingStart),
            ']' => self.flow_end(Kind::FlowSequenceEnd),
            '}' => self.flow_end(Kind::FlowMappingEnd),
            ',' => self.flow_entry(),
            '-' if is_blankz(next) => self.block_entry(),
            '?' if flow || is_blankz(next) => self.key(),
            ':' if flow || is_blankz(next) => self.value(),
            '*' | '&' => {
                self.start_of_node()?;
                self.anchor(c == '*')
            }
            '!' => {
                self.start_of_node()?;
                self.tag()
            }
            '|' | '>' if !flow => {
                self.drop_key()?;
                self.key_allowed = true;
                self.block_scalar(c == '|')
            }
            '\'' | '"' => {
                self.start_of_node()?;
                self.quoted(c)
            }
            _ if starts_plain(c, next, flow) => {
                self.start_of_node()?;
                self.plain()
            }
            _ => {
                let mark = self.cursor.mark();
                let context = ("while scanning for the next token", mark);
                Err(failure(
                    "found character that cannot start any token",
                    mark,
                    context,
                ))
            }
        }
    }

    /// Skips blanks, comments and line breaks.
    fn skip_to_token(&mut self) {
        loop {
            if self.cursor.index == 0 && self.cursor.peek() == '\u{feff}' {
                self.cursor.bump();
            }
            let tabs = !self.is_python() && (self.in_flow() || !self.key_allowed);
            while self.cursor.peek() == ' ' || tabs && self.cursor.peek() == '\t' {
                self.cursor.bump();
            }
            if self.cursor.peek() == '#' {
                self.cursor.skip_line();
            }
            if !is_break(self.cursor.peek()) {
                return;
            }
            self.cursor.skip_break();
            if !self.in_flow() {
                self.key_allowed = true;
            }
        }
    }

    fn stream_end(&mut self) -> Result<(), Error> {
        self.cursor.end();
        self.end_document()?;
        self.push_next(Kind::StreamEnd, 0);
        Ok(())
    }

    fn end_document(&mut self) -> Result<(), Error> {
        self.unroll(-1);
        self.drop_key()?;
        self.key_allowed = false;
        Ok(())
    }

    /// Notes that a node starts here, which may be a key.
    fn start_of_node(&mut self) -> Result<(), Error> {
        self.save_key()?;
        self.key_allowed = false;
        Ok(())
    }

    fn flow_start(&mut self, kind: Kind) -> Result<(), Error> {
        self.save_key()?;
        self.keys.push(SimpleKey {
            number: self.taken + self.tokens.len(),
            ..SimpleKey::default()
        });
        self.flow_level += 1;
        self.key_allowed = true;
        self.push_next(kind, 1);
        Ok(())
    }

    fn flow_end(&mut self, kind: Kind) -> Result<(), Error> {
        self.drop_key()?;
        if self.in_flow() {
            self.flow_level -= 1;
            let inner = self.keys.pop().unwrap_or_default();
            // quirk: go-yaml doesn't wait for the `:` of empty brackets, so that they are a key only if it has read on.
            let is_go = !self.is_python();
            if let Some(outer) = self
                .keys
                .iter_mut()
                .find(|key| is_go && key.number == inner.number)
            {
                outer.awaited = false;
            }
        }
        self.key_allowed = false;
        self.push_next(kind, 1);
        Ok(())
    }

    fn flow_entry(&mut self) -> Result<(), Error> {
        self.drop_key()?;
        self.key_allowed = true;
        self.push_next(Kind::FlowEntry, 1);
        Ok(())
    }

    fn block_entry(&mut self) -> Result<(), Error> {
        // In brackets, this is left to the parser, which refuses it.
        self.start_of_entry(
            Kind::BlockSequenceStart,
            "block sequence entries are not allowed in this context",
        )?;
        self.drop_key()?;
        self.key_allowed = true;
        self.push_next(Kind::BlockEntry, 1);
        Ok(())
    }

    fn key(&mut self) -> Result<(), Error> {
        self.start_of_entry(
            Kind::BlockMappingStart,
            "mapping keys are not allowed in this context",
        )?;
        self.drop_key()?;
        self.key_allowed = !self.in_flow();
        self.push_next(Kind::Key, 1);
        Ok(())
    }

    fn value(&mut self) -> Result<(), Error> {
        let key = self.keys.last().copied().filter(|key| key.possible);
        if let Some(key) = key {
            let token = Token {
                kind: Kind::Key,
                start: key.mark,
                end: key.mark,
            };
            self.insert(Some(key.number), token);
            self.roll(key.mark, Some(key.number), Kind::BlockMappingStart);
            if let Some(last) = self.keys.last_mut() {
                last.possible = false;
            }
            self.key_allowed = false;
        } else {
            self.start_of_entry(
                Kind::BlockMappingStart,
                "mapping values are not allowed in this context",
            )?;
            self.key_allowed = !self.in_flow();
        }
        self.push_next(Kind::Value, 1);
        Ok(())
    }

    /// Starts the block collection of an entry, outside of brackets.
    fn start_of_entry(&mut self, collection: Kind, problem: &str) -> Result<(), Error> {
        if self.in_flow() {
            return Ok(());
        }
        let mark = self.cursor.mark();
        if !self.key_allowed {
            return Err(failure(problem, mark, None));
        }
        self.roll(mark, None, collection);
        Ok(())
    }
}

fn starts_plain(c: char, next: char, flow: bool) -> bool {
    let indicator = is_blankz(c) || INDICATORS.contains(c);
    !indicator || c == '-' && !is_blank(next) || !flow && matches!(c, '?' | ':') && !is_blankz(next)
}

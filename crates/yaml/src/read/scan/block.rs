//! Literal and folded scalars.

use libyaml_safer::{Mark, ScalarStyle};

use super::{
    Scanner, column,
    cursor::{is_blank, is_break, is_breakz},
    token::{Kind, failure},
};
use crate::Error;

const CONTEXT: &str = "while scanning a block scalar";

/// The line breaks at the end that count.
#[derive(Clone, Copy, PartialEq)]
enum Chomping {
    Strip,
    Clip,
    Keep,
}

impl Scanner<'_> {
    pub(super) fn block_scalar(&mut self, literal: bool) -> Result<(), Error> {
        let start = self.cursor.mark();
        self.cursor.bump();
        let (chomping, increment) = self.block_header(start)?;
        let mut indent = increment.map_or(0, |increment| self.indent.max(0) + increment);
        let mut end = self.cursor.mark();
        let mut value = String::new();
        let mut first_break = String::new();
        let mut breaks = String::new();
        self.block_breaks(&mut indent, &mut breaks, start, &mut end)?;
        let mut after_blank = false;
        while column(self.cursor.mark()) == indent && self.cursor.peek() != '\0' {
            let is_indented = is_blank(self.cursor.peek());
            if !literal && first_break.starts_with('\n') && !after_blank && !is_indented {
                if breaks.is_empty() {
                    value.push(' ');
                }
            } else {
                value.push_str(&first_break);
            }
            first_break.clear();
            value.push_str(&breaks);
            breaks.clear();
            after_blank = is_indented;
            self.cursor.read_line(&mut value);
            self.cursor.read_break(&mut first_break);
            self.block_breaks(&mut indent, &mut breaks, start, &mut end)?;
        }
        if chomping != Chomping::Strip {
            value.push_str(&first_break);
        }
        if chomping == Chomping::Keep {
            value.push_str(&breaks);
        }
        let style = if literal {
            ScalarStyle::Literal
        } else {
            ScalarStyle::Folded
        };
        self.push(Kind::Scalar { value, style }, start, end);
        Ok(())
    }

    /// Reads the indicators and the rest of their line.
    fn block_header(&mut self, start: Mark) -> Result<(Chomping, Option<i64>), Error> {
        let mut chomping = self.chomping();
        let increment = self.increment(start)?;
        if increment.is_some() && chomping.is_none() {
            chomping = self.chomping();
        }
        let python = self.is_python();
        let indicators = self.cursor.mark();
        while self.cursor.peek() == ' ' || !python && self.cursor.peek() == '\t' {
            self.cursor.bump();
        }
        if self.cursor.peek() == '#' && (!python || self.cursor.mark() != indicators) {
            self.cursor.skip_line();
        }
        if !is_breakz(self.cursor.peek()) {
            return Err(failure(
                "did not find expected comment or line break",
                self.cursor.mark(),
                (CONTEXT, start),
            ));
        }
        self.cursor.skip_break();
        Ok((chomping.unwrap_or(Chomping::Clip), increment))
    }

    fn chomping(&mut self) -> Option<Chomping> {
        let chomping = match self.cursor.peek() {
            '+' => Chomping::Keep,
            '-' => Chomping::Strip,
            _ => return None,
        };
        self.cursor.bump();
        Some(chomping)
    }

    fn increment(&mut self, start: Mark) -> Result<Option<i64>, Error> {
        let digit = self.cursor.peek().to_digit(10);
        if digit == Some(0) {
            return Err(failure(
                "found an indentation indicator equal to 0",
                self.cursor.mark(),
                (CONTEXT, start),
            ));
        }
        if digit.is_some() {
            self.cursor.bump();
        }
        Ok(digit.map(i64::from))
    }

    /// Reads empty lines and the indentation of the next line. An indentation of 0 is not known yet, and becomes known.
    fn block_breaks(
        &mut self,
        indent: &mut i64,
        breaks: &mut String,
        start: Mark,
        end: &mut Mark,
    ) -> Result<(), Error> {
        *end = self.cursor.mark();
        let mut widest = 0;
        loop {
            let mut at = column(self.cursor.mark());
            while (*indent == 0 || at < *indent) && self.cursor.peek() == ' ' {
                self.cursor.bump();
                at += 1;
            }
            widest = at.max(widest);
            if (*indent == 0 || at < *indent) && self.cursor.peek() == '\t' && !self.is_python() {
                return Err(failure(
                    "found a tab character where an indentation space is expected",
                    self.cursor.mark(),
                    (CONTEXT, start),
                ));
            }
            if !is_break(self.cursor.peek()) {
                break;
            }
            self.cursor.read_break(breaks);
            *end = self.cursor.mark();
        }
        if *indent == 0 {
            *indent = widest.max(self.indent + 1).max(1);
        }
        Ok(())
    }
}

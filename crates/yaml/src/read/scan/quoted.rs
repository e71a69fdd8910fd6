//! Scalars in quotation marks.

use libyaml_safer::{Mark, ScalarStyle};

use super::{
    Flavour, Scanner,
    cursor::{is_blank, is_blankz, is_break},
    plain::Gap,
    token::{Kind, failure},
};
use crate::Error;

impl Scanner<'_> {
    pub(super) fn quoted(&mut self, mark: char) -> Result<(), Error> {
        let start = self.cursor.mark();
        self.cursor.bump();
        let mut value = String::new();
        loop {
            let problem = if self.cursor.is_document_indicator() {
                Some("found unexpected document indicator")
            } else if self.cursor.peek() == '\0' {
                Some("found unexpected end of stream")
            } else {
                None
            };
            if let Some(problem) = problem {
                let context = ("while scanning a quoted scalar", start);
                return Err(failure(problem, self.cursor.mark(), context));
            }
            let mut gap = self.word(mark, &mut value, start)?;
            if self.cursor.peek() == mark {
                break;
            }
            gap.read(self, is_blank, |_| Ok(()))?;
            gap.fold(&mut value);
        }
        self.cursor.bump();
        let style = if mark == '"' {
            ScalarStyle::DoubleQuoted
        } else {
            ScalarStyle::SingleQuoted
        };
        self.push(Kind::Scalar { value, style }, start, self.cursor.mark());
        Ok(())
    }

    /// Reads up to the next blank, line break or the closing mark, and returns the start of the gap that follows.
    fn word(&mut self, mark: char, value: &mut String, start: Mark) -> Result<Gap, Error> {
        loop {
            let c = self.cursor.peek();
            if is_blankz(c) {
                return Ok(Gap::default());
            }
            if c == mark {
                if mark == '"' || self.cursor.peek_at(1) != mark {
                    return Ok(Gap::default());
                }
                self.cursor.skip(2);
                value.push(mark);
            } else if mark == '"' && c == '\\' {
                if is_break(self.cursor.peek_at(1)) {
                    self.cursor.bump();
                    self.cursor.skip_break();
                    return Ok(Gap::broken());
                }
                self.escape(value, start)?;
            } else {
                value.push(self.cursor.bump());
            }
        }
    }

    fn escape(&mut self, value: &mut String, start: Mark) -> Result<(), Error> {
        let context = ("while parsing a quoted scalar", start);
        let letter = self.cursor.peek_at(1);
        let length = match letter {
            'x' => 2,
            'u' => 4,
            'U' => 8,
            _ => {
                let Some(c) = self.escaped(letter) else {
                    let at = self.cursor.mark();
                    return Err(failure("found unknown escape character", at, context));
                };
                value.push(c);
                self.cursor.skip(2);
                return Ok(());
            }
        };
        self.cursor.skip(2);
        let at = self.cursor.mark();
        let mut code = 0_u32;
        for n in 0..length {
            let Some(digit) = self.cursor.peek_at(n).to_digit(16) else {
                return Err(failure("did not find expected hexdecimal number", at, context));
            };
            code = (code << 4) | digit;
        }
        let Some(c) = char::from_u32(code) else {
            return Err(failure(
                "found invalid Unicode character escape code",
                at,
                context,
            ));
        };
        value.push(c);
        self.cursor.skip(length);
        Ok(())
    }

    /// Returns the character for one letter behind a backslash.
    fn escaped(&self, letter: char) -> Option<char> {
        Some(match letter {
            '0' => '\0',
            'a' => '\x07',
            'b' => '\x08',
            't' | '\t' => '\t',
            'n' => '\n',
            'v' => '\x0b',
            'f' => '\x0c',
            'r' => '\r',
            'e' => '\x1b',
            ' ' | '"' | '\\' => letter,
            '\'' if !self.is_python() => letter,
            // go-yaml refuses it, but it is valid JSON.
            '/' if self.flavour != Flavour::Go2 => letter,
            'N' => '\u{85}',
            '_' => '\u{a0}',
            'L' => '\u{2028}',
            'P' => '\u{2029}',
            _ => return None,
        })
    }
}

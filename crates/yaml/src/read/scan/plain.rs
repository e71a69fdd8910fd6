//! Plain scalars.

use libyaml_safer::ScalarStyle;

use super::{
    Flavour, Scanner, column,
    cursor::{is_blank, is_blankz, is_break},
    token::{Kind, failure},
};
use crate::Error;

/// Blanks and line breaks between two words.
#[derive(Default)]
pub(super) struct Gap {
    blanks: String,
    /// True behind a line break.
    broken: bool,
    first: String,
    others: String,
}

impl Gap {
    /// Returns a gap that starts behind an escaped line break.
    pub(super) fn broken() -> Self {
        Self {
            broken: true,
            ..Self::default()
        }
    }

    /// Reads blanks and line breaks; `check` is called behind line breaks, before each blank.
    pub(super) fn read(
        &mut self,
        scanner: &mut Scanner<'_>,
        blank: fn(char) -> bool,
        check: impl Fn(&Scanner<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        loop {
            let c = scanner.cursor.peek();
            if blank(c) {
                if self.broken {
                    check(scanner)?;
                    scanner.cursor.bump();
                } else {
                    self.blanks.push(scanner.cursor.bump());
                }
            } else if is_break(c) {
                let breaks = if self.broken {
                    &mut self.others
                } else {
                    &mut self.first
                };
                scanner.cursor.read_break(breaks);
                self.broken = true;
            } else {
                return Ok(());
            }
        }
    }

    /// Appends the folded gap: a single line break becomes a space.
    pub(super) fn fold(self, out: &mut String) {
        if !self.broken {
            out.push_str(&self.blanks);
        } else if self.first.starts_with('\n') {
            out.push_str(if self.others.is_empty() { " " } else { &self.others });
        } else {
            out.push_str(&self.first);
            out.push_str(&self.others);
        }
    }
}

impl Scanner<'_> {
    pub(super) fn plain(&mut self) -> Result<(), Error> {
        let start = self.cursor.mark();
        let mut end = start;
        let mut value = String::new();
        let mut gap = Gap::default();
        let indent = self.indent + 1;
        let blank = if self.is_python() { |c| c == ' ' } else { is_blank };
        while !self.cursor.is_document_indicator() && self.cursor.peek() != '#' {
            let length = value.len();
            while !is_blankz(self.cursor.peek()) && !self.ends_plain() {
                if length == value.len() {
                    std::mem::take(&mut gap).fold(&mut value);
                }
                value.push(self.cursor.bump());
                end = self.cursor.mark();
            }
            let c = self.cursor.peek();
            if !(blank(c) || is_break(c)) {
                break;
            }
            gap.read(self, blank, |scanner| {
                let at = scanner.cursor.mark();
                if scanner.cursor.peek() == '\t' && column(at) < indent {
                    let context = ("while scanning a plain scalar", start);
                    return Err(failure(
                        "found a tab character that violates indentation",
                        at,
                        context,
                    ));
                }
                Ok(())
            })?;
            if !self.in_flow() && column(self.cursor.mark()) < indent {
                break;
            }
        }
        if gap.broken {
            self.key_allowed = true;
        }
        let style = ScalarStyle::Plain;
        self.push(Kind::Scalar { value, style }, start, end);
        Ok(())
    }

    fn ends_plain(&self) -> bool {
        let c = self.cursor.peek();
        if c == ':' {
            let next = self.cursor.peek_at(1);
            let python = self.flavour == Flavour::Python && self.in_flow();
            return is_blankz(next) || python && matches!(next, ',' | '[' | ']' | '{' | '}');
        }
        self.in_flow() && matches!(c, ',' | '?' | '[' | ']' | '{' | '}')
    }
}

//! The characters of a document, with the position of the next one.

use libyaml_safer::Mark;

/// Reads the characters of a document. The character `\0` stands for the end, since documents can't contain it.
pub(super) struct Cursor<'t> {
    text: &'t str,
    at: usize,
    /// Number of characters so far.
    pub(super) index: u64,
    pub(super) line: u64,
    pub(super) column: u64,
}

impl<'t> Cursor<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self {
            text,
            at: 0,
            index: 0,
            line: 0,
            column: 0,
        }
    }

    /// Returns the position; its index counts bytes.
    pub(super) fn mark(&self) -> Mark {
        let mut mark = Mark::default();
        mark.index = self.at as u64;
        mark.line = self.line;
        mark.column = self.column;
        mark
    }

    pub(super) fn peek(&self) -> char {
        match self.text.as_bytes().get(self.at) {
            None => '\0',
            Some(byte) if byte.is_ascii() => char::from(*byte),
            Some(_) => self.rest().chars().next().unwrap_or('\0'),
        }
    }

    /// Returns the character `n` characters after the next one.
    pub(super) fn peek_at(&self, n: usize) -> char {
        self.rest().chars().nth(n).unwrap_or('\0')
    }

    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Skips a character that is not a line break, and returns it.
    pub(super) fn bump(&mut self) -> char {
        let c = self.peek();
        if c != '\0' {
            self.at += c.len_utf8();
            self.index += 1;
            self.column += 1;
        }
        c
    }

    pub(super) fn skip(&mut self, n: usize) {
        for _ in 0..n {
            self.bump();
        }
    }

    /// Appends all characters up to the end of the line.
    pub(super) fn read_line(&mut self, out: &mut String) {
        while !is_breakz(self.peek()) {
            out.push(self.bump());
        }
    }

    pub(super) fn skip_line(&mut self) {
        while !is_breakz(self.peek()) {
            self.bump();
        }
    }

    /// Appends the line break that is next, if any, in its normal form.
    pub(super) fn read_break(&mut self, out: &mut String) {
        let c = self.peek();
        if !is_break(c) {
            return;
        }
        // Unicode's own breaks stay as they are.
        out.push(if c.len_utf8() == 3 { c } else { '\n' });
        self.skip_break();
    }

    pub(super) fn skip_break(&mut self) {
        let c = self.peek();
        if !is_break(c) {
            return;
        }
        self.bump();
        if c == '\r' && self.peek() == '\n' {
            self.bump();
        }
        self.column = 0;
        self.line += 1;
    }

    /// Returns true at `---` or `...` at the start of a line.
    pub(super) fn is_document_indicator(&self) -> bool {
        let rest = self.rest();
        self.column == 0 && (rest.starts_with("---") || rest.starts_with("...")) && is_blankz(self.peek_at(3))
    }

    /// Moves the position to the start of the line after the last one.
    pub(super) fn end(&mut self) {
        if self.column != 0 {
            self.column = 0;
            self.line += 1;
        }
    }
}

pub(super) fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t')
}

pub(super) fn is_break(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// Returns true for line breaks and the end.
pub(super) fn is_breakz(c: char) -> bool {
    c == '\0' || is_break(c)
}

/// Returns true for blanks, line breaks and the end.
pub(super) fn is_blankz(c: char) -> bool {
    is_blank(c) || is_breakz(c)
}

/// Returns true for the characters of names.
pub(super) fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_')
}

//! Writes strings in a style: plain, quoted, or as a block.

use std::fmt::Write as _;

use super::{
    analysis::is_break,
    dialect::{INDENT, go_printable},
    emit::Emitter,
    style::{Context, Style},
};

impl Emitter<'_> {
    pub(super) fn text(&mut self, text: &str, style: Style, context: Context) {
        match style {
            Style::Plain => {
                self.folded(text, context, false);
                self.open_ended = context.root && self.dialect.python;
            }
            Style::Single => {
                self.put("'");
                self.folded(text, context, true);
                self.put("'");
            }
            Style::Double if self.dialect.python => self.double_quoted_python(text, context),
            Style::Double => self.double_quoted(text, context),
            Style::Literal => self.literal(text, context.indent),
        }
    }

    /// Writes a plain scalar, or the inside of single quotes: a single blank beyond the width becomes a line break, and a
    /// line break an empty line.
    fn folded(&mut self, text: &str, context: Context, quoted: bool) {
        // Most strings are short and of letters.
        let fits = context.key || self.column + text.len() <= self.dialect.width;
        if fits
            && text
                .bytes()
                .all(|byte| matches!(byte, b' '..=b'~') && byte != b'\'')
        {
            self.put(text);
            return;
        }
        let mut chars = text.chars().peekable();
        let mut before = None;
        while let Some(c) = chars.next() {
            let after_break = before.is_some_and(is_break);
            if c == ' ' {
                let single = before.is_some_and(|c| c != ' ') && chars.peek().is_some_and(|c| *c != ' ');
                if single && !context.key && self.column > self.dialect.width {
                    self.line_at(context.indent);
                } else {
                    self.push(c);
                }
            } else if is_break(c) {
                if !after_break && c == '\n' {
                    self.newline();
                }
                self.push_break(c);
            } else {
                if after_break {
                    self.line_at(context.indent);
                }
                if quoted && c == '\'' {
                    self.push(c);
                }
                self.push(c);
            }
            before = Some(c);
        }
        // PyYAML starts the line of the closing quote as any other.
        if quoted && self.dialect.python && before.is_some_and(is_break) {
            self.line_at(context.indent);
        }
    }

    fn double_quoted(&mut self, text: &str, context: Context) {
        self.put("\"");
        // quirk: go-yaml escapes all of a string that starts with a byte order mark.
        let marked = text.starts_with('\u{feff}');
        let mut chars = text.chars().peekable();
        let mut before = None;
        while let Some(c) = chars.next() {
            let foldable = before.is_some_and(|c| c != ' ') && chars.peek().is_some();
            if marked {
                self.put(&escaped(c));
            } else if c == ' ' && foldable && !context.key && self.column > self.dialect.width {
                self.line_at(context.indent);
                if chars.peek() == Some(&' ') {
                    self.push('\\');
                }
            } else if go_printable(c) && !is_break(c) && c != '"' && c != '\\' {
                self.push(c);
            } else {
                self.put(&escaped(c));
            }
            before = Some(c);
        }
        self.put("\"");
    }

    /// Folds double quotes as PyYAML does: with a backslash at the end of the line, after escapes too.
    fn double_quoted_python(&mut self, text: &str, context: Context) {
        self.put("\"");
        let chars: Vec<char> = text.chars().collect();
        // A line ends before the characters since the last escape, which are collected here.
        let mut waiting = String::new();
        let mut waiting_chars = 0;
        for (index, c) in chars.iter().copied().enumerate() {
            let plain = matches!(c, ' '..='~') && c != '"' && c != '\\';
            if !plain {
                self.put(&std::mem::take(&mut waiting));
                waiting_chars = 0;
                self.put(&escaped(c));
            }
            let inner = index > 0 && index + 1 < chars.len();
            // A line may end before a blank, and after an escape.
            let (end, stop) = if plain {
                (self.column + waiting_chars, c == ' ' || waiting.is_empty())
            } else {
                (self.column.saturating_sub(1), true)
            };
            if inner && stop && !context.key && end > self.dialect.width {
                self.put(&std::mem::take(&mut waiting));
                waiting_chars = 0;
                self.put("\\");
                self.line_at(context.indent);
                let next = if plain {
                    Some(c)
                } else {
                    chars.get(index + 1).copied()
                };
                if next == Some(' ') {
                    self.put("\\");
                }
            }
            if plain {
                waiting.push(c);
                waiting_chars += 1;
            }
        }
        self.put(&waiting);
        self.put("\"");
    }

    fn literal(&mut self, text: &str, indent: usize) {
        self.put("|");
        if text.starts_with([' ', '\n', '\u{85}', '\u{2028}', '\u{2029}']) {
            self.put(&INDENT.to_string());
        }
        let mut from_end = text.chars().rev();
        let keep = match (from_end.next(), from_end.next()) {
            (Some(last), _) if !is_break(last) => {
                self.put("-");
                false
            }
            (_, Some(second)) if !is_break(second) => false,
            _ => {
                self.put("+");
                true
            }
        };
        self.newline();
        let mut line_start = true;
        for c in text.chars() {
            if is_break(c) {
                self.push_break(c);
                line_start = true;
            } else {
                if std::mem::take(&mut line_start) {
                    self.line_at(indent);
                }
                self.push(c);
            }
        }
        self.open_ended = keep && self.dialect.python;
    }

    fn push(&mut self, c: char) {
        if self.is_full() {
            return;
        }
        self.out.push(c);
        self.column += 1;
    }

    fn push_break(&mut self, c: char) {
        if self.is_full() {
            return;
        }
        self.out.push(c);
        self.column = 0;
    }
}

fn escaped(c: char) -> String {
    let short = match c {
        '\0' => '0',
        '\u{7}' => 'a',
        '\u{8}' => 'b',
        '\t' => 't',
        '\n' => 'n',
        '\u{b}' => 'v',
        '\u{c}' => 'f',
        '\r' => 'r',
        '\u{1b}' => 'e',
        '"' | '\\' => c,
        '\u{85}' => 'N',
        '\u{a0}' => '_',
        '\u{2028}' => 'L',
        '\u{2029}' => 'P',
        _ => {
            let (letter, width) = match u32::from(c) {
                0..=0xff => ('x', 2),
                0x100..=0xffff => ('u', 4),
                _ => ('U', 8),
            };
            let mut text = format!("\\{letter}");
            let _ = write!(text, "{:0width$X}", u32::from(c));
            return text;
        }
    };
    format!("\\{short}")
}

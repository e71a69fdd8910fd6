//! The characters of a string, and the styles that they allow.

/// Styles that a string allows outside of flow collections.
#[derive(Debug)]
pub(super) struct Analysis {
    pub(super) plain: bool,
    pub(super) single_quoted: bool,
    pub(super) block: bool,
}

/// A line break of YAML 1.1; the carriage return is never written unescaped.
pub(super) fn is_break(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

fn is_blank_or_end(c: Option<char>) -> bool {
    c.is_none_or(|c| c == ' ' || c == '\t' || is_break(c))
}

/// Scans `text`; `printable` returns true for characters that need no escape.
pub(super) fn analyse(text: &str, printable: fn(char) -> bool) -> Analysis {
    if text.is_empty() {
        return Analysis {
            plain: true,
            single_quoted: true,
            block: false,
        };
    }
    let mut scan = Scan {
        indicators: text.starts_with("---") || text.starts_with("..."),
        ..Scan::default()
    };
    let mut chars = text.chars().peekable();
    let mut before = None;
    while let Some(c) = chars.next() {
        scan.special |= !printable(c);
        scan.visit(before, c, chars.peek().copied());
        before = Some(c);
    }
    let escaped = scan.special || scan.space_before_break;
    Analysis {
        plain: !(escaped || scan.indicators || scan.breaks || scan.edge_blank || scan.space_after_break),
        single_quoted: !(escaped || scan.space_after_break),
        block: !(escaped || scan.trailing_space),
    }
}

#[derive(Default)]
struct Scan {
    indicators: bool,
    breaks: bool,
    /// A character that needs an escape.
    special: bool,
    /// A blank or a break at the start or the end.
    edge_blank: bool,
    trailing_space: bool,
    space_before_break: bool,
    space_after_break: bool,
}

impl Scan {
    fn visit(&mut self, before: Option<char>, c: char, after: Option<char>) {
        self.indicators |= match (before, c) {
            (None, '#' | ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|') => true,
            (None, '>' | '\'' | '"' | '%' | '@' | '`') => true,
            (None, '-' | '?') | (_, ':') => is_blank_or_end(after),
            (Some(before), '#') => is_blank_or_end(Some(before)),
            _ => false,
        };
        let edge = before.is_none() || after.is_none();
        if c == ' ' {
            self.edge_blank |= edge;
            self.trailing_space |= after.is_none();
            self.space_after_break |= before.is_some_and(is_break);
        } else if is_break(c) {
            self.breaks = true;
            self.edge_blank |= edge;
            self.space_before_break |= before == Some(' ');
        }
    }
}

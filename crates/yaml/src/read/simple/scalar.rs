//! Scalars within one line.

/// The longest key; the parser has a limit of its own.
const MAX_KEY: usize = 256;

/// A scalar without its quotes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Found<'t> {
    pub(super) text: &'t str,
    pub(super) plain: bool,
}

impl<'t> Found<'t> {
    pub(super) fn plain(text: &'t str) -> Self {
        Self { text, plain: true }
    }

    pub(super) fn quoted(text: &'t str) -> Self {
        Self { text, plain: false }
    }

    /// Returns true if the scalar looks like an infinite number or NaN.
    pub(super) fn may_be_infinite(&self) -> bool {
        self.plain
            && self.text.len() <= 5
            && self.text.contains('.')
            && self.text.ends_with(['f', 'F', 'n', 'N'])
    }
}

/// The treatment of the line breaks after a block.
#[derive(Debug, Clone, Copy)]
pub(super) enum Chomping {
    Strip,
    Clip,
    Keep,
}

impl Chomping {
    pub(super) fn of(header: &str) -> Option<Self> {
        let (chomping, rest) = match header.as_bytes().first() {
            Some(b'-') => (Self::Strip, header.get(1..)?),
            Some(b'+') => (Self::Keep, header.get(1..)?),
            _ => (Self::Clip, header),
        };
        ends(rest).then_some(chomping)
    }

    pub(super) fn remaining_breaks(self, breaks: usize) -> usize {
        match self {
            Self::Strip => 0,
            Self::Clip => breaks.min(1),
            Self::Keep => breaks,
        }
    }
}

/// Removes leading spaces.
pub(super) fn unindented(text: &str) -> &str {
    let spaces = text.bytes().take_while(|byte| *byte == b' ').count();
    text.get(spaces..).unwrap_or_default()
}

/// Removes trailing spaces.
pub(super) fn trimmed(text: &str) -> &str {
    let spaces = text.bytes().rev().take_while(|byte| *byte == b' ').count();
    text.get(..text.len() - spaces).unwrap_or_default()
}

/// Returns the position of a byte that another one follows.
fn pair(text: &str, first: u8, second: u8) -> Option<usize> {
    let bytes = text.as_bytes();
    memchr::memchr_iter(first, bytes).find(|at| bytes.get(at + 1) == Some(&second))
}

/// The bytes of keys without quotes, except for colons.
const KEY: [bool; 256] = {
    let mut keys = [false; 256];
    let (mut rest, mut byte) = (keys.as_mut_slice(), 0u8);
    while let Some((is_key, behind)) = rest.split_first_mut() {
        *is_key = matches!(
            byte,
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'/' | b'.' | b'$' | b'-' | b'+' | b'@' | b'='
                | b'(' | b')' | b'*' | b'~'
        );
        rest = behind;
        byte = byte.wrapping_add(1);
    }
    keys
};

/// Returns true if only spaces and a comment follow.
pub(super) fn ends(rest: &str) -> bool {
    rest.is_empty() || (rest.starts_with(' ') && matches!(unindented(rest).bytes().next(), None | Some(b'#')))
}

/// Reads a key, and returns its length with its colon.
pub(super) fn key(text: &str) -> Option<(Found<'_>, usize)> {
    let bytes = text.as_bytes();
    let (found, length) = match bytes.first()? {
        b'"' | b'\'' => unescaped(text)?,
        first if first.is_ascii_alphanumeric() || matches!(first, b'_' | b'/' | b'.' | b'$') => {
            let inner = |byte: &u8| KEY.get(usize::from(*byte)).is_some_and(|is_inner| *is_inner);
            let mut length = bytes.iter().take_while(|byte| inner(byte)).count();
            // A colon belongs to the key unless a space follows.
            while bytes.get(length) == Some(&b':') && bytes.get(length + 1).is_some_and(inner) {
                length += 1 + bytes
                    .get(length + 1..)?
                    .iter()
                    .take_while(|byte| inner(byte))
                    .count();
            }
            (Found::plain(text.get(..length)?), length)
        }
        _ => return None,
    };
    let is_key = bytes.get(length) == Some(&b':') && matches!(bytes.get(length + 1), None | Some(b' '));
    let is_null = found.plain && matches!(found.text, "null" | "Null" | "NULL");
    (is_key && !is_null && length <= MAX_KEY).then_some((found, length + 1))
}

/// Reads a quoted string without escapes, and returns its length with the quotes.
fn unescaped(text: &str) -> Option<(Found<'_>, usize)> {
    let mark = text.get(..1)?;
    let end = 1 + text.get(1..)?.find(mark)?;
    let inner = text.get(1..end)?;
    let escapes = if mark == "\"" {
        inner.contains('\\')
    } else {
        text.get(end + 1..)?.starts_with('\'')
    };
    (!escapes && inner.is_ascii()).then_some((Found::quoted(inner), end + 1))
}

/// Reads a value that is the rest of its line, except for a comment.
pub(super) fn inline(text: &str) -> Option<Found<'_>> {
    if text.starts_with(['"', '\'']) {
        let mark = text.get(..1)?;
        let end = 1 + text.get(1..)?.find(mark)?;
        let inner = text.get(1..end)?;
        let behind = text.get(end + 1..)?;
        let escapes = mark == "\"" && inner.contains('\\');
        return (!escapes && ends(behind)).then_some(Found::quoted(inner));
    }
    let text = match pair(text, b' ', b'#') {
        Some(comment) => trimmed(text.get(..comment)?),
        None => text,
    };
    let begins = match text.as_bytes() {
        [b'-', next, ..] => *next != b' ',
        [first, ..] => !b"-?:,[]{}#&*!|>'\"%@`".contains(first),
        [] => false,
    };
    let is_map = text.ends_with(':') || pair(text, b':', b' ').is_some();
    (begins && !is_map).then_some(Found::plain(text))
}

/// Reads a word between brackets, and returns its length.
pub(super) fn word(text: &str) -> Option<(Found<'_>, usize)> {
    if text.starts_with(['"', '\'']) {
        return unescaped(text);
    }
    let first = text.as_bytes().first()?;
    let inner = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'/' | b'.' | b'-');
    let length = text.bytes().take_while(|byte| inner(byte)).count();
    (*first != b'-' && length > 0).then_some((Found::plain(text.get(..length)?), length))
}

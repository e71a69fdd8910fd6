//! Scalars that end in the line in which they begin.

use std::borrow::Cow;

/// The longest key; the parser has a limit of its own.
const MAX_KEY: usize = 256;

/// A scalar without its quotes.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Found<'t> {
    pub(super) text: Cow<'t, str>,
    pub(super) plain: bool,
}

impl<'t> Found<'t> {
    pub(super) fn plain(text: &'t str) -> Self {
        Self {
            text: text.into(),
            plain: true,
        }
    }

    pub(super) fn quoted(text: impl Into<Cow<'t, str>>) -> Self {
        Self {
            text: text.into(),
            plain: false,
        }
    }

    /// Whether this looks like a number without end, or like none at all.
    pub(super) fn may_be_infinite(&self) -> bool {
        self.plain
            && self.text.len() <= 5
            && self.text.contains('.')
            && self.text.ends_with(['f', 'F', 'n', 'N'])
    }
}

/// What becomes of the breaks behind a block.
#[derive(Debug, Clone, Copy)]
pub(super) enum Chomping {
    Strip,
    Clip,
    Keep,
}

impl Chomping {
    /// What stands behind `|`.
    pub(super) fn of(header: &str) -> Option<Self> {
        let (chomping, rest) = match header.as_bytes().first() {
            Some(b'-') => (Self::Strip, header.get(1..)?),
            Some(b'+') => (Self::Keep, header.get(1..)?),
            _ => (Self::Clip, header),
        };
        ends(rest).then_some(chomping)
    }

    /// How many of so many breaks stay.
    pub(super) fn kept(self, breaks: usize) -> usize {
        match self {
            Self::Strip => 0,
            Self::Clip => breaks.min(1),
            Self::Keep => breaks,
        }
    }
}

/// Whether nothing but spaces and a comment comes.
pub(super) fn ends(rest: &str) -> bool {
    rest.is_empty()
        || (rest.starts_with(' ') && matches!(rest.trim_start_matches(' ').bytes().next(), None | Some(b'#')))
}

/// A key and the length of it with its colon.
pub(super) fn key(text: &str) -> Option<(Found<'_>, usize)> {
    let bytes = text.as_bytes();
    let (found, length) = match bytes.first()? {
        b'"' | b'\'' => unescaped(text)?,
        first if first.is_ascii_alphanumeric() || matches!(first, b'_' | b'/' | b'.' | b'$') => {
            let inner = |byte: &u8| byte.is_ascii_alphanumeric() || b"_/.$-+@=()*~".contains(byte);
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
    let is_null = found.plain && matches!(&*found.text, "null" | "Null" | "NULL");
    (is_key && !is_null && length <= MAX_KEY).then_some((found, length + 1))
}

/// A text in quotation marks in which nothing is escaped, and its length with them.
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

/// A value that is all of the rest of its line, but for a comment.
pub(super) fn inline(text: &str) -> Option<Found<'_>> {
    if let Some(behind) = text.strip_prefix('\'') {
        // Another mark behind it would make it one that is meant.
        let (inner, behind) = behind.split_once('\'')?;
        return ends(behind).then_some(Found::quoted(inner));
    }
    if let Some(behind) = text.strip_prefix('"') {
        let (inner, behind) = unescape(behind)?;
        return ends(behind).then_some(Found::quoted(inner));
    }
    let text = match text.find(" #") {
        Some(comment) => text.get(..comment)?.trim_end_matches(' '),
        None => text,
    };
    let begins = match text.as_bytes() {
        [b'-', next, ..] => *next != b' ',
        [first, ..] => !b"-?:,[]{}#&*!|>'\"%@`".contains(first),
        [] => false,
    };
    let is_map = text.ends_with(':') || text.contains(": ");
    (begins && !is_map).then_some(Found::plain(text))
}

/// A text up to its quotation mark, with the characters that are meant where it has usual escapes, and what is behind it.
fn unescape(text: &str) -> Option<(Cow<'_, str>, &str)> {
    let (plain, behind) = text.split_at_checked(text.find(['"', '\\'])?)?;
    if let Some(behind) = behind.strip_prefix('"') {
        return Some((plain.into(), behind));
    }
    let mut meant = String::with_capacity(text.len());
    let mut rest = text;
    loop {
        let at = rest.find(['"', '\\'])?;
        meant.push_str(rest.get(..at)?);
        let escape = match rest.as_bytes().get(at..)? {
            [b'"', ..] => return Some((meant.into(), rest.get(at + 1..)?)),
            [_, b'"', ..] => '"',
            [_, b'\\', ..] => '\\',
            [_, b'n', ..] => '\n',
            [_, b't', ..] => '\t',
            _ => return None,
        };
        meant.push(escape);
        rest = rest.get(at + 2..)?;
    }
}

/// A word between brackets and its length.
pub(super) fn word(text: &str) -> Option<(Found<'_>, usize)> {
    if text.starts_with(['"', '\'']) {
        return unescaped(text);
    }
    let first = text.as_bytes().first()?;
    let inner = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'/' | b'.' | b'-');
    let length = text.bytes().take_while(|byte| inner(byte)).count();
    (*first != b'-' && length > 0).then_some((Found::plain(text.get(..length)?), length))
}
